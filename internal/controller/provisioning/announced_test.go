package provisioning

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replicaSet wants so many pods.
func replicaSet(name string, pods int32) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + name), Generation: 1, CreationTimestamp: metav1.Now(),
		},
		Spec:   appsv1.ReplicaSetSpec{Replicas: &pods},
		Status: appsv1.ReplicaSetStatus{ObservedGeneration: 1},
	}
}

// podsOf are so many pods of an owner that have just been created, numbered from first.
// Each asks for one core.
func podsOf(kind string, owner client.Object, first, count int, change ...func(*corev1.Pod)) []client.Object {
	yes := true
	var out []client.Object
	for i := range count {
		pod := waitingPods(1, "1")[0].(*corev1.Pod)
		name := fmt.Sprintf("%s-%d", owner.GetName(), first+i)
		pod.Name, pod.UID, pod.CreationTimestamp = name, types.UID("uid-"+name), metav1.Now()
		pod.Status.Conditions = nil
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes},
		}
		for _, c := range change {
			c(pod)
		}
		out = append(out, pod)
	}
	return out
}

// cores is what has been bought.
func (w *world) cores() int {
	w.t.Helper()
	sum := 0
	for _, c := range w.claims() {
		cpu := c.Spec.Resources.Requests[corev1.ResourceCPU]
		sum += int(cpu.MilliValue()) / 1000
	}
	return sum
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		if err := w.kube.Create(w.ctx, o); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestAnnouncedPodsAreBoughtForAtOnce(t *testing.T) {
	no, yes := int32(0), true
	parallel := int32(9)
	set := func(policy appsv1.PodManagementPolicyType) client.Object {
		return &appsv1.StatefulSet{ObjectMeta: replicaSet("web", 9).ObjectMeta,
			Spec: appsv1.StatefulSetSpec{Replicas: &parallel, PodManagementPolicy: policy}}
	}
	job := func(change func(*batchv1.Job)) client.Object {
		j := &batchv1.Job{ObjectMeta: replicaSet("web", 9).ObjectMeta, Spec: batchv1.JobSpec{Parallelism: &parallel}}
		change(j)
		return j
	}
	refused := replicaSet("web", 9)
	refused.Status.Replicas = 1
	refused.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue}}
	quota := func(name corev1.ResourceName, hard string) client.Object {
		return &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "quota"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse(hard)}},
		}
	}
	old := replicaSet("web", 9)
	old.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	paused := replicaSet("web", 9)
	paused.Spec.Replicas = &no
	for _, c := range []struct {
		name   string
		kind   string
		owner  client.Object
		more   client.Object
		change func(*corev1.Pod)
		// pods is how many pods are there, and nothing said about them; cores is what is bought.
		pods, cores int
	}{
		{"a ReplicaSet", "ReplicaSet", replicaSet("web", 9), nil, nil, 1, 9},
		{"a ReplicaSet in a namespace with another's quota", "ReplicaSet", replicaSet("web", 9), quota("services", "5"), nil, 1, 9},
		{"a ReplicaSet that a quota of pods keeps back", "ReplicaSet", replicaSet("web", 9), quota("pods", "4"), nil, 1, 4},
		{"a ReplicaSet that a quota of requests keeps back", "ReplicaSet", replicaSet("web", 9), quota("requests.cpu", "5500m"), nil, 1, 5},
		{"a ReplicaSet under a quota of limits", "ReplicaSet", replicaSet("web", 9), quota("limits.cpu", "100"), nil, 1, 1},
		{"a ReplicaSet that was refused a pod", "ReplicaSet", refused, nil, nil, 1, 1},
		{"a ReplicaSet that is scaled to nothing", "ReplicaSet", paused, nil, nil, 1, 1},
		{"a parallel StatefulSet", "StatefulSet", set(appsv1.ParallelPodManagement), nil, nil, 2, 9},
		{"a parallel StatefulSet that may be refused its second pod", "StatefulSet", set(appsv1.ParallelPodManagement), nil, nil, 1, 1},
		{"a StatefulSet that creates one after the other", "StatefulSet", set(appsv1.OrderedReadyPodManagement), nil, nil, 1, 2},
		{"a Job", "Job", job(func(*batchv1.Job) {}), nil, nil, 2, 9},
		{"a Job that may be refused its second pod", "Job", job(func(*batchv1.Job) {}), nil, nil, 1, 1},
		{"a Job whose second pod is three seconds late", "Job", job(func(*batchv1.Job) {}), nil, func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(time.Now().Add(-4 * time.Second))
		}, 2, 2},
		{"a Job with few completions left", "Job", job(func(j *batchv1.Job) {
			j.Spec.Completions, j.Status.Succeeded = &parallel, 6
		}), nil, nil, 2, 3},
		{"a suspended Job", "Job", job(func(j *batchv1.Job) { j.Spec.Suspend = &yes }), nil, nil, 1, 1},
		{"an owner that is not known here", "Workflow", replicaSet("other", 9), nil, nil, 1, 1},
		{"pods of another scheduler", "ReplicaSet", replicaSet("web", 9), nil, func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }, 1, 0},
		{"pods with a gate", "ReplicaSet", replicaSet("web", 9), nil, func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "later"}}
		}, 1, 0},
		{"a pod that has a nominated node", "ReplicaSet", replicaSet("web", 1), nil, func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" }, 1, 0},
		{"pods with volumes", "ReplicaSet", replicaSet("web", 9), nil, func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
			}}}
		}, 1, 0},
		{"pods with a rule on a label of their own", "ReplicaSet", replicaSet("web", 9), nil, func(p *corev1.Pod) {
			p.Labels = map[string]string{appsv1.StatefulSetPodNameLabel: "web-0"}
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey:   corev1.LabelHostname,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{appsv1.StatefulSetPodNameLabel: "web-0"}},
				}},
			}}
		}, 1, 1},
		{"a namespace that is being deleted", "ReplicaSet", replicaSet("web", 9), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "default", Finalizers: []string{"example.com/stays"},
		}}, nil, 1, 1},
		{"an owner whose last pod is long ago", "ReplicaSet", replicaSet("web", 9), nil, func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute))
		}, 1, 1},
		{"an owner that was made long ago and replaces a pod", "ReplicaSet", old, nil, nil, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.change == nil {
				c.change = func(*corev1.Pod) {}
			}
			w := newWorld(t, objects(nodePool(), podsOf(c.kind, c.owner, 0, c.pods, c.change))...)
			if c.kind != "Workflow" {
				w.create(c.owner)
			}
			if c.more != nil {
				w.create(c.more)
				if _, is := c.more.(*corev1.Namespace); is {
					if err := w.kube.Delete(w.ctx, c.more); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.sync()
			w.plan()
			if got := w.cores(); got != c.cores {
				t.Errorf("machines for %d cores were bought, want %d", got, c.cores)
			}
		})
	}
}

func TestAnnouncedPodsThatComeTakeTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rs := replicaSet("web", 9)
		w := newWorld(t, objects(nodePool(), podsOf("ReplicaSet", rs, 0, 2))...)
		w.create(rs)
		w.sync()
		w.plan()
		bought := len(w.claims())
		if got := w.cores(); got != 9 {
			t.Fatalf("machines for %d cores were bought, want 9", got)
		}
		time.Sleep(time.Second)
		// They come in two waves, and the scheduler finds no place for any of them.
		for first := 2; first < 9; first += 4 {
			w.create(podsOf("ReplicaSet", rs, first, min(4, 9-first), unschedulable)...)
			w.sync()
			w.plan()
			w.wantClaims(bought)
		}
		// A bare pod finds no room in theirs.
		w.create(waitingPods(1, "7")...)
		w.sync()
		w.plan()
		if got := w.cores(); got != 16 {
			t.Errorf("machines for %d cores were bought, want 7 more for the bare pod", got)
		}
	})
}

func TestAnnouncedPodsAreNominatedOnceTheyExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rs := replicaSet("web", 4)
		w := newWorld(t, objects(nodePool(), podsOf("ReplicaSet", rs, 0, 1))...)
		w.settings.Nominations = 100
		w.restart()
		w.create(rs)
		w.sync()
		w.plan()
		w.create(podsOf("ReplicaSet", rs, 1, 3)...)
		w.sync()
		w.plan()
		promised := 0
		for _, g := range w.loop.nominations.groups {
			promised += len(g.pods)
		}
		if promised != 4 {
			t.Errorf("%d pods were promised a node, want 4", promised)
		}
	})
}

