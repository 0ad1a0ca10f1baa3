package launch

import (
	"slices"
	"strings"

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

// MayLabelItself reports whether a kubelet may give its node a label, as far as
// the API server's NodeRestriction goes: in Kubernetes' own domains only well-known
// labels and two prefixes.
func MayLabelItself(key string) bool {
	if WellKnownLabel(key) {
		return true
	}
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return true
	}
	within := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }
	if within("kubelet.kubernetes.io") || within("node.kubernetes.io") {
		return true
	}
	return !within("kubernetes.io") && !within("k8s.io")
}

// WellKnownLabel reports whether a label is one of those which kubelets and the cloud node manager write.
func WellKnownLabel(key string) bool {
	switch key {
	case "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
		"topology.kubernetes.io/zone", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region", "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type":
		return true
	}
	return false
}
