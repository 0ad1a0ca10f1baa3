package controller

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/controller/changes"
	"github.com/nodeautoprovision/nap/internal/controller/karpenter"
	"github.com/nodeautoprovision/nap/internal/controller/mode"
	"github.com/nodeautoprovision/nap/internal/controller/prerequisitewatch"
	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
)

// newAssembly returns what Karpenter's controllers share, and adds the keeper of the mode. The
// cloud provider launches nothing in mode Manual, and holds back NodeClaims of no plan while
// registrations pause. controllers is the manager to which Karpenter's controllers are added.
func newAssembly(
	ctx context.Context, mgr, controllers manager.Manager, cfg Config, cloud *Cloud, checks func() prerequisitewatch.Report,
	registrations *purchasebackoff.Registrations,
) (*karpenter.Assembly, error) {
	objects, err := changes.Of(ctx, mgr.GetCache(), &karpv1.NodeClaim{}, &karpv1.NodePool{})
	if err != nil {
		return nil, err
	}
	cloud.mode = &mode.Keeper{
		Kube: mgr.GetClient(), Clock: cfg.Clock, Prerequisites: cloud.Paused, Token: cloud.tokens,
		Checks: checks, OutboundType: cloud.Surroundings.OutboundType,
		DefaultNodePools: cfg.Options.DefaultNodePools, Dataplane: cloud.Dataplane, Changes: objects.Count,
	}
	guard := purchasebackoff.NewGuard(cloud.Provider, mgr.GetClient(), registrations, cfg.Clock)
	assembly, err := karpenter.New(ctx, controllers, cfg.Clock, mode.Guard{CloudProvider: guard, Finding: cloud.mode.Finding})
	if err != nil {
		return nil, err
	}
	cloud.mode.Recorder = assembly.Recorder
	if err := mgr.Add(cloud.mode); err != nil {
		return nil, fmt.Errorf("adding the keeper of the mode: %w", err)
	}
	return assembly, nil
}
