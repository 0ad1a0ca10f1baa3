package provisioning

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
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
		if why := m.explain(c.claim, c.pod); why != "" {
			t.Errorf("pod %s on the node of %s: %q", c.pod.Name, c.claim, why)
		}
	}
}
