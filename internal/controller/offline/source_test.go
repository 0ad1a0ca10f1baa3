package offline

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
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

// A size that runs none of a class's images is not for sale, and all machines have the cluster's label.
func TestCataloguesOfFilesAreTheControllers(t *testing.T) {
	trusted := DefaultNodeClass("trusted")
	trusted.VTPM, trusted.SecureBoot = true, true
	fips := DefaultNodeClass("fips")
	fips.FIPS = true
	told := Granted()
	told.Cluster = "MC_group_name_eastus"
	s, err := Open("eastus", "", map[string]*nodeclass.NodeClass{"trusted": trusted, "fips": fips, "plain": DefaultNodeClass("plain")}, told)
	if err != nil {
		t.Fatal(err)
	}
	for class, arm := range map[string]bool{"trusted": false, "fips": false, "plain": true} {
		has := false
		for _, size := range s.ForClass(class).InstanceTypes {
			has = has || size.Labels[instancetype.LabelArch] == "arm64"
			if cluster := size.Labels[instancetype.LabelAKSCluster]; cluster != told.Cluster {
				t.Fatalf("class %s: %s has cluster %q", class, size.Name, cluster)
			}
		}
		if has != arm {
			t.Errorf("class %s sells sizes of arm64: %v, want %v", class, has, arm)
		}
	}
}
