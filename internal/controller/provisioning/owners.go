package provisioning

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Completeness decides whether a batch has everything that is to come.
type Completeness struct {
	Kube client.Reader
	Pods *ExpectedPods
}

// Complete reports whether every owner has created what it still had to create
// and the scheduler has judged all of it. Of an owner whose kind is not known
// here, and of bare pods, this is not known, so the answer is no and the idle time
// decides.
func (c *Completeness) Complete(ctx context.Context, owners []Owner) bool {
	if !c.Pods.Decided() {
		return false
	}
	for _, o := range owners {
		if !c.created(ctx, o, c.Pods.Of(o)) {
			return false
		}
	}
	return true
}

// created reports whether an owner with these pods has no more to create now.
func (c *Completeness) created(ctx context.Context, o Owner, have Counts) bool {
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
	var obj client.Object
	var done func() bool
	switch o.Kind {
	case "ReplicaSet":
		rs := &appsv1.ReplicaSet{}
		obj, done = rs, func() bool {
			return rs.Status.ObservedGeneration >= rs.Generation && have.Alive >= replicas(rs.Spec.Replicas)
		}
	case "ReplicationController":
		rc := &corev1.ReplicationController{}
		obj, done = rc, func() bool {
			return rc.Status.ObservedGeneration >= rc.Generation && have.Alive >= replicas(rc.Spec.Replicas)
		}
	case "StatefulSet":
		set := &appsv1.StatefulSet{}
		obj, done = set, func() bool {
			if set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
				return have.Alive >= replicas(set.Spec.Replicas)
			}
			// One pod at a time: the next one comes only after this one runs.
			return have.Waiting > 0 || have.Alive >= replicas(set.Spec.Replicas)
		}
	case "Job":
		job := &batchv1.Job{}
		obj, done = job, func() bool { return have.Alive >= parallel(job) }
	default:
		return false
	}
	if err := c.Kube.Get(ctx, key, obj); err != nil {
		// An owner that is gone creates nothing; of one that cannot be read nothing
		// is known.
		return apierrors.IsNotFound(err)
	}
	if obj.GetUID() != o.UID || obj.GetDeletionTimestamp() != nil {
		return true
	}
	return done()
}

func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

// parallel is how many pods a job runs at once from here on.
func parallel(job *batchv1.Job) int {
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		return 0
	}
	n := replicas(job.Spec.Parallelism)
	if job.Spec.Completions != nil {
		n = min(n, int(*job.Spec.Completions-job.Status.Succeeded))
	}
	return max(n, 0)
}
