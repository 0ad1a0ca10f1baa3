package controller

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	nodepoolutils "sigs.k8s.io/karpenter/pkg/utils/nodepool"

	"github.com/nodeautoprovision/nap/internal/controller/advice"
	"github.com/nodeautoprovision/nap/internal/controller/karpenter"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/outage"
	"github.com/nodeautoprovision/nap/internal/controller/prerequisitewatch"
	"github.com/nodeautoprovision/nap/internal/poollint"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// Surroundings is what the cloud knows of the cluster and its subscription beside what it
// sells: whether nap can work there.
type Surroundings struct {
	// Facts reads what the checks of prerequisites look at, with the rights of the
	// controller. It bounds its own time.
	Facts func(context.Context) *prerequisites.Facts
	// Doctor is the command that says more of the checks.
	Doctor string
	// OutboundType is how machines reach the internet; empty where the cluster does not tell.
	OutboundType string
	// Excluded says why a size that the region sells cannot be bought by a NodePool, or "".
	Excluded func(ctx context.Context, pool *karpv1.NodePool) func(size string) string
}

// newChecks returns the loop that looks at the prerequisites; it has no recorder yet.
func newChecks(mgr manager.Manager, cfg Config, cloud *Cloud) (*prerequisitewatch.Loop, error) {
	numbers, err := metrics.NewPrerequisites(ctrlmetrics.Registry)
	if err != nil {
		return nil, err
	}
	return &prerequisitewatch.Loop{
		Kube: mgr.GetClient(), Clock: cfg.Clock, Metrics: numbers, Read: cloud.Surroundings.Facts, Doctor: cloud.Surroundings.Doctor,
		Random: rand.New(rand.NewPCG(uint64(cfg.Clock.Now().UnixNano()), 0)).Float64, //nolint:gosec // the time of a look is no secret
	}, nil
}

// registerWatches adds the loops that tell what is not as it should be, and decide nothing.
func registerWatches(mgr manager.Manager, cfg Config, assembly *karpenter.Assembly, cloud *Cloud, checks *prerequisitewatch.Loop) error {
	checks.Recorder = assembly.Recorder
	if err := mgr.Add(checks); err != nil {
		return fmt.Errorf("adding the loop that looks at the prerequisites: %w", err)
	}
	pauses, err := metrics.NewPauses(ctrlmetrics.Registry)
	if err != nil {
		return err
	}
	told := &outage.Loop{Kube: mgr.GetClient(), Recorder: assembly.Recorder, Clock: cfg.Clock, Metrics: pauses, Watches: watches(cloud)}
	if err := mgr.Add(told); err != nil {
		return fmt.Errorf("adding the loop that tells why nothing is launched: %w", err)
	}
	unwise := &advice.Loop{
		Kube: mgr.GetClient(), Recorder: assembly.Recorder, Clock: cfg.Clock,
		Manages:  func(p *karpv1.NodePool) bool { return nodepoolutils.IsManaged(p, assembly.Cloud) },
		Catalogs: cloud.Catalogs, Excluded: cloud.Surroundings.Excluded, Market: cloud.Market,
		Subscription: func() poollint.Subscription {
			report := checks.Report()
			return poollint.Subscription{Limits: cloud.limits(), NoManagedGPU: slices.Contains(report.Names(), prerequisites.RowManagedGPU)}
		},
	}
	if err := mgr.Add(unwise); err != nil {
		return fmt.Errorf("adding the loop that tells what is unwise about NodePools: %w", err)
	}
	return nil
}

// limits are the quotas of the region in vCPUs, by name.
func (c *Cloud) limits() map[string]int64 {
	out := map[string]int64{}
	for _, l := range c.Told().Quotas {
		out[l.Name] = l.Limit
	}
	return out
}

// tellOfProcess registers the metrics of the process: what it was built from, and whether it acts.
func tellOfProcess(mgr manager.Manager) error {
	if err := metrics.RegisterBuild(ctrlmetrics.Registry); err != nil {
		return err
	}
	return tellWhoLeads(mgr)
}

// tellWhoLeads lets the replica that acts say so.
func tellWhoLeads(mgr manager.Manager) error {
	leading, err := metrics.NewLeading(ctrlmetrics.Registry)
	if err != nil {
		return err
	}
	if err := mgr.Add(leading); err != nil {
		return fmt.Errorf("adding the metric of the leader: %w", err)
	}
	return nil
}
