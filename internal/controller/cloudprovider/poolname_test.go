package cloudprovider

import (
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/config"
)

// A NodePool whose machines could not be named is left out of plans with the reason.
func TestLongPoolNameIsRefusedBeforePlanning(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for length, refused := range map[int]bool{54: false, 55: true} {
			p := pool()
			p.Name = strings.Repeat("p", length)
			if err := w.kube.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			_, err := w.port.Catalog(t.Context(), p.Name)
			if (err != nil) != refused || refused && !strings.Contains(err.Error(), "has 65 characters and Azure allows 64; "+
				"give the NodePool a shorter name, of at most 54") {
				t.Errorf("a name of %d characters: %v", length, err)
			}
			if _, err := w.port.GetInstanceTypes(t.Context(), p); (err != nil) != refused {
				t.Errorf("a name of %d characters, as Karpenter asks: %v", length, err)
			}
		}
		// The names of AKS machines are shortened.
		w.restart(t, func(c *config.Config) { w.aksMachines(c) })
		if _, err := w.port.Catalog(t.Context(), strings.Repeat("p", 55)); err != nil {
			t.Errorf("as an AKS machine: %v", err)
		}
	})
}
