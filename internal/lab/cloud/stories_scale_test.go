//go:build scale

package cloud_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

func TestDemoOnUpstreamEngine(t *testing.T) { play(t, "demo", "karpenter") }

func TestThousandPodsComeAndGoWithoutLeak(t *testing.T) { play(t, "thousand", "nap") }

func TestThirdOfPodsDeletedShrinksFleet(t *testing.T) {
	play(t, "consolidate", "nap")
}

func TestSpotAKSMachinesInterruptedAreReplaced(t *testing.T) {
	playIn(t, "eviction", "nap", cloud.Options{ProvisionMode: config.ModeAKSMachines})
}

// TestBootFailuresAreToldAndPaused plays machines whose provisioning fails, in each way
// of making machines.
func TestBootFailuresAreToldAndPaused(t *testing.T) {
	for _, mode := range []string{config.ModeVMs, config.ModeAKSMachinesBatched} {
		t.Run(mode, func(t *testing.T) { playIn(t, "boot-failure", "nap", cloud.Options{ProvisionMode: mode}) })
	}
}

// TestTokensForTenMinutes plays the middle of the story, in which machines come and
// go, until ten minutes have passed: twenty tokens.
func TestTokensForTenMinutes(t *testing.T) {
	story, err := scenario.Story("tokens")
	if err != nil {
		t.Fatal(err)
	}
	steps := []int{}
	for i, c := range story.Commands {
		if c.Verb == "step" {
			steps = append(steps, i)
		}
	}
	head, middle, end := story.Commands[:steps[1]], story.Commands[steps[1]:steps[3]], story.Commands[steps[3]:]
	began := time.Now()
	for time.Since(began) < 10*time.Minute {
		long := *story
		long.Commands = slices.Concat(head, middle, middle, middle, middle, middle, middle, end)
		playStory(t, &long, "nap", cloud.Options{ProvisionMode: config.ModeVMs, Variables: shortTokens()})
	}
}
