package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/model"
)

// A workload is the pods of a namespace with equal labels, whatever their revision: those
// that run and those that wait count together.
func TestShareOfWorkloadCountsAllItsPods(t *testing.T) {
	problem := shared(t, model.NodeShare{Workload: 0.25})
	caps := map[string]int32{}
	for i := range problem.Classes {
		c := &problem.Classes[i]
		caps[c.Owner] = 0
		for _, s := range c.Shares() {
			caps[c.Owner] = s.MaxSkew
			if !s.Selector.Matches(c.Labels) {
				t.Errorf("the cap of %s does not select its own pods: %v", c.Owner, c.Labels)
			}
			bound := 0
			for _, b := range problem.Nodes[0].Bound {
				if s.Selector.Matches(problem.Shapes[b.Shape].Labels) {
					bound += b.Count
				}
			}
			if bound != 3 {
				t.Errorf("the cap of %s sees %d pods on the node, expected 3", c.Owner, bound)
			}
		}
	}
	want := map[string]int32{"Deployment default/web": 2, "Deployment default/one": 0} // a quarter of 3 + 7 pods, rounded down
	if diff := cmp.Diff(want, caps); diff != "" {
		t.Errorf("caps differ (-want +got):\n%s", diff)
	}
}

func TestNoShareLeavesProblemAsItIs(t *testing.T) {
	problem := shared(t, model.NodeShare{})
	for i := range problem.Classes {
		if c := &problem.Classes[i]; len(c.Spread) > 0 || c.Labels[model.LabelWorkload] != "" {
			t.Errorf("%s has %+v and labels %v", c.Owner, c.Spread, c.Labels)
		}
	}
	if got := problem.Catalogs[0].InstanceTypes[0].Allocatable().Get(model.CPU); got != 64_000 {
		t.Errorf("a machine has %d thousandths of a core, expected 64000", got)
	}
}

// No machine can be bought that takes more than its share, but the largest pod has a place.
func TestShareOfFleetCapsMachines(t *testing.T) {
	for share, want := range map[float64]int64{0.5: 5_500, 0.01: 1_000, 1: 11_000} { // of 11 pods of a core each
		problem := shared(t, model.NodeShare{Fleet: share})
		got := problem.Catalogs[0].InstanceTypes[0]
		if cpu := got.Allocatable().Get(model.CPU); cpu != want {
			t.Errorf("a share of %g leaves %d thousandths of a core, expected %d", share, cpu, want)
		}
		if got.Capacity.Get(model.CPU) != 64_000 {
			t.Errorf("limits count %d thousandths of a core, expected 64000", got.Capacity.Get(model.CPU))
		}
	}
}

// shared states a cluster with a node on which 3 pods of a Deployment run, 7 that wait, of
// another revision, and a pod of another Deployment.
func shared(t *testing.T, share model.NodeShare) *model.Problem {
	t.Helper()
	s := NewStore()
	spec := &PodSpec{Requests: Amounts{CPU: 1_000, Pods: 1}}
	spec.SetKey()
	put := func(name, app, revision, node string) {
		s.Put(&Pod{
			Ref: model.PodRef{Namespace: "default", Name: name}, UID: name, Revision: "1", Spec: spec, Node: node, Wanted: node == "",
			Owner:  Owner{Kind: "Deployment", Name: app},
			Labels: &Labels{Key: app + revision, Values: map[string]string{"app": app, "pod-template-hash": revision}},
		})
	}
	for i := range 10 {
		if i < 3 {
			put(fmt.Sprint("web-", i), "web", "old", "n1")
			continue
		}
		put(fmt.Sprint("web-", i), "web", "new", "")
	}
	put("one", "one", "new", "")
	s.Put(&Node{Name: "n1", ProviderID: "n1", Registered: true, Initialized: true, Allocatable: Amounts{CPU: 4_000, Memory: 1 << 34, Pods: 110}})
	s.Put(&Pool{Name: "pool", Ready: true, NodeLimit: -1})
	catalog := &Catalog{Axes: model.NewAxes(), InstanceTypes: []model.InstanceType{{
		Name: "large", Capacity: model.Resources{64_000, 1 << 36, 0, 110},
		Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(1), Available: true}},
	}}}
	in, err := s.Snapshot().Problem(t.Context(), oneCatalog{catalog}, Options{Now: time.Unix(100, 0), Policy: model.Policy{Share: share}})
	if err != nil {
		t.Fatal(err)
	}
	return in.Problem
}
