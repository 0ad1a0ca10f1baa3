package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/kube"
)

// writeInput writes a file for a command.
func writeInput(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "in.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// quotaInput is a Deployment of so many pods of one CPU in a namespace with a quota.
func quotaInput(replicas, hard string) string {
	return "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: team, namespace: shop}\nspec: {hard: " + hard + "}\n---\n" +
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  replicas: " + replicas +
		"\n  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}\n"
}

// TestPlanHoldsBackWhatQuotasKeepOut: neither is bought for pods that no quota lets in, nor are
// they passed over in silence.
func TestPlanHoldsBackWhatQuotasKeepOut(t *testing.T) {
	const message = "ResourceQuota shop/team has 2 of requests.cpu 2 left, and each pod takes 1; all of them need requests.cpu 5"
	out, errs, code := nap.Run(t, "plan", "-f", writeInput(t, quotaInput("5", "{requests.cpu: '2', pods: 10}")), "--budget", "0", "-o", "json")
	var plan planReport
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		t.Fatal(err)
	}
	want := []kube.HeldBack{{Workload: "Deployment shop/web", Pods: 3, Of: 5, Quota: "shop/team", Message: message}}
	if diff := cmp.Diff(want, plan.HeldBack); code != 2 || plan.Summary.Pods != 2 || diff != "" {
		t.Errorf("exit code %d, %d pods are planned, want 2 and 2, held back (-want +got):\n%s", code, plan.Summary.Pods, diff)
	}
	said := "note: Deployment shop/web: 3 of the 5 pods that it lacks are held back: " + message
	if text := strings.Join(strings.Fields(errs), " "); !strings.Contains(text, said) {
		t.Errorf("want %q in\n%s", said, errs)
	}
}

// TestQuotasBoundTheScaleOfWhatIf: more pods than a quota lets in would not exist.
func TestQuotasBoundTheScaleOfWhatIf(t *testing.T) {
	file := writeInput(t, quotaInput("2", "{requests.cpu: '3'}"))
	for scale, want := range map[string]string{
		"3":  "shop/web has 3 pods",
		"40": "shop/web has 3 of 40 pods (ResourceQuota shop/team holds back 37)",
	} {
		out, errs, _ := nap.Run(t, "what-if", "-f", file, "--scale", "shop/web="+scale, "--budget", "0", "-o", "json")
		var answer comparison
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(answer.Suppose, []string{want}) {
			t.Errorf("%s pods: supposed is %q, want %q", scale, answer.Suppose, want)
		}
		if held := strings.Contains(strings.Join(strings.Fields(errs), " "), "all of them need requests.cpu 40"); held != (scale == "40") {
			t.Errorf("%s pods: got\n%s", scale, errs)
		}
	}
}
