package explain

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

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
			Have: "cpu 3.86", Want: "cpu 8", Fix: "Lower the request, or allow larger instance types.",
		},
	}
	for i := range pools {
		p.Pools = append(p.Pools, model.Pool{Name: fmt.Sprint("pool", i)})
		u.Pools = append(u.Pools, model.PoolVerdict{
			Pool: i, Offerings: 12, Removed: []model.ReasonCount{{Reason: model.ReasonTaint, Count: 8}, {Reason: model.ReasonResources, Count: 4}},
		})
	}
	return p, u
}

func TestDescribeHasReasonAndRemedy(t *testing.T) {
	p, u := example(1)
	want := Pending{
		Reason:  model.ReasonResources,
		Why:     "One pod asks for more than a node of this type has",
		Nearest: "Standard_D4s_v5, eastus-1, spot, NodePool pool0: has cpu 3.86, needs cpu 8",
		Needs:   "needs cpu 8",
		Fix:     "Lower the request, or allow larger instance types.",
		Details: []string{
			"it asks for cpu 8, memory 4Gi, pods 1",
			"1 other pod of the same kind stays pending with it",
			"NodePool pool0: of 12 offerings, removed by 8 TaintNotTolerated, 4 InsufficientResources",
		},
	}
	if diff := cmp.Diff(want, Describe(p, u)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// "needs 4" says nothing without the quota that has less left.
func TestNeedsOfLimitsAndQuotasAreNotTold(t *testing.T) {
	for reason, want := range map[model.Reason]string{model.ReasonQuota: "", model.ReasonLimit: "", model.ReasonCostLimit: "", model.ReasonResources: "needs 4"} {
		if got := needsText(&model.NearestMiss{Reason: reason, Have: "2", Want: "4"}); got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}

func TestDescribeInvalidPodNamesField(t *testing.T) {
	p, u := example(0)
	u.Nearest, u.Reason, u.Message = nil, model.ReasonPodInvalid, "requests: cpu is -5"
	if got := Describe(p, u); got.Why != u.Message || got.Nearest != "" || got.Fix != fixOf(u.Reason) {
		t.Errorf("got %+v", got)
	}
}

func TestShortKeepsWholePartsWithinLimit(t *testing.T) {
	p, u := example(7)
	words := Describe(p, u)
	const (
		why     = "One pod asks for more than a node of this type has (InsufficientResources)"
		nearest = "; nearest: Standard_D4s_v5, eastus-1, spot, NodePool pool0: has cpu 3.86, needs cpu 8"
		needs   = "; needs cpu 8"
		fix     = "; lower the request, or allow larger instance types."
		code    = " (InsufficientResources)"
	)
	for _, c := range []struct {
		most int
		want string
	}{
		{math.MaxInt, why + nearest + fix},
		{len(why + nearest + fix), why + nearest + fix},
		{len(why+nearest+fix) - 1, why + nearest},
		{len(why+nearest) - 1, why + needs + fix},
		{len(why+needs+fix) - 1, why + needs},
		{len(why+needs) - 1, why},
		{len(why), why},
		{len(why) - 1, "One pod asks for more than a node of this type..." + code},
		{20, "One pod asks for..."},
	} {
		if got := words.Short(c.most); got != c.want || len(got) > c.most {
			t.Errorf("Short(%d) = %q, want %q", c.most, got, c.want)
		}
	}
	broken := Pending{Why: "zone \u00e4\u00f6\u00fc\nunknown"}
	for most := 3; most < 20; most++ {
		if got := broken.Short(most); !utf8.ValidString(got) || strings.Contains(got, "\n") || utf8.RuneCountInString(got) > most {
			t.Errorf("Short(%d) = %q", most, got)
		}
	}
}

// TestWidenNamesZeroAsValue: 0 stands for no zone, and for itself elsewhere.
func TestWidenNamesZeroAsValue(t *testing.T) {
	const gpus = "karpenter.azure.com/sku-gpu-count"
	size := func(count, zone string) model.InstanceType {
		return model.InstanceType{
			Labels:    map[string]string{gpus: count},
			Offerings: []model.Offering{{Zone: zone, Labels: map[string]string{model.LabelZone: zone}}},
		}
	}
	p := &model.Problem{Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{size("0", "r-1"), size("1", model.NoZone)}}}}
	for key, want := range map[string]string{gpus: "there are 0, 1.", model.LabelZone: "there are r-1."} {
		pool := &model.Pool{Name: "p", Requirements: model.Requirements{{Key: key, Operator: model.In, Values: []string{"7"}}}}
		if got := widen(p, pool); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q at its end", key, got, want)
		}
	}
}
