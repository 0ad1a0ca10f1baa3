//go:build scale

package cloud_test

import "testing"

func TestTheDemoPassesOnUpstreamsEngineToo(t *testing.T) { play(t, "demo", "karpenter") }

func TestAThousandPodsComeAndGoWithoutALeak(t *testing.T) { play(t, "thousand", "nap") }

func TestAThirdOfThePodsGoesAndTheFleetFollows(t *testing.T) {
	play(t, "consolidate", "nap")
}
