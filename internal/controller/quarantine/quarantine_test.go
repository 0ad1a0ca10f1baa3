package quarantine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

var start = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// fragile is a planner that panics on some classes, by the names of their owners. Two
// names joined by + panic only together.
func fragile(calls *int, bad ...string) func(*model.Problem) *model.Plan {
	return func(p *model.Problem) *model.Plan {
		*calls++
		for _, names := range bad {
			all := true
			for name := range strings.SplitSeq(names, "+") {
				all = all && slices.ContainsFunc(p.Classes, func(c model.PodClass) bool { return c.Owner == name && c.Quarantined == "" })
			}
			if all {
				panic("index out of range with " + names)
			}
		}
		return planner.Solve(p)
	}
}

// problem has a class of one pod per name, each of which fits on a machine of its own.
func problem(names ...string) *model.Problem {
	it := model.InstanceType{Name: "d2", Capacity: model.Resources{2000, 8 << 30, 100 << 30, 110},
		Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(0.1), Available: true}}}
	p := &model.Problem{
		Axes: model.NewAxes(), Pools: []model.Pool{{Name: "default", NodeLimit: -1}},
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{it}}},
	}
	for _, name := range names {
		p.Classes = append(p.Classes, model.PodClass{
			Owner: name, Requests: model.Resources{1500, 1 << 30, 0, 1}, Pods: []model.PodRef{{Namespace: "default", Name: name}},
		})
	}
	return p
}

// outcome lists the owners of the classes that a plan leaves out, and how many nodes it buys.
func outcome(p *model.Problem, plan *model.Plan) string {
	var out []string
	for _, u := range plan.Unschedulable {
		out = append(out, fmt.Sprintf("%s:%s:%d", p.Classes[u.Class].Owner, u.Reason, len(u.Pods)))
	}
	slices.Sort(out)
	return fmt.Sprintf("%d nodes, out %v", len(plan.NewNodes), out)
}

func TestClassThatPanicsIsLeftOutAlone(t *testing.T) {
	for name, c := range map[string]struct {
		bad  []string
		want string
	}{
		"none":              {nil, "6 nodes, out []"},
		"first":             {[]string{"a"}, "5 nodes, out [a:PlanningFailed:1]"},
		"last":              {[]string{"f"}, "5 nodes, out [f:PlanningFailed:1]"},
		"two":               {[]string{"b", "e"}, "4 nodes, out [b:PlanningFailed:1 e:PlanningFailed:1]"},
		"only with another": {[]string{"b+d"}, "5 nodes, out [d:PlanningFailed:1]"},
		"most":              {[]string{"a", "b", "c", "d", "e"}, "0 nodes, out [a:PlanningFailed:1 b:PlanningFailed:1 c:PlanningFailed:1 d:PlanningFailed:1 e:PlanningFailed:1 f:PlanningFailed:1]"},
	} {
		calls, failures := 0, []Failure(nil)
		q := New(fragile(&calls, c.bad...), testclock.NewFakePassiveClock(start), func(f Failure) { failures = append(failures, f) })
		p := problem("a", "b", "c", "d", "e", "f")
		if got := outcome(p, q.Solve(p)); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if want := min(len(c.bad), mostFound); len(failures) != want || len(q.classes) != want {
			t.Errorf("%s: %d failures are told and %d classes left out, want %d: %+v", name, len(failures), len(q.classes), want, failures)
		}
		for _, f := range failures {
			if f.Owner == "" || f.Pod.Name != f.Owner || !strings.Contains(f.Cause, "index out of range") || !f.Until.Equal(start.Add(firstPause)) {
				t.Errorf("%s: told %+v", name, f)
			}
		}
	}
}

func TestClassIsTriedAgainAtGrowingIntervals(t *testing.T) {
	calls, failures := 0, 0
	clock := testclock.NewFakePassiveClock(start)
	q := New(fragile(&calls, "bad"), clock, func(Failure) { failures++ })
	p := problem("good", "bad")
	var tried []time.Duration
	for at := time.Duration(0); at < 4*time.Hour; at += 30 * time.Second {
		clock.SetTime(start.Add(at))
		before := failures
		if got := outcome(p, q.Solve(p)); got != "1 nodes, out [bad:PlanningFailed:1]" {
			t.Fatalf("after %s: %s", at, got)
		}
		if failures > before {
			tried = append(tried, at/time.Minute)
		}
	}
	if want := []time.Duration{0, 1, 3, 7, 15, 31, 63, 123, 183}; !slices.Equal(tried, want) {
		t.Errorf("tried after %d minutes, want %d", tried, want)
	}
	q.solve = fragile(&calls) // mended
	clock.SetTime(start.Add(6 * time.Hour))
	calls = 0
	if got := outcome(p, q.Solve(p)); got != "2 nodes, out []" || calls != 1 || len(q.classes) != 0 {
		t.Errorf("when it is mended: %s in %d calls, %d classes are remembered", got, calls, len(q.classes))
	}
}

// What fails without any pod buys nothing, and does not end the process.
func TestProblemThatAlwaysPanicsBuysNothing(t *testing.T) {
	told := 0
	q := New(func(*model.Problem) *model.Plan { panic("a node") }, testclock.NewFakePassiveClock(start), func(Failure) { told++ })
	p := problem("a", "b")
	if got := outcome(p, q.Solve(p)); got != "0 nodes, out [a:PlanningFailed:1 b:PlanningFailed:1]" || told != 1 {
		t.Errorf("got %s, told %d times", got, told)
	}
}
