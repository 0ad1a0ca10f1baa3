package kube

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

func optionsForTests() fleet.Options {
	return fleet.Options{Now: time.Unix(1_700_000_000, 0)}
}

// tooMany keeps fuzzing from spending its time on a million pods.
func tooMany(o client.Object) bool {
	const most = 1000
	switch o := o.(type) {
	case *appsv1.Deployment:
		return count(o.Spec.Replicas) > most
	case *corev1.ReplicationController:
		return count(o.Spec.Replicas) > most
	case *appsv1.ReplicaSet:
		return count(o.Spec.Replicas) > most
	case *appsv1.StatefulSet:
		return count(o.Spec.Replicas) > most
	case *batchv1.Job:
		return count(o.Spec.Parallelism) > most
	case *batchv1.CronJob:
		return count(o.Spec.JobTemplate.Spec.Parallelism) > most
	}
	return false
}
