package cli

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/nodeautoprovision/nap/charts"
	"github.com/nodeautoprovision/nap/internal/kube/helmrelease"
)

// installer installs releases in the candidate's cluster by itself.
func (c *candidate) installer() *helmrelease.Installer {
	c.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		c.Fatal(err)
	}
	cfg.QPS = -1
	installer, err := helmrelease.New(cfg, releaseNamespace, time.Now)
	if err != nil {
		c.Fatal(err)
	}
	return installer
}

// values are those of the release nap.
func (c *candidate) values() map[string]any {
	c.Helper()
	last, err := c.installer().Current(c.Context(), releaseName)
	if err != nil || last == nil {
		c.Fatalf("release %v, %v", last, err)
	}
	return last.Config
}

// TestEnableMakesNapOfAShadow: as docs/shadow.md installs it, and says so once.
func TestEnableMakesNapOfAShadow(t *testing.T) {
	const says = "release nap: was a shadow, which only watches; with shadow.enabled=false it buys"
	c := ready(t)
	c.start()
	if _, err := c.installer().Install(t.Context(), charts.Release{
		Chart: "nap", Name: releaseName, Namespace: releaseNamespace, Kubernetes: "v1.35.1",
		Values: map[string]any{"image": map[string]any{"repository": "registry.example/nap"}, "shadow": map[string]any{"enabled": true}},
	}); err != nil {
		t.Fatal(err)
	}
	if text, code := c.enable(testImage, "--dry-run"); code != 0 || !strings.Contains(text, "  it is a shadow, which only watches;") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	text, _ := c.enable(testImage, "--timeout=0s")
	if !strings.Contains(text, says) || !strings.Contains(text, "release nap in namespace nap-system: upgraded") {
		t.Errorf("it does not say that the shadow is none any more:\n%s", text)
	}
	if on, found, _ := unstructured.NestedBool(c.values(), "shadow", "enabled"); on || !found {
		t.Errorf("the release's values are %v", c.values())
	}
	if text, _ = c.enable(testImage, "--timeout=0s"); strings.Contains(text, says) || !strings.Contains(text, "release nap in namespace nap-system: unchanged") {
		t.Errorf("the next run says it again:\n%s", text)
	}
}
