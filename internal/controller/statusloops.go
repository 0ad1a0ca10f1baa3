package controller

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/changes"
	"github.com/nodeautoprovision/nap/internal/controller/freeze"
	"github.com/nodeautoprovision/nap/internal/controller/limitreached"
	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
)

// addStatusLoops adds the loops that say in the status of NodePools and AKSNodeClasses which
// purchases pause, what is frozen and which limits are reached. reached is as in
// limitreached.Loop. They look at all objects only where one of them has changed.
func addStatusLoops(
	ctx context.Context, mgr manager.Manager, backoff purchasebackoff.Loop, reached func() (map[string]string, bool),
) error {
	objects, err := changes.Of(ctx, mgr.GetCache(), &v1beta1.AKSNodeClass{}, &karpv1.NodePool{}, &karpv1.NodeClaim{})
	if err != nil {
		return err
	}
	nodePools, err := changes.Of(ctx, mgr.GetCache(), &karpv1.NodePool{})
	if err != nil {
		return err
	}
	backoff.Changes = objects.Count
	if err := mgr.Add(&backoff); err != nil {
		return fmt.Errorf("adding the loop that tells of purchases that led to nothing: %w", err)
	}
	frozen := &freeze.Loop{Kube: backoff.Kube, Recorder: backoff.Recorder, Clock: backoff.Clock, Changes: nodePools.Count}
	if err := mgr.Add(frozen); err != nil {
		return fmt.Errorf("adding the loop that tells which NodePools are frozen: %w", err)
	}
	limits := &limitreached.Loop{
		Kube: backoff.Kube, Recorder: backoff.Recorder, Clock: backoff.Clock, Reached: reached, Changes: nodePools.Count,
	}
	if err := mgr.Add(limits); err != nil {
		return fmt.Errorf("adding the loop that tells which NodePools have reached a limit: %w", err)
	}
	return nil
}
