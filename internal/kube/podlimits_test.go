package kube

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// times returns n values made of their indices.
func times[T any](n int, of func(i int) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = of(i)
	}
	return out
}

func affinityTerm(int) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{}}
}

func exists(i int) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: fmt.Sprint("k", i), Operator: corev1.NodeSelectorOpExists}
}

func requiredNodes(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}

// stating are pods which state n of what the limit of the same index counts.
var stating = []func(n int, spec *corev1.PodSpec){
	func(n int, spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
				{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{exists(0)}}}}},
			PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{Weight: 1, PodAffinityTerm: affinityTerm(0)}}},
			PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: times(n-2,
				func(i int) corev1.WeightedPodAffinityTerm {
					return corev1.WeightedPodAffinityTerm{Weight: 1, PodAffinityTerm: affinityTerm(i)}
				})},
		}
	},
	func(n int, spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{
			PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: times(1, affinityTerm)},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: times(n-1, affinityTerm)},
		}
	},
	func(n int, spec *corev1.PodSpec) {
		spec.TopologySpreadConstraints = times(n, func(int) corev1.TopologySpreadConstraint {
			return corev1.TopologySpreadConstraint{TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway}
		})
	},
	func(n int, spec *corev1.PodSpec) {
		spec.Affinity = requiredNodes(times(n, func(i int) corev1.NodeSelectorTerm {
			return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{exists(i)}}
		})...)
	},
	func(n int, spec *corev1.PodSpec) {
		spec.NodeSelector = map[string]string{"disk": "ssd"}
		spec.Affinity = requiredNodes(corev1.NodeSelectorTerm{MatchExpressions: times(n-1, exists)})
	},
	func(n int, spec *corev1.PodSpec) {
		values := times(n, func(i int) string { return fmt.Sprint("v", i) })
		spec.Affinity = requiredNodes(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "k", Operator: corev1.NodeSelectorOpNotIn, Values: values}}})
	},
	func(n int, spec *corev1.PodSpec) {
		rule := func(i int) metav1.LabelSelectorRequirement {
			return metav1.LabelSelectorRequirement{Key: fmt.Sprint("k", i), Operator: metav1.LabelSelectorOpExists}
		}
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, MatchLabelKeys: []string{"hash"},
			LabelSelector: &metav1.LabelSelector{MatchExpressions: times(n-1, rule)},
		}}
	},
	func(n int, spec *corev1.PodSpec) {
		term := affinityTerm(0)
		term.Namespaces = times(n, func(i int) string { return fmt.Sprint("n", i) })
		spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	},
	func(n int, spec *corev1.PodSpec) {
		spec.Tolerations = times(n, func(i int) corev1.Toleration {
			return corev1.Toleration{Key: fmt.Sprint("t", i), Operator: corev1.TolerationOpExists}
		})
	},
	func(n int, spec *corev1.PodSpec) {
		list := corev1.ResourceList{}
		for i := range n {
			list[corev1.ResourceName(fmt.Sprint("example.com/r", i))] = resource.MustParse("1")
		}
		spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list}}}
	},
	func(n int, spec *corev1.PodSpec) {
		spec.Containers = []corev1.Container{{Ports: times(n, func(i int) corev1.ContainerPort {
			return corev1.ContainerPort{HostPort: int32(i + 1), ContainerPort: int32(i + 1)}
		})}}
	},
}

