package kube

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// resizing is a pod of node n whose container asks for, was allocated and holds so much CPU.
func resizing(asks, allocated, holds string, conditions ...corev1.PodCondition) *corev1.Pod {
	cpu := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{
			{Name: "c", Resources: corev1.ResourceRequirements{Requests: cpu(asks)}},
		}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: conditions, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "c", AllocatedResources: cpu(allocated), Resources: &corev1.ResourceRequirements{Requests: cpu(holds)}},
		}},
	}
}

// wholePod is the same with the amounts of the pod as a whole.
func wholePod(asks, allocated, holds string, conditions ...corev1.PodCondition) *corev1.Pod {
	p := resizing("1", "1", "1", conditions...)
	of := resizing(asks, allocated, holds)
	p.Spec.Resources, p.Status.Resources = &of.Spec.Containers[0].Resources, of.Status.ContainerStatuses[0].Resources
	p.Status.AllocatedResources = of.Status.ContainerStatuses[0].AllocatedResources
	return p
}

// asScheduled is what the scheduler counts for a pod, with the features of Kubernetes 1.36.
func asScheduled(p *corev1.Pod) int64 {
	requests := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
	return requests.Cpu().MilliValue()
}

// TestResizedPodsCountAsTheSchedulerCounts: in every state of a resize, of containers, of
// sidecars and of whole pods, with the scheduler's own computation as the judge.
func TestResizedPodsCountAsTheSchedulerCounts(t *testing.T) {
	pending := func(reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason}
	}
	always := corev1.ContainerRestartPolicyAlways
	sidecar := resizing("1", "1", "1")
	s := resizing("3", "2", "2")
	s.Spec.Containers[0].Name, s.Spec.Containers[0].RestartPolicy, s.Status.ContainerStatuses[0].Name = "side", &always, "side"
	sidecar.Spec.InitContainers, sidecar.Status.InitContainerStatuses = s.Spec.Containers, s.Status.ContainerStatuses
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want int64
	}{
		"as it asks":               {resizing("1", "1", "1"), 1000},
		"grows, not looked at yet": {resizing("3", "1", "1"), 3000},
		"grows, allocated":         {resizing("3", "3", "1"), 3000},
		"grows, no room now":       {resizing("3", "1", "1", pending(corev1.PodReasonDeferred)), 3000},
		"grows, no room ever":      {resizing("3", "1", "1", pending(corev1.PodReasonInfeasible)), 1000},
		"shrinks, holds it still":  {resizing("1", "1", "3"), 3000},
		"shrinks, not looked at":   {resizing("1", "3", "3"), 3000},
		"sidecar grows":            {sidecar, 4000},
		"whole pod grows":          {wholePod("4", "2", "2"), 4000},
		"whole pod, no room ever":  {wholePod("4", "2", "2", pending(corev1.PodReasonInfeasible)), 2000},
		"whole pod shrinks":        {wholePod("2", "2", "4"), 4000},
		"whole pod, as it asks":    {wholePod("2", "2", "2"), 2000},
		"whole pod, nothing is said": {func() *corev1.Pod {
			p := wholePod("2", "2", "2")
			p.Status.Resources, p.Status.AllocatedResources = nil, nil
			return p
		}(), 2000},
	} {
		if got := readSpec(c.pod).Requests.CPU; got != c.want || got != asScheduled(c.pod) {
			t.Errorf("%s: counts %dm CPU, want %dm; the scheduler counts %dm", name, got, c.want, asScheduled(c.pod))
		}
	}
}

// TestMirrorFollowsResizesInPlace: a pod that grows takes the room at once from plans, also
// more than its node has, and gives it back when it shrinks or can never have it.
func TestMirrorFollowsResizesInPlace(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("10"),
	}}}
	waits := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "waits"}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}},
	}}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
	}}}
	store := fleet.NewStore()
	mirror := NewMirror(store, Settings{})
	for _, o := range []client.Object{node, waits} {
		mirror.Apply(o)
	}
	infeasible := corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}
	for i, c := range []struct {
		pod  *corev1.Pod
		free int64
	}{
		{resizing("1", "1", "1"), 3000},
		{resizing("3500m", "1", "1"), 500},
		{resizing("3500m", "3500m", "3500m"), 500},
		{resizing("6", "3500m", "3500m"), -2000},
		{resizing("6", "3500m", "3500m", infeasible), 500},
		{resizing("2", "2", "3500m"), 500},
		{resizing("2", "2", "2"), 2000},
	} {
		mirror.Apply(c.pod)
		in, err := store.Snapshot().Problem(t.Context(), everyPool{&fleet.Catalog{Axes: model.NewAxes()}}, fleet.Options{Now: time.Unix(10, 0)})
		if err != nil {
			t.Fatal(err)
		}
		if len(in.Problem.Nodes) != 1 || in.Problem.Nodes[0].Free()[0] != c.free {
			t.Errorf("step %d: nodes %+v, want one with %dm CPU free", i, in.Problem.Nodes, c.free)
		}
	}
}
