package kube

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

func TestSpreadConstraintFields(t *testing.T) {
	three, honor, ignore := int32(3), corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "pod-template-hash": "abc"}}}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		{
			TopologyKey: "failure-domain.beta.kubernetes.io/zone", MaxSkew: 2, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: app,
			MinDomains: &three, MatchLabelKeys: []string{"pod-template-hash", "absent"}, NodeAffinityPolicy: &ignore, NodeTaintsPolicy: &honor,
		},
		{TopologyKey: "rack", MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway, NodeTaintsPolicy: &ignore},
	}
	want := []model.SpreadConstraint{
		{
			TopologyKey: model.LabelZone, MaxSkew: 2, MinDomains: 3, Hard: true, HonorTaints: true,
			Selector: &model.Selector{Requirements: model.Requirements{
				{Key: "app", Operator: model.In, Values: []string{"web"}},
				{Key: "pod-template-hash", Operator: model.In, Values: []string{"abc"}},
			}},
		},
		{TopologyKey: "rack", MaxSkew: 1, HonorNodeAffinity: true},
	}
	if diff := cmp.Diff(want, readSpec(pod).Spread); diff != "" {
		t.Errorf("constraints differ (-want +got):\n%s", diff)
	}
}

func TestHostPortsOfContainersAndSidecars(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	ports := func(container, host int32) []corev1.ContainerPort {
		return []corev1.ContainerPort{{ContainerPort: container, HostPort: host}}
	}
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{{Ports: ports(80, 8080)}, {Ports: ports(81, 0)}}
	pod.Spec.InitContainers = []corev1.Container{{Ports: ports(82, 8082)}, {Ports: ports(83, 8083), RestartPolicy: &always}}
	want := []model.HostPort{{Port: 8080, Protocol: "TCP"}, {Port: 8083, Protocol: "TCP"}}
	if diff := cmp.Diff(want, readSpec(pod).HostPorts); diff != "" {
		t.Errorf("ports differ (-want +got):\n%s", diff)
	}
	pod.Spec.HostNetwork = true
	want = []model.HostPort{{Port: 8080, Protocol: "TCP"}, {Port: 81, Protocol: "TCP"}, {Port: 8083, Protocol: "TCP"}}
	if diff := cmp.Diff(want, readSpec(pod).HostPorts); diff != "" {
		t.Errorf("ports on the host network differ (-want +got):\n%s", diff)
	}
}

func TestLeavingSinceDeletionRequest(t *testing.T) {
	over, grace := metav1.NewTime(time.Date(2026, 6, 18, 12, 0, 30, 0, time.UTC)), int64(30)
	for name, c := range map[string]struct {
		meta metav1.ObjectMeta
		want *fleet.Leaving
	}{
		"it stays": {metav1.ObjectMeta{}, nil},
		"with a grace period": {metav1.ObjectMeta{DeletionTimestamp: &over, DeletionGracePeriodSeconds: &grace},
			&fleet.Leaving{Since: over.Add(-30 * time.Second), GoneBy: over.Time}},
		"without grace period": {metav1.ObjectMeta{DeletionTimestamp: &over}, &fleet.Leaving{Since: over.Time, GoneBy: over.Time}},
	} {
		if diff := cmp.Diff(c.want, leaving(&corev1.Pod{ObjectMeta: c.meta})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMaxPriceIsReadFromItsAnnotation(t *testing.T) {
	for value, want := range map[string]model.Money{"0.30": 300_000, "12": 12_000_000, "0.000001": 1} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"karpenter.azure.com/max-price": value}}}
		if got := readSpec(pod); got.MaxPrice != want || got.Invalid != "" {
			t.Errorf("%s: got %d (%s), want %d", value, got.MaxPrice, got.Invalid, want)
		}
	}
}

