package fleet

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

type noCatalogs struct{}

func (noCatalogs) Catalog(context.Context, string) (*Catalog, error) { return nil, nil }

// A node that is tainted for a move has its pods among those that need a place;
// to look at the move again they must be residents once more.
func TestNodesOfRunningCommandAreStatedAsBefore(t *testing.T) {
	store := NewStore()
	store.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
	store.Put(&Claim{Name: "general-1", Pool: "general", ProviderID: "a", NodeName: "node-1"})
	store.Put(&Node{Name: "node-1", ProviderID: "a", Registered: true, Initialized: true, Ready: true, Disrupted: true})
	store.Put(&Pod{
		Ref: model.PodRef{Namespace: "default", Name: "web"}, Node: "node-1", EvictionCost: 1,
		Spec: &PodSpec{Key: "web", Requests: Amounts{CPU: 100, Pods: 1}}, Labels: &Labels{},
	})
	for name, own := range map[string]map[string]bool{"begun": nil, "own": {"node-1": true}} {
		in, err := store.Snapshot().Disruption(t.Context(), noCatalogs{}, DisruptionOptions{Own: own})
		if err != nil {
			t.Fatal(err)
		}
		waiting, residents := in.Problem.PodCount(), len(in.Movable(in.Disruption.Usages[0].Pods))
		if begun := name == "begun"; in.Disruption.Usages[0].Disrupting != begun || (waiting == 1) != begun || (residents == 1) == begun {
			t.Errorf("%s: marked %v, %d pods wait, %d live on the node", name, in.Disruption.Usages[0].Disrupting, waiting, residents)
		}
	}
}

// A pod which states too much, or which has resource claims, has no place elsewhere: it is
// no part of the problem, and its node is told why it stays.
func TestPodThatIsNotPlannedKeepsItsNode(t *testing.T) {
	for reason, spec := range map[model.Reason]*PodSpec{
		model.ReasonAsksTooMuch: {Key: "web", TooMuch: "the pod states 33 topology spread constraints", Requests: Amounts{CPU: 100, Pods: 1}},
		model.ReasonResourceClaims: {
			Key: "web", DeviceClaims: []DeviceClaimRef{{Name: "gpu", Template: "gpu"}}, Requests: Amounts{CPU: 100, Pods: 1},
		},
	} {
		t.Run(string(reason), func(t *testing.T) { keepsItsNode(t, spec, reason) })
	}
}

