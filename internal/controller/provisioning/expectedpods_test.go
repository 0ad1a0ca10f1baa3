package provisioning

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestExpectedPodsCompleteWhenOwnersCreatedAll(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "owner", Generation: 1}
	n := func(v int32) *int32 { return &v }
	yes := true
	set := func(policy appsv1.PodManagementPolicyType) client.Object {
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: n(3), PodManagementPolicy: policy}}
	}
	replicaSet := &appsv1.ReplicaSet{
		ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: n(3)}, Status: appsv1.ReplicaSetStatus{ObservedGeneration: 1},
	}
	stale := replicaSet.DeepCopy()
	stale.Generation = 2
	other := replicaSet.DeepCopy()
	other.UID = "another"
	job := func(change func(*batchv1.Job)) client.Object {
		j := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: n(3), Completions: n(5)}}
		change(j)
		return j
	}
	for _, c := range []struct {
		name    string
		kind    string
		owner   client.Object
		waiting int
		bound   int
		fresh   int
		// volumes gives the pods a volume claim, so that none is a pattern.
		volumes bool
		want    bool
	}{
		{"a ReplicaSet with all its pods", "ReplicaSet", replicaSet, 2, 1, 0, false, true},
		{"a ReplicaSet with pods to come like those that are there", "ReplicaSet", replicaSet, 2, 0, 0, false, true},
		{"a ReplicaSet with pods to come of which nothing is known", "ReplicaSet", replicaSet, 2, 0, 0, true, false},
		{"a ReplicaSet whose last pod the scheduler has not judged", "ReplicaSet", replicaSet, 2, 0, 1, true, false},
		{"a ReplicaSet whose last pod need not be judged", "ReplicaSet", replicaSet, 2, 0, 1, false, true},
		{"a ReplicaSet whose controller has not seen its new spec", "ReplicaSet", stale, 3, 0, 0, false, false},
		{"a ReplicaSet that is gone", "ReplicaSet", nil, 1, 0, 0, false, true},
		{"a ReplicaSet of the same name that is another", "ReplicaSet", other, 1, 0, 0, false, true},
		{"a ReplicationController with pods to come", "ReplicationController",
			&corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Replicas: n(2)},
				Status: corev1.ReplicationControllerStatus{ObservedGeneration: 1}}, 1, 0, 0, false, true},
		{"a StatefulSet that creates one after the other", "StatefulSet", set(appsv1.OrderedReadyPodManagement), 1, 0, 0, false, true},
		{"a parallel StatefulSet with volumes and pods to come", "StatefulSet", set(appsv1.ParallelPodManagement), 1, 0, 0, true, false},
		{"a parallel StatefulSet with all its pods", "StatefulSet", set(appsv1.ParallelPodManagement), 3, 0, 0, true, true},
		{"a Job at its parallelism", "Job", job(func(*batchv1.Job) {}), 3, 0, 0, true, true},
		{"a Job below its parallelism", "Job", job(func(*batchv1.Job) {}), 2, 0, 0, true, false},
		{"a Job that may be refused its second pod", "Job", job(func(*batchv1.Job) {}), 0, 0, 1, false, false},
		{"a Job with two pods that are like those to come", "Job", job(func(*batchv1.Job) {}), 0, 0, 2, false, true},
		{"a Job near its end", "Job", job(func(j *batchv1.Job) { j.Status.Succeeded = 4 }), 1, 0, 0, true, true},
		{"a suspended Job", "Job", job(func(j *batchv1.Job) { j.Spec.Suspend = &yes }), 1, 0, 0, true, true},
		{"an owner of a kind that is not known here", "Workflow", nil, 1, 0, 0, false, false},
		{"a bare pod", "", nil, 1, 0, 0, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				builder := fake.NewClientBuilder()
				if c.owner != nil {
					builder.WithObjects(c.owner)
				}
				expected := NewExpectedPods(clock.RealClock{}, time.Second)
				owner := Owner{}
				add := func(count int, kind string, shape func(*corev1.Pod)) {
					for i := range count {
						name := fmt.Sprint(kind, i)
						pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
						if c.kind != "" {
							pod.OwnerReferences = []metav1.OwnerReference{{Kind: c.kind, Name: "web", UID: "owner", Controller: &yes}}
						}
						if c.volumes {
							pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
								PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
							}}}
						}
						shape(pod)
						expected.Observe(pod)
						owner = ownerOf(pod)
					}
				}
				add(c.waiting, "waiting", unschedulable)
				add(c.bound, "bound", func(p *corev1.Pod) { p.Spec.NodeName = "node" })
				add(c.fresh, "fresh", func(*corev1.Pod) {})
				time.Sleep(existsWithin)
				completeness := &Completeness{Kube: builder.Build(), Pods: expected, Announces: func(string) bool { return true }, Announced: announcesAll}
				if got := completeness.Complete(t.Context(), []Owner{owner}); got != c.want {
					t.Errorf("got %v, want %v", got, c.want)
				}
			})
		})
	}
}

