package kubelet

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/container"
)

func cpu(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount), corev1.ResourceMemory: resource.MustParse("1Gi")}
}

// sized is a running pod which asks for wants and holds has.
func sized(wants, has string) *corev1.Pod {
	p := aPod(running(corev1.ConditionTrue), with(corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: cpu(wants)}}))
	s := &p.Status.ContainerStatuses[0]
	s.Name, s.Resources, s.AllocatedResources = "c", &corev1.ResourceRequirements{Requests: cpu(has)}, cpu(has)
	return p
}

func TestRunningPodIsResizedWhenItAsksForAnotherSize(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		rec  podRecord
		want step
	}{
		"as it asks":                     {sized("1", "1000m"), podRecord{}, step{do: wait}},
		"more":                           {sized("2", "1"), podRecord{}, step{do: resize}},
		"less":                           {sized("1", "2"), podRecord{}, step{do: resize}},
		"more, and there was no room":    {sized("2", "1"), podRecord{resizeAt: noon.Add(time.Second)}, step{do: wait, after: time.Second}},
		"of a kubelet that says nothing": {aPod(running("True"), with(corev1.Container{Name: "c"})), podRecord{}, step{do: wait}},
	} {
		if got := decide(c.pod, &c.rec, true, Delays{}, noon); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestResizeIsDeferredOrInfeasibleWithoutRoom(t *testing.T) {
	for name, c := range map[string]struct{ wants, others, reason, says string }{
		"room":              {"2", "1", "", ""},
		"room to the brim":  {"3", "1", "", ""},
		"others are there":  {"3", "1500m", corev1.PodReasonDeferred, "cpu, requested: 3000, used: 1500, capacity: 4000"},
		"more than it has":  {"5", "0", corev1.PodReasonInfeasible, "cpu, requested: 5000, capacity: 4000"},
		"others and beyond": {"5", "2", corev1.PodReasonInfeasible, "capacity"},
	} {
		reason, message := container.Shortage(sized(c.wants, "1"), corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		}, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(c.others)})
		if reason != c.reason || !strings.Contains(message, c.says) {
			t.Errorf("%s: %s %q, want %s %q", name, reason, message, c.reason, c.says)
		}
	}
}

// A pod that waits for room counts with what it was given, not with what it asks for.
func TestPodHoldsWhatItWasGiven(t *testing.T) {
	if got := container.Held(sized("4", "1"))[corev1.ResourceCPU]; got.MilliValue() != 1000 {
		t.Errorf("a pod that waits to grow holds %s", got.String())
	}
	if got := container.Held(aPod(with(corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: cpu("2")}})))[corev1.ResourceCPU]; got.MilliValue() != 2000 {
		t.Errorf("a pod that has not started holds %s", got.String())
	}
	after := container.StatusesAfter(sized("4", "1"))
	if got := after[0].AllocatedResources[corev1.ResourceCPU]; got.MilliValue() != 4000 {
		t.Errorf("after the resize it was given %s", got.String())
	}
}
