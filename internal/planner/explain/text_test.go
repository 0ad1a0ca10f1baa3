package explain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/model"
)

func example(pools int) (*model.Problem, *model.Unschedulable) {
	c := model.PodClass{Owner: "Deployment shop/web", Requests: model.Resources{8000, 4 << 30, 0, 1}}
	c.Pods = []model.PodRef{{Namespace: "shop", Name: "web-1"}, {Namespace: "shop", Name: "web-2"}}
	p := &model.Problem{Axes: model.NewAxes(), Classes: []model.PodClass{c}}
	u := &model.Unschedulable{
		Pods: []int{0, 1}, Reason: model.ReasonResources,
		Nearest: &model.NearestMiss{
			Pool: "pool0", InstanceType: "Standard_D4s_v5", Zone: "eastus-1", CapacityType: model.Spot, Reason: model.ReasonResources,
			Have: "cpu 3860m", Want: "cpu 8", Fix: "Lower the request, or allow larger instance types.",
		},
	}
	for i := range pools {
		p.Pools = append(p.Pools, model.Pool{Name: fmt.Sprint("pool", i)})
		u.Pools = append(u.Pools, model.PoolVerdict{Pool: i, Offerings: 12, Removed: []model.ReasonCount{{Reason: model.ReasonTaint, Count: 8}, {Reason: model.ReasonResources, Count: 4}}})
	}
	return p, u
}

func TestTextSaysTheVerdictFirstAndTheRemedyLast(t *testing.T) {
	p, u := example(1)
	want := `Deployment shop/web: 2 pods cannot be scheduled: InsufficientResources.
  One pod asks for more than a node of this type has.
  One pod asks for cpu 8, memory 4Gi, pods 1.
  NodePool pool0: 12 offerings: 8 TaintNotTolerated, 4 InsufficientResources
  Nearest: Standard_D4s_v5 in eastus-1 (spot, NodePool pool0): has cpu 3860m, wants cpu 8.
  Fix: Lower the request, or allow larger instance types.
`
	if diff := cmp.Diff(want, Text(p, u)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTextNeverNeedsMoreThanTwelveLines(t *testing.T) {
	for pools := range 20 {
		p, u := example(pools)
		if lines := strings.Count(Text(p, u), "\n"); lines > 12 {
			t.Errorf("%d pools take %d lines:\n%s", pools, lines, Text(p, u))
		}
	}
}

func TestLineIsOneLineForEvents(t *testing.T) {
	p, u := example(7)
	want := "Standard_D4s_v5 in eastus-1 (spot, NodePool pool0): has cpu 3860m, wants cpu 8 (nearest of: " +
		"pool0: 12 offerings: 8 TaintNotTolerated, 4 InsufficientResources; pool1: 12 offerings: 8 TaintNotTolerated, 4 InsufficientResources; " +
		"pool2: 12 offerings: 8 TaintNotTolerated, 4 InsufficientResources; 4 NodePools more)"
	if diff := cmp.Diff(want, Line(p, u)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	u.Nearest = nil
	if got := Line(p, u); strings.Contains(got, "\n") || got == "" {
		t.Errorf("got %q", got)
	}
}

func TestBarePodsAreNamedThemselves(t *testing.T) {
	p, u := example(0)
	p.Classes[0].Owner, u.Pods = "", []int{1}
	if got, _, _ := strings.Cut(Text(p, u), "\n"); got != "Pod shop/web-2 cannot be scheduled: InsufficientResources." {
		t.Errorf("got %q", got)
	}
	u.Pods, u.Reason, u.Message = []int{0, 1}, model.ReasonPodInvalid, "requests: cpu is -5"
	if got := Text(p, u); !strings.HasPrefix(got, "Pod shop/web-1 and its like: 2 pods cannot be scheduled: PodInvalid.\n  requests: cpu is -5\n") {
		t.Errorf("got %q", got)
	}
}
