//go:build scale

package cloud_test

import "testing"

func TestOverlaysDecideWhatIsBought(t *testing.T) {
	t.Setenv("FEATURE_GATES", "NodeOverlay=true")
	play(t, "overlays", "nap")
}
