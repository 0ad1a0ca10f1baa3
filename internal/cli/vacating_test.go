package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A pod that waits is said to take the room of one that goes, while that is still there.
func TestExplainTellsOfRoomThatIsVacated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in.yaml")
	pod := func(name, more, node, cpu string) string {
		return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default%s}
spec:
  %s
  containers: [{name: c, image: i, resources: {requests: {cpu: "%s"}}}]
`, name, more, node, cpu)
	}
	const nodes = `apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1, kubernetes.io/os: linux, kubernetes.io/arch: amd64}}
status:
  allocatable: {cpu: "4", memory: 16Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
`
	deleted := fmt.Sprintf(", deletionTimestamp: %q, deletionGracePeriodSeconds: 30", time.Now().Add(25*time.Second).UTC().Format(time.RFC3339))
	text := nodes + pod("goes", deleted, "nodeName: n1", "3") + pod("waits", "", "", "2")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := nap.Run(t, "explain", "pod", "waits", "-f", path)
	said := strings.Join(strings.Fields(out), " ")
	if code != 0 || !strings.Contains(said, "default/waits fits on n1, which exists (Ready)") ||
		!strings.Contains(said, "1 pod there is being deleted and makes room for it") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
