package kube

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// richPod uses every field that conversion looks at.
func richPod() *corev1.Pod {
	two, priority, honor, always := int32(2), int32(7), corev1.NodeInclusionPolicyHonor, corev1.ContainerRestartPolicyAlways
	requests := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{
			"cpu": resource.MustParse(cpu), "memory": resource.MustParse("1Gi"), "nvidia.com/gpu": resource.MustParse("1"),
		}}
	}
	labels := func(v string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": v},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}}}}
	}
	term := func(v string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: labels(v), Namespaces: []string{"n1"},
			NamespaceSelector: labels("ns"), MatchLabelKeys: []string{"rev"}, MismatchLabelKeys: []string{"rev"}}
	}
	nodeTerm := corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "k", Operator: corev1.NodeSelectorOpIn, Values: []string{"v", "w"}}},
		MatchFields:      []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node"}}},
	}
	status := func(name string) corev1.ContainerStatus {
		r := requests("3")
		return corev1.ContainerStatus{Name: name, Resources: &r, AllocatedResources: corev1.ResourceList{"cpu": resource.MustParse("4")}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{"rev": "1", "app": "x"},
			Annotations: map[string]string{"karpenter.azure.com/max-price": "0.30"}},
		Spec: corev1.PodSpec{
			HostNetwork:  true,
			HostUsers:    new(bool),
			NodeSelector: map[string]string{"disk": "ssd"},
			Containers: []corev1.Container{{Name: "c", Resources: requests("1"),
				RestartPolicyRules: []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}},
				Ports:              []corev1.ContainerPort{{ContainerPort: 80, HostPort: 81, HostIP: "10.0.0.1", Protocol: "UDP"}}}},
			InitContainers: []corev1.Container{{Name: "i", RestartPolicy: &always, Resources: requests("2")}},
			Overhead:       corev1.ResourceList{"cpu": resource.MustParse("100m")},
			Resources:      &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("9")}},
			Affinity: &corev1.Affinity{
				NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{nodeTerm}},
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 3, Preference: nodeTerm}},
				},
				PodAffinity: &corev1.PodAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{term("a")},
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 4, PodAffinityTerm: term("b")}},
				},
				PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{term("c")},
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 5, PodAffinityTerm: term("d")}},
				},
			},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: labels("e"),
				MatchLabelKeys: []string{"rev"}, MinDomains: &two, NodeAffinityPolicy: &honor, NodeTaintsPolicy: &honor,
			}},
			Tolerations:    []corev1.Toleration{{Key: "t", Operator: corev1.TolerationOpEqual, Value: "v", Effect: corev1.TaintEffectNoSchedule}},
			Priority:       &priority,
			ResourceClaims: []corev1.PodResourceClaim{{Name: "claim"}},
		},
		Status: corev1.PodStatus{
			ContainerStatuses:     []corev1.ContainerStatus{status("c")},
			InitContainerStatuses: []corev1.ContainerStatus{status("i")},
			Conditions:            []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: "Deferred"}},
			Resources:             &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("10")}},
			AllocatedResources:    corev1.ResourceList{"cpu": resource.MustParse("11")},
		},
	}
}

func keyOf(pod *corev1.Pod) string {
	w := keyWriter{}
	w.spec(pod)
	return string(w.buf)
}

// TestPodKeyCoversEveryConvertedField changes one field of a pod
// after the other. Whenever the converted spec changes, the key must have changed
// too; otherwise two different pods would share a spec.
func TestPodKeyCoversEveryConvertedField(t *testing.T) {
	base := readSpec(richPod())
	baseKey := keyOf(richPod())
	changes := 0
	for path, change := range mutations(reflect.ValueOf(richPod()).Elem(), "") {
		pod := richPod()
		change(reflect.ValueOf(pod).Elem())
		got := readSpec(pod)
		diff := cmp.Diff(base, got, cmpopts.IgnoreFields(fleet.PodSpec{}, "Key"))
		if (diff == "") != (got.Key == base.Key) {
			t.Errorf("changing %s: the converted keys are equal: %v, but the specs differ by:\n%s", path, got.Key == base.Key, diff)
		}
		if diff == "" {
			continue
		}
		changes++
		if keyOf(pod) == baseKey {
			t.Errorf("changing %s changes the spec but not the key:\n%s", path, cmp.Diff(base, got))
		}
	}
	// The pod above has more fields that decide than this; fewer would mean that
	// the walk below no longer reaches them.
	if changes < 80 {
		t.Errorf("only %d changes had an effect", changes)
	}
}

