package event_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/model"
)

// A NodePool whose budgets are closed says so once for each reason, and not with each decision on
// what to remove, which are a minute or two apart.
func TestClosedNodePoolSaysSoSeldom(t *testing.T) {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "1"}}
	said := record.NewFakeRecorder(10)
	recorder := events.NewRecorder(said)
	for range 3 {
		recorder.Publish(event.NodePoolBlocked(pool, model.DisruptEmpty), event.NodePoolBlocked(pool, model.DisruptDrifted))
	}
	if got := len(said.Events); got != 2 {
		t.Errorf("%d events, want one for each of two reasons", got)
	}
	if e := event.NodePoolBlocked(pool, model.DisruptEmpty); e.DedupeTimeout < 15*time.Minute {
		t.Errorf("it is said again after %s", e.DedupeTimeout)
	}
}

// A pod learns at once that it waits for another reason than before, and is not told the same
// with each plan.
func TestPodLearnsOfAnotherReasonAtOnce(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "1"}}
	said := record.NewFakeRecorder(10)
	recorder := events.NewRecorder(said)
	for range 3 {
		recorder.Publish(event.Waiting(pod, model.ReasonNoPool, "NodePool general is not Ready"))
	}
	for _, left := range []string{"1", "2"} {
		recorder.Publish(event.Waiting(pod, model.ReasonDaemonOverhead, "there is no room beside DaemonSets, but for cpu "+left))
	}
	if got := len(said.Events); got != 2 {
		t.Errorf("%d events, want one for each of two reasons", got)
	}
}
