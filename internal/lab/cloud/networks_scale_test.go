//go:build scale

package cloud_test

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
)

// The main job is done in each kind of network, and with each way out of it: by nap's own
// machines, whose interfaces and boot data depend on the network.
func TestDemoInEachNetwork(t *testing.T) {
	var all []cloud.Options
	for _, network := range armsim.Networks() {
		all = append(all, cloud.Options{Network: network})
	}
	for _, outbound := range armsim.Outbounds()[1:] {
		all = append(all, cloud.Options{Outbound: outbound})
	}
	for _, o := range all {
		t.Run(o.Network+o.Outbound, func(t *testing.T) {
			o.ProvisionMode = config.ModeVMs
			playIn(t, "demo", "nap", o)
		})
	}
}
