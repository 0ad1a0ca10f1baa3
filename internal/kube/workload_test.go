package kube

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

func TestWorkloadsWantPods(t *testing.T) {
	five, nine, failed, yes, no, now := int32(5), int32(9), "1,3-5,7", true, false, metav1.Now()
	elsewhere := "kueue.x-k8s.io/multikueue"
	meta := metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}
	ended := func(c batchv1.JobConditionType) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: &five},
			Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: c, Status: corev1.ConditionTrue}}}}
	}
	leaving := meta
	leaving.DeletionTimestamp = &now
	for _, c := range []struct {
		name string
		o    client.Object
		pods int
		// silent and one are as in fleet.Workload.
		silent, one bool
	}{
		{"a ReplicaSet", &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &five}}, 5, false, false},
		{"a ReplicaSet that says nothing", &appsv1.ReplicaSet{ObjectMeta: meta}, 1, false, false},
		{"a ReplicaSet that goes", &appsv1.ReplicaSet{ObjectMeta: leaving, Spec: appsv1.ReplicaSetSpec{Replicas: &five}}, 0, false, false},
		{"a ReplicaSet that was refused a pod", &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &five},
			Status: appsv1.ReplicaSetStatus{Replicas: 2, Conditions: []appsv1.ReplicaSetCondition{
				{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue}}}}, 2, false, false},
		{"a ReplicationController that was refused a pod", &corev1.ReplicationController{ObjectMeta: meta,
			Spec: corev1.ReplicationControllerSpec{Replicas: &five},
			Status: corev1.ReplicationControllerStatus{Replicas: 3, Conditions: []corev1.ReplicationControllerCondition{
				{Type: corev1.ReplicationControllerReplicaFailure, Status: corev1.ConditionTrue}}}}, 3, false, false},
		{"an ordered StatefulSet", &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &five, MinReadySeconds: 7}}, 5, true, true},
		{"a parallel StatefulSet", &appsv1.StatefulSet{ObjectMeta: meta,
			Spec: appsv1.StatefulSetSpec{Replicas: &five, PodManagementPolicy: appsv1.ParallelPodManagement}}, 5, true, false},
		{"a suspended Job", &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: &five, Suspend: &yes}}, 0, true, false},
		{"a Job that goes on, which its status does not say yet", &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: &five, Suspend: &no},
			Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}}}, 5, true, false},
		{"a Job of another controller", &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: &five, ManagedBy: &elsewhere}}, 0, true, false},
		{"a Job with two pods to go", &batchv1.Job{ObjectMeta: meta,
			Spec: batchv1.JobSpec{Parallelism: &five, Completions: &five}, Status: batchv1.JobStatus{Succeeded: 3}}, 2, true, false},
		{"a Job whose status lists pods that it has not counted", &batchv1.Job{ObjectMeta: meta,
			Spec: batchv1.JobSpec{Parallelism: &five, Completions: &five}, Status: batchv1.JobStatus{Succeeded: 1,
				UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"a", "b"}}}}, 2, true, false},
		{"a Job with indexes that have failed", &batchv1.Job{ObjectMeta: meta,
			Spec: batchv1.JobSpec{Parallelism: &five, Completions: &nine}, Status: batchv1.JobStatus{Succeeded: 1, FailedIndexes: &failed}}, 3, true, false},
		{"a Job whose pods have failed too often", &batchv1.Job{ObjectMeta: meta,
			Spec:   batchv1.JobSpec{Parallelism: &five, BackoffLimit: &five},
			Status: batchv1.JobStatus{Failed: 5, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Failed: []types.UID{"a"}}}}, 0, true, false},
		{"a Job whose queue is empty", &batchv1.Job{ObjectMeta: meta,
			Spec: batchv1.JobSpec{Parallelism: &five}, Status: batchv1.JobStatus{Succeeded: 1, Active: 2}}, 0, true, false},
		{"a Job that failed", ended(batchv1.JobFailed), 0, true, false},
		{"a Job that is about to fail", ended(batchv1.JobFailureTarget), 0, true, false},
		{"a Job that is complete", ended(batchv1.JobComplete), 0, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := &fleet.Workload{UID: "1", Namespace: "default", Name: "web", Pods: c.pods, Silent: c.silent, OneByOne: c.one}
			if c.one {
				want.ReadyFor = 7 * time.Second
			}
			if job, is := c.o.(*batchv1.Job); is && job.Spec.Completions != nil {
				want.Left = c.pods // none of these Jobs has more than it runs at once
			}
			if diff := cmp.Diff(want, Workload(c.o)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := Workload(&corev1.Pod{}); got != nil {
		t.Errorf("a pod is no workload, got %+v", got)
	}
}

func TestStaleStatusOfOwners(t *testing.T) {
	five := int32(5)
	set := func(replicas, observed int32, refused bool) client.Object {
		out := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.ReplicaSetSpec{Replicas: &five},
			Status: appsv1.ReplicaSetStatus{Replicas: replicas, ObservedGeneration: int64(observed)}}
		if refused {
			out.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue}}
		}
		return out
	}
	controller := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: corev1.ReplicationControllerSpec{Replicas: &five},
		Status: corev1.ReplicationControllerStatus{Replicas: 2, ObservedGeneration: 1, Conditions: []corev1.ReplicationControllerCondition{
			{Type: corev1.ReplicationControllerReplicaFailure, Status: corev1.ConditionTrue}}}}
	for _, c := range []struct {
		name   string
		o      client.Object
		living int
		want   bool
	}{
		{"has all", set(0, 2, false), 5, true},
		{"its spec is newer than its status", set(5, 1, false), 5, false},
		{"has more than it wants: the owner was scaled up", set(5, 2, false), 6, false},
		{"has more, and says so", set(6, 2, false), 6, true},
		{"was refused a pod", set(2, 2, true), 2, true},
		{"was refused a pod, and has got one since", set(2, 2, true), 3, false},
		{"a ReplicationController that was refused a pod", controller, 2, true},
		{"a ReplicationController that has got one since", controller, 3, false},
		{"a Job", &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: &five}}, 6, true},
	} {
		if got := Current(c.o, c.living); got != c.want {
			t.Errorf("%s: current is %v", c.name, got)
		}
	}
}

