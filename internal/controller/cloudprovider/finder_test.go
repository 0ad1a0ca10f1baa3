package cloudprovider

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclass"
)

func TestKubeletsMoreThanThreeMinorsBehindAreTooOld(t *testing.T) {
	for _, c := range []struct {
		node, controlPlane string
		want               bool
	}{
		{"1.31.9", "1.35.0", true}, {"1.32.0", "1.35.9", false}, {"1.36.0", "1.35.0", false},
		{"1.40.0", "2.0.0", true}, {"2.1.0", "1.99.0", false},
		{"", "1.35.0", false}, {"1", "1.35.0", false}, {"1.31", "1.35", true}, {"1.31.0", "", false}, {"1.31.0", "2", false},
	} {
		if got := tooOld(c.node, c.controlPlane); got != c.want {
			t.Errorf("a node of %q under %q: too old %t, want %t", c.node, c.controlPlane, got, c.want)
		}
	}
}

// What is wrong with a subnet is the condition's reason.
func TestSubnetThatCannotBeUsedIsNamed(t *testing.T) {
	reason := func(t *testing.T, w *world, class *v1beta1.AKSNodeClass) string {
		t.Helper()
		var failure *nodeclass.Failure
		if err := w.port.Classes.Subnet(t.Context(), class); !errors.As(err, &failure) || failure.Message == "" {
			t.Fatalf("got %v, want why", err)
		}
		return failure.Reason
	}
	inWorld(t, func(t *testing.T, w *world) {
		w.restart(t, func(c *config.Config) { c.NetworkPluginMode, c.NetworkDataplane = "", "" })
		class := w.class.DeepCopy()
		class.Spec.MaxPods = ptr(int32(12)) // addresses, of which there are eleven
		if got := reason(t, w, class); got != v1beta1.ReasonSubnetFull {
			t.Errorf("a full subnet: %s", got)
		}
	}, func(c *armsim.Config) { c.Cluster.Subnet = netip.MustParsePrefix("10.224.0.0/28") })
	inWorld(t, func(t *testing.T, w *world) {
		w.restart(t, func(c *config.Config) { c.VNETSubnetID += "-gone" })
		if got := reason(t, w, w.class); got != v1beta1.ReasonSubnetNotFound {
			t.Errorf("a subnet that is not there: %s", got)
		}
	})
}
