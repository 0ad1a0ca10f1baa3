package cli

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/fleet"
)

// TestOverlaysOfClusterCountByGate plans with the cluster's NodeOverlays where its
// controller does, and says first where they are left aside.
func TestOverlaysOfClusterCountByGate(t *testing.T) {
	overlay := func(name string) *v1alpha1.NodeOverlay {
		half := "-50%"
		return &v1alpha1.NodeOverlay{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.NodeOverlaySpec{Requirements: []v1alpha1.NodeSelectorRequirement{}, PriceAdjustment: &half},
		}
	}
	const leftAside = "1 NodeOverlay of the cluster ignored, as its controller does: it runs without --feature-gates NodeOverlay=true: theirs\n"
	for name, c := range map[string]struct {
		gates []string
		ours  string
		first string
		// cheaper says whether the plan knows the lower price.
		cheaper bool
	}{
		"gate on":         {[]string{"NodeOverlay"}, "", "", true},
		"gate off":        {nil, "", leftAside, false},
		"file replaces":   {nil, "theirs", "", true},
		"file beside it":  {nil, "ours", leftAside, true},
		"other gate only": {[]string{"NodeRepair"}, "", leftAside, false},
	} {
		t.Run(name, func(t *testing.T) {
			document := &snapshot.Document{}
			document.Status.FeatureGates = c.gates
			p := &planInput{told: &told{document: document}, store: fleet.NewStore(), pools: map[string]*v1.NodePool{}}
			p.completePools(false, true)
			p.overlays.note(overlay("theirs"), true)
			if c.ours != "" {
				p.overlays.note(overlay(c.ours), false)
			}
			var out bytes.Buffer
			err := p.sayOffline(&command.Streams{Out: &out}, "table")
			if said := strings.ReplaceAll(out.String(), "\n  ", " "); err != nil || said != c.first { // a broken line is one
				t.Errorf("begins with %q, %v, want %q", said, err, c.first)
			}
			source, err := p.source(t.Context(), catalogFlags{})
			if err != nil {
				t.Fatal(err)
			}
			plain, got := source.ForClass("default").InstanceTypes[0].Offerings[0], source.ForPool("default").InstanceTypes[0].Offerings[0]
			if cheaper := got.MachinePrice() < plain.MachinePrice(); cheaper != c.cheaper {
				t.Errorf("planned at $%v instead of $%v, want it cheaper: %v", got.Price, plain.Price, c.cheaper)
			}
		})
	}
}
