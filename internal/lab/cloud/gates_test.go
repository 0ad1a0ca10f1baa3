//go:build scale

package cloud_test

import "testing"

func TestOverlaysDecideWhatIsBought(t *testing.T) {
	play(t, "overlays", "nap", "FEATURE_GATES=NodeOverlay=true")
}
