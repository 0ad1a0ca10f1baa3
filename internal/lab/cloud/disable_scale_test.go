//go:build scale

package cloud_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
)

// inflate is the workload, with a budget of one pod at a time.
const inflate = `apiVersion: apps/v1
kind: Deployment
metadata: {name: inflate, namespace: default}
spec:
  replicas: 8
  selector: {matchLabels: {app: inflate}}
  template:
    metadata: {labels: {app: inflate}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
        - name: inflate
          image: mcr.microsoft.com/oss/kubernetes/pause:3.9
          resources: {requests: {cpu: "1", memory: 1Gi}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: inflate, namespace: default}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: inflate}}}
`

// switched is a lab in which nap is switched off and on.
type switched struct {
	*labtest.Lab
	t     *testing.T
	modes dynamic.ResourceInterface
}

func (s *switched) available() int32 {
	d, err := s.Client().AppsV1().Deployments("default").Get(s.t.Context(), "inflate", metav1.GetOptions{})
	if err != nil {
		return 0
	}
	return d.Status.AvailableReplicas
}

// cordon marks the nodes that nap has not made.
func (s *switched) cordon(nodes int, unschedulable bool) {
	s.t.Helper()
	var fixed []corev1.Node
	labtest.Await(s.t, "the fixed nodes", func() bool {
		list, err := s.Client().CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{LabelSelector: "!karpenter.sh/nodepool"})
		if err != nil {
			return false
		}
		// The node with this taint is the one that nap itself runs on.
		fixed = slices.DeleteFunc(list.Items, func(n corev1.Node) bool {
			return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "CriticalAddonsOnly" })
		})
		return len(fixed) == nodes
	})
	patch := []byte(`{"spec":{"unschedulable":false}}`)
	if unschedulable {
		patch = []byte(`{"spec":{"unschedulable":true}}`)
	}
	for _, n := range fixed {
		if _, err := s.Client().CoreV1().Nodes().Patch(s.t.Context(), n.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// nap runs the program for people.
func (s *switched) nap(args ...string) string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), build(s.t, "nap"), append(args, "--kubeconfig", s.Env.Kubeconfig)...).CombinedOutput()
	s.t.Logf("nap %s\n%s", strings.Join(args, " "), out)
	if err != nil {
		s.t.Fatalf("nap %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// TestDisableLosesNoPod: in a lab to which nothing but a workload is applied, nap buys by
// its default NodePools; mode Manual is refused while it has nodes; nap disable moves all
// pods to fixed nodes, one at a time, and leaves no machine; nap enable has it buy again.
func TestDisableLosesNoPod(t *testing.T) {
	build(t, "nap")
	const fixedNodes, pods = 3, 8
	cfg, err := cloud.Complete(lab.Config{
		Dir: filepath.Join(t.TempDir(), "lab"), Executable: controllerProgram(t), Audit: account, Nodes: fixedNodes,
	}, cloud.Options{ProvisionMode: config.ModeVMs, DefaultNodePools: "Auto"}, "nap")
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, cfg)
	t.Cleanup(func() { expectAllowed(t, l) })
	client, err := dynamic.NewForConfig(l.Config())
	if err != nil {
		t.Fatal(err)
	}
	s := &switched{Lab: l, t: t, modes: client.Resource(v1alpha1.GroupVersion().WithResource("nodeautoprovisionings"))}
	s.cordon(fixedNodes, true)
	began := time.Now()
	if err := lab.Apply(t.Context(), l.Config(), []byte(inflate)); err != nil {
		t.Fatal(err)
	}
	labtest.Await(t, "all pods on machines of the default NodePool", func() bool { return s.available() == pods })
	t.Logf("%d pods run after %s, with nothing applied but them", pods, time.Since(began).Round(100*time.Millisecond))
	manual := []byte(`{"spec":{"mode":"Manual"}}`)
	_, err = s.modes.Patch(t.Context(), "default", types.MergePatchType, manual, metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "mode Manual would leave machines behind: ") || !strings.Contains(err.Error(), "aks-default-") {
		t.Errorf("mode Manual with nodes: %v", err)
	}

	s.cordon(fixedNodes, false)
	least, stop, stopped := int32(pods), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				least = min(least, s.available())
			}
		}
	}()
	began = time.Now()
	out := s.nap("disable", "--wait", "--timeout", "5m")
	took := time.Since(began)
	labtest.Await(t, "all pods on fixed nodes", func() bool { return s.available() == pods })
	close(stop)
	<-stopped
	t.Logf("disabled after %s, never less than %d of %d pods available", took.Round(100*time.Millisecond), least, pods)
	if least < pods-1 {
		t.Errorf("%d pods were available at least, which the budget forbids", least)
	}
	if !strings.Contains(out, "Step 5: the mode is Manual") {
		t.Error("the mode was not switched")
	}
	azure, err := cloud.Open(l.Env.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer azure.Close()
	labtest.Await(t, "no machine and nothing of one", func() bool {
		left, err := azure.Leaks(t.Context(), nil)
		return err == nil && len(left) == 0
	})

	// Switched off, more pods wait; switched on, they run.
	patch := []byte(`{"spec":{"replicas":14}}`)
	var d *appsv1.Deployment
	d, err = l.Client().AppsV1().Deployments("default").Patch(t.Context(), "inflate", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	labtest.Await(t, "pods which the scheduler has no node for", func() bool { return unschedulable(t, l, d) > 0 })
	s.nap("enable")
	labtest.Await(t, "all pods with the machines that are bought again", func() bool { return s.available() == 14 })
}

// unschedulable is how many pods of a Deployment the scheduler has looked at in vain.
func unschedulable(t *testing.T, l *labtest.Lab, d *appsv1.Deployment) int {
	t.Helper()
	pods, err := l.Client().CoreV1().Pods(d.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=inflate"})
	if err != nil {
		return 0
	}
	n := 0
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				n++
			}
		}
	}
	return n
}