func TestAnnouncedPodsOfOwnerScaledBackAreNotBoughtFor(t *testing.T) {
	rs := replicaSet("web", 40)
	w := newWorld(t, objects(nodePool(), podsOf("ReplicaSet", rs, 0, 1))...)
	w.create(rs)
	w.sync()
	var once bool
	w.beforeApply = func() {
		if once {
			return
		}
		once = true
		two := int32(2)
		w.update(client.ObjectKeyFromObject(rs), rs, func() { rs.Spec.Replicas = &two })
		w.sync()
	}
	w.plan()
	if got := w.cores(); got != 2 {
		t.Errorf("machines for %d cores were bought, want 2: the owner wants no more", got)
	}
}

func TestAnnouncedPodsHoldTheirMachineForHalfMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rs := replicaSet("web", 8)
		w := newWorld(t, objects(nodePool(), podsOf("ReplicaSet", rs, 0, 1))...)
		w.create(rs)
		w.sync()
		w.plan()
		bought := len(w.claims())
		pending := func() int {
			in, err := w.loop.gatherer.gather(w.ctx, "id")
			if err != nil {
				t.Fatal(err)
			}
			return in.input.Problem.PodCount()
		}
		time.Sleep(29 * time.Second)
		if got := pending(); got != 8 {
			t.Errorf("%d pods need a place, want 8: nothing that has room for them may go", got)
		}
		w.plan()
		w.wantClaims(bought)
		time.Sleep(2 * time.Second)
		if got := pending(); got != 1 {
			t.Errorf("%d pods need a place, want the one that exists: the others have not come for half a minute", got)
		}
	})
}

func TestUnjudgedPodsThatFitNeedNoMachine(t *testing.T) {
	labels := map[string]string{"app": "web"}
	for _, c := range []struct {
		name   string
		change func(*corev1.Pod)
		claims int
	}{
		{"without preferences", func(*corev1.Pod) {}, 1},
		{"which prefer a node each", func(p *corev1.Pod) {
			p.Labels = labels
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
			}}
		}, 1},
		{"which need a node each", func(p *corev1.Pod) {
			p.Labels = labels
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
				}},
			}}
		}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			rs := replicaSet("web", 4)
			w := newWorld(t, objects(nodePool(), waitingPods(1, "4"))...)
			w.plan()
			w.wantClaims(1)
			w.join(w.claims()[0], "16")
			w.bind("web-00", "node-"+w.claims()[0].Name)
			w.create(rs)
			w.create(podsOf("ReplicaSet", rs, 0, 1, c.change)...)
			w.sync()
			w.plan()
			w.wantClaims(c.claims)
		})
	}
}

// A pod which fits nowhere is told so once the scheduler has said the same, not before: it
// may be gone, or bound, by then.
func TestUnjudgedPodsAreToldNothing(t *testing.T) {
	pods := waitingPods(1, "64")
	big := pods[0].(*corev1.Pod)
	big.Status.Conditions = nil
	w := newWorld(t, objects(nodePool(), pods)...)
	w.plan()
	if got := w.recorder.of("FailedScheduling"); len(got)+len(w.cluster.failed) != 0 {
		t.Errorf("a pod that the scheduler has not looked at is told %q, Karpenter's mirror %v", got, w.cluster.failed)
	}
	if err := w.kube.Get(w.ctx, client.ObjectKeyFromObject(big), big); err != nil {
		t.Fatal(err)
	}
	unschedulable(big)
	if err := w.kube.Status().Update(w.ctx, big); err != nil {
		t.Fatal(err)
	}
	w.sync()
	w.plan()
	if got := w.recorder.of("FailedScheduling"); len(got) != 1 {
		t.Errorf("when the scheduler has found no place for it, it is told %q", got)
	}
}

