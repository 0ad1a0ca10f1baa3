package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestWorkloadHasAnnouncedPodCount(t *testing.T) {
	names := map[string]bool{}
	for _, w := range All() {
		if names[w.Name] {
			t.Errorf("%s: two workloads have the name", w.Name)
		}
		names[w.Name] = true
		if w.Pods > 10_000 {
			continue // The same generators at another size.
		}
		in, err := w.Build(0)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		// GPU deployments are made smaller after the draw.
		if got := in.Pods(); got != w.Pods && w.Name != "gpu-and-cpu/all" {
			t.Errorf("%s: has %d pods, announces %d", w.Name, got, w.Pods)
		}
		if len(in.InstanceTypes) < 400 {
			t.Errorf("%s: only %d sizes can be bought", w.Name, len(in.InstanceTypes))
		}
	}
}

func TestWorkloadIsDeterministic(t *testing.T) {
	for _, name := range []string{"^W3-reseeded", "^diverse-100/", "^heavy-tails", "^gpu-and-cpu"} {
		chosen, err := Select(name)
		if err != nil {
			t.Fatal(err)
		}
		var twice [2][]corev1.Pod
		for i := range twice {
			in, err := chosen[0].Build(200)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range in.Objects {
				if p, ok := o.(*corev1.Pod); ok {
					twice[i] = append(twice[i], *p)
				}
			}
		}
		if diff := cmp.Diff(twice[0], twice[1]); diff != "" {
			t.Errorf("%s differs between two builds:\n%s", name, diff)
		}
	}
}

func TestReplicasFollowZipfAndSumUp(t *testing.T) {
	got := zipf(200, 10_000, 0.3, 0.8)
	sum := 0
	for _, n := range got {
		sum += n
	}
	if sum != 10_000 {
		t.Errorf("replicas add up to %d, must be 10000", sum)
	}
	// 7,000 by rank: the second has 2^-0.8 times the first's share; 15 for each.
	if first, second, last := got[0], got[1], got[199]; first != 714 || second != 417 || last != 25 {
		t.Errorf("first %d, second %d, last %d replicas, must be 714, 417 and 25", first, second, last)
	}
}

func TestSelectWithoutMatchNamesWorkloads(t *testing.T) {
	if _, err := Select("W7"); err == nil {
		t.Error("W7 is no workload and was accepted")
	}
	if _, err := Select("("); err == nil {
		t.Error("( is no pattern and was accepted")
	}
}
