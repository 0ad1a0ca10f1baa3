package kube

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// announcing converts the objects that say which pods are still to come, and returns nil
// for any other object.
func announcing(o client.Object) fleet.Record {
	if q, is := o.(*corev1.ResourceQuota); is {
		if scoped(q) { // it may count none of the pods
			return &fleet.Quota{Namespace: q.Namespace, Name: q.Name, Opaque: true}
		}
		return quota(q)
	}
	w := Workload(o)
	if w == nil {
		return nil
	}
	return w
}

// Workload converts an owner that creates pods by itself: a ReplicaSet, a
// ReplicationController, a StatefulSet or a Job. It returns nil for any other object. An
// owner that is being deleted, is suspended, or was refused a pod wants no more than it
// has. When it was scaled up an owner does not say.
func Workload(o client.Object) *fleet.Workload {
	w := &fleet.Workload{
		UID: string(o.GetUID()), Namespace: o.GetNamespace(), Name: o.GetName(), Since: o.GetCreationTimestamp().Time,
	}
	switch o := o.(type) {
	case *appsv1.ReplicaSet:
		w.Pods = replicas(o.Spec.Replicas)
		if refused(o) {
			w.Pods = min(w.Pods, int(o.Status.Replicas))
		}
	case *corev1.ReplicationController:
		w.Pods = replicas(o.Spec.Replicas)
		if refused(o) {
			w.Pods = min(w.Pods, int(o.Status.Replicas))
		}
	case *appsv1.StatefulSet:
		w.Pods = replicas(o.Spec.Replicas)
		w.Silent = true
		w.OneByOne = o.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
		w.ReadyFor = time.Duration(o.Spec.MinReadySeconds) * time.Second
	case *batchv1.Job:
		w.Left = left(o)
		w.Pods, w.Silent = parallel(o, w.Left), true
		if started := o.Status.StartTime; started != nil && started.After(w.Since) {
			w.Since = started.Time // it was suspended until then
		}
	default:
		return nil
	}
	w.WorkloadSet = workloadSet(o)
	if o.GetDeletionTimestamp() != nil {
		w.Pods = 0
	}
	return w
}

// refused reports whether an owner says that it was refused a pod.
func refused(o client.Object) bool {
	switch o := o.(type) {
	case *appsv1.ReplicaSet:
		return slices.ContainsFunc(o.Status.Conditions, func(c appsv1.ReplicaSetCondition) bool {
			return c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue
		})
	case *corev1.ReplicationController:
		return slices.ContainsFunc(o.Status.Conditions, func(c corev1.ReplicationControllerCondition) bool {
			return c.Type == corev1.ReplicationControllerReplicaFailure && c.Status == corev1.ConditionTrue
		})
	}
	return false
}

// Current reports whether an owner with so many living pods is as its controller sees it: its
// status is of its present spec, and it has no more pods than it wants, or than it had when it was
// refused one. Pods and owners come to caches separately, and a controller writes no status while
// it creates pods. Of owners that do not say what their controller has seen the answer is yes.
func Current(o client.Object, living int) bool {
	var has int32
	switch o := o.(type) {
	case *appsv1.ReplicaSet:
		has = o.Status.Replicas
	case *corev1.ReplicationController:
		has = o.Status.Replicas
	default:
		return true
	}
	return Observed(o) && living <= max(Workload(o).Pods, int(has))
}

// Observed reports whether the status of a ReplicaSet or ReplicationController is of its present spec:
// its controller has come to it since, and has created or deleted pods. Of others it is true.
func Observed(o client.Object) bool {
	switch o := o.(type) {
	case *appsv1.ReplicaSet:
		return o.Status.ObservedGeneration >= o.Generation
	case *corev1.ReplicationController:
		return o.Status.ObservedGeneration >= o.Generation
	}
	return true
}

// Queued reports whether the controller of an owner has not looked at it yet, since the owner was made
// or, for a Job, goes on. It has then created no pod, and has not been refused one.
func Queued(o client.Object) bool {
	switch o := o.(type) {
	case *appsv1.ReplicaSet:
		return o.Status.ObservedGeneration == 0
	case *corev1.ReplicationController:
		return o.Status.ObservedGeneration == 0
	case *appsv1.StatefulSet:
		return o.Status.ObservedGeneration == 0
	case *batchv1.Job:
		return o.Status.StartTime == nil
	}
	return false
}

func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

// left is how many pods of a job may still succeed, 0 where it has no number of completions. Those
// that its status lists as ended count as if they were in its sums already.
func left(job *batchv1.Job) int {
	if job.Spec.Completions == nil {
		return 0
	}
	n := int(*job.Spec.Completions - job.Status.Succeeded)
	if u := job.Status.UncountedTerminatedPods; u != nil {
		n -= len(u.Succeeded)
	}
	if job.Status.FailedIndexes != nil {
		n -= countIndexes(*job.Status.FailedIndexes)
	}
	return max(n, 0)
}

