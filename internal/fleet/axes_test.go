package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// asking is a pod that asks for one of each resource. It waits where it has no node.
func asking(name, node string, resources ...string) *Pod {
	spec := &PodSpec{Key: name, Requests: Amounts{CPU: 100, Pods: 1}}
	for _, r := range resources {
		spec.Requests.Set(r, 1)
	}
	ref := model.PodRef{Namespace: "default", Name: name}
	return &Pod{Ref: ref, Node: node, Wanted: node == "", EvictionCost: 1, Spec: spec, Labels: &Labels{}}
}

// Pods may name as many resources as they like. Those that can be had nowhere get few axes,
// the pods which ask for more are refused, and their nodes are told.
func TestResourcesThatNothingHasGetFewAxes(t *testing.T) {
	store := oneNode(Claim{})
	for i := range 200 {
		var own []string
		for r := range 10 {
			own = append(own, fmt.Sprintf("ex%d.com/r%d", i, r))
		}
		store.Put(asking(fmt.Sprintf("waits%03d", i), "", own...))
		store.Put(asking(fmt.Sprintf("runs%03d", i), "node-1", "on-"+own[0]))
	}
	in, err := store.Snapshot().Disruption(t.Context(), noCatalogs{}, DisruptionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, most := len(in.Problem.Axes), len(model.NewAxes())+mostUnknown; got != most {
		t.Errorf("the problem has %d axes, wanted are %d", got, most)
	}
	if got := len(in.Problem.Classes); got != 3 || len(in.Rejected) != 197 {
		t.Fatalf("%d classes wait, %d pods are refused; wanted are 3 and 197", got, len(in.Rejected))
	}
	last := in.Rejected[196]
	if last.Reason != model.ReasonResources || !strings.Contains(last.Message, "ex199.com/r0") || !strings.Contains(last.Fix, "ex199.com/r0") {
		t.Errorf("the last pod is refused with %+v", last)
	}
	if held := in.Disruption.Usages[0].DoNotDisruptPods; len(held) != 198 || !strings.Contains(held[197].Why, "on-ex199.com/r0") {
		t.Errorf("%d pods keep the node, wanted are 198, the last for on-ex199.com/r0", len(held))
	}
}

// What a node has and what a NodePool limits has an axis however much pods ask for.
func TestResourcesThatSomethingHasKeepTheirAxes(t *testing.T) {
	store := oneNode(Claim{})
	node := *store.Snapshot().nodes["node-1"]
	var all []string
	for r := range 3 * mostUnknown {
		name := fmt.Sprintf("example.com/r%d", r)
		all = append(all, name)
		node.Allocatable.Set(name, 1)
	}
	store.Put(&node)
	store.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1, Limits: []Amount{{Name: "example.com/limited", Value: 1}}})
	store.Put(asking("waits", "", append(all, "example.com/limited", "nowhere.com/a")...))
	in, err := store.Snapshot().Problem(t.Context(), noCatalogs{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Rejected) > 0 || in.Problem.Axes.Index("example.com/r95") < 0 || in.Problem.Axes.Index("nowhere.com/a") < 0 {
		t.Errorf("refused are %v, the axes %v", in.Rejected, in.Problem.Axes)
	}
}
