package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/model"
)

// budgetsOf indexes records by their names.
func budgetsOf(records ...*Budget) *podBudgets {
	byKey := map[objectKey]*Budget{}
	for _, b := range records {
		byKey[objectKey{b.Namespace, b.Name}] = b
	}
	return newPodBudgets(byKey)
}

func TestBudgetsBlockAPodForGood(t *testing.T) {
	everything := &model.Selector{}
	web := &Pod{Ref: model.PodRef{Namespace: "default", Name: "web"}, Labels: &Labels{}}
	for name, c := range map[string]struct {
		budgets []*Budget
		want    bool
	}{
		"no budget":                {nil, false},
		"one that allows none now": {[]*Budget{{Namespace: "default", Name: "a", Selector: everything}}, false},
		"one that never allows any": {
			[]*Budget{{Namespace: "default", Name: "a", Selector: everything, Blocking: true}}, true,
		},
		"two": {
			[]*Budget{{Namespace: "default", Name: "a", Selector: everything}, {Namespace: "default", Name: "b", Selector: everything}}, true,
		},
		"one of another namespace": {[]*Budget{{Namespace: "other", Name: "a", Selector: everything, Blocking: true}}, false},
	} {
		if got := budgetsOf(c.budgets...).block(web); got != c.want {
			t.Errorf("%s: blocks %v, want %v", name, got, c.want)
		}
	}
}

func TestBudgetsAreListedOnceByFirstUse(t *testing.T) {
	everything := &model.Selector{}
	b := budgetsOf(
		&Budget{Namespace: "default", Name: "b", Selector: everything, Allowed: 2},
		&Budget{Namespace: "default", Name: "a", Selector: everything, FreesUnready: true},
		&Budget{Namespace: "unused", Name: "c", Selector: everything},
	)
	labels := &Labels{}
	unready := b.of(&Pod{Ref: model.PodRef{Namespace: "default", Name: "sick"}, Labels: labels, Unready: true})
	ready := b.of(&Pod{Ref: model.PodRef{Namespace: "default", Name: "well"}, Labels: labels})
	if diff := cmp.Diff([][]int{{0}, {1, 0}}, [][]int{unready, ready}); diff != "" {
		t.Errorf("indices differ (-want +got):\n%s", diff)
	}
	want := []model.PodBudget{{Namespace: "default", Name: "b", Allowed: 2}, {Namespace: "default", Name: "a"}}
	if diff := cmp.Diff(want, b.listed); diff != "" {
		t.Errorf("the list differs (-want +got):\n%s", diff)
	}
}