// An owner is as old as its first pod, whichever pods have gone and come since; without pods it is
// not known. What is kept for that goes with the last pod.
func TestOwnerIsAsOldAsItsFirstPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := NewExpectedPods(clock.RealClock{}, time.Second)
		owner := ownerOf(ofSet("a", nil))
		step := func(what string, want bool) {
			t.Helper()
			if got := pods.Since(owner, existsWithin); got != want {
				t.Errorf("%s: new is %v", what, got)
			}
		}
		gone := func(name string) { pods.Forget(client.ObjectKeyFromObject(ofSet(name, nil))) }
		step("no pod", false)
		pods.Observe(ofSet("a", nil))
		time.Sleep(existsWithin - 1)
		pods.Observe(ofSet("a", unschedulable))
		step("its first pod is new", true)
		pods.Observe(ofSet("b", nil))
		time.Sleep(time.Nanosecond)
		step("its first pod is old", false)
		gone("a")
		step("its first pod is gone", false)
		gone("b")
		step("all are gone", false)
		pods.Observe(ofSet("c", nil))
		step("another pod has come", true)
		gone("c")
		if len(pods.owners) > 0 {
			t.Errorf("kept are %v", pods.owners)
		}
	})
}

// What an owner has still to create is not known where its pods differ, or a quota says what cannot be
// judged: a plan for those that have come so far would be one of many.
func TestOwnerThatIsNotAnnouncedWaits(t *testing.T) {
	set := replicaSet("web", 9)
	set.UID = "web"
	pods := NewExpectedPods(clock.RealClock{}, time.Second)
	pods.Observe(ofSet("a", unschedulable))
	pods.Observe(ofSet("b", unschedulable))
	for _, announced := range []bool{true, false} {
		c := &Completeness{Kube: fake.NewClientBuilder().WithObjects(set).Build(), Pods: pods, Announced: func(types.UID) bool { return announced }}
		if got := c.Complete(t.Context(), []Owner{ownerOf(ofSet("a", nil))}); got != announced {
			t.Errorf("announced %v: complete is %v", announced, got)
		}
	}
}

// When the gate of a pod goes is not known: a plan for those that are free would be one of many.
func TestOwnerWithGatedPodsWaits(t *testing.T) {
	set := replicaSet("web", 2)
	set.UID = "web"
	c := &Completeness{Kube: fake.NewClientBuilder().WithObjects(set).Build(), Pods: NewExpectedPods(clock.RealClock{}, time.Second), Announced: announcesAll}
	gated := func(p *corev1.Pod) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "queue"}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
	}
	c.Pods.Observe(ofSet("a", unschedulable))
	for _, step := range []struct {
		b    func(*corev1.Pod)
		want bool
	}{{gated, false}, {unschedulable, true}} {
		c.Pods.Observe(ofSet("b", step.b))
		if got := c.Complete(t.Context(), []Owner{ownerOf(ofSet("a", nil))}); got != step.want {
			t.Errorf("complete is %v, want %v", got, step.want)
		}
	}
}

// Of a kind of another API group nothing is known, though it has the name of one of Kubernetes' own.
func TestOwnersOfOtherGroupsAreNotKnown(t *testing.T) {
	for apiVersion, want := range map[string]bool{"apps/v1": true, "v1": true, "": true, "apps.kruise.io/v1beta1": false, "batch.volcano.sh/v1alpha1": false} {
		pod := ofSet("a", func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = apiVersion })
		if got := objectOf(ownerOf(pod).Kind) != nil; got != want {
			t.Errorf("%q: known is %v", apiVersion, got)
		}
	}
}

// announcesAll stands for a fleet that announces what each owner has still to create.
func announcesAll(types.UID) bool { return true }

func unschedulable(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}
}

func TestExpectedPodsFollowPodLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expected := NewExpectedPods(clock.RealClock{}, time.Second)
		yes := true
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "a", UID: "1",
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "owner", Controller: &yes}},
		}}
		owner := ownerOf(pod)
		step := func(what string, attention Attention, want Counts) {
			t.Helper()
			if got := expected.Observe(pod); got != attention {
				t.Errorf("%s: got attention %v, want %v", what, got, attention)
			}
			if got := expected.Of(owner); got != want {
				t.Errorf("%s: got %+v, want %+v", what, got, want)
			}
		}
		waits := Counts{Alive: 1, Waiting: 1, Patterns: 1}
		step("created", New, waits)
		unschedulable(pod)
		step("found no place", DueAgain, waits)
		step("rewritten by the scheduler", NothingNew, waits)
		time.Sleep(retryAfter)
		step("waits for long", DueAgain, waits)
		step("rewritten again", NothingNew, waits)
		pod.UID = "2"
		step("replaced by another of its name", New, waits)
		pod.Spec.NodeName = "node"
		step("bound", NothingNew, Counts{Alive: 1, Patterns: 1})
		pod.Status.Phase = corev1.PodSucceeded
		step("finished", NothingNew, Counts{})
		pod.Status.Phase = corev1.PodRunning
		step("observed again", NothingNew, Counts{Alive: 1, Patterns: 1})
		expected.Forget(client.ObjectKeyFromObject(pod))
		if got := expected.Of(owner); got != (Counts{}) || expected.AnyWaiting() {
			t.Errorf("forgotten: got %+v", got)
		}
	})
}

func TestExpectedPodsSettleOnceForUnscheduledPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expected := NewExpectedPods(clock.RealClock{}, time.Second)
		pods := make([]*corev1.Pod, 2)
		for i := range pods {
			pods[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))}}
			unschedulable(pods[i])
			expected.Observe(pods[i])
		}
		time.Sleep(time.Minute)
		if expected.TakeSettled() {
			t.Error("the scheduler has bound nothing")
		}
		pods[0].Spec.NodeName = "node"
		expected.Observe(pods[0])
		if expected.TakeSettled() {
			t.Error("the scheduler may be about to bind the next pod")
		}
		time.Sleep(settleQuiet)
		if !expected.TakeSettled() {
			t.Error("a pod is left over")
		}
		if expected.TakeSettled() {
			t.Error("that is known")
		}
	})
}
