package controller

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/controller/ledgerkeeper"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
)

// newLedger returns the keeper of the ledger. It must not be started before the mirror has
// seen the whole cluster: machines that it does not see have ended.
func newLedger(
	mgr manager.Manager, cfg Config, market func() uint64, collector *snapshot.Collector, m mirror,
) (*ledgerkeeper.Keeper, error) {
	numbers, err := metrics.NewPurchases(ctrlmetrics.Registry)
	if err != nil {
		return nil, err
	}
	keeper := &ledgerkeeper.Keeper{
		Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(), Clock: cfg.Clock, Fleet: m.Snapshot, Catalogs: collector.Catalogs,
		Labels: ledgerLabels(cfg.Options.LedgerLabels), Paid: numbers.Bought, Market: market,
	}
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		informer, err := mgr.GetCache().GetInformer(ctx, &karpv1.NodeClaim{})
		if err == nil {
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
				if late, is := o.(toolscache.DeletedFinalStateUnknown); is {
					o = late.Obj
				}
				if claim, is := o.(*karpv1.NodeClaim); is {
					keeper.Gone(claim.Name, keeper.Clock.Now())
				}
			}})
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("watching when NodeClaims end: %w", err)
		}
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("adding the watch of NodeClaims that end: %w", err)
	}
	return keeper, nil
}
