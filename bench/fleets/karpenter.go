package fleets

import (
	"context"
	"fmt"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/dynamicresources/deviceallocation"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/bench/beside"
	"github.com/nodeautoprovision/nap/internal/karpenterengine"
)

// karpenter is Karpenter's consolidation, unchanged, at work on a cluster.
type karpenter struct {
	*Cluster
	kube     client.Client
	state    *state.Cluster
	clock    *clocktesting.FakeClock
	cloud    karpenterengine.Cloud
	recorder events.Recorder
	queue    *disruption.Queue
	planner  *provisioning.Provisioner
	methods  []disruption.Method
	// failed is the first error of a change that could not be told.
	failed error
}

// believes validates everything at once: Karpenter waits 15 seconds for each of
// its commands, which is not its decision's time.
type believes struct{}

// Validate implements disruption.Validator.
func (believes) Validate(_ context.Context, c disruption.Command, _ time.Duration) (disruption.Command, error) {
	return c, nil
}

// controller is Karpenter's controller that consolidates.
const controller = "disruption"

func newKarpenter(ctx context.Context, c *Cluster) (*karpenter, error) {
	k := &karpenter{
		Cluster: c, clock: clocktesting.NewFakeClock(quietSince.Add(time.Hour)),
		cloud:    karpenterengine.Cloud{Types: c.Types, Classes: []status.Object{&v1beta1.AKSNodeClass{}}},
		recorder: events.NewRecorder(&record.FakeRecorder{}),
	}
	if err := v1beta1.AddToScheme(scheme.Scheme); err != nil {
		return nil, fmt.Errorf("register AKSNodeClass: %w", err)
	}
	ctx = karpenterengine.Context(ctx, controller)
	objects := c.Objects()
	mirror, err := karpenterengine.NewMirror(objects)
	if err != nil {
		return nil, fmt.Errorf("hold the objects that Karpenter reads: %w", err)
	}
	k.kube = mirror
	k.state = state.NewCluster(k.clock, k.kube, k.cloud)
	k.planner = provisioning.NewProvisioner(k.kube, k.recorder, k.cloud, k.state, k.clock,
		deviceallocation.NewController(k.kube), virtualpods.NewVirtualPodCache(k.kube))
	k.queue = disruption.NewQueue(k.kube, k.recorder, k.state, k.clock, k.planner)
	base := disruption.MakeConsolidation(k.clock, k.state, k.kube, k.planner, k.cloud, k.recorder, k.queue)
	at := disruption.WithValidator(believes{})
	k.methods = []disruption.Method{
		disruption.NewEmptiness(base, at), disruption.NewMultiNodeConsolidation(base, at), disruption.NewSingleNodeConsolidation(base, at),
	}
	for _, o := range objects {
		k.tell(ctx, o)
	}
	c.Follow(func(o client.Object) { k.changed(ctx, o) }, func(o client.Object) { k.gone(ctx, o) })
	return k, k.failed
}

func (k *karpenter) fail(err error) {
	if k.failed == nil && err != nil {
		k.failed = err
	}
}

// tell tells Karpenter's mirror of an object.
func (k *karpenter) tell(ctx context.Context, o client.Object) {
	switch o := o.(type) {
	case *v1.NodeClaim:
		k.state.UpdateNodeClaim(o.DeepCopy())
	case *corev1.Node:
		k.fail(k.state.UpdateNode(ctx, o.DeepCopy()))
	case *corev1.Pod:
		k.fail(k.state.UpdatePod(ctx, o.DeepCopy()))
	}
}

// changed writes an object and tells of it.
func (k *karpenter) changed(ctx context.Context, o client.Object) {
	k.fail(k.kube.Update(ctx, o))
	k.tell(ctx, o)
}

func (k *karpenter) gone(ctx context.Context, o client.Object) {
	k.fail(k.kube.Delete(ctx, o))
	switch o := o.(type) {
	case *corev1.Node:
		k.state.DeleteNode(o.Name)
	case *v1.NodeClaim:
		k.state.DeleteNodeClaim(o.Name)
	case *corev1.Pod:
		k.state.DeletePod(client.ObjectKeyFromObject(o))
	}
}

