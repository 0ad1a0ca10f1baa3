package kube

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// drawAmounts draws some resources.
func drawAmounts(t *rapid.T, what string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if n := rapid.IntRange(0, 6).Draw(t, what+" "+string(name)); n > 2 {
			out[name] = *resource.NewQuantity(int64(n-2), resource.DecimalSI)
		}
	}
	return out
}

// Items of LimitRanges that add nothing to those before them are left out: what containers are given
// is the same.
func TestItemsThatAddNothingAreLeftOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranges, every := map[string]*corev1.LimitRange{}, containerDefaults{}
		for i := range rapid.IntRange(0, 5).Draw(t, "ranges") {
			name := fmt.Sprint("r", i)
			item := corev1.LimitRangeItem{
				Type: corev1.LimitTypeContainer, Default: drawAmounts(t, "default"), DefaultRequest: drawAmounts(t, "request"),
				Max: drawAmounts(t, "max"), Min: drawAmounts(t, "min"),
			}
			ranges[name] = &corev1.LimitRange{
				ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}},
			}
			every = append(every, *completed(&item))
		}
		spec := &corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: drawAmounts(t, "requests"), Limits: drawAmounts(t, "limits"),
		}}}}
		want := spec.DeepCopy()
		every.admit(want)
		defaultsOf(ranges).admit(spec)
		if !equality.Semantic.DeepEqual(spec, want) {
			t.Fatalf("containers get %v, want %v", spec.Containers[0].Resources, want.Containers[0].Resources)
		}
	})
}

// Thousands of LimitRanges that say the same are as one.
func TestLimitRangesThatSayTheSameAreOne(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "---\n{apiVersion: v1, kind: LimitRange, metadata: {name: r%d}, spec: {limits: [{type: Container, "+
			"default: {cpu: 100m}, defaultRequest: {cpu: 50m}, min: {cpu: 1m}}]}}\n", i)
	}
	ranges := map[string]*corev1.LimitRange{}
	for _, m := range manifestsOf(t, text.String()) {
		r := m.Object.(*corev1.LimitRange)
		ranges[r.Name] = r
	}
	if defaults, bounds := defaultsOf(ranges), boundsOf(ranges); len(ranges) != 1000 || len(defaults) != 1 || len(bounds) != 1 {
		t.Errorf("%d LimitRanges are %d defaults and %d bounds, want one", len(ranges), len(defaults), len(bounds))
	}
}

// Workloads that ask for too many pods together are refused before their pods have names.
func TestTooManyPodsHaveNoNames(t *testing.T) {
	var text strings.Builder
	for i := range 2000 {
		for _, kind := range []string{"Deployment", "StatefulSet"} {
			fmt.Fprintf(&text, "---\n{apiVersion: apps/v1, kind: %s, metadata: {name: d%d, namespace: default}, spec: {replicas: 150000, "+
				"selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}\n", kind, i)
		}
	}
	manifests := manifestsOf(t, text.String())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if e := Expand(manifests); len(e.Problems) != 3999 {
		t.Errorf("%d workloads are refused, want all but the first", len(e.Problems))
	}
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 200<<20 {
		t.Errorf("it takes %d MB to refuse them", bytes>>20)
	}
}

// A StatefulSet that asks for too many pods gets as many as a quota lets in.
func TestQuotaBoundsPodsOfStatefulSets(t *testing.T) {
	set := func(name string) string {
		return fmt.Sprintf("---\n{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: %s, namespace: default}, spec: {replicas: 150000, "+
			"selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}\n", name)
	}
	const quota = "---\n{apiVersion: v1, kind: ResourceQuota, metadata: {name: few, namespace: default}, spec: {hard: {pods: '150003'}}}\n"
	pods := 0
	e := Expand(manifestsOf(t, quota+set("a")+set("b")))
	for o, alike := range e.Objects.Counted() {
		if _, is := o.(*corev1.Pod); is {
			pods += alike
		}
	}
	if pods != 150_003 || len(e.Problems) > 0 {
		t.Errorf("%d pods are made, want 150003; problems %v", pods, e.Problems)
	}
}
