package kubelet_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet"
	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/bootdata"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
)

// These tests run kubelets against a real control plane: its token
// authentication, its certificate signer, its Node authorizer and NodeRestriction,
// its scheduler and its controllers.

const gib = 1 << 30

// machine makes the n-th machine of a test; edit changes its boot data.
func machine(t testing.TB, env lab.Environment, n int, edit ...func(*bootdata.AKSNode)) kubelet.Machine {
	t.Helper()
	boot := bootdata.AKSNode{
		APIServer: env.ServerName, CA: env.CA, Token: env.BootstrapToken, SubscriptionID: "s", ResourceGroup: "MC_lab", Location: "eastus",
		Pool: "test", Mode: "User", MaxPods: 110, Version: env.KubernetesVersion, VCPUs: 8, MemoryBytes: 32 * gib,
	}
	for _, f := range edit {
		f(&boot)
	}
	data, err := boot.CustomData()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("aks-test-%04d", n)
	return kubelet.Machine{
		ID:           "/subscriptions/s/resourceGroups/MC_lab/providers/Microsoft.Compute/virtualMachines/" + name,
		ComputerName: name, Size: "Standard_D8s_v5", VCPUs: 8, MemoryBytes: 32 * gib, Arch: "amd64", MaxDataDisks: 16, OSDiskGB: 128,
		Region: "eastus", Zone: fmt.Sprint(n%3 + 1), PrivateIP: fmt.Sprintf("10.224.%d.%d", n/250, n%250+4), CustomData: string(data),
	}
}

// network is the network of the lab's machines.
func network(env lab.Environment) kubelet.Network {
	return kubelet.Network{net.JoinHostPort(env.ServerName, "443"): strings.TrimPrefix(env.Server, "https://")}
}

// run runs kubelets until the test ends.
func run(t testing.TB, cfg kubelet.Config) *kubelet.Kubelets {
	t.Helper()
	f, err := kubelet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

// podTemplate is a small pod with the labels.
func podTemplate(app string, restart corev1.RestartPolicy, annotations map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}, Annotations: annotations},
		Spec: corev1.PodSpec{
			RestartPolicy: restart,
			Containers: []corev1.Container{{Name: "main", Image: "pause", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}}}},
		},
	}
}

func deploy(t testing.TB, client kubernetes.Interface, name string, replicas int32) {
	t.Helper()
	_, err := client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: podTemplate(name, corev1.RestartPolicyAlways, nil),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func available(t testing.TB, client kubernetes.Interface, name string) int32 {
	t.Helper()
	d, err := client.AppsV1().Deployments("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Status.AvailableReplicas
}

// readyNodes counts nodes that are ready and schedulable.
func readyNodes(t testing.TB, client kubernetes.Interface) int {
	t.Helper()
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, n := range nodes.Items {
		if len(n.Spec.Taints) > 0 {
			continue
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				count++
			}
		}
	}
	return count
}

func TestMachinesRegisterWithRealControlPlane(t *testing.T) {
	l := labtest.Start(t, lab.Config{})
	client := l.Client()
	f := run(t, kubelet.Config{
		APIServer: l.Config(), Logger: slog.New(slog.DiscardHandler), Network: network(l.Env),
		Delays: kubelet.Delays{
			Register: 100 * time.Millisecond, Ready: 200 * time.Millisecond, PodStart: 100 * time.Millisecond, PodStop: 100 * time.Millisecond,
		},
	})
	for n := range 3 {
		f.Booted(machine(t, l.Env, n))
	}
	labtest.Await(t, "three ready nodes without taints", func() bool { return readyNodes(t, client) == 3 })

	t.Run("a wrong token is refused", func(t *testing.T) {
		m := machine(t, l.Env, 100, func(b *bootdata.AKSNode) { b.Token = "000000.0000000000000000" })
		f.Booted(m)
		wantReason(t, f, m, "Unauthorized")
	})
	expiring := expiringToken(t, client, 4*time.Second)
	f.Booted(machine(t, l.Env, 102, expiring.use))
	labtest.Await(t, "a fourth ready node", func() bool { return readyNodes(t, client) == 4 })
	t.Run("a URL as the server's name is no name", func(t *testing.T) {
		m := machine(t, l.Env, 104, func(b *bootdata.AKSNode) { b.APIServer = l.Env.Server })
		f.Booted(m)
		wantReason(t, f, m, "exit code 52")
	})
	t.Run("a name that another machine has is refused", func(t *testing.T) {
		m := machine(t, l.Env, 101)
		m.ComputerName = "aks-test-0000" // the name of another machine
		f.Booted(m)
		wantReason(t, f, m, "exists already for another machine")
	})
	t.Run("deployments, jobs and daemon sets run", func(t *testing.T) { testWorkloads(t, client) })
	t.Run("a restarted API server is found again", func(t *testing.T) {
		l.Restart(lab.APIServer)
		deploy(t, client, "later", 10)
		labtest.Await(t, "10 available replicas", func() bool { return available(t, client, "later") == 10 })
		f.Booted(machine(t, l.Env, 3))
		labtest.Await(t, "a fifth ready node", func() bool { return readyNodes(t, client) == 5 })
	})
	t.Run("a token that has expired is refused", func(t *testing.T) {
		time.Sleep(time.Until(expiring.forgotten))
		m := machine(t, l.Env, 103, expiring.use)
		f.Booted(m)
		wantReason(t, f, m, "Unauthorized")
	})
}

// shortToken is a bootstrap token with a short life.
type shortToken struct {
	value     string
	forgotten time.Time // when the API server no longer knows the token as valid
}

// use makes a machine join with the token.
func (s shortToken) use(b *bootdata.AKSNode) { b.Token = s.value }

// expiringToken makes a bootstrap token. The API server keeps a token that it accepted for ten
// seconds more (its token authenticator's TokenSuccessCacheTTL).
func expiringToken(t *testing.T, client kubernetes.Interface, life time.Duration) shortToken {
	t.Helper()
	const id, secret = "expire", "0123456789abcdef"
	expires := time.Now().Add(life)
	_, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true",
			"expiration": expires.UTC().Format(time.RFC3339)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return shortToken{value: id + "." + secret, forgotten: expires.Add(11 * time.Second)}
}

func wantReason(t *testing.T, f *kubelet.Kubelets, m kubelet.Machine, want string) {
	t.Helper()
	labtest.Await(t, "the reason "+want, func() bool {
		s, _ := f.Status(m.ID)
		return strings.Contains(s.Reason, want)
	})
	f.Gone(m.ID)
}

func testWorkloads(t *testing.T, client kubernetes.Interface) {
	deploy(t, client, "web", 30)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "work"}, Spec: batchv1.JobSpec{
		Template: podTemplate("work", corev1.RestartPolicyNever, map[string]string{kubelet.AnnotationRunFor: "500ms"}),
	}}
	if _, err := client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "everywhere"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "everywhere"}},
		Template: podTemplate("everywhere", corev1.RestartPolicyAlways, nil),
	}}
	if _, err := client.AppsV1().DaemonSets("default").Create(t.Context(), daemons, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labtest.Await(t, "30 available replicas", func() bool { return available(t, client, "web") == 30 })
	labtest.Await(t, "the job to succeed", func() bool {
		j, err := client.BatchV1().Jobs("default").Get(t.Context(), "work", metav1.GetOptions{})
		return err == nil && j.Status.Succeeded == 1
	})
	labtest.Await(t, "a ready daemon on each node", func() bool {
		d, err := client.AppsV1().DaemonSets("default").Get(t.Context(), "everywhere", metav1.GetOptions{})
		return err == nil && d.Status.NumberReady == 4
	})
	if err := client.AppsV1().Deployments("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	labtest.Await(t, "the deployment's pods to go", func() bool {
		pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
		return err == nil && len(pods.Items) == 0
	})
}

