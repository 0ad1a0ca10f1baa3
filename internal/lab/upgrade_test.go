package lab

import (
	"slices"
	"strings"
	"testing"
)

func TestControlPlaneGoesUpOneMinorVersionAtATime(t *testing.T) {
	e, err := newEmulation("v1.37.1", "1.35")
	if err != nil {
		t.Fatal(err)
	}
	if e.served() != "v1.35.0" || !slices.Equal(e.args(), []string{"--emulated-version=kube=1.35"}) {
		t.Errorf("serves %s with %v", e.served(), e.args())
	}
	if err := e.raise("1.37"); err == nil || !strings.Contains(err.Error(), "one minor version at a time: to 1.36") {
		t.Errorf("two at once: %v", err)
	}
	for _, step := range []struct{ to, served string }{{"", "v1.36.0"}, {"1.37.1", "v1.37.1"}} {
		if err := e.raise(step.to); err != nil || e.served() != step.served {
			t.Errorf("to %q: %v, serves %s, want %s", step.to, err, e.served(), step.served)
		}
	}
	if len(e.args()) != 0 {
		t.Errorf("plays its own version with %v", e.args())
	}
	if err := e.raise(""); err == nil || !strings.Contains(err.Error(), "nap lab up --kubernetes 1.36") {
		t.Errorf("beyond the last: %v", err)
	}
}

func TestControlPlaneCanBeThreeMinorVersionsBehind(t *testing.T) {
	for version, want := range map[string]string{
		"": "", "1.37": "", "1.34": "", "v1.36.0": "",
		"1.33": "can be 1.34 to 1.37", "1.38": "can be 1.34 to 1.37", "2.37": "can be 1.34 to 1.37", "new": "give major and minor version",
	} {
		if _, err := newEmulation("v1.37.1", version); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", version, err, want)
		}
	}
}
