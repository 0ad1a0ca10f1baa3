package kube

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// The labels, annotations and owners are those that the controllers of JobSet v0.10 and
// LeaderWorkerSet v0.8 give.
func TestWorkloadsKnowTheirSet(t *testing.T) {
	meta := func(name, ownerKind, ownerName string, labels ...string) metav1.ObjectMeta {
		yes := true
		m := metav1.ObjectMeta{Namespace: "ml", Name: name, Labels: map[string]string{}}
		for i := 0; i < len(labels); i += 2 {
			m.Labels[labels[i]] = labels[i+1]
		}
		if ownerKind != "" {
			m.OwnerReferences = []metav1.OwnerReference{{Kind: ownerKind, Name: ownerName, Controller: &yes}}
		}
		return m
	}
	job := meta("train-w-0", "JobSet", "train", labelJobSet, "train", labelReplicatedJob, "w", labelReplicatedJobReplicas, "4")
	worker := meta("serve-0", "Pod", "serve-0", labelLeaderWorkerSet, "serve")
	exclusive := func(key string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: "rack"}}}
	}
	for name, c := range map[string]struct {
		o    client.Object
		want fleet.WorkloadSet
	}{
		"a Job by itself":    {&batchv1.Job{ObjectMeta: meta("j", "", "")}, fleet.WorkloadSet{}},
		"a Job of a CronJob": {&batchv1.Job{ObjectMeta: meta("j", "CronJob", "c")}, fleet.WorkloadSet{}},
		"a Job of a JobSet":  {&batchv1.Job{ObjectMeta: job}, fleet.WorkloadSet{Set: "JobSet/ml/train/w", Siblings: 4, CountedAs: "jobs.batch"}},
		"labels without JobSet": {&batchv1.Job{ObjectMeta: meta("j", "JobSet", "other", labelJobSet, "train",
			labelReplicatedJob, "w", labelReplicatedJobReplicas, "4")}, fleet.WorkloadSet{}},
		"a count that is none": {&batchv1.Job{ObjectMeta: meta("j", "JobSet", "train", labelJobSet, "train",
			labelReplicatedJob, "w", labelReplicatedJobReplicas, "many")}, fleet.WorkloadSet{}},
		"a domain for each Job": {&batchv1.Job{ObjectMeta: job,
			Spec: batchv1.JobSpec{Template: exclusive("alpha.jobset.sigs.k8s.io/exclusive-topology")}}, fleet.WorkloadSet{}},
		"leaders": {&appsv1.StatefulSet{ObjectMeta: meta("serve", "LeaderWorkerSet", "serve", labelLeaderWorkerSet, "serve")},
			fleet.WorkloadSet{Leads: "LeaderWorkerSet/ml/serve"}},
		"workers": {&appsv1.StatefulSet{ObjectMeta: worker}, fleet.WorkloadSet{Set: "LeaderWorkerSet/ml/serve", CountedAs: "statefulsets.apps"}},
		"workers near their leader": {&appsv1.StatefulSet{ObjectMeta: worker,
			Spec: appsv1.StatefulSetSpec{Template: exclusive("leaderworkerset.sigs.k8s.io/exclusive-topology")}}, fleet.WorkloadSet{}},
		"a StatefulSet by itself": {&appsv1.StatefulSet{ObjectMeta: meta("db", "", "")}, fleet.WorkloadSet{}},
	} {
		if got := Workload(c.o).WorkloadSet; got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
