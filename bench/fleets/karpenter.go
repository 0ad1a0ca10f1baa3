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
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
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
	cluster *Cluster
	mirror  *karpenterMirror
	decider *karpenterDecider
}

// karpenterMirror holds a cluster as Karpenter sees it.
type karpenterMirror struct {
	kube  client.Client
	state *state.Cluster
	// failed is the first error of a change that could not be told.
	failed error
}

// karpenterDecider asks Karpenter's methods of consolidation for commands.
type karpenterDecider struct {
	kube     client.Client
	state    *state.Cluster
	clock    *clocktesting.FakeClock
	cloud    karpenterengine.Cloud
	recorder events.Recorder
	queue    *disruption.Queue
	// provisioner simulates where the pods of candidates would go.
	provisioner *provisioning.Provisioner
	// methods are in the order in which Karpenter runs them.
	methods []disruption.Method
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
	if err := v1beta1.AddToScheme(scheme.Scheme); err != nil {
		return nil, fmt.Errorf("register AKSNodeClass: %w", err)
	}
	ctx = karpenterengine.Context(ctx, controller)
	objects := c.Objects()
	kube, err := karpenterengine.NewMirror(objects)
	if err != nil {
		return nil, fmt.Errorf("hold the objects that Karpenter reads: %w", err)
	}
	decider := newKarpenterDecider(kube, c.Types)
	mirror := &karpenterMirror{kube: kube, state: decider.state}
	for _, o := range objects {
		mirror.tell(ctx, o)
	}
	c.Follow(func(o client.Object) { mirror.changed(ctx, o) }, func(o client.Object) { mirror.gone(ctx, o) })
	return &karpenter{cluster: c, mirror: mirror, decider: decider}, mirror.failed
}

func newKarpenterDecider(kube client.Client, instanceTypes []*cloudprovider.InstanceType) *karpenterDecider {
	d := &karpenterDecider{
		kube: kube, clock: clocktesting.NewFakeClock(quietSince.Add(time.Hour)),
		cloud:    karpenterengine.Cloud{Types: instanceTypes, Classes: []status.Object{&v1beta1.AKSNodeClass{}}},
		recorder: events.NewRecorder(&record.FakeRecorder{}),
	}
	d.state = state.NewCluster(d.clock, d.kube, d.cloud)
	devices, virtualPods := deviceallocation.NewController(d.kube), virtualpods.NewVirtualPodCache(d.kube)
	d.provisioner = provisioning.NewProvisioner(d.kube, d.recorder, d.cloud, d.state, d.clock, devices, virtualPods)
	d.queue = disruption.NewQueue(d.kube, d.recorder, d.state, d.clock, d.provisioner)
	base := disruption.MakeConsolidation(d.clock, d.state, d.kube, d.provisioner, d.cloud, d.recorder, d.queue)
	at := disruption.WithValidator(believes{})
	d.methods = []disruption.Method{
		disruption.NewEmptiness(base, at), disruption.NewMultiNodeConsolidation(base, at), disruption.NewSingleNodeConsolidation(base, at),
	}
	return d
}

func (m *karpenterMirror) fail(err error) {
	if m.failed == nil && err != nil {
		m.failed = err
	}
}

// tell tells the mirror of an object.
func (m *karpenterMirror) tell(ctx context.Context, o client.Object) {
	switch o := o.(type) {
	case *v1.NodeClaim:
		m.state.UpdateNodeClaim(o.DeepCopy())
	case *corev1.Node:
		m.fail(m.state.UpdateNode(ctx, o.DeepCopy()))
	case *corev1.Pod:
		m.fail(m.state.UpdatePod(ctx, o.DeepCopy()))
	}
}

// changed writes an object and tells of it.
func (m *karpenterMirror) changed(ctx context.Context, o client.Object) {
	m.fail(m.kube.Update(ctx, o))
	m.tell(ctx, o)
}