// countIndexes counts what lists such as "1,3-5,7" name; what is none names nothing.
func countIndexes(list string) int {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		from, to, is := strings.Cut(part, "-")
		if !is {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 == nil && err2 == nil && first <= last {
			n += last - first + 1
		}
	}
	return n
}

// parallel is how many pods a job runs at once from here on, of which so many may still succeed.
func parallel(job *batchv1.Job, left int) int {
	// Its condition does not count: it says that the Job is suspended until all pods of a Job that
	// goes on are there.
	if managedElsewhere(job) || startsNoMore(job) || job.Spec.Suspend != nil && *job.Spec.Suspend {
		return 0
	}
	n := replicas(job.Spec.Parallelism)
	if job.Spec.Completions != nil {
		n = min(n, left)
	}
	return max(n, 0)
}

// managedElsewhere reports whether another controller manages a Job: its pods are in another cluster,
// as with MultiKueue.
func managedElsewhere(job *batchv1.Job) bool {
	return job.Spec.ManagedBy != nil && *job.Spec.ManagedBy != batchv1.JobControllerName
}

// startsNoMore reports whether a Job creates no more pods: it has ended or is about to, or it
// has no number of completions and one of its pods has succeeded. Then the pods share a queue
// of work that is empty, and those that still run finish theirs.
func startsNoMore(job *batchv1.Job) bool {
	ending := []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet}
	ended := slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return slices.Contains(ending, c.Type) && c.Status == corev1.ConditionTrue
	})
	return ended || job.Spec.Completions == nil && job.Status.Succeeded > 0 || failedTooOften(job)
}

// failedTooOften reports whether more pods of a Job have failed than may, before it says that it
// fails.
func failedTooOften(job *batchv1.Job) bool {
	failed := int(job.Status.Failed)
	if u := job.Status.UncountedTerminatedPods; u != nil {
		failed += len(u.Failed)
	}
	return job.Spec.BackoffLimit != nil && failed > int(*job.Spec.BackoffLimit)
}

// scoped reports whether a quota counts only some pods.
func scoped(q *corev1.ResourceQuota) bool {
	return len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil
}

// quota converts a ResourceQuota, without its scopes. What it limits beyond requests makes it
// opaque: then no pods are planned ahead of their creation, and those that have come are waited
// for.
func quota(q *corev1.ResourceQuota) *fleet.Quota {
	out := &fleet.Quota{Namespace: q.Namespace, Name: q.Name}
	for name, hard := range q.Spec.Hard {
		if counted := quotaResource(name); counted != "" {
			out.Hard = append(out.Hard, fleet.Amount{Name: counted, Value: quotaAmount(counted, hard)})
			out.Opaque = out.Opaque || strings.HasPrefix(counted, limitsPrefix)
		}
	}
	slices.SortFunc(out.Hard, func(a, b fleet.Amount) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
	for _, object := range []string{countedJobs, countedStatefulSets} {
		name := corev1.ResourceName("count/" + object)
		if hard, limited := q.Spec.Hard[name]; limited {
			out.Objects = append(out.Objects, fleet.Amount{Name: object, Value: objectsLeft(q, name, hard)})
		}
	}
	return out
}

// objectsLeft is how many more objects a quota lets in: the API server counts them before it
// creates one. Until it has counted those that are there it creates none.
func objectsLeft(q *corev1.ResourceQuota, name corev1.ResourceName, hard resource.Quantity) int64 {
	used, counted := q.Status.Used[name]
	if !counted {
		return 0
	}
	return max(0, hard.Value()-used.Value())
}

// limitsPrefix is how the names begin under which quotas bound the limits of pods.
const limitsPrefix = "limits."

// quotaResource is the name under which pods count against what a quota names: that of the
// resource for requests; empty where no pod counts.
func quotaResource(name corev1.ResourceName) string {
	key := strings.TrimPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	switch {
	case name == corev1.ResourcePods || name == fleet.CountPods:
		return key
	case key == string(corev1.ResourceStorage):
		return ""
	case key != string(name), key == string(corev1.ResourceCPU), key == string(corev1.ResourceMemory),
		key == string(corev1.ResourceEphemeralStorage), isHugePages(name), strings.HasPrefix(key, limitsPrefix):
		return key
	}
	return ""
}

// quotaAmount is an amount of what [quotaResource] names.
func quotaAmount(name string, q resource.Quantity) int64 {
	return amount(corev1.ResourceName(strings.TrimPrefix(name, limitsPrefix)), q)
}
