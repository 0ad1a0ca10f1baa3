package cli

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// sizeLabels are the labels that follow from the size of a machine, as the controller gives them
// to nodes: those which files may leave out.
type sizeLabels struct {
	// sizes are by their name in small letters.
	sizes map[string]*model.InstanceType
	// keys are the labels that some of the sizes have.
	keys map[string]bool
}

// sizeLabelsOf are the labels of the sizes of a catalogue.
func sizeLabelsOf(catalog *fleet.Catalog) *sizeLabels {
	out := &sizeLabels{sizes: map[string]*model.InstanceType{}, keys: map[string]bool{}}
	for i := range catalog.InstanceTypes {
		t := &catalog.InstanceTypes[i]
		out.sizes[strings.ToLower(t.Name)] = t
		for key := range t.Labels {
			out.keys[key] = true
		}
	}
	delete(out.keys, corev1.LabelTopologyRegion) // which the catalogue may only assume
	return out
}

// of is the value of a label of a node: what the node says, or else its size. It is known of a
// node without the label that it has none where other sizes have it and the buyer does not choose
// it.
func (s *sizeLabels) of(node *corev1.Node, key string) (value string, present, known bool) {
	if value, says := node.Labels[key]; says {
		return value, true, true
	}
	size := s.sizes[strings.ToLower(node.Labels[corev1.LabelInstanceTypeStable])]
	if size == nil || !s.keys[key] || size.Choices[key] != nil {
		return "", false, false
	}
	value, present = size.Labels[key]
	return value, present, true
}