// TestAnnouncedPodsWithRoomAreNoNews keeps the loop from planning for every single pod of a
// workload that it has planned as a whole.
func TestAnnouncedPodsWithRoomAreNoNews(t *testing.T) {
	for _, c := range []struct {
		name string
		// free is whether a node with room for all is there.
		free bool
	}{{"places on new nodes", false}, {"places on a node that is there", true}} {
		t.Run(c.name, func(t *testing.T) {
			rs := replicaSet("web", 4)
			w := newWorld(t, objects(nodePool(), waitingPods(1, "4"))...)
			if c.free {
				w.plan()
				w.join(w.claims()[0], "16")
				w.bind("web-00", "node-"+w.claims()[0].Name)
			}
			w.create(rs)
			first := podsOf("ReplicaSet", rs, 0, 1)
			w.create(first...)
			w.sync()
			if got := w.loop.pods.Observe(first[0].(*corev1.Pod)); got != New {
				t.Errorf("the first pod: got attention %v, want %v", got, New)
			}
			w.plan()
			for i, pod := range podsOf("ReplicaSet", rs, 1, 4) {
				want := DueAgain
				if i == 3 {
					want = New
				}
				if got := w.loop.pods.Observe(pod.(*corev1.Pod)); got != want {
					t.Errorf("pod %d: got attention %v, want %v", i+2, got, want)
				}
			}
		})
	}
}

func TestBatchIsMootOnceSchedulerFoundPlaces(t *testing.T) {
	w := newWorld(t)
	rs := replicaSet("web", 2)
	w.create(rs)
	pods := podsOf("ReplicaSet", rs, 0, 2)
	owners := []Owner{{Kind: "ReplicaSet", Namespace: "default", Name: "web", UID: "uid-web"}}
	step := func(what string, i int, node string, want bool) {
		t.Helper()
		pod := pods[i].(*corev1.Pod)
		pod.Spec.NodeName = node
		w.loop.pods.Observe(pod)
		if got := w.loop.triggers.complete.Moot(t.Context(), owners); got != want {
			t.Errorf("%s: moot is %v, want %v", what, got, want)
		}
	}
	step("a pod has come", 0, "", false)
	step("it is bound, and another is to come", 0, "node", false)
	step("the other has come", 1, "", false)
	step("both are bound", 1, "node", true)
}

// jobOfSet is a Job of a JobSet as its controller makes it.
func jobOfSet(number, of, pods int32) *batchv1.Job {
	yes := true
	j := &batchv1.Job{ObjectMeta: replicaSet(fmt.Sprintf("train-w-%d", number), 0).ObjectMeta, Spec: batchv1.JobSpec{Parallelism: &pods}}
	j.Labels = map[string]string{
		"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/replicatedjob-name": "w",
		"jobset.sigs.k8s.io/replicatedjob-replicas": fmt.Sprint(of),
	}
	j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "train", UID: "uid-train", Controller: &yes}}
	return j
}

func TestJobsOfJobSetAreBoughtForAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := jobOfSet(0, 3, 4)
		w := newWorld(t, objects(nodePool(), podsOf("Job", first, 0, 2))...)
		w.create(first)
		w.sync()
		w.plan()
		bought := len(w.claims())
		if got := w.cores(); got != 12 {
			t.Fatalf("machines for %d cores were bought, want 12 for three Jobs of four pods", got)
		}
		time.Sleep(time.Second)
		// The other Jobs come, first without pods, and all pods take the places.
		second, third := jobOfSet(1, 3, 4), jobOfSet(2, 3, 4)
		w.create(second, third)
		w.sync()
		w.plan()
		w.wantClaims(bought)
		w.create(podsOf("Job", first, 2, 2, unschedulable)...)
		w.create(podsOf("Job", second, 0, 4, unschedulable)...)
		w.create(podsOf("Job", third, 0, 2, unschedulable)...)
		w.sync()
		w.plan()
		w.wantClaims(bought)
		w.create(podsOf("Job", third, 2, 2, unschedulable)...)
		w.sync()
		w.plan()
		w.wantClaims(bought)
	})
}

