package kubelet

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/bootdata"
)

// world is kubelets on an in-memory API, in the fake time of a test.
type world struct {
	t        *testing.T
	kubelets *Kubelets
	client   *fake.Clientset
	gone     atomic.Bool // whether the cloud no longer knows any machine
}

// inWorld runs a test in fake time.
func inWorld(t *testing.T, delays Delays, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, client: fake.NewClientset()}
		f, err := newKubelets(Config{
			Delays: delays, Logger: slog.New(slog.DiscardHandler),
			VMExists: func(string) bool { return !w.gone.Load() },
		}.withDefaults(), w.client)
		if err != nil {
			t.Fatal(err)
		}
		w.kubelets = f
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		w.after(time.Second) // until the watches have started
		test(w)
	})
}

// after lets time pass and everything that is due happen.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// register makes the machine a registered one, as joining does.
func (w *world) register(m Machine, flags string) {
	w.t.Helper()
	w.registerAs(m, bootdata.Data{Version: "v1.37.1", Flags: flagsOf(w.t, flags), GPUDriver: true})
}

// registerAs does so for a machine of certain boot data.
func (w *world) registerAs(m Machine, boot bootdata.Data) {
	w.t.Helper()
	v := &vm{machine: m, boot: boot, life: life{phase: Registering}, bootedAt: time.Now()}
	w.kubelets.registry.add(v)
	node := nodeOf(v, w.kubelets.cfg)
	node.UID = types.UID("uid-" + node.Name)
	if _, err := w.client.CoreV1().Nodes().Create(w.t.Context(), node, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.kubelets.joiner.adopt(v, node)
	synctest.Wait()
}

func (w *world) node(name string) *corev1.Node {
	w.t.Helper()
	n, err := w.client.CoreV1().Nodes().Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// bind creates a pod that the scheduler has bound to the node.
func (w *world) bind(name, node string, change ...func(*corev1.Pod)) {
	w.t.Helper()
	p := aPod(change...)
	p.Name, p.Namespace, p.UID = name, "default", types.UID("uid-"+name)
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "pause"}}
	if _, err := w.client.CoreV1().Pods("default").Create(w.t.Context(), p, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

// pod returns the pod, nil when it is gone.
func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	p, err := w.client.CoreV1().Pods("default").Get(w.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) wantPhase(name string, want corev1.PodPhase, ready bool) {
	w.t.Helper()
	p := w.pod(name)
	if p == nil {
		w.t.Fatalf("pod %s is gone, want it %s", name, want)
	}
	if p.Status.Phase != want || readyInStatus(p) != ready {
		w.t.Errorf("pod %s is %s, ready %v; want %s, %v", name, p.Status.Phase, readyInStatus(p), want, ready)
	}
}

// lastBeat is when the node's lease was renewed.
func (w *world) lastBeat(node string) time.Time {
	w.t.Helper()
	l, err := w.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(w.t.Context(), node, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return l.Spec.RenewTime.Time
}

const theNode = "aks-general-x1"

func TestNodeAndPodsAreReadyAfterDelay(t *testing.T) {
	inWorld(t, Delays{Ready: 10 * time.Second, PodStart: 2 * time.Second}, func(w *world) {
		w.register(aMachine(""), "")
		w.bind("web", theNode)
		w.bind("agent", theNode, func(p *corev1.Pod) { p.Spec.HostNetwork = true })
		w.after(9 * time.Second)
		if r := readiness(w.node(theNode)); r != corev1.ConditionFalse {
			t.Errorf("ready %s before the delay", r)
		}
		w.wantPhase("web", corev1.PodPending, false)
		w.wantPhase("agent", corev1.PodRunning, true)
		w.after(2 * time.Second)
		if r := readiness(w.node(theNode)); r != corev1.ConditionTrue {
			t.Errorf("ready %s after the delay", r)
		}
		w.wantPhase("web", corev1.PodPending, false)
		w.after(2 * time.Second)
		w.wantPhase("web", corev1.PodRunning, true)
		if ip := w.pod("web").Status.PodIP; !strings.HasPrefix(ip, "10.128.") {
			t.Errorf("pod IP %q", ip)
		}
		if ip := w.pod("agent").Status.PodIP; ip != "10.224.0.4" {
			t.Errorf("host network pod has IP %q", ip)
		}
	})
}

func TestHeartbeatsArePeriodicAndStopWithMachine(t *testing.T) {
	inWorld(t, Delays{}, func(w *world) {
		m := aMachine("")
		w.register(m, "")
		for range 20 {
			w.after(5 * time.Second)
			if age := time.Since(w.lastBeat(theNode)); age > 11*time.Second {
				t.Fatalf("last heartbeat %s ago", age)
			}
		}
		w.bind("web", theNode)
		w.wantPhase("web", corev1.PodRunning, true)
		w.kubelets.Gone(m.ID)
		last := w.lastBeat(theNode)
		w.after(time.Minute)
		if !w.lastBeat(theNode).Equal(last) {
			t.Error("heartbeat of a machine that is gone")
		}
		w.wantPhase("web", corev1.PodRunning, true) // no kubelet is left to say otherwise
		if _, known := w.kubelets.Status(m.ID); known {
			t.Error("status of a machine that is gone")
		}
	})
}

func TestHeartbeatSurvivesAnotherWriterOfTheLease(t *testing.T) {
	inWorld(t, Delays{}, func(w *world) {
		w.register(aMachine(""), "")
		leases := w.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
		if err := leases.Delete(w.t.Context(), theNode, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.after(12 * time.Second)
		if age := time.Since(w.lastBeat(theNode)); age > 11*time.Second {
			t.Errorf("last heartbeat %s ago", age)
		}
	})
}

func TestGPUsAppearAsFromDevicePlugin(t *testing.T) {
	inWorld(t, Delays{Ready: time.Second, DevicePlugin: 5 * time.Second}, func(w *world) {
		m := aMachine("")
		m.GPUs, m.GPUVendor = 2, "nvidia"
		w.register(m, "")
		gpus := func() int64 { q := w.node(theNode).Status.Allocatable["nvidia.com/gpu"]; return q.Value() }
		w.after(5 * time.Second)
		if readiness(w.node(theNode)) != corev1.ConditionTrue || gpus() != 0 {
			t.Errorf("after 5 s: ready %s, %d GPUs; want a ready node without", readiness(w.node(theNode)), gpus())
		}
		w.after(2 * time.Second)
		if gpus() != 2 {
			t.Errorf("%d GPUs, want 2", gpus())
		}
	})
}

func TestManagedGPUsAreThereWithTheNode(t *testing.T) {
	inWorld(t, Delays{Ready: time.Second, DevicePlugin: time.Hour}, func(w *world) {
		m := aMachine("")
		m.GPUs, m.GPUVendor = 2, "nvidia"
		w.registerAs(m, bootdata.Data{Version: "v1.37.1", Flags: flagsOf(t, ""), GPUDriver: true, DevicePlugin: true})
		w.after(2 * time.Second)
		node := w.node(theNode)
		if gpus := node.Status.Allocatable["nvidia.com/gpu"]; readiness(node) != corev1.ConditionTrue || gpus.Value() != 2 {
			t.Errorf("ready %s with %d GPUs, want 2 as soon as it is ready", readiness(node), gpus.Value())
		}
	})
}

func TestEvictionNoticeIsAConditionInTime(t *testing.T) {
	inWorld(t, Delays{PreemptionNotice: 30 * time.Second}, func(w *world) {
		m := aMachine("")
		w.register(m, "")
		w.kubelets.EvictionNotice(m.ID, time.Now().Add(50*time.Second))
		preempting := func() bool {
			for _, c := range w.node(theNode).Status.Conditions {
				if c.Type == PreemptionScheduled {
					return c.Status == corev1.ConditionTrue
				}
			}
			return false
		}
		w.after(19 * time.Second)
		if preempting() {
			t.Error("condition before the notice")
		}
		w.after(2 * time.Second)
		if !preempting() {
			t.Error("no condition 29 s before the eviction")
		}
	})
}

func TestKubeletRestoresUnknownConditions(t *testing.T) {
	inWorld(t, Delays{}, func(w *world) {
		w.register(aMachine(""), "")
		w.bind("web", theNode)
		w.wantPhase("web", corev1.PodRunning, true)
		n := w.node(theNode)
		for i := range n.Status.Conditions {
			n.Status.Conditions[i].Status = corev1.ConditionUnknown
		}
		if _, err := w.client.CoreV1().Nodes().UpdateStatus(w.t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		p := w.pod("web")
		for i := range p.Status.Conditions {
			p.Status.Conditions[i].Status = corev1.ConditionFalse
		}
		if _, err := w.client.CoreV1().Pods("default").UpdateStatus(w.t.Context(), p, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.after(time.Second)
		if r := readiness(w.node(theNode)); r != corev1.ConditionTrue {
			t.Errorf("node ready is %s", r)
		}
		w.wantPhase("web", corev1.PodRunning, true)
	})
}

func TestPodRestartPolicies(t *testing.T) {
	inWorld(t, Delays{PodStart: time.Second}, func(w *world) {
		w.register(aMachine(""), "")
		w.bind("done", theNode, policy(corev1.RestartPolicyNever), annotated(AnnotationRunFor, "5s"))
		w.bind("broken", theNode, policy(corev1.RestartPolicyNever), annotated(AnnotationRunFor, "5s", AnnotationExitCode, "2"))
		w.bind("again", theNode, policy(corev1.RestartPolicyOnFailure), annotated(AnnotationRunFor, "5s", AnnotationExitCode, "1"))
		w.after(5 * time.Second)
		w.wantPhase("done", corev1.PodRunning, true)
		w.after(2 * time.Second)
		w.wantPhase("done", corev1.PodSucceeded, false)
		w.wantPhase("broken", corev1.PodFailed, false)
		w.wantPhase("again", corev1.PodRunning, false)
		if code := w.pod("broken").Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 2 {
			t.Errorf("exit code %d, want 2", code)
		}
		w.after(10 * time.Second) // the back-off
		w.wantPhase("again", corev1.PodRunning, true)
		if n := restartCount(w.pod("again")); n != 1 {
			t.Errorf("%d restarts, want 1", n)
		}
	})
}

func TestPodWaitsForVolumeBinding(t *testing.T) {
	inWorld(t, Delays{}, func(w *world) {
		w.register(aMachine(""), "")
		w.bind("db", theNode, func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		})
		w.after(10 * time.Second)
		w.wantPhase("db", corev1.PodPending, false)
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "data"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		}
		if _, err := w.client.CoreV1().PersistentVolumeClaims("default").Create(w.t.Context(), claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.after(2 * time.Second)
		w.wantPhase("db", corev1.PodRunning, true)
	})
}

func TestGracefulDeletionTakesTheStopDelay(t *testing.T) {
	inWorld(t, Delays{PodStop: 3 * time.Second}, func(w *world) {
		w.register(aMachine(""), "")
		w.bind("web", theNode)
		p := w.pod("web")
		deleted(30)(p)
		if _, err := w.client.CoreV1().Pods("default").Update(w.t.Context(), p, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.after(2 * time.Second)
		if w.pod("web") == nil {
			t.Error("pod was removed before its containers ended")
		}
		w.after(2 * time.Second)
		if w.pod("web") != nil {
			t.Error("pod was not removed")
		}
	})
}

func TestNodeOfMissingMachineDeletedOnlyWhenNotReady(t *testing.T) {
	inWorld(t, Delays{}, func(w *world) {
		m := aMachine("")
		w.register(m, "")
		w.gone.Store(true)
		w.kubelets.Gone(m.ID)
		w.after(time.Minute)
		n := w.node(theNode) // still there: not noticed yet
		setReady := func(s corev1.ConditionStatus) {
			for i := range n.Status.Conditions {
				n.Status.Conditions[i].Status = s
			}
			if _, err := w.client.CoreV1().Nodes().UpdateStatus(w.t.Context(), n, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			w.after(6 * time.Second)
		}
		w.gone.Store(false)
		setReady(corev1.ConditionUnknown)
		n = w.node(theNode) // the machine exists: the node stays
		w.gone.Store(true)
		w.after(6 * time.Second)
		if _, err := w.client.CoreV1().Nodes().Get(w.t.Context(), theNode, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("node of a machine that is gone: %v, want it deleted", err)
		}
	})
}

func TestKubeletDoesNotRegisterAgainWhenItsNodeIsDeleted(t *testing.T) {
	inWorld(t, Delays{}, func(w *world) {
		m := aMachine("")
		w.register(m, "")
		if err := w.client.CoreV1().Nodes().Delete(w.t.Context(), theNode, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.after(10 * time.Minute)
		if s, _ := w.kubelets.Status(m.ID); s.Phase != Deregistered || !strings.Contains(s.Reason, "reboot") {
			t.Errorf("status %+v", s)
		}
		if l := w.lastBeat(theNode); time.Since(l) < 9*time.Minute {
			t.Error("heartbeats go on")
		}
	})
}
