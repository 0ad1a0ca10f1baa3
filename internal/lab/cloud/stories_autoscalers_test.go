//go:build scale

package cloud_test

import "testing"

func TestHorizontalPodAutoscalerIsFollowed(t *testing.T) { play(t, "hpa", "nap") }

func TestWorkloadScaledFromZeroAndBackIsFollowed(t *testing.T) { play(t, "keda", "nap") }

func TestPodsResizedInPlaceCountAsTheyAre(t *testing.T) { play(t, "resize", "nap") }