func TestPodsThatJobHasNotCountedAreBoughtForNoMore(t *testing.T) {
	for _, c := range []struct {
		name        string
		completions *int32
		finalizers  []string
		cores       int
	}{
		{"eight of nine have succeeded", ptr.To[int32](9), []string{batchv1.JobTrackingFinalizer}, 2},
		{"the Job has counted them before", ptr.To[int32](16), nil, 8},
		{"the queue is empty", nil, []string{batchv1.JobTrackingFinalizer}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := &batchv1.Job{ObjectMeta: replicaSet("job", 9).ObjectMeta, Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](8), Completions: c.completions}}
			w := newWorld(t, objects(nodePool(), append(podsOf("Job", job, 0, 8, func(p *corev1.Pod) {
				p.Status.Phase, p.Spec.NodeName, p.Finalizers = corev1.PodSucceeded, "node", c.finalizers
			}), podsOf("Job", job, 8, 2)...))...)
			w.create(job)
			w.sync()
			w.plan()
			if got := w.cores(); got != c.cores {
				t.Errorf("machines for %d cores were bought, want %d", got, c.cores)
			}
		})
	}
}

// An owner that is kept from creating more pods replaces one that it has lost.
func TestReplacedPodsAnnounceNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rs := replicaSet("web", 9)
		w := newWorld(t, objects(nodePool(), podsOf("ReplicaSet", rs, 0, 2, func(p *corev1.Pod) { p.Spec.NodeName = "node" }))...)
		w.create(rs)
		time.Sleep(time.Minute)
		w.create(podsOf("ReplicaSet", rs, 2, 1)...)
		w.sync()
		w.plan()
		if got := w.cores(); got != 1 {
			t.Errorf("machines for %d cores were bought, want 1 for the pod that is there", got)
		}
		// It is scaled up, and creates the first of its new pods.
		time.Sleep(time.Minute)
		more := int32(12)
		w.update(client.ObjectKeyFromObject(rs), rs, func() { rs.Spec.Replicas = &more })
		w.sync()
		w.create(podsOf("ReplicaSet", rs, 3, 1)...)
		w.sync()
		w.plan()
		if got := w.cores(); got != 10 {
			t.Errorf("machines for %d cores were bought, want 10 for all that it lacks once it is scaled up", got)
		}
	})
}

// Admission puts pods of one owner in different zones. Those which differ from the first pod have
// no use for the places that were planned after it, and are planned when they come.
func TestPodsThatDifferFromTheirPatternArePlanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inZone := func(zone string) func(*corev1.Pod) {
			return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone} }
		}
		rs := replicaSet("web", 8)
		w := newWorld(t, objects(nodePool(), podsOf("ReplicaSet", rs, 0, 1, inZone("eastus-1")))...)
		w.create(rs)
		w.sync()
		w.plan()
		if got := w.cores(); got != 8 {
			t.Fatalf("machines for %d cores were bought, want 8", got)
		}
		w.create(podsOf("ReplicaSet", rs, 1, 2, inZone("eastus-2"), unschedulable)...)
		w.create(podsOf("ReplicaSet", rs, 3, 1, inZone("eastus-1"), unschedulable)...)
		w.sync()
		w.plan()
		if got := w.cores(); got != 10 {
			t.Errorf("machines for %d cores were bought, want 2 more for the pods of another zone, and none for those to come", got)
		}
		w.create(podsOf("ReplicaSet", rs, 4, 4, inZone("eastus-2"), unschedulable)...)
		w.sync()
		w.plan()
		if got := w.loop.reservations.claims; len(got) != 8 {
			t.Errorf("%d pods have a place, want all 8: %v", len(got), got)
		}
		if len(w.loop.reservations.patterns) != 0 {
			t.Errorf("places are kept for pods that do not come: %v", w.loop.reservations.patterns)
		}
	})
}
