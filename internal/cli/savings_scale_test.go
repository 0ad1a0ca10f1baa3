package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// object is a Kubernetes object as JSON.
type object = map[string]any

// largeCluster is a cluster of agent pools as kubectl prints it: nodes of 8 vCPUs and pods
// of some hundred Deployments, 15 on each node.
func largeCluster(nodes, pods int) []byte {
	var items []object
	for i := range nodes {
		items = append(items, object{"apiVersion": "v1", "kind": "Node",
			"metadata": object{"name": fmt.Sprint("aks-user-", i), "labels": object{
				"node.kubernetes.io/instance-type": "Standard_D8s_v5", "topology.kubernetes.io/region": "eastus",
				"topology.kubernetes.io/zone": fmt.Sprint("eastus-", 1+i%3), "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
				"kubernetes.azure.com/agentpool": "user", "kubernetes.azure.com/mode": "user", "kubernetes.io/hostname": fmt.Sprint("aks-user-", i),
			}},
			"status": object{"allocatable": object{"cpu": "7820m", "memory": "28Gi", "pods": "110"},
				"capacity": object{"cpu": "8", "memory": "32Gi", "pods": "110"}, "conditions": []object{{"type": "Ready", "status": "True"}}},
		})
	}
	for i := range pods {
		app := fmt.Sprint("app-", i%400)
		items = append(items, object{"apiVersion": "v1", "kind": "Pod",
			"metadata": object{"name": fmt.Sprint(app, "-", i), "namespace": fmt.Sprint("team-", i%40), "labels": object{"app": app},
				"ownerReferences": []object{{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": true}}},
			"spec": object{"nodeName": fmt.Sprint("aks-user-", i%nodes), "containers": []object{{"name": "main", "image": "example/app:1",
				"resources": object{"requests": object{"cpu": fmt.Sprintf("%dm", 50+25*(i%400%13)), "memory": fmt.Sprintf("%dMi", 64+32*(i%400%29))}}}}},
			"status": object{"phase": "Running"},
		})
	}
	text, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		panic(err)
	}
	return text
}

// BenchmarkSavingsOfLargeCluster measures nap savings on 2,000 nodes with 30,000 pods. Its
// memory is that of the whole process.
func BenchmarkSavingsOfLargeCluster(b *testing.B) {
	file := filepath.Join(b.TempDir(), "cluster.json")
	if err := os.WriteFile(file, largeCluster(2000, 30000), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var out, errs bytes.Buffer
		code := Main(b.Context(), []string{"savings", "-f", file, "-o", "json"}, "test", command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		var made savingsReport
		if err := json.Unmarshal(out.Bytes(), &made); code != 0 || err != nil || made.Nodes != 2000 || made.Pods != 30000 {
			b.Fatalf("exit code %d, %d nodes, %d pods: %v\n%s", code, made.Nodes, made.Pods, err, errs.String())
		}
		b.ReportMetric(made.Options[0].SavedPercent, "percent-saved")
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return // only Linux tells
	}
	for line := range strings.Lines(string(text)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kib); n == 1 {
			b.ReportMetric(kib/1024, "MiB-peak")
			if kib > 1<<20 {
				b.Errorf("it took %.0f MiB, allowed are 1024", kib/1024)
			}
		}
	}
}
