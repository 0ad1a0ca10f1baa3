package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/model"
)

// noon is when the tests of budgets ask.
var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// budgetsOf indexes records by their names.
func budgetsOf(records ...*Budget) *podBudgets {
	byKey := map[objectKey]*Budget{}
	for _, b := range records {
		byKey[objectKey{b.Namespace, b.Name}] = b
	}
	return newPodBudgets(byKey, noon)
}

func TestBudgetsBlockAPodForGood(t *testing.T) {
	everything := &model.Selector{}
	budget := func(name string) *Budget { return &Budget{Namespace: "default", Name: name, Selector: everything} }
	never := &Budget{Namespace: "default", Name: "a", Selector: everything, Blocking: true}
	from := func(at time.Time) []*Budget {
		return []*Budget{{Namespace: "default", Name: "a", Selector: everything, BlockingFrom: at}}
	}
	frees := &Budget{Namespace: "default", Name: "a", Selector: everything, Blocking: true, FreesUnready: true}
	stays := &PodSpec{PodRules: model.PodRules{Tolerations: []model.Toleration{{Exists: true}}}}
	for name, c := range map[string]struct {
		pod     Pod
		budgets []*Budget
		want    bool
	}{
		"no budget":                        {Pod{}, nil, false},
		"one that allows none now":         {Pod{}, []*Budget{budget("a")}, false},
		"one that never allows any":        {Pod{}, []*Budget{never}, true},
		"one that allows none from now on": {Pod{}, from(noon), true},
		"one that may allow one yet":       {Pod{}, from(noon.Add(time.Second)), false},
		"two":                              {Pod{}, []*Budget{budget("a"), budget("b")}, true},
		"one of another namespace":         {Pod{}, []*Budget{{Namespace: "other", Name: "a", Selector: everything, Blocking: true}}, false},
		"one that frees it":                {Pod{Unready: true}, []*Budget{frees}, false},
		"one that would free it":           {Pod{}, []*Budget{frees}, true},
		"one that frees it, of two":        {Pod{Unready: true}, []*Budget{frees, budget("b")}, true},
		"pod that no drain evicts":         {Pod{Spec: stays}, []*Budget{never, budget("b")}, false},
		"pod that leaves already":          {Pod{Terminating: true}, []*Budget{never}, false},
	} {
		web := c.pod
		web.Ref, web.Labels = model.PodRef{Namespace: "default", Name: "web"}, &Labels{}
		if web.Spec == nil {
			web.Spec = &PodSpec{}
		}
		if got := budgetsOf(c.budgets...).block(&web); got != c.want {
			t.Errorf("%s: blocks %v, want %v", name, got, c.want)
		}
	}
}

func TestBudgetsAreListedOnceByFirstUse(t *testing.T) {
	everything, web := &model.Selector{}, &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{"web"}}}}
	b := budgetsOf(
		&Budget{Namespace: "default", Name: "b", Selector: everything, Allowed: 2},
		&Budget{Namespace: "default", Name: "a", Selector: web},
		&Budget{Namespace: "unused", Name: "c", Selector: everything},
	)
	of := func(app string) []int {
		labels := &Labels{Values: map[string]string{"app": app}}
		return b.of(&Pod{Ref: model.PodRef{Namespace: "default", Name: app}, Labels: labels, Spec: &PodSpec{}})
	}
	if diff := cmp.Diff([][]int{{0}, {1, 0}}, [][]int{of("api"), of("web")}); diff != "" {
		t.Errorf("indices differ (-want +got):\n%s", diff)
	}
	want := []model.PodBudget{{Namespace: "default", Name: "b", Allowed: 2}, {Namespace: "default", Name: "a"}}
	if diff := cmp.Diff(want, b.listed); diff != "" {
		t.Errorf("the list differs (-want +got):\n%s", diff)
	}
}

