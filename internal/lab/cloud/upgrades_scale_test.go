//go:build scale

package cloud_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
	"github.com/nodeautoprovision/nap/internal/pages"
)

// playUpgrade plays a story of upgrades in a lab whose nap looks often for what is new, and
// whose control plane is of a Kubernetes version; empty for the latest.
func playUpgrade(t *testing.T, name, kubernetes string, o cloud.Options) *labtest.Lab {
	t.Helper()
	o.Variables = append(o.Variables, "NAP_UPGRADE_CHECK_INTERVAL=2s")
	story, err := scenario.Story(name)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := cloud.Complete(lab.Config{
		Dir: filepath.Join(t.TempDir(), "lab"), Executable: controllerProgram(t), Audit: account, Kubernetes: kubernetes,
	}, o, "nap")
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, cfg)
	if kubernetes == "" { // an API server that starts refuses everything for a moment
		t.Cleanup(func() { expectAllowed(t, l) })
	}
	playOn(t, l, story)
	return l
}

// TestUpgradesNodeImage and the next play both ways of making machines.
func TestUpgradesNodeImage(t *testing.T) {
	for _, mode := range []string{config.ModeVMs, config.ModeAKSMachines} {
		t.Run(mode, func(t *testing.T) { playUpgrade(t, "image", "", cloud.Options{ProvisionMode: mode}) })
	}
}

func TestUpgradesKubernetes(t *testing.T) {
	for _, mode := range []string{config.ModeVMs, config.ModeAKSMachines} {
		t.Run(mode, func(t *testing.T) { playUpgrade(t, "upgrade", "1.36", cloud.Options{ProvisionMode: mode}) })
	}
}

// TestUpgradesNapUnderLoad has tokens that end while nap is upgraded.
func TestUpgradesNapUnderLoad(t *testing.T) {
	playUpgrade(t, "nap-upgrade", "", cloud.Options{ProvisionMode: config.ModeVMs, Replicas: 2, Variables: shortTokens()})
}

// TestUpgradesPageCommandsRun runs what the page shows of the lab, in the order of the page.
func TestUpgradesPageCommandsRun(t *testing.T) {
	s := newShell(t)
	t.Cleanup(func() { _, _ = s.run("nap lab down") })
	for _, c := range pages.Of(t, root) {
		out, err := s.run(c.Text)
		t.Logf("%s\n%s", c.Text, out)
		if err != nil || out == "" {
			t.Errorf("%s: %v", &c, err)
		}
		if strings.Contains(c.Text, "nap images") && !regexp.MustCompile(`(?m)^202606\.16\.0 .* newest`).MatchString(out) {
			t.Error("the version that was published is not listed as the newest")
		}
	}
}
