package labtest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/binary"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
)

// These variables make the test program play another one: a supervisor that runs
// a lab in a folder, or a process of a lab.
const (
	supervisorVariable = "LABTEST_SUPERVISE"
	processVariable    = "LABTEST_PROCESS"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(supervisorVariable); dir != "" {
		os.Exit(supervise(dir))
	}
	switch os.Getenv(processVariable) {
	case "broken":
		fmt.Fprintln(os.Stderr, "I cannot find my keys")
		os.Exit(7)
	case "patient":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		<-ctx.Done()
		stop()
		fmt.Fprintln(os.Stderr, "asked to stop")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func supervise(dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	l, err := lab.New(lab.Config{Dir: dir, Binary: os.Getenv(binary.Variable)})
	if err == nil {
		err = l.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startSupervisor runs a lab in another process and waits until it is ready.
func startSupervisor(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), supervisorVariable+"="+dir, binary.Variable+"="+labtest.Binary(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := lab.Detach(t.Context(), dir, cmd, t.Output()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

func inspect(t *testing.T, dir string) *lab.State {
	t.Helper()
	s, err := lab.Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func clientFor(t *testing.T, dir string) kubernetes.Interface {
	t.Helper()
	cfg, err := lab.Environment{Kubeconfig: filepath.Join(dir, "kubeconfig")}.AdminConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func createNamespace(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create namespace %s: %v", name, err)
	}
}

func hasNamespace(t *testing.T, client kubernetes.Interface, name string) bool {
	_, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	return err == nil
}

// waiter is a service that is never ready.
type waiter struct{}

func (waiter) Name() string { return "waiter" }

func (waiter) Run(ctx context.Context, _ lab.Environment) error {
	<-ctx.Done()
	return nil
}

// counter is a service that counts its runs.
type counter struct{ runs atomic.Int32 }

func (c *counter) Name() string { return "counter" }

func (c *counter) Run(ctx context.Context, env lab.Environment) error {
	c.runs.Add(1)
	env.Log.Info("counting")
	env.Ready()
	<-ctx.Done()
	return nil
}

// parent is a service that runs this test program as a process, and is ready at once.
type parent struct {
	process string // what processVariable says
	ready   func(context.Context) error
}

func (p parent) Name() string { return p.process + "-parent" }

func (p parent) Run(ctx context.Context, env lab.Environment) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child, err := env.Start(lab.Process{
		Name: p.process, Program: self, Ready: p.ready,
		Command: func() (lab.Command, error) {
			return lab.Command{Env: []string{processVariable + "=" + p.process}}, nil
		},
	})
	if err != nil {
		return err
	}
	env.Ready()
	<-ctx.Done()
	child.Stop(time.Second)
	return nil
}

const crontab = `
apiVersion: example.com/v1
kind: CronTab
metadata: {name: first, namespace: default}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: CronTab, plural: crontabs}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

func TestLabLifecycle(t *testing.T) {
	service := &counter{}
	l := labtest.Start(t, lab.Config{
		Services:  []lab.Service{service, parent{process: "patient"}},
		Manifests: [][]byte{[]byte(crontab)},
		Ports:     map[string]int{"spare": 0},
	})
	client := l.Client()

	t.Run("serves the version of its binary", func(t *testing.T) {
		version, err := client.Discovery().ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if version.GitVersion != l.Env.KubernetesVersion || !strings.HasPrefix(version.GitVersion, "v1.") {
			t.Errorf("server version %q, environment says %q", version.GitVersion, l.Env.KubernetesVersion)
		}
	})
	t.Run("has applied the manifests, definitions before what they define", func(t *testing.T) {
		err := client.Discovery().RESTClient().Get().AbsPath("/apis/example.com/v1/namespaces/default/crontabs/first").Do(t.Context()).Error()
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("gives nap an identity without rights", func(t *testing.T) {
		nap := lab.Environment{Kubeconfig: l.Env.ControllerKubeconfig}
		cfg, err := nap.AdminConfig()
		if err != nil {
			t.Fatal(err)
		}
		asNap, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = asNap.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"nap"`) {
			t.Errorf("list nodes as nap: %v, want it forbidden to user nap", err)
		}
	})
	t.Run("turns the bearer of the bootstrap token into a node, and only into that node", func(t *testing.T) {
		node := joinAsNode(t, l, "machine-1")
		if err := createNode(t, node, "machine-1"); err != nil {
			t.Errorf("create its own node: %v", err)
		}
		if err := createNode(t, node, "machine-2"); !apierrors.IsForbidden(err) {
			t.Errorf("create another's node: %v, want it forbidden", err)
		}
	})
	t.Run("schedules pods with the real scheduler and restarts what is killed", func(t *testing.T) {
		for _, part := range []string{lab.Etcd, lab.Scheduler, lab.APIServer, "patient"} {
			before := l.Part(part)
			l.Kill(part)
			labtest.Await(t, part+" to be started again", func() bool {
				now := l.Part(part)
				return now.Restarts == before.Restarts+1 && now.Status == lab.StatusReady && now.Process != before.Process
			})
			if last := l.Part(part).LastExit; !strings.Contains(last, "killed") {
				t.Errorf("%s: last exit %q, want it to say that it was killed", part, last)
			}
		}
		labtest.Await(t, "the whole lab to be ready", func() bool { return l.State().Healthy() })
		createNamespace(t, client, "after-the-crashes")
		labtest.Await(t, "the controller manager to serve the new namespace", func() bool {
			_, err := client.CoreV1().ServiceAccounts("after-the-crashes").Get(t.Context(), "default", metav1.GetOptions{})
			return err == nil
		})
		schedulePod(t, l, "after-the-crashes")
	})
	t.Run("restarts a service on request, and a process gracefully", func(t *testing.T) {
		l.Restart("counter")
		if runs := service.runs.Load(); runs != 2 {
			t.Errorf("the service was run %d times, want 2", runs)
		}
		l.Restart("patient")
		var logs strings.Builder
		if err := lab.Logs(t.Context(), l.Env.Dir, lab.LogOptions{Part: "patient", Tail: -1}, &logs); err != nil {
			t.Fatal(err)
		}
		if got := logs.String(); got != "asked to stop\n" {
			t.Errorf("log of the process: %q, want that it was asked to stop", got)
		}
	})
	t.Run("names its parts when asked for one that it has not", func(t *testing.T) {
		err := lab.Restart(t.Context(), l.Env.Dir, "kube-proxy")
		if err == nil || !strings.Contains(err.Error(), "kube-scheduler") {
			t.Errorf("restart kube-proxy: %v, want an error that names the parts", err)
		}
	})
	t.Run("does not let a second one into its folder", func(t *testing.T) {
		second, err := lab.New(lab.Config{Dir: l.Env.Dir, Binary: labtest.Binary(t)})
		if err != nil {
			t.Fatal(err)
		}
		if err := second.Run(t.Context()); !errors.Is(err, lab.ErrRunning) {
			t.Errorf("second Run = %v, want %v", err, lab.ErrRunning)
		}
	})
	t.Run("lives beside another lab", func(t *testing.T) {
		other := labtest.Start(t, lab.Config{})
		createNamespace(t, other.Client(), "only-there")
		if hasNamespace(t, client, "only-there") {
			t.Error("a namespace of the second lab is in the first one")
		}
	})
	t.Run("keeps credentials to its owner", func(t *testing.T) {
		err := filepath.WalkDir(l.Env.Dir, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 && !strings.Contains(path, "/etcd/member/") {
				t.Errorf("%s has mode %s", path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})

	processes := l.State()
	l.Stop()
	for _, p := range processes.Parts {
		if p.Kind != lab.KindService && p.Process.Alive() {
			t.Errorf("%s still runs after the lab was stopped", p.Name)
		}
	}
	if phase := l.State().Phase; phase != lab.PhaseStopped {
		t.Errorf("phase after stop = %s", phase)
	}
}

// joinAsNode asks for a node certificate with nothing but the bootstrap token,
// as a kubelet does, and returns a client with that certificate.
func joinAsNode(t *testing.T, l *labtest.Lab, name string) kubernetes.Interface {
	t.Helper()
	cfg := &rest.Config{Host: l.Env.Server, BearerToken: l.Env.BootstrapToken, TLSClientConfig: rest.TLSClientConfig{CAData: l.Env.CA}}
	bootstrapper, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	csrs := bootstrapper.CertificatesV1().CertificateSigningRequests()
	csr, err := csrs.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("ask for a node certificate: %v", err)
	}
	labtest.Await(t, "the node certificate", func() bool {
		csr, err = csrs.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && len(csr.Status.Certificate) > 0
	})
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cfg.BearerToken = ""
	cfg.CertData = csr.Status.Certificate
	cfg.KeyData = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	node, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func createNode(t *testing.T, client kubernetes.Interface, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	return err
}

// schedulePod shows that the scheduler works: it says why a pod fits nowhere.
func schedulePod(t *testing.T, l *labtest.Lab, namespace string) {
	t.Helper()
	pods := l.Client().CoreV1().Pods(namespace)
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "homeless"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	labtest.Await(t, "the scheduler to look at a pod", func() bool {
		pod, err := pods.Get(t.Context(), "homeless", metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				return true
			}
		}
		return false
	})
}

func TestRunFailsWithLastLogLinesOfPartThatDoesNotStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	never := func(context.Context) error { return fmt.Errorf("never") }
	l, err := lab.New(lab.Config{
		Dir: dir, Binary: labtest.Binary(t), Services: []lab.Service{parent{process: "broken", ready: never}, waiter{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = l.Run(t.Context())
	if err == nil {
		t.Fatal("Run succeeded")
	}
	for _, want := range []string{"broken", "exit status 7", "I cannot find my keys"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not contain %q", err, want)
		}
	}
	for _, p := range inspect(t, dir).Parts {
		if p.Process.Alive() {
			t.Errorf("%s still runs", p.Name)
		}
	}
}

func TestSupervisorKilledLeavesNoProcessAndKeepsData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	supervisor := startSupervisor(t, dir)
	createNamespace(t, clientFor(t, dir), "kept")
	before := inspect(t, dir)

	if err := supervisor.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	labtest.Await(t, "the children to die with their supervisor", func() bool {
		for _, p := range before.Parts {
			if p.Process.Alive() {
				return false
			}
		}
		return true
	})
	labtest.Await(t, "the lab to be known as killed", func() bool { return inspect(t, dir).Phase == lab.PhaseKilled })

	startSupervisor(t, dir)
	if !hasNamespace(t, clientFor(t, dir), "kept") {
		t.Error("the data of the killed lab is gone")
	}
	if after := inspect(t, dir); after.Server != before.Server {
		t.Errorf("server moved from %s to %s, and kubeconfigs in use are wrong now", before.Server, after.Server)
	}

	began := time.Now()
	running := inspect(t, dir)
	stopped, err := lab.Down(t.Context(), dir)
	if err != nil || !stopped {
		t.Fatalf("Down = %v, %v", stopped, err)
	}
	t.Logf("down took %s", time.Since(began))
	for _, p := range running.Parts {
		if p.Process.Alive() {
			t.Errorf("%s still runs after down", p.Name)
		}
	}
	if stopped, err := lab.Down(t.Context(), dir); stopped || err != nil {
		t.Errorf("second Down = %v, %v, want that nothing ran", stopped, err)
	}
}