// converge runs the methods in Karpenter's order, again from the first after
// each command, until none proposes anything or the time is over.
func (k *karpenter) converge(ctx context.Context, timeout time.Duration) (*Figures, error) {
	ctx = karpenterengine.Context(ctx, controller)
	f := &Figures{}
	var err error
	if f.TriedPerSecond, err = k.probe(ctx); err != nil {
		return nil, err
	}
	// Its own time limits go by the fake clock, so the context ends an answer.
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		start, cpu := time.Now(), beside.CPU()
		commands, err := k.askFirst(ctx, f)
		f.All += time.Since(start)
		f.CPU += beside.CPU() - cpu
		if ctx.Err() != nil {
			f.Stopped, f.Cost = true, k.Cost()
			return f, nil // it was stopped; what it made so far counts
		}
		if err != nil {
			return nil, err
		}
		if f.Answers == 0 {
			f.First = f.All
		}
		f.Cost = k.Cost()
		if len(commands) == 0 {
			return f, nil
		}
		f.Answers++
		f.Moves += len(commands)
		for i := range commands {
			if err := k.make(&commands[i], f); err != nil {
				return nil, err
			}
		}
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("after command %d: %w", f.Moves, err)
		}
	}
}

// probed is how many nodes probe tries.
const probed = 5

// probe measures how many single nodes Karpenter's simulation can try in a second
// on the fleet as it is.
func (k *karpenter) probe(ctx context.Context) (float64, error) {
	single := k.methods[len(k.methods)-1]
	candidates, err := disruption.GetCandidates(ctx, k.state, k.kube, k.recorder,
		k.clock, k.cloud, single.ShouldDisrupt, single.Class(), k.queue)
	if err != nil {
		return 0, fmt.Errorf("find Karpenter's candidates: %w", err)
	}
	candidates = candidates[:min(probed, len(candidates))]
	start := time.Now()
	for _, c := range candidates {
		if _, err := disruption.SimulateScheduling(ctx, k.kube, k.state, k.planner, k.clock, k.recorder, nil, c); err != nil {
			return 0, fmt.Errorf("simulate without node %s: %w", c.Name(), err)
		}
	}
	return float64(len(candidates)) / time.Since(start).Seconds(), nil
}

// askFirst asks, and measures the heap the first time.
func (k *karpenter) askFirst(ctx context.Context, f *Figures) (commands []disruption.Command, err error) {
	if f.Answers > 0 {
		return k.ask(ctx)
	}
	f.Peak = beside.Peak(10*time.Millisecond, func() { commands, err = k.ask(ctx) })
	return commands, err
}

func (k *karpenter) ask(ctx context.Context) ([]disruption.Command, error) {
	for _, m := range k.methods {
		candidates, err := disruption.GetCandidates(ctx, k.state, k.kube, k.recorder, k.clock, k.cloud, m.ShouldDisrupt, m.Class(), k.queue)
		if err != nil {
			return nil, fmt.Errorf("find Karpenter's candidates: %w", err)
		}
		if len(candidates) == 0 {
			continue
		}
		budgets, err := disruption.BuildDisruptionBudgetMapping(ctx, k.state, k.clock, k.kube, k.cloud, k.recorder, m.Reason())
		if err != nil {
			return nil, fmt.Errorf("count Karpenter's budgets: %w", err)
		}
		commands, err := m.ComputeCommands(ctx, budgets, candidates...)
		if err != nil {
			return nil, fmt.Errorf("run Karpenter's %s: %w", m.ConsolidationType(), err)
		}
		var out []disruption.Command
		for i := range commands {
			if commands[i].Decision() != disruption.NoOpDecision {
				out = append(out, commands[i])
			}
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	return nil, nil
}

// make makes a command; pods go where its simulation put them.
func (k *karpenter) make(c *disruption.Command, f *Figures) error {
	leaving := map[string]bool{}
	for _, candidate := range c.Candidates {
		leaving[candidate.Node.Name] = true
	}
	place := func(pods []*corev1.Pod, node string) {
		for _, p := range pods {
			if leaving[p.Spec.NodeName] {
				f.Evictions++
				k.place(client.ObjectKeyFromObject(p), node)
			}
		}
	}
	for _, n := range c.Results.ExistingNodes {
		place(n.Pods, n.Name())
	}
	for _, claim := range c.Results.NewNodeClaims {
		name, err := k.launch(claim)
		if err != nil {
			return err
		}
		place(claim.Pods, name)
	}
	for _, candidate := range c.Candidates {
		f.Removed++
		k.giveBack(candidate.Node.Name)
	}
	return k.failed
}

// launch buys a claim's cheapest offering.
func (k *karpenter) launch(claim *scheduling.NodeClaim) (string, error) {
	best, err := karpenterengine.Cheapest(claim)
	if err != nil {
		return "", err
	}
	return k.buy(best.InstanceType, best.Zone, best.CapacityType)
}
