package explain

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

func TestClosedPoolsThatWouldTakePods(t *testing.T) {
	in := func(key string, values ...string) model.Requirement {
		return model.Requirement{Key: key, Operator: model.In, Values: values}
	}
	const team, arch = "example.com/team", "kubernetes.io/arch"
	pool := model.ClosedPool{
		Name: "r", Reason: model.ReasonNoPool, Message: "it is not Ready",
		Requirements: model.Requirements{in(team, "a"), {Key: "karpenter.azure.com/sku-cpu", Operator: model.Gt, Values: []string{"4"}}, in(arch, "amd64")},
		Taints:       []model.Taint{{Key: "dedicated", Value: "a", Effect: model.NoSchedule}},
	}
	tolerates := []model.Toleration{{Key: "dedicated", Exists: true}}
	for name, c := range map[string]struct {
		rules model.PodRules
		want  bool
	}{
		"pod without the toleration":      {model.PodRules{}, false},
		"pod with it":                     {model.PodRules{Tolerations: tolerates}, true},
		"its name":                        {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{in(model.LabelNodePool, "r")}}, true},
		"another pool's name":             {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{in(model.LabelNodePool, "x")}}, false},
		"its label":                       {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{in(team, "a")}}, true},
		"another value of it":             {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{in(team, "b")}}, false},
		"a label that it does not have":   {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{in("example.com/disk", "fast")}}, false},
		"absence of such a label":         {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{{Key: "example.com/disk", Operator: model.DoesNotExist}}}, true},
		"a label that machines bring":     {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{in("topology.kubernetes.io/zone", "eastus-1")}}, true},
		"a number within its bound":       {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{in("karpenter.azure.com/sku-cpu", "8")}}, true},
		"a number beyond its bound":       {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{in("karpenter.azure.com/sku-cpu", "2")}}, false},
		"one of two alternatives":         {model.PodRules{Tolerations: tolerates, NodeAlternatives: []model.Requirements{{in(arch, "arm64")}, {in(arch, "amd64")}}}, true},
		"alternatives of which none does": {model.PodRules{Tolerations: tolerates, NodeAlternatives: []model.Requirements{{in(arch, "arm64")}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &model.Problem{Closed: []model.ClosedPool{pool}}
			if got := closed(p, &model.PodClass{PodRules: c.rules}); (len(got) == 1) != c.want {
				t.Errorf("would take it: %v, want %v", len(got) == 1, c.want)
			}
		})
	}
}

func TestClosedPoolIsTheReasonWhereNoOtherWouldTakeThePod(t *testing.T) {
	p := &model.Problem{Closed: []model.ClosedPool{{Name: "r", Reason: model.ReasonNoPool, Message: "it is not Ready"}}}
	for reason, blamed := range map[model.Reason]bool{
		model.ReasonTaint: true, model.ReasonPodRequirement: true, model.ReasonNoPool: true,
		model.ReasonQuota: false, model.ReasonUnavailable: false, model.ReasonResources: false,
	} {
		u := &model.Unschedulable{Reason: reason, Message: "m", Nearest: &model.NearestMiss{Reason: reason}, Closed: []int{0}}
		(&Explainer{Space: &feasible.Space{Problem: p}}).blame(u, &model.PodClass{})
		if got := u.Message == "NodePool r, which would take it, buys nothing: it is not Ready" && u.Nearest == nil; got != blamed {
			t.Errorf("%s: %q, blamed %v, want %v", reason, u.Message, got, blamed)
		}
	}
}