func keepsItsNode(t *testing.T, spec *PodSpec, reason model.Reason) {
	t.Helper()
	message := cmp.Or(spec.TooMuch, "spec.resourceClaims: nap leaves pods with resource claims alone here (--ignore-dra-requests)")
	store := oneNode(Claim{})
	store.Put(&Pod{Ref: model.PodRef{Namespace: "default", Name: "runs"}, Node: "node-1", EvictionCost: 1, Spec: spec, Labels: &Labels{}})
	store.Put(&Pod{Ref: model.PodRef{Namespace: "default", Name: "waits"}, Wanted: true, Spec: spec, Labels: &Labels{}})
	in, err := store.Snapshot().Disruption(t.Context(), noCatalogs{}, DisruptionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	usage := in.Disruption.Usages[0]
	if len(usage.Pods)+len(in.Problem.Classes) != 0 || in.Problem.Nodes[0].Used[model.CPU] != 100 {
		t.Errorf("%d classes move, %d wait, the node's pods use %d of its CPU", len(usage.Pods), len(in.Problem.Classes), in.Problem.Nodes[0].Used[model.CPU])
	}
	if held := usage.DoNotDisruptPods; len(held) != 1 || held[0].Pod.Name != "runs" || held[0].Why != message {
		t.Errorf("what keeps the node: %+v", held)
	}
	if r := in.Rejected; len(r) != 1 || r[0].Pod.Name != "waits" || r[0].Reason != reason || r[0].Message != message {
		t.Errorf("what is refused: %+v", r)
	}
}

// What a move was to save is owed for its pods, not for those that have ended.
func TestExpectedSavingCountsOnlyRemainingPods(t *testing.T) {
	for name, c := range map[string]struct {
		requests Amounts
		pods     int
		want     model.Money
	}{
		"all are there":               {Amounts{CPU: 400, Memory: 4 << 30}, 4, model.USD(0.2)},
		"half are there":              {Amounts{CPU: 400, Memory: 4 << 30}, 2, model.USD(0.1)},
		"more than it was bought for": {Amounts{CPU: 200, Memory: 2 << 30}, 4, model.USD(0.2)},
		"nobody said what for":        {Amounts{}, 1, model.USD(0.2)},
	} {
		store := oneNode(Claim{ExpectedSaving: model.USD(0.2), Requests: c.requests})
		for i := range c.pods {
			store.Put(&Pod{
				Ref: model.PodRef{Namespace: "default", Name: fmt.Sprint("web-", i)}, Node: "node-1", EvictionCost: 1,
				Spec: &PodSpec{Key: "web", Requests: Amounts{CPU: 100, Memory: 1 << 30, Pods: 1}}, Labels: &Labels{},
			})
		}
		in, err := store.Snapshot().Disruption(t.Context(), noCatalogs{}, DisruptionOptions{Terms: model.DefaultConsolidationTerms()})
		if err != nil {
			t.Fatal(err)
		}
		if got := in.Disruption.Usages[0].ExpectedSaving; got != c.want {
			t.Errorf("%s: the machine owes %s, want %s", name, got, c.want)
		}
	}
}

// The NodeClaim is told of pods that leave up to ten seconds late.
func TestLastPodEventIncludesTerminatingPods(t *testing.T) {
	told := time.Date(2026, 6, 18, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		pod  Pod
		want time.Time
	}{
		"it leaves":             {Pod{Terminating: true, Leaving: &Leaving{Since: told.Add(9 * time.Second)}}, told.Add(9 * time.Second)},
		"it has left long ago":  {Pod{Terminating: true, Leaving: &Leaving{Since: told.Add(-time.Hour)}}, told},
		"it stays":              {Pod{}, told},
		"it is a daemon's":      {Pod{Terminating: true, Daemon: true, Leaving: &Leaving{Since: told.Add(9 * time.Second)}}, told},
		"it leaves another one": {Pod{Terminating: true, Node: "node-2", Leaving: &Leaving{Since: told.Add(9 * time.Second)}}, told},
	} {
		store := oneNode(Claim{LastPodEvent: told})
		store.Put(onNode(c.pod))
		in, err := store.Snapshot().Disruption(t.Context(), noCatalogs{}, DisruptionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := in.Disruption.Usages[0].LastPodEvent; !got.Equal(c.want) {
			t.Errorf("%s: the last pod event is at %s, want %s", name, got, c.want)
		}
	}
}

// A drain evicts DaemonSet pods that do not tolerate the taint of the node, so their budgets
// are stated beside the pods that move.
func TestBudgetsOfDaemonPodsThatADrainEvictsAreStated(t *testing.T) {
	store := oneNode(Claim{})
	everywhere := []model.Toleration{{Exists: true}}
	for name, p := range map[string]*Pod{
		"web":       {},
		"agent":     {Daemon: true},
		"log":       {Daemon: true},
		"tolerates": {Daemon: true, Spec: &PodSpec{PodRules: model.PodRules{Tolerations: everywhere}}},
		"leaves":    {Daemon: true, Terminating: true},
		"ended":     {Daemon: true, Terminal: true},
		"mirror":    {Static: true},
		"unguarded": {Daemon: true, Labels: &Labels{}},
	} {
		p.Ref, p.Node = model.PodRef{Namespace: "default", Name: name}, "node-1"
		if p.Spec == nil {
			p.Spec = &PodSpec{Key: name, Requests: Amounts{CPU: 100, Pods: 1}}
		}
		if p.Labels == nil {
			p.Labels = &Labels{Key: name, Values: map[string]string{"app": name}}
		}
		store.Put(p)
	}
	labelled := model.Requirements{{Key: "app", Operator: model.Exists}}
	store.Put(&Budget{Namespace: "default", Name: "all", Selector: &model.Selector{Requirements: labelled}, Allowed: 1})
	store.Put(&Budget{Namespace: "default", Name: "agent", Blocking: true, Selector: &model.Selector{
		Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{"agent"}}},
	}})
	in, err := store.Snapshot().Disruption(t.Context(), noCatalogs{}, DisruptionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d, got := in.Disruption, ""
	for _, p := range d.Usages[0].DaemonPods {
		got += p.Pod.String() + ":"
		for _, k := range p.Budgets {
			got += " " + d.Budgets[k].String()
		}
		got += "\n"
	}
	if want := "default/agent: default/agent default/all\ndefault/log: default/all\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Consolidation waits for pods that will be gone in moments, not for those that take longer or hang.
func TestEndingPodsAreCountedUntilTheyHang(t *testing.T) {
	now := time.Date(2026, 6, 18, 12, 0, 0, 0, time.UTC)
	goes := func(in time.Duration) *Leaving { return &Leaving{Since: now.Add(-time.Hour), GoneBy: now.Add(in)} }
	for name, c := range map[string]struct {
		pod  Pod
		want time.Duration // until when it is waited for, 0 for not at all
	}{
		"it stays":              {Pod{}, 0},
		"it ends":               {Pod{Terminating: true, Leaving: goes(30 * time.Second)}, 30 * time.Second},
		"it takes longer":       {Pod{Terminating: true, Leaving: goes(31 * time.Second)}, 0},
		"it is overdue":         {Pod{Terminating: true, Leaving: goes(-10 * time.Second)}, 20 * time.Second},
		"it hangs":              {Pod{Terminating: true, Leaving: goes(-30 * time.Second)}, 0},
		"it is a daemon's":      {Pod{Terminating: true, Daemon: true, Leaving: goes(time.Second)}, 0},
		"it has ended":          {Pod{Terminating: true, Terminal: true, Leaving: goes(time.Second)}, 0},
		"it leaves another one": {Pod{Terminating: true, Node: "node-2", Leaving: goes(time.Second)}, 0},
	} {
		store := oneNode(Claim{})
		store.Put(onNode(c.pod))
		in, err := store.Snapshot().Disruption(t.Context(), noCatalogs{}, DisruptionOptions{Options: Options{Now: now}})
		if err != nil {
			t.Fatal(err)
		}
		usage := &in.Disruption.Usages[0]
		if waits := c.want > 0; waits != (usage.Ending == 1) || waits && !usage.EndingUntil.Equal(now.Add(c.want)) {
			t.Errorf("%s: %d pods end, waited for until %s, want %s", name, usage.Ending, usage.EndingUntil, c.want)
		}
	}
}

// A node on which pods of a Job have ended waits for as many as the Job has still to create.
func TestPodsOfJobsComeAgain(t *testing.T) {
	now := time.Date(2026, 6, 18, 12, 0, 0, 0, time.UTC)
	type ended = map[string]int // pods by node; those of no node live
	for name, c := range map[string]struct {
		job  Workload
		pods ended
		idle time.Duration
		want int
	}{
		"it creates two more":           {Workload{Pods: 2, Left: 2}, ended{"node-1": 3}, 10 * time.Second, 2},
		"it creates all again":          {Workload{Pods: 3, Left: 3}, ended{"node-1": 3}, 0, 3},
		"they run elsewhere already":    {Workload{Pods: 3, Left: 3}, ended{"node-1": 3, "": 3}, 0, 0},
		"one of them does":              {Workload{Pods: 3, Left: 3}, ended{"node-1": 3, "": 1}, 0, 2},
		"it has ended":                  {Workload{Pods: 0}, ended{"node-1": 3}, 0, 0},
		"they ended on another node":    {Workload{Pods: 3, Left: 3}, ended{"node-2": 3}, 0, 0},
		"some ended on another node":    {Workload{Pods: 3, Left: 3}, ended{"node-2": 3, "node-1": 1}, 0, 1},
		"they do not come":              {Workload{Pods: 3, Left: 3}, ended{"node-1": 3}, 30 * time.Second, 0},
		"all of its completions happen": {Workload{Pods: 3, Left: 3}, ended{"node-1": -3}, 0, 0},
	} {
		store := oneNode(Claim{Initialized: now.Add(-time.Hour), LastPodEvent: now.Add(-c.idle)})
		c.job.UID, c.job.Namespace, c.job.Name, c.job.Silent = "job", "default", "train", true
		store.Put(&c.job)
		for node, n := range c.pods {
			for i := range max(n, -n) {
				store.Put(&Pod{
					Ref: model.PodRef{Namespace: "default", Name: fmt.Sprint(node, "-", i)}, Spec: &PodSpec{Key: "train"}, Labels: &Labels{},
					Owner: Owner{Kind: "Job", Name: "train"}, OwnerUID: "job", Node: node, Terminal: node != "", Uncounted: n < 0,
				})
			}
		}
		in, err := store.Snapshot().Disruption(t.Context(), noCatalogs{}, DisruptionOptions{Options: Options{Now: now}})
		if err != nil {
			t.Fatal(err)
		}
		usage := &in.Disruption.Usages[0]
		if usage.Returning != c.want || c.want > 0 && !usage.ReturningUntil.Equal(now.Add(returnsWithin-c.idle)) {
			t.Errorf("%s: %d pods come again until %s, want %d", name, usage.Returning, usage.ReturningUntil, c.want)
		}
	}
}

// oneNode is a NodePool with one node, whose claim says so much besides.
func oneNode(claim Claim) *Store {
	claim.Name, claim.Pool, claim.ProviderID, claim.NodeName = "general-1", "general", "a", "node-1"
	store := NewStore()
	store.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
	store.Put(&claim)
	store.Put(&Node{Name: "node-1", ProviderID: "a", Registered: true, Initialized: true, Ready: true})
	return store
}

// onNode is a small pod, on the node of oneNode if it is on none.
func onNode(p Pod) *Pod {
	p.Ref, p.Labels = model.PodRef{Namespace: "default", Name: "web"}, &Labels{}
	p.Spec = &PodSpec{Key: "web", Requests: Amounts{CPU: 100, Pods: 1}}
	if p.Node == "" {
		p.Node = "node-1"
	}
	return &p
}
