//go:build scale

package cloud_test

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
)

func TestDemoOnUpstreamEngine(t *testing.T) { play(t, "demo", "karpenter") }

func TestThousandPodsComeAndGoWithoutLeak(t *testing.T) { play(t, "thousand", "nap") }

func TestThirdOfPodsDeletedShrinksFleet(t *testing.T) {
	play(t, "consolidate", "nap")
}

func TestSpotAKSMachinesInterruptedAreReplaced(t *testing.T) {
	playIn(t, "eviction", "nap", cloud.Options{ProvisionMode: config.ModeAKSMachines})
}
