package provisioning

import (
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// Between a purchase and the look at what became of it, pods and nodes go.
func TestMisfitOfWhatIsGoneIsNotExplained(t *testing.T) {
	here := model.PodRef{Namespace: "default", Name: "here"}
	m := misfit{
		problem: &model.Problem{Nodes: []model.Node{{Claim: "general-1"}}, Classes: []model.PodClass{{Pods: []model.PodRef{here}}}},
		solve: func(*model.Problem) *model.Plan {
			t.Error("a plan is made for what is not there")
			return &model.Plan{}
		},
	}
	for _, c := range []struct {
		claim string
		pod   model.PodRef
	}{{"general-1", model.PodRef{Namespace: "default", Name: "gone"}}, {"general-2", here}} {
		if why, _ := m.explain(c.claim, c.pod); why != "" {
			t.Errorf("pod %s on the node of %s: %q", c.pod.Name, c.claim, why)
		}
	}
}

// Every node has labels that its machine brings, which say nothing against a pod.
func TestMisfitOfNodeWithLabelsOfItsMachineSaysWhatLacks(t *testing.T) {
	axes := model.NewAxes()
	pod := func(cpu int64) []model.PodClass {
		class := model.PodClass{Pods: []model.PodRef{{Namespace: "default", Name: "web"}}}
		class.Requests = model.Resources{cpu, 1 << 30, 0, 1}
		return []model.PodClass{class}
	}
	node := model.Node{
		Name: "node", Claim: "general-1", Pool: "general",
		Allocatable: model.Resources{4000, 16 << 30, 100e9, 110}, Used: make(model.Resources, len(axes)),
		Labels: map[string]string{
			model.LabelInstanceType: "Standard_D4s_v5", model.LabelZone: "eastus-1", model.LabelCapacityType: "spot",
			"kubernetes.io/arch": "arm64", "karpenter.azure.com/sku-family": "D",
		},
	}
	for cpu, want := range map[int64]string{5000: "InsufficientResources (it has cpu 4", 3000: ""} {
		m := misfit{&model.Problem{Axes: axes, Nodes: []model.Node{node}, Classes: pod(cpu)}, planner.Solve}
		got, exact := m.explain("general-1", model.PodRef{Namespace: "default", Name: "web"})
		if !strings.HasPrefix(got, want) || want == "" && got != "" || exact != (want != "") {
			t.Errorf("of a pod with %d milli-cores it says %q, exactly: %t; want %q", cpu, got, exact, want)
		}
	}
}
