package objectmetrics

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	opmetrics "github.com/awslabs/operatorpkg/metrics"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	metricsnode "sigs.k8s.io/karpenter/pkg/controllers/metrics/node"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// mirror is Karpenter's mirror of a cluster of three nodes: of a NodePool, empty, and with
// no NodePool. One more NodeClaim has no node yet.
func mirror(t *testing.T) *state.Cluster {
	t.Helper()
	var nodes []*corev1.Node
	for i, pool := range []string{"general", "general", ""} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i), CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)),
			Labels: map[string]string{corev1.LabelArchStable: "amd64", corev1.LabelInstanceTypeStable: "Standard_D8s_v5", corev1.LabelTopologyZone: "eastus-1"}}}
		if pool != "" {
			n.Labels[v1.NodePoolLabelKey] = pool
		}
		n.Spec.ProviderID = "azure:///" + n.Name
		n.Status.Capacity, n.Status.Allocatable = amounts("8", "32Gi"), amounts("7820m", "28Gi")
		nodes = append(nodes, n)
	}
	objects := []client.Object{}
	for i := range 3 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("pod-", i)}, Spec: corev1.PodSpec{NodeName: nodes[i/2*2].Name}}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amounts("1500m", "2Gi"), Limits: amounts("2", "4Gi")}}}
		if i == 1 {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent"}}
		}
		objects = append(objects, p)
	}
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
	cluster := state.NewCluster(clock.RealClock{}, kube, nil)
	ctx := options.ToContext(t.Context(), &options.Options{})
	for _, n := range nodes {
		if err := cluster.UpdateNode(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "general-b", Labels: map[string]string{v1.NodePoolLabelKey: "general"}}}
	claim.Status.ProviderID, claim.Status.Allocatable = "azure:///node-3", amounts("7820m", "28Gi")
	cluster.UpdateNodeClaim(claim)
	return cluster
}

// lifetimes differ by the moment in which they are read.
var lifetimes = regexp.MustCompile(`(?m)^(karpenter_nodes_current_lifetime_seconds\{.*\} \d{4})[\d.]*`)

// ofNodes are the lines of the metrics of nodes.
func ofNodes(t *testing.T) []string {
	t.Helper()
	text := lifetimes.ReplaceAllString(scrape(t, ctrlmetrics.Registry), "$1")
	lines := strings.Split(text, "\n")
	return slices.DeleteFunc(lines, func(l string) bool {
		return !strings.Contains(l, "karpenter_nodes_") && !strings.Contains(l, "karpenter_cluster_utilization") ||
			strings.Contains(l, "karpenter_nodes_total") && !strings.Contains(l, "total_pod") && !strings.Contains(l, "total_daemon")
	})
}

// remove takes the metrics of nodes out of the registry of the process.
func remove() {
	for _, g := range []opmetrics.GaugeMetric{
		metricsnode.Allocatable, metricsnode.TotalPodRequests, metricsnode.TotalPodLimits, metricsnode.TotalDaemonRequests,
		metricsnode.TotalDaemonLimits, metricsnode.SystemOverhead, metricsnode.Lifetime, metricsnode.ClusterUtilization,
	} {
		ctrlmetrics.Registry.Unregister(g.(prometheus.Collector))
	}
}

// Metrics of nodes are those of Karpenter's controller, series by series.
func TestMetricsOfNodesAreKarpenters(t *testing.T) {
	cluster := mirror(t)
	controller := metricsnode.NewController(cluster)
	if _, err := controller.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := ofNodes(t)
	remove()
	for _, each := range []bool{true, false} {
		nodes, err := NewNodes(ctrlmetrics.Registry, cluster, each)
		if err != nil {
			t.Fatal(err)
		}
		if !each {
			want = slices.DeleteFunc(want, func(l string) bool { return !strings.Contains(l, "utilization") })
		}
		if got := ofNodes(t); !slices.Equal(got, want) || len(want) < 4 {
			t.Errorf("each %t: served are %d lines, Karpenter serves %d:\n%s\n\nKarpenter:\n%s", each, len(got), len(want), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		ctrlmetrics.Registry.Unregister(nodes)
	}
}

// Two labels that differ in their prefix alone have one name in metrics, always the same.
func TestLabelNamesAreStable(t *testing.T) {
	want := wellKnown()
	for range 20 {
		if got := wellKnown(); !maps.Equal(got, want) {
			t.Fatalf("labels are %v, and %v", want, got)
		}
	}
}