func TestMalformedMaxPriceNamesFieldAndValue(t *testing.T) {
	for _, value := range []string{"", "0", "-1", "$1", "1e3", "0x10", ".5", "NaN", "inf", "0.0000001", "1,5"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"karpenter.azure.com/max-price": value}}}
		want := fmt.Sprintf(`metadata.annotations[karpenter.azure.com/max-price]: got %q, allowed: dollars per hour above 0, such as "0.30"`,
			value)
		if got := readSpec(pod).Invalid; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestPodLevelRequestsThatTheServerFillsIn has the amounts of a pod in a file and of a
// DaemonSet's template, which are filled in alike.
func TestPodLevelRequestsThatTheServerFillsIn(t *testing.T) {
	list := func(cpu, memory, huge string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, text := range map[corev1.ResourceName]string{"cpu": cpu, "memory": memory, "hugepages-2Mi": huge} {
			if text != "" {
				out[name] = resource.MustParse(text)
			}
		}
		return out
	}
	const mib = 1 << 20
	for name, c := range map[string]struct {
		pod, container    corev1.ResourceRequirements
		cpu, memory, huge int64
	}{
		"what containers ask for, not the limit": {
			corev1.ResourceRequirements{Limits: list("5", "4Gi", "")}, corev1.ResourceRequirements{Requests: list("1", "", "")}, 1000, 4096 * mib, 0},
		"the limit of a container": {
			corev1.ResourceRequirements{Limits: list("5", "", "")}, corev1.ResourceRequirements{Limits: list("2", "100Mi", "")}, 2000, 100 * mib, 0},
		"what the pod asks for itself": {
			corev1.ResourceRequirements{Requests: list("3", "", ""), Limits: list("5", "", "")},
			corev1.ResourceRequirements{Requests: list("1", "1Mi", "")}, 3000, mib, 0},
		"requests without limits": {
			corev1.ResourceRequirements{Requests: list("3", "", "")}, corev1.ResourceRequirements{Requests: list("1", "1Mi", "")}, 3000, mib, 0},
		"huge pages as the containers' limit": {
			corev1.ResourceRequirements{Limits: list("5", "", "")}, corev1.ResourceRequirements{Limits: list("1", "", "64Mi")}, 1000, 0, 64 * mib},
		"huge pages of the pod": {
			corev1.ResourceRequirements{Limits: list("5", "", "128Mi")}, corev1.ResourceRequirements{Limits: list("1", "", "64Mi")}, 1000, 0, 128 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Resources: &c.pod, Containers: []corev1.Container{{Name: "c", Resources: c.container}},
			}}
			pod := &corev1.Pod{Spec: *template.Spec.DeepCopy()}
			requestLimits(&pod.Spec)
			for kind, got := range map[string]*fleet.PodSpec{"pod": readSpec(pod), "daemon": readDaemon(template, admitted{})} {
				r := got.Requests
				if r.CPU != c.cpu || r.Memory != c.memory || r.Get("hugepages-2Mi") != c.huge {
					t.Errorf("%s: got cpu %dm, memory %d, huge pages %d; want %dm, %d, %d",
						kind, r.CPU, r.Memory, r.Get("hugepages-2Mi"), c.cpu, c.memory, c.huge)
				}
			}
		})
	}
}

func TestPodsForWindowsNeedItsNodes(t *testing.T) {
	windows := model.Requirements{{Key: corev1.LabelOSStable, Operator: model.In, Values: []string{"windows"}}}
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want model.Requirements
	}{
		"windows":               {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}}, windows},
		"linux":                 {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Linux}}, nil},
		"windows with selector": {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}, NodeSelector: map[string]string{corev1.LabelOSStable: "windows"}}, windows},
	} {
		if diff := cmp.Diff(c.want, newInterner(Settings{}).pod(&corev1.Pod{Spec: c.spec}, false).Spec.NodeRequirements); diff != "" {
			t.Errorf("%s: requirements differ (-want +got):\n%s", name, diff)
		}
	}
}