func (m *karpenterMirror) gone(ctx context.Context, o client.Object) {
	m.fail(m.kube.Delete(ctx, o))
	switch o := o.(type) {
	case *corev1.Node:
		m.state.DeleteNode(o.Name)
	case *v1.NodeClaim:
		m.state.DeleteNodeClaim(o.Name)
	case *corev1.Pod:
		m.state.DeletePod(client.ObjectKeyFromObject(o))
	}
}

// candidates are the nodes that a method may disrupt.
func (d *karpenterDecider) candidates(ctx context.Context, m disruption.Method) ([]*disruption.Candidate, error) {
	found, err := disruption.GetCandidates(ctx, d.state, d.kube, d.recorder, d.clock, d.cloud, m.ShouldDisrupt, m.Class(), d.queue)
	if err != nil {
		return nil, fmt.Errorf("find Karpenter's candidates: %w", err)
	}
	return found, nil
}

// probed is how many nodes probe tries.
const probed = 5

// probe measures how many single nodes Karpenter's simulation can try in a second
// on the fleet as it is.
func (d *karpenterDecider) probe(ctx context.Context) (float64, error) {
	single := d.methods[len(d.methods)-1]
	candidates, err := d.candidates(ctx, single)
	if err != nil {
		return 0, err
	}
	candidates = candidates[:min(probed, len(candidates))]
	start := time.Now()
	for _, c := range candidates {
		_, err := disruption.SimulateScheduling(ctx, d.kube, d.state, d.provisioner, d.clock, d.recorder, nil,
			disruption.SimulationOptions{}, c)
		if err != nil {
			return 0, fmt.Errorf("simulate without node %s: %w", c.Name(), err)
		}
	}
	return float64(len(candidates)) / time.Since(start).Seconds(), nil
}

// ask returns the commands of the first method that proposes any.
func (d *karpenterDecider) ask(ctx context.Context) ([]disruption.Command, error) {
	for _, m := range d.methods {
		candidates, err := d.candidates(ctx, m)
		if err != nil {
			return nil, err
		}
		if len(candidates) == 0 {
			continue
		}
		budgets, err := disruption.BuildDisruptionBudgetMapping(ctx, d.state, d.clock, d.kube, d.cloud, d.recorder, m.Reason())
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

// converge runs the methods in Karpenter's order, again from the first after
// each command, until none proposes anything or the time is over.
func (k *karpenter) converge(ctx context.Context, timeout time.Duration) (*Figures, error) {
	ctx = karpenterengine.Context(ctx, controller)
	f := &Figures{}
	var err error
	if f.TriedPerSecond, err = k.decider.probe(ctx); err != nil {
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
			f.Stopped, f.Cost = true, k.cluster.Cost()
			return f, nil // it was stopped; what it made so far counts
		}
		if err != nil {
			return nil, err
		}
		if f.Answers == 0 {
			f.First = f.All
		}
		f.Cost = k.cluster.Cost()
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
		if err := k.cluster.check(); err != nil {
			return nil, fmt.Errorf("after command %d: %w", f.Moves, err)
		}
	}
}

// askFirst asks, and measures the heap the first time.
func (k *karpenter) askFirst(ctx context.Context, f *Figures) (commands []disruption.Command, err error) {
	if f.Answers > 0 {
		return k.decider.ask(ctx)
	}
	f.Peak = beside.Peak(10*time.Millisecond, func() { commands, err = k.decider.ask(ctx) })
	return commands, err
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
				k.cluster.place(client.ObjectKeyFromObject(p), node)
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
		k.cluster.giveBack(candidate.Node.Name)
	}
	return k.mirror.failed
}

// launch buys a claim's cheapest offering.
func (k *karpenter) launch(claim *scheduling.NodeClaim) (string, error) {
	best, err := karpenterengine.Cheapest(claim)
	if err != nil {
		return "", err
	}
	return k.cluster.buy(best.InstanceType, best.Zone, best.CapacityType)
}
