//go:build scale

package cloud_test

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
)

func TestTheDemoPassesOnUpstreamsEngineToo(t *testing.T) { play(t, "demo", "karpenter") }

func TestAThousandPodsComeAndGoWithoutALeak(t *testing.T) { play(t, "thousand", "nap") }

func TestAThirdOfThePodsGoesAndTheFleetFollows(t *testing.T) {
	play(t, "consolidate", "nap")
}

func TestSpotAKSMachinesThatAreTakenBackAreReplaced(t *testing.T) {
	playIn(t, "eviction", "nap", cloud.Options{ProvisionMode: config.ModeAKSMachines})
}
