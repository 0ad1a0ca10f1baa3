package fleet

import (
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// missingFeature is the key of a label that marks nodes whose kubelet lacks a feature. No
// user can set such a label.
func missingFeature(name string) string { return "kubelet without " + name }

// featureRequirements are what features require of a node. A new node counts as one that has
// them: it has the newest kubelet of its NodePool.
func featureRequirements(features []string) model.Requirements {
	var out model.Requirements
	for _, name := range features {
		out = append(out, model.Requirement{Key: missingFeature(name), Operator: model.DoesNotExist})
	}
	return out
}

// featuresAsked are the features of kubelets that some pod needs. There are none where no
// node declares any: before Kubernetes 1.36 kubelets do not, and schedulers do not ask.
func featuresAsked(s *Snapshot) []string {
	asked := map[string]bool{}
	for _, p := range s.pods {
		if len(p.Spec.Features) > 0 && !p.Daemon && !p.Terminal {
			for _, name := range p.Spec.Features {
				asked[name] = true
			}
		}
	}
	if len(asked) == 0 || !declaresAny(s) {
		return nil
	}
	return slices.Sorted(maps.Keys(asked))
}

func declaresAny(s *Snapshot) bool {
	for _, n := range s.nodes {
		if len(n.Features) > 0 {
			return true
		}
	}
	return false
}

// markFeatures labels a node with those of the features that its kubelet does not declare.
func (n *stateNode) markFeatures(features []string) {
	if n.node == nil || len(features) == 0 {
		return
	}
	n.labels = maps.Clone(n.labels)
	if n.labels == nil {
		n.labels = map[string]string{}
	}
	for _, name := range features {
		if !slices.Contains(n.node.Features, name) {
			n.labels[missingFeature(name)] = "true"
		}
	}
}