// BenchmarkThousandNodesTenThousandPods joins a thousand machines and runs ten
// thousand pods on them, once. It reports how long the nodes and the pods took
// and what the kubelets and the control plane cost.
func BenchmarkThousandNodesTenThousandPods(b *testing.B) {
	for b.Loop() {
		scale(b, 1000, 10_000, 10)
	}
}

func scale(b *testing.B, machines, pods, deployments int) {
	l := labtest.Start(b, lab.Config{})
	client := l.Client()
	runtime.GC()
	before := resident(b)
	f := run(b, kubelet.Config{APIServer: l.Config(), Logger: slog.New(slog.DiscardHandler), Network: network(l.Env), LeaseRenew: 20 * time.Second})

	start := time.Now()
	for n := range machines {
		f.Booted(machine(b, l.Env, n))
	}
	within(b, 3*time.Minute, "all nodes to be ready", func() bool { return readyNodes(b, client) == machines })
	b.ReportMetric(time.Since(start).Seconds(), "s-to-all-nodes-ready")
	b.ReportMetric(float64(resident(b)-before)/(1<<20), "MB-kubelets-idle")

	start = time.Now()
	for d := range deployments {
		deploy(b, client, fmt.Sprint("load-", d), int32(pods/deployments))
	}
	within(b, 10*time.Minute, "all pods to run", func() bool {
		total := int32(0)
		for d := range deployments {
			total += available(b, client, fmt.Sprint("load-", d))
		}
		return int(total) == pods
	})
	b.ReportMetric(time.Since(start).Seconds(), "s-to-all-pods-running")
	b.ReportMetric(float64(resident(b)-before)/(1<<20), "MB-kubelets")
	total := int64(0)
	for _, p := range l.State().Parts {
		total += p.ResidentBytes
		b.Logf("%s: %d MB", p.Name, p.ResidentBytes>>20)
	}
	b.ReportMetric(float64(total)/(1<<20), "MB-control-plane")
}

// within polls once a second, so that asking costs little.
func within(b *testing.B, limit time.Duration, what string, condition func() bool) {
	b.Helper()
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			b.Fatalf("waited %s for %s, in vain", limit, what)
		}
	}
}

// resident is the memory that this process occupies, in bytes.
func resident(b *testing.B) int64 {
	b.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(data), &size, &pages); err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
