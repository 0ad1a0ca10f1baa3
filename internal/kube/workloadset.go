package kube

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// Labels by which the controllers of JobSet (jobset.x-k8s.io) and LeaderWorkerSet
// (leaderworkerset.x-k8s.io) tell what their Jobs and StatefulSets belong to. They say all
// that planning needs, so that the JobSets and LeaderWorkerSets themselves are not read.
const (
	labelJobSet                 = "jobset.sigs.k8s.io/jobset-name"
	labelReplicatedJob          = "jobset.sigs.k8s.io/replicatedjob-name"
	labelReplicatedJobReplicas  = "jobset.sigs.k8s.io/replicatedjob-replicas"
	labelLeaderWorkerSet        = "leaderworkerset.sigs.k8s.io/name"
	kindJobSet, kindLeaderSet   = "JobSet", "LeaderWorkerSet"
	placementAnnotationFragment = "-topology"
)

// Quotas name Jobs and StatefulSets so, after "count/".
const countedJobs, countedStatefulSets = "jobs.batch", "statefulsets.apps"

// workloadSet is the set of workloads that a Job or StatefulSet belongs to. It is zero for
// others, and where the controller places each workload of the set in a domain of its own,
// so that the pods of one do not show where those of the others may go.
func workloadSet(o client.Object) fleet.WorkloadSet {
	switch o := o.(type) {
	case *batchv1.Job:
		if placesApart(o) || placesApart(&o.Spec.Template) {
			return fleet.WorkloadSet{}
		}
		return replicatedJob(o)
	case *appsv1.StatefulSet:
		if placesApart(o) || placesApart(&o.Spec.Template) {
			return fleet.WorkloadSet{}
		}
		return workers(o)
	}
	return fleet.WorkloadSet{}
}

func replicatedJob(job *batchv1.Job) fleet.WorkloadSet {
	owner := metav1.GetControllerOf(job)
	siblings, err := strconv.Atoi(job.Labels[labelReplicatedJobReplicas])
	if owner == nil || owner.Kind != kindJobSet || owner.Name != job.Labels[labelJobSet] {
		return fleet.WorkloadSet{}
	}
	if err != nil || siblings < 1 || siblings > MaxExpandedPods {
		return fleet.WorkloadSet{}
	}
	set := setName(kindJobSet, job, owner.Name, job.Labels[labelReplicatedJob])
	return fleet.WorkloadSet{Set: set, Siblings: siblings, CountedAs: countedJobs}
}

// workers tells the StatefulSet of a LeaderWorkerSet's leaders, which the LeaderWorkerSet
// owns, from those of the workers, each of which a leader's pod owns.
func workers(s *appsv1.StatefulSet) fleet.WorkloadSet {
	owner, name := metav1.GetControllerOf(s), s.Labels[labelLeaderWorkerSet]
	if owner == nil || name == "" {
		return fleet.WorkloadSet{}
	}
	set := setName(kindLeaderSet, s, name)
	switch {
	case owner.Kind == kindLeaderSet && owner.Name == name:
		return fleet.WorkloadSet{Leads: set}
	case owner.Kind == "Pod" && strings.HasPrefix(owner.Name, name+"-"):
		return fleet.WorkloadSet{Set: set, CountedAs: countedStatefulSets}
	}
	return fleet.WorkloadSet{}
}

func setName(kind string, o client.Object, names ...string) string {
	return strings.Join(append([]string{kind, o.GetNamespace()}, names...), "/")
}

// placesApart reports whether an annotation of JobSet or LeaderWorkerSet asks for a
// topology domain per workload, or for pods near their leader.
func placesApart(o metav1.ObjectMetaAccessor) bool {
	for key := range o.GetObjectMeta().GetAnnotations() {
		group, name, _ := strings.Cut(key, "/")
		if strings.HasSuffix(name, placementAnnotationFragment) &&
			(strings.HasSuffix(group, "jobset.sigs.k8s.io") || group == "leaderworkerset.sigs.k8s.io") {
			return true
		}
	}
	return false
}
