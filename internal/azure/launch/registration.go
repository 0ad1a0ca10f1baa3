package launch

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Unregistered is the taint which keeps pods away from a node until its claim has taken it over.
func Unregistered() model.Taint {
	return model.Taint{Key: "karpenter.sh/unregistered", Effect: model.NoExecute}
}

// RegisterTaints are the node's taints, each once, as kubelets take them.
func RegisterTaints(taints []model.Taint) []string {
	out := []string{Unregistered().String()}
	for _, t := range taints {
		if text := taintFlag(t); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

func taintFlag(t model.Taint) string { return t.Key + "=" + t.Value + ":" + string(t.Effect) }
