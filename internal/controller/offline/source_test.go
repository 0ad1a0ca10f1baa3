package offline

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// Node classes that differ in nothing that matters to what they buy share one catalogue, with
// which is then planned once.
func TestNodeClassesShareWhatTheyBuy(t *testing.T) {
	classes := map[string]*nodeclass.NodeClass{}
	for _, name := range []string{"plain", "tagged", "large"} {
		classes[name] = DefaultNodeClass(name)
	}
	classes["tagged"].Tags = map[string]string{"team": "a"}
	classes["large"].OSDiskSizeGB = 512
	source, err := Open("", "", classes, Granted())
	if err != nil {
		t.Fatal(err)
	}
	plain := source.ForClass("plain")
	for name, shared := range map[string]bool{"tagged": true, "unknown": true, "large": false} {
		if got := source.ForClass(name) == plain; got != shared {
			t.Errorf("%s shares the catalogue of plain: got %v, want %v", name, got, shared)
		}
	}
}
