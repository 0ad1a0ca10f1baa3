package explain

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

func TestLeftOutNodePoolsThatWouldTakePods(t *testing.T) {
	in := func(key string, values ...string) model.Requirement {
		return model.Requirement{Key: key, Operator: model.In, Values: values}
	}
	const team, arch = "example.com/team", "kubernetes.io/arch"
	pool := model.LeftOut{
		Pool: "r", Reason: model.ReasonNoPool, Message: "it is not Ready",
		Requirements: model.Requirements{in(team, "a"), {Key: "karpenter.azure.com/sku-cpu", Operator: model.Gt, Values: []string{"4"}}, in(arch, "amd64")},
		Taints:       []model.Taint{{Key: "dedicated", Value: "a", Effect: model.NoSchedule}},
	}
	onSale := []model.Catalog{{
		LabelKeys: []string{"kubernetes.azure.com/fips_enabled"},
		InstanceTypes: []model.InstanceType{{
			Labels:    map[string]string{arch: "amd64", "karpenter.azure.com/sku-cpu": "8"},
			Choices:   map[string][]string{"karpenter.azure.com/sku-storage-ultra-ssd": {"true", "false"}},
			Offerings: []model.Offering{{Labels: map[string]string{"topology.kubernetes.io/zone": "eastus-1"}}},
		}},
	}}
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
		"a zone that nothing has":         {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{in("topology.kubernetes.io/zone", "westeurope-1")}}, false},
		"a size that nothing has":         {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{in("karpenter.azure.com/sku-cpu", "99")}}, false},
		"a label that the cloud decides":  {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{in("kubernetes.azure.com/fips_enabled", "true")}}, false},
		"a label that the buyer picks":    {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{in("karpenter.azure.com/sku-storage-ultra-ssd", "true")}}, true},
		"a number within its bound":       {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{in("karpenter.azure.com/sku-cpu", "8")}}, true},
		"a number beyond its bound":       {model.PodRules{Tolerations: tolerates, NodeRequirements: model.Requirements{in("karpenter.azure.com/sku-cpu", "2")}}, false},
		"one of two alternatives":         {model.PodRules{Tolerations: tolerates, NodeAlternatives: []model.Requirements{{in(arch, "arm64")}, {in(arch, "amd64")}}}, true},
		"alternatives of which none does": {model.PodRules{Tolerations: tolerates, NodeAlternatives: []model.Requirements{{in(arch, "arm64")}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for catalog, problem := range map[int]*model.Problem{0: {Catalogs: onSale}, -1: {Catalogs: onSale}} {
				problem.LeftOut = []model.LeftOut{pool}
				problem.LeftOut[0].Catalog = catalog
				e := &Explainer{Space: &feasible.Space{Problem: problem}}
				for range 2 { // the second answer is the remembered one
					if got := e.leftOut(&model.PodClass{PodRules: c.rules}); (len(got) == 1) != c.want {
						t.Errorf("catalogue %d, would take it: %v, want %v", catalog, len(got) == 1, c.want)
					}
				}
			}
		})
	}
}

func TestLeftOutNodePoolIsTheReasonWhereNoOtherWouldTakeThePod(t *testing.T) {
	p := &model.Problem{LeftOut: []model.LeftOut{{Pool: "r", Reason: model.ReasonNoPool, Message: "it is not Ready"}}}
	if e := (&Explainer{Space: &feasible.Space{Problem: &model.Problem{Catalogs: []model.Catalog{{InstanceTypes: make([]model.InstanceType, 1)}}}}}); e.wouldTake(&model.LeftOut{}, &model.PodClass{}) {
		t.Error("a NodePool would take a pod although no size is on sale")
	}
	for reason, blamed := range map[model.Reason]bool{
		model.ReasonTaint: true, model.ReasonPodRequirement: true, model.ReasonNoPool: true,
		model.ReasonQuota: false, model.ReasonUnavailable: false, model.ReasonResources: false,
	} {
		u := &model.Unschedulable{Reason: reason, Message: "m", Nearest: &model.NearestMiss{Reason: reason}, LeftOut: []int{0}}
		(&Explainer{Space: &feasible.Space{Problem: p}}).blame(u, &model.PodClass{})
		if got := u.Message == "NodePool r, which would take it, buys nothing: it is not Ready" && u.Nearest == nil; got != blamed {
			t.Errorf("%s: %q, blamed %v, want %v", reason, u.Message, got, blamed)
		}
	}
}