// mutations lists changes of single leaves below v, by path.
func mutations(v reflect.Value, path string) map[string]func(reflect.Value) {
	out := map[string]func(reflect.Value){}
	nest := func(name string, child reflect.Value, step func(reflect.Value) reflect.Value) {
		for p, f := range mutations(child, path+name) {
			out[p] = func(root reflect.Value) { f(step(root)) }
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[resource.Quantity]() {
			return out
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				nest("."+v.Type().Field(i).Name, v.Field(i), func(r reflect.Value) reflect.Value { return r.Field(i) })
			}
		}
	case reflect.Pointer:
		if v.IsNil() {
			return out
		}
		out[path+"=nil"] = func(r reflect.Value) { r.SetZero() }
		nest("", v.Elem(), func(r reflect.Value) reflect.Value { return r.Elem() })
	case reflect.Slice:
		if v.Len() == 0 {
			return out
		}
		out[path+"=empty"] = func(r reflect.Value) { r.SetZero() }
		for i := range v.Len() {
			nest(fmt.Sprintf("[%d]", i), v.Index(i), func(r reflect.Value) reflect.Value { return r.Index(i) })
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			out[path+"-"+k.String()] = func(r reflect.Value) { r.SetMapIndex(k, reflect.Value{}) }
			changed := reflect.ValueOf("changed").Convert(reflect.TypeFor[string]())
			if v.Type().Elem() == reflect.TypeFor[resource.Quantity]() {
				changed = reflect.ValueOf(resource.MustParse("77"))
			}
			out[path+"~"+k.String()] = func(r reflect.Value) { r.SetMapIndex(k, changed) }
		}
	case reflect.String:
		out[path] = func(r reflect.Value) { r.SetString("changed") }
	case reflect.Bool:
		out[path] = func(r reflect.Value) { r.SetBool(!r.Bool()) }
	case reflect.Int32, reflect.Int64, reflect.Int:
		out[path] = func(r reflect.Value) { r.SetInt(r.Int() + 1) }
	}
	return out
}

func TestPodKeyEqualForEquivalentPods(t *testing.T) {
	in := newInterner(Settings{})
	pod := func(cpu, zoneKey string, tolerations ...corev1.Toleration) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{
			NodeSelector: map[string]string{zoneKey: "eastus-1"}, Tolerations: tolerations,
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}},
		}}
	}
	same := corev1.Toleration{Key: "a", Value: "b"}
	explicit := corev1.Toleration{Key: "a", Operator: corev1.TolerationOpEqual, Value: "b"}
	a := in.spec(pod("500m", "topology.kubernetes.io/zone", same))
	b := in.spec(pod("0.5", "failure-domain.beta.kubernetes.io/zone", explicit, same))
	if a != b {
		t.Errorf("two specs where one would do: %s", cmp.Diff(a, b))
	}
	if c := in.spec(pod("501m", "topology.kubernetes.io/zone", same)); c == a {
		t.Error("a pod that asks for more got the spec of one that asks for less")
	}
}

func TestQuantitiesBeyondInt64Saturate(t *testing.T) {
	for _, c := range []struct {
		name, quantity string
		want           int64
	}{
		{"cpu", "1500m", 1500},
		{"cpu", "0.0001", 1},
		{"memory", "1Ki", 1024},
		{"memory", "18446744073709551621", 1<<63 - 1},
		{"memory", "100000E", 1<<63 - 1},
		{"cpu", "1E", 1<<63 - 1},
		{"memory", "-18446744073709551621", -(1<<63 - 1)},
	} {
		if got := amount(corev1.ResourceName(c.name), resource.MustParse(c.quantity)); got != c.want {
			t.Errorf("%s of %s: got %d, want %d", c.quantity, c.name, got, c.want)
		}
	}
}

// FuzzConversion feeds arbitrary documents to everything that reads objects:
// whatever they hold, nothing panics, and equal keys mean equal specs.
func FuzzConversion(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Gt","values":["x"]}]},{}]}}}}}`,
		`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"s"},"spec":{"replicas":2,"volumeClaimTemplates":[{"metadata":{"name":"d"}}]}}`,
		`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"n"},"spec":{"limits":{"cpu":"-1"},"template":{"spec":{"requirements":[{"key":"a","operator":"In"}]}}}}`,
		`{"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","metadata":{"name":"n"},"spec":{"requirements":[{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot"]}]}}`,
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"9999999999999999999999999"}}}`,
		`{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"c"},"spec":{"jobTemplate":{"spec":{"parallelism":3}}}}`,
		`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"generateName":"p"},"spec":{"containers":[{"name":"c","ports":[{"hostPort":70000}]}]}},{"kind":"List"}]}`,
		`{"apiVersion":"v1","kind":"ReplicationController","metadata":{"name":"r"},"spec":{"replicas":2}}`,
		"kind: List\napiVersion: v1\nitems:\n- {kind: PersistentVolumeClaim, apiVersion: v1, metadata: {name: a}}\n---\n- 1\n",
	} {
		f.Add(seed)
	}
	file, err := ReadCatalog(strings.NewReader(smallCatalog))
	if err != nil {
		f.Fatal(err)
	}
	catalog, err := file.Catalog()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		manifests, _ := Decode(strings.NewReader(text), "fuzz")
		for i := range manifests {
			if tooMany(manifests[i].Object) {
				return
			}
		}
		expanded := Expand(manifests)
		store := FromFiles(expanded.Objects.List())
		in, err := store.Snapshot().Problem(t.Context(), fixedCatalog{catalog}, optionsForTests())
		if err != nil {
			t.Fatal(err)
		}
		for p := range store.Snapshot().Pods() {
			if p.Wanted && p.Spec.Invalid == "" && in.Record(p.Ref) == nil {
				t.Errorf("pod %s is lost", p.Ref)
			}
		}
	})
}
