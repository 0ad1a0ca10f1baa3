package fleet

import (
	"testing"
	"time"
)

func TestOnlyWorkloadsThatAreAtWorkCreatePods(t *testing.T) {
	began := time.Unix(100_000, 0)
	after := func(seconds ...int) []time.Time {
		var out []time.Time
		for _, s := range seconds {
			out = append(out, began.Add(time.Duration(s)*time.Second))
		}
		return out
	}
	for _, c := range []struct {
		name    string
		silent  bool
		created []time.Time
		// now is how many seconds after its beginning it is looked at.
		now  int
		want bool
	}{
		{"its first pod has come", false, after(0), 1, true},
		{"it has no pod yet", false, nil, 1, false},
		{"it is scaled up, and the first pod is seen before that", false, after(-1), 1, true},
		{"it creates pods for minutes", false, after(60, 1, 20, 40, 80), 100, true},
		{"no pod has come for long", false, after(0, 1), 32, false},
		{"it had stopped, and replaces a pod", false, after(0, 1, 90), 91, false},
		{"all its pods were replaced", false, after(90, 91), 92, false},
		{"one pod of a Job has come", true, after(0), 1, false},
		{"two pods of a Job have come", true, after(0, 1), 1, true},
		{"a Job creates pods slowly", true, after(10, 14, 18, 20), 22, true},
		{"a Job has stopped", true, after(0, 0, 0), 4, false},
		{"a Job tries again for the pod that has failed", true, after(0, 0, 12), 12, false},
	} {
		a := &announcement{workload: &Workload{Since: began, Silent: c.silent}}
		if got := a.creates(c.created, began.Add(time.Duration(c.now)*time.Second)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