func TestPodBeyondLimitIsNotPlanned(t *testing.T) {
	limits := countedRules()
	if len(limits) != len(stating) {
		t.Fatalf("%d limits, %d pods that try them", len(limits), len(stating))
	}
	for i, limit := range limits {
		pod := &corev1.Pod{}
		stating[i](limit.Most, &pod.Spec)
		if s := readSpec(pod); s.TooMuch != "" || s.Invalid != "" {
			t.Errorf("%d %s: the pod is refused: %s%s", limit.Most, limit.What, s.TooMuch, s.Invalid)
		}
		pod = &corev1.Pod{}
		stating[i](limit.Most+1, &pod.Spec)
		want := fmt.Sprintf("the pod states %d %s; at most %d are planned", limit.Most+1, limit.What, limit.Most)
		if got := readSpec(pod).TooMuch; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLimitsOnPodsStandInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range countedRules() {
		if row := fmt.Sprintf("| %s | %d |", limit.What, limit.Most); !strings.Contains(string(page), row) {
			t.Errorf("docs/differences.md lacks the row %s", row)
		}
	}
}

// A pod which states too much still takes its room where it runs, and keeps off the pods
// that it must not be near.
func TestPodThatAsksTooMuchTakesItsRoom(t *testing.T) {
	pod := &corev1.Pod{}
	stating[1](10_000, &pod.Spec)
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"), "example.com/r": resource.MustParse("1")}}}}
	s := readSpec(pod)
	if s.TooMuch == "" || s.Requests.CPU != 2000 || s.Requests.Memory != 1<<30 || s.Requests.Pods != 1 || len(s.AntiAffinity) != 9_999 {
		t.Errorf("got %q, requests %+v, %d terms of anti-affinity", s.TooMuch, s.Requests, len(s.AntiAffinity))
	}
	if len(s.Tolerations)+len(s.Affinity)+len(s.Requests.Extended) != 0 {
		t.Errorf("more is kept than what its node has to know: %+v", s)
	}
}

// Pods come and go, each with rules of its own; nothing is left of them.
func TestRecordsGoWithTheirLastPod(t *testing.T) {
	store := fleet.NewStore()
	m := NewMirror(store, Settings{})
	churn := func(from, to int) {
		for i := from; i < to; i++ {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", i),
				Labels: map[string]string{"n": fmt.Sprint(i)}}}
			stating[5](200, &pod.Spec)
			pod.Spec.NodeSelector = map[string]string{"n": fmt.Sprint(i)}
			m.Apply(pod)
			m.Delete(pod)
		}
	}
	churn(0, 2000)
	before := heap()
	churn(2000, 12_000)
	if grown := int64(heap()) - int64(before); grown > 4<<20 {
		t.Errorf("10,000 pods that are gone left %d bytes", grown)
	}
	runtime.KeepAlive(m)
}

// heap is the size of what is reachable.
func heap() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

func TestPodsOfOneTemplateShareRecords(t *testing.T) {
	in := newInterner(Settings{})
	var kept []*fleet.PodSpec
	for i := range 3 * sweepLeast {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"n": fmt.Sprint(i % (2 * sweepLeast))}}}
		stating[1](3, &pod.Spec)
		kept = append(kept, in.spec(pod))
	}
	for i := 2 * sweepLeast; i < len(kept); i++ {
		if kept[i] != kept[i-2*sweepLeast] {
			t.Fatalf("pod %d does not share the record of an equal one", i)
		}
	}
	if &kept[0].AntiAffinity[0] != &kept[1].AntiAffinity[0] {
		t.Error("pods of different sizes do not share their rules")
	}
	runtime.KeepAlive(kept)
}

// An amount of an object is told as the API server shows it, which keeps what is too large as the
// largest integer; one of a file is refused as it was written.
func TestAbsurdAmountsReadAsTheyWereWritten(t *testing.T) {
	for written, want := range map[string]string{"8Ei": "got 9223372036854775807,", "7Ei": "got 7Ei,", "1Ei": "got 1Ei,"} {
		list := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(written)}
		err := checkAmounts(list, func() string { return "requests" })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", written, err, want)
		}
	}
	for _, written := range []string{"8Ei", "16Ei"} {
		_, err := Decode(strings.NewReader("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"+
			"  - {name: c, resources: {requests: {memory: "+written+"}}}\n"), "in.yaml")
		want := "in.yaml: document 1: Pod p: spec.containers[0].resources.requests[memory]: got " + written + ", which is more than any machine will ever have"
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", written, err, want)
		}
	}
}
