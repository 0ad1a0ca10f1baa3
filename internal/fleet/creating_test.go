package fleet

import (
	"slices"
	"testing"
	"time"
)

func TestOnlyWorkloadsThatAreAtWorkCreatePods(t *testing.T) {
	began := time.Unix(100_000, 0)
	after := func(seconds ...int) []*Pod {
		var out []*Pod
		for _, s := range seconds {
			out = append(out, &Pod{Created: began.Add(time.Duration(s) * time.Second)})
		}
		return out
	}
	for _, c := range []struct {
		name    string
		silent  bool
		created []*Pod
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

func TestOneByOneWorkloadsCreateNextPodWhenReady(t *testing.T) {
	began := time.Unix(100_000, 0)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	// pods are created, and become ready, after so many seconds; 0 for not ready.
	pods := func(seconds ...int) []*Pod {
		var out []*Pod
		for i := 0; i < len(seconds); i += 2 {
			p := &Pod{Created: at(seconds[i]), Pattern: true, Spec: &PodSpec{}, Unready: seconds[i+1] == 0}
			if !p.Unready {
				p.ReadyAfter = int32(seconds[i+1] - seconds[i])
			}
			out = append(out, p)
		}
		return out
	}
	for _, c := range []struct {
		name     string
		readyFor time.Duration
		since    []*Pod
		now      int
		want     bool
	}{
		{"its first pod waits", 0, pods(0, 0), 5, true},
		{"its first pod boots for minutes", 0, pods(0, 0), 590, true},
		{"its first pod does not become ready", 0, pods(0, 0), 601, false},
		{"its first pod has been ready for a moment", 0, pods(0, 90), 119, true},
		{"no pod comes although the first is ready", 0, pods(0, 90), 121, false},
		{"its third pod waits", 0, pods(90, 150, 0, 90, 150, 0), 300, true},
		{"its third pod came long after the second was ready, to replace one", 0, pods(0, 90, 90, 150, 200, 0), 210, false},
		{"two pods came within a second", 0, pods(0, 1, 0, 90, 91, 0), 100, true},
		{"a pod before the last is no more ready", 0, pods(0, 90, 90, 0, 150, 0), 200, true},
		{"its pods have to be ready for some seconds", 10 * time.Second, pods(0, 90, 101, 0), 110, true},
		{"its pods have to be ready for long", time.Minute, pods(0, 0), 5, false},
		{"it was scaled up, and has created none since", 0, nil, 5, false},
	} {
		a := &announcement{workload: &Workload{Since: began, Silent: true, OneByOne: true, ReadyFor: c.readyFor}}
		for _, p := range c.since {
			if newerPod(p, a.newest) {
				a.newest = p
			}
		}
		got := a.newest != nil && a.serves(at(c.now)) && a.creates(c.since, at(c.now))
		if slices.Reverse(c.since); got && !a.creates(c.since, at(c.now)) {
			t.Errorf("%s: the order in which pods are seen counts", c.name)
		}
		if got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	booting := &Pod{Created: began, Node: "n"}
	if !readySince(booting).Equal(Forever) {
		t.Error("a pod on a node whose kubelet says nothing of it yet counts as ready")
	}
}
