package kube

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		want time.Time
	}{
		"it stays":             {metav1.ObjectMeta{}, time.Time{}},
		"with a grace period":  {metav1.ObjectMeta{DeletionTimestamp: &over, DeletionGracePeriodSeconds: &grace}, over.Add(-30 * time.Second)},
		"without grace period": {metav1.ObjectMeta{DeletionTimestamp: &over}, over.Time},
	} {
		if got := leavingSince(&corev1.Pod{ObjectMeta: c.meta}); !got.Equal(c.want) {
			t.Errorf("%s: since %s, want %s", name, got, c.want)
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
