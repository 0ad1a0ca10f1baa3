package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/fleet"
)

// A NodePool is made up for files alone: on a cluster that has none, nothing is bought.
func TestDefaultNodePoolIsForFilesOnly(t *testing.T) {
	for live, want := range map[bool]int{false: 1, true: 0} {
		p := &planInput{store: fleet.NewStore(), pools: map[string]*v1.NodePool{}}
		p.completePools(live, true)
		if len(p.pools) != want {
			t.Errorf("live cluster %v: %d NodePools, want %d", live, len(p.pools), want)
		}
	}
}

// A pod whose resource claims cannot be planned is told which and why: the scheduler might
// grant them.
func TestResourceClaimsAreToldAsSuch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod.yaml")
	const pod = `
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: default}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers: [{name: one, image: one, resources: {requests: {cpu: "1"}, claims: [{name: gpu}]}}]
`
	if err := os.WriteFile(file, []byte(pod), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"plan", "-f", file}, {"explain", "pod", "default/one", "-f", file}} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), args, "test", command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		text := strings.Join(strings.Fields(out.String()), " ") // it is broken into lines for the screen
		if code != 2 || !strings.Contains(text, "ResourceClaims") || !strings.Contains(text, "ResourceClaimTemplate default/gpu does not exist") {
			t.Errorf("nap %s: exit code %d\n%s", args[0], code, out.String())
		}
	}
}

// A file with the DeviceClass and the template buys the size whose GPU is asked for.
func TestResourceClaimsOfFilesArePlanned(t *testing.T) {
	const file = "../../docs/examples/resource-claims.yaml"
	var out, errs bytes.Buffer
	Main(t.Context(), []string{"plan", "-f", file}, "test", command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	if !strings.Contains(out.String(), "NC24ads_A100_v4") {
		t.Errorf("a pod that asks for an A100 gets\n%s", out.String())
	}
	out.Reset()
	Main(t.Context(), []string{"explain", "pod", "ml/trainer", "-f", file}, "test", command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	if !strings.Contains(out.String(), "NC24ads_A100_v4") {
		t.Errorf("nap explain says\n%s", out.String())
	}
}