func TestQueuedOwners(t *testing.T) {
	started := metav1.Now()
	for name, c := range map[string]struct {
		o    client.Object
		want bool
	}{
		"a new ReplicaSet":             {&appsv1.ReplicaSet{}, true},
		"a ReplicaSet":                 {&appsv1.ReplicaSet{Status: appsv1.ReplicaSetStatus{ObservedGeneration: 1}}, false},
		"a new ReplicationController":  {&corev1.ReplicationController{}, true},
		"a ReplicationController":      {&corev1.ReplicationController{Status: corev1.ReplicationControllerStatus{ObservedGeneration: 1}}, false},
		"a new StatefulSet":            {&appsv1.StatefulSet{}, true},
		"a StatefulSet":                {&appsv1.StatefulSet{Status: appsv1.StatefulSetStatus{ObservedGeneration: 1}}, false},
		"a new Job":                    {&batchv1.Job{}, true},
		"a Job":                        {&batchv1.Job{Status: batchv1.JobStatus{StartTime: &started}}, false},
		"a Deployment, creates no pod": {&appsv1.Deployment{}, false},
	} {
		if got := Queued(c.o); got != c.want {
			t.Errorf("%s: queued is %v", name, got)
		}
	}
}

// Of a quota that counts only some pods it is not known here which.
func TestQuotasWithScopesAreOpaque(t *testing.T) {
	hard := corev1.ResourceList{"pods": resource.MustParse("0")}
	high := &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
		ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"high"},
	}}}
	for name, spec := range map[string]corev1.ResourceQuotaSpec{
		"scopes":        {Hard: hard, Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}},
		"scopeSelector": {Hard: hard, ScopeSelector: high},
	} {
		got := announcing(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "q"}, Spec: spec})
		if diff := cmp.Diff(fleet.Record(&fleet.Quota{Namespace: "default", Name: "q", Opaque: true}), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestQuotasCountRequests(t *testing.T) {
	got := quota(&corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "q"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			"pods": resource.MustParse("10"), "count/pods": resource.MustParse("20"), "requests.cpu": resource.MustParse("2500m"), "memory": resource.MustParse("1Gi"),
			"requests.nvidia.com/gpu": resource.MustParse("4"), "services": resource.MustParse("3"), "requests.storage": resource.MustParse("1Ti"),
		}},
	})
	bounded := quota(&corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
		"limits.cpu": resource.MustParse("1500m"), "hugepages-2Mi": resource.MustParse("4Mi"), "requests.hugepages-1Gi": resource.MustParse("1Gi"),
	}}})
	if diff := cmp.Diff(&fleet.Quota{Opaque: true, Hard: []fleet.Amount{
		{Name: "hugepages-1Gi", Value: 1 << 30}, {Name: "hugepages-2Mi", Value: 4 << 20}, {Name: "limits.cpu", Value: 1500},
	}}, bounded); diff != "" {
		t.Errorf("limits and huge pages (-want +got):\n%s", diff)
	}
	want := &fleet.Quota{Namespace: "default", Name: "q", Hard: []fleet.Amount{
		{Name: "count/pods", Value: 20}, {Name: "cpu", Value: 2500}, {Name: "memory", Value: 1 << 30}, {Name: "nvidia.com/gpu", Value: 4}, {Name: "pods", Value: 10},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	counted := quota(&corev1.ResourceQuota{
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			"count/jobs.batch": resource.MustParse("5"), "count/statefulsets.apps": resource.MustParse("4"), "count/jobsets.jobset.x-k8s.io": resource.MustParse("1"),
		}},
		Status: corev1.ResourceQuotaStatus{Used: corev1.ResourceList{"count/jobs.batch": resource.MustParse("3")}},
	})
	if diff := cmp.Diff(&fleet.Quota{Objects: []fleet.Amount{{Name: "jobs.batch", Value: 2}, {Name: "statefulsets.apps"}}}, counted); diff != "" {
		t.Errorf("owners of pods (-want +got):\n%s", diff)
	}
	if !quota(&corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"limits.memory": resource.MustParse("1Gi")}}}).Opaque {
		t.Error("what a pod counts against a quota of limits is not known")
	}
}

func TestFilesAnnounceNoPods(t *testing.T) {
	three := int32(3)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"},
		Spec: appsv1.ReplicaSetSpec{Replicas: &three}}
	store := FromFiles([]client.Object{rs})
	if got := store.Wants("1"); got != 0 {
		t.Errorf("a file announces %d pods, but it names all that there are to be", got)
	}
}

func TestRebootingClaims(t *testing.T) {
	c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "general-1"}}
	c.StatusConditions().SetTrueWithReason(v1.ConditionTypeRebooting, v1.RebootReasonRequested, "rebooting for KernelDeadlock/DockerHung")
	if !claim(c).Rebooting {
		t.Error("a claim whose node reboots does not say so")
	}
	c.StatusConditions().SetFalse(v1.ConditionTypeRebooting, v1.RebootReasonSucceeded, "node rebooted and rejoined the cluster")
	if claim(c).Rebooting {
		t.Error("a claim whose node is back says that it reboots")
	}
}