// The eviction API refuses a pod of two budgets before it asks whether one of them frees it.
func TestBudgetFreesUnreadyPodsOfNoOther(t *testing.T) {
	labels := &Labels{}
	pod := func(unready bool) *Pod {
		return &Pod{Ref: model.PodRef{Namespace: "default", Name: "web"}, Labels: labels, Spec: &PodSpec{}, Unready: unready}
	}
	frees := &Budget{Namespace: "default", Name: "a", Selector: &model.Selector{}, FreesUnready: true}
	other := &Budget{Namespace: "default", Name: "b", Selector: &model.Selector{}, Allowed: 1}
	for name, c := range map[string]struct {
		budgets        []*Budget
		unready, ready int // how many budgets are asked
	}{
		"alone":      {[]*Budget{frees}, 0, 1},
		"of two":     {[]*Budget{frees, other}, 2, 2},
		"of no kind": {[]*Budget{other}, 1, 1},
	} {
		b := budgetsOf(c.budgets...)
		if unready, ready := len(b.of(pod(true))), len(b.of(pod(false))); unready != c.unready || ready != c.ready {
			t.Errorf("%s: %d budgets for a pod that is not ready and %d for one that is, want %d and %d", name, unready, ready, c.unready, c.ready)
		}
	}
}

// A drain evicts neither pods that tolerate the taint of the node nor those that go already, so
// no budget is asked about them.
func TestPodsThatNoDrainEvictsHaveNoBudgets(t *testing.T) {
	b := budgetsOf(&Budget{Namespace: "default", Name: "a", Selector: &model.Selector{}, Blocking: true})
	labels := &Labels{} // the answer for one pod is not that for others with its labels
	tolerates := func(t model.Toleration) *PodSpec {
		return &PodSpec{PodRules: model.PodRules{Tolerations: []model.Toleration{t}}}
	}
	for name, c := range map[string]struct {
		pod  Pod
		want int
	}{
		"evicted":                          {Pod{Spec: &PodSpec{}}, 1},
		"tolerates everything":             {Pod{Spec: tolerates(model.Toleration{Exists: true})}, 0},
		"tolerates the taint":              {Pod{Spec: tolerates(model.Toleration{Key: "karpenter.sh/disrupted", Exists: true})}, 0},
		"tolerates it for NoExecute alone": {Pod{Spec: tolerates(model.Toleration{Exists: true, Effect: model.NoExecute})}, 1},
		"leaves already":                   {Pod{Spec: &PodSpec{}, Terminating: true}, 0},
		"static":                           {Pod{Spec: &PodSpec{}, Static: true}, 0},
	} {
		c.pod.Ref, c.pod.Labels = model.PodRef{Namespace: "default", Name: "web"}, labels
		if got := len(b.of(&c.pod)); got != c.want {
			t.Errorf("%s: %d budgets, want %d", name, got, c.want)
		}
	}
}

func TestBudgetsHoldAPodForTheMoment(t *testing.T) {
	budget := func(name string, allowed int32) *Budget {
		return &Budget{Namespace: "default", Name: name, Selector: &model.Selector{}, Allowed: allowed, FreesUnready: true}
	}
	for name, c := range map[string]struct {
		pod     *Pod
		budgets []*Budget
		want    bool
	}{
		"no pod":                            {nil, []*Budget{budget("a", 0)}, false},
		"no budget":                         {&Pod{}, nil, false},
		"one that allows an eviction":       {&Pod{}, []*Budget{budget("a", 1)}, false},
		"one that allows none":              {&Pod{}, []*Budget{budget("a", 0)}, true},
		"one that allows none and frees it": {&Pod{Unready: true}, []*Budget{budget("a", 0)}, false},
		"two that allow an eviction":        {&Pod{}, []*Budget{budget("a", 1), budget("b", 1)}, true},
		"pod that leaves already":           {&Pod{Terminating: true}, []*Budget{budget("a", 0)}, false},
	} {
		if c.pod != nil {
			c.pod.Ref, c.pod.Labels, c.pod.Spec = model.PodRef{Namespace: "default", Name: "web"}, &Labels{}, &PodSpec{}
		}
		s := &Snapshot{budgets: map[objectKey]*Budget{}}
		for _, b := range c.budgets {
			s.budgets[objectKey{b.Namespace, b.Name}] = b
		}
		if got := HeldByBudgets(s, noon)(c.pod); got != c.want {
			t.Errorf("%s: held %v, want %v", name, got, c.want)
		}
	}
}
