package cloudprovider

import "testing"

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
