package cloud_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

// published are manifests as documents of node auto-provisioning print them, by the names of
// their files. Two of them name their NodePool alike: the second one comes later.
var published = []struct{ file, pool, requests, on string }{
	{"v1beta1-general-purpose", "general-purpose", `cpu: "1"`, "karpenter.sh/capacity-type=on-demand"},
	{"v1-default", "default", `cpu: "1"`, "karpenter.azure.com/sku-family=D"},
	{"v1alpha5-spot-priority", "spot-priority", `cpu: "1"`, "karpenter.sh/capacity-type=spot"},
	// The node's own device plugin tells of the GPU.
	{"v1alpha5-gpu-workloads", "gpu-workloads", `cpu: "1", nvidia.com/gpu: "1"`, "kubernetes.azure.com/dcgm-exporter=enabled"},
	// More than fits the machine that the pool has already; what the earlier one did not allow.
	{"v1alpha5-general-purpose", "general-purpose", `cpu: "6"`, "karpenter.sh/capacity-type=spot"},
}

// class has the machines run NVIDIA's device plugin themselves.
const class = `apiVersion: karpenter.azure.com/v1beta1
kind: AKSNodeClass
metadata: {name: default}
spec: {gpu: {nvidia: {managementMode: Managed}}}
`

// podFor is a pod which only a NodePool's machines may take. No ReplicaSet would replace it
// once it was evicted, so that it must stay where it is.
func podFor(name, pool, requests string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: default
  labels: {app: %s}
  annotations: {karpenter.sh/do-not-disrupt: "true"}
spec:
  nodeSelector: {karpenter.sh/nodepool: %s}
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  terminationGracePeriodSeconds: 1
  containers:
  - {name: web, image: registry.k8s.io/pause:3.9, resources: {requests: {%s}, limits: {%s}}}
`, name, name, pool, requests, requests)
}

// TestPublishedManifestsRunOnceConverted: what nap convert writes for them, as the tests of that
// command hold it, passes the API server with the chart's policies, and a pod that selects its
// NodePool runs on a machine that was bought for it.
func TestPublishedManifestsRunOnceConverted(t *testing.T) {
	t.Parallel()
	var steps, files strings.Builder
	fmt.Fprintf(&files, "-- class.yaml --\n%s", class)
	steps.WriteString("apply class.yaml\n")
	wait := func(n int) { fmt.Fprintf(&steps, "wait pods running=%d within 240s\n", n) }
	for i, m := range published {
		golden, err := os.ReadFile("../../cli/testdata/convert/" + m.file + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		objects, _, ok := strings.Cut(string(golden), "=== said\n")
		if !ok {
			t.Fatalf("%s: no objects", m.file)
		}
		if i == len(published)-1 {
			wait(i)
		}
		fmt.Fprintf(&files, "-- %s.yaml --\n%s-- %s-pod.yaml --\n%s", m.file, objects, m.file, podFor(m.file, m.pool, m.requests))
		fmt.Fprintf(&steps, "apply %s.yaml\napply %s-pod.yaml\n", m.file, m.file)
	}
	wait(len(published))
	for _, m := range published {
		fmt.Fprintf(&steps, "expect pods app=%s on karpenter.sh/nodepool=%s\nexpect pods app=%s on %s\n", m.file, m.pool, m.file, m.on)
	}
	story, err := scenario.Parse("published", []byte("step \"Published manifests\"\n"+steps.String()+"expect leaks none\n"+files.String()))
	if err != nil {
		t.Fatal(err)
	}
	playOn(t, start(t, "nap", cloud.Options{}), story)
}
