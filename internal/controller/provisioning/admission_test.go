package provisioning

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
)

func TestPoolWithoutRegistrationsBuysOneMachine(t *testing.T) {
	if err := v1beta1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	sick := nodePool(func(np *karpv1.NodePool) {
		np.StatusConditions().SetFalse(karpv1.ConditionTypeNodeRegistrationHealthy,
			purchasebackoff.ReasonRegistrationFailed, "Failed to register node")
	})
	w := newWorld(t, objects(sick, waitingPods(20, "3"))...)
	w.plan()
	w.wantClaims(1)
	if got := strings.Join(w.recorder.of("FailedScheduling"), "\n"); !strings.Contains(got, "one by one until one registers") {
		t.Errorf("the events are %q, want the reason", got)
	}
	// The machine is on its way: nothing more.
	claim := w.claims()[0]
	w.update(types.NamespacedName{Name: claim.Name}, &claim, func() {
		claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
		claim.Status.ImageID, claim.Status.ProviderID = "images/a/versions/1", "azure:///a"
	})
	if err := w.registrations.Look(w.ctx, w.kube); err != nil {
		t.Fatal(err)
	}
	w.sync()
	w.plan()
	w.wantClaims(1)
	if got := strings.Join(w.recorder.of("FailedScheduling"), "\n"); !strings.Contains(got, "NodePool general, which would take it, buys nothing: machines did not register") {
		t.Errorf("the events are %q, want the NodePool that buys nothing", got)
	}
}

func TestCeilingHoldsMachinesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), waitingPods(60, "3"))...)
		w.settings.Limits = purchasebackoff.Limits{PerMinute: 4}
		w.restart()
		for want := 4; want <= 12; want += 4 {
			w.plan()
			w.wantClaims(want)
			time.Sleep(time.Minute)
			w.sync()
		}
		if got := strings.Join(w.recorder.of("FailedScheduling"), "\n"); !strings.Contains(got, "--max-new-nodes-per-minute allows 4") {
			t.Errorf("the events are %q, want the setting", got)
		}
	})
}

// A pod that only a NodePool takes which is not Ready is told so, and not what keeps it off
// the others.
func TestPodIsToldOfTheNodePoolThatIsNotReady(t *testing.T) {
	broken := nodePool(func(np *karpv1.NodePool) {
		np.Name, np.UID = "batch", "batch"
		np.StatusConditions().SetFalse(karpv1.ConditionTypeNodeClassReady, "NodeClassNotFound", "NodeClass not found on cluster")
	})
	pods := waitingPods(1, "1")
	pods[0].(*corev1.Pod).Spec.NodeSelector = map[string]string{karpv1.NodePoolLabelKey: "batch"}
	w := newWorld(t, append(objects(nodePool(), pods), broken)...)
	w.plan()
	w.wantClaims(0)
	const want = "NodePool batch, which would take it, buys nothing: it is not Ready: NodeClassReady is False (NodeClass not found on cluster)"
	if got := strings.Join(w.recorder.of("FailedScheduling"), "\n"); !strings.Contains(got, want) {
		t.Errorf("the events are %q, want %q", got, want)
	}
}

// Pods that wait since nothing is bought at all are told so, in the words of the verdict.
func TestPodsAreToldThatNothingIsBought(t *testing.T) {
	w := newWorld(t, objects(nodePool(), waitingPods(2, "1"))...)
	w.loop.admission.notBuying = func() string { return "mode Manual: nap buys nothing" }
	w.plan()
	w.wantClaims(0)
	told := w.recorder.of("FailedScheduling")
	const want = "nothing is bought now: mode Manual: nap buys nothing"
	if len(told) != 2 || !strings.Contains(told[0], want) {
		t.Fatalf("the events are %q, want %q to both pods", told, want)
	}
	for i := range w.loop.reporter.said.all {
		if v := &w.loop.reporter.said.all[i]; !strings.HasSuffix(told[0], v.Event) {
			t.Errorf("the verdict has the event %q, the pod %q", v.Event, told[0])
		}
	}
}
