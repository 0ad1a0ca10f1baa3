package cli

import (
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/cli/clitest"
)

func TestLintNamesEveryKindOfFinding(t *testing.T) {
	out, errs, code := nap.Run(t, "lint", "-f", "testdata/lint/pools.yaml")
	if code != exitFindings {
		t.Errorf("exit code %d: %s", code, errs)
	}
	clitest.Golden(t, "lint/pools", out)
	out, _, code = nap.Run(t, "lint", "-f", "testdata/lint/pools.yaml", "-o", "json")
	if code != exitFindings || !strings.Contains(out, `"code": "PinnedForEver"`) {
		t.Errorf("exit code %d: %s", code, out)
	}
	out, _, code = nap.Run(t, "lint", "-f", "../../docs/examples/gpu.yaml")
	if code != 0 || out != "1 NodePool, 0 findings.\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
	nap.Mistakes(t, map[string]clitest.Mistake{
		"no NodePool": {Args: []string{"lint", "-f", "../../docs/examples/web.yaml"}, Want: "nap: nothing to look at: the input has no NodePool"},
		"old version": {Args: []string{"lint", "-f", "testdata/convert/v1beta1-general-purpose.yaml"}, Want: "nap: testdata/convert/v1beta1-general-purpose.yaml: document 1: NodePool general-purpose: apiVersion"},
	})
}
