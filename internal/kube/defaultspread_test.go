package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// What a pod without constraints gets, and what it counts, is what the scheduler's plugin
// PodTopologySpread does with defaultConstraints, whatever comes first.
func TestDefaultSpread(t *testing.T) {
	const shop = "shop"
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: shop, Name: name} }
	web := map[string]string{"app": "web", "tier": "front"}
	pod := func(kind, apiVersion, owner string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: meta("p")}
		p.Labels, p.ResourceVersion = web, "1"
		if controller := true; kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner, Controller: &controller}}
		}
		return p
	}
	service := func(name string, selector map[string]string) client.Object {
		return &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{Selector: selector}}
	}
	replicaSet := &appsv1.ReplicaSet{ObjectMeta: meta("web-1"), Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{
		MatchLabels:      map[string]string{"app": "web"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}},
	}}}
	controller := &corev1.ReplicationController{ObjectMeta: meta("web-1"), Spec: corev1.ReplicationControllerSpec{Selector: map[string]string{"app": "web"}}}
	stateful := &appsv1.StatefulSet{ObjectMeta: meta("web-1"), Spec: appsv1.StatefulSetSpec{Selector: replicaSet.Spec.Selector}}
	elsewhere := service("front", map[string]string{"app": "web"}).(*corev1.Service)
	elsewhere.Namespace = "other"
	own := pod("", "", "")
	own.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 5, TopologyKey: "rack", WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: web},
	}}
	const none = ""
	tests := map[string]struct {
		objects []client.Object
		want    string
	}{
		"neither Service nor owner":    {[]client.Object{pod("", "", "")}, none},
		"a Service":                    {[]client.Object{pod("", "", ""), service("front", map[string]string{"tier": "front"})}, "tier In [front]"},
		"a Service of other pods":      {[]client.Object{pod("", "", ""), service("front", map[string]string{"tier": "back"})}, none},
		"a Service elsewhere":          {[]client.Object{pod("", "", ""), elsewhere}, none},
		"a Service without a selector": {[]client.Object{pod("", "", ""), service("front", nil)}, none},
		"two Services": {[]client.Object{pod("", "", ""), service("a", map[string]string{"tier": "front"}),
			service("b", map[string]string{"app": "web"})}, "app In [web], tier In [front]"},
		"a ReplicaSet":  {[]client.Object{pod("ReplicaSet", "apps/v1", "web-1"), replicaSet}, "app In [web], tier Exists []"},
		"a StatefulSet": {[]client.Object{pod("StatefulSet", "apps/v1", "web-1"), stateful}, "app In [web], tier Exists []"},
		"a ReplicationController": {[]client.Object{pod("ReplicationController", "v1", "web-1"), controller},
			"app In [web]"},
		"another ReplicaSet":                 {[]client.Object{pod("ReplicaSet", "apps/v1", "web-2"), replicaSet}, none},
		"a kind that merely has its name":    {[]client.Object{pod("ReplicaSet", "example.com/v1", "web-1"), replicaSet}, none},
		"a Service beside a ReplicaSet":      {[]client.Object{pod("ReplicaSet", "apps/v1", "web-1"), replicaSet, service("front", map[string]string{"tier": "front"})}, "tier In [front], app In [web], tier Exists []"},
		"a DaemonSet":                        {[]client.Object{pod("DaemonSet", "apps/v1", "web-1"), service("front", map[string]string{"app": "web"})}, none},
		"a pod with a constraint of its own": {[]client.Object{own, service("front", map[string]string{"app": "web"})}, "rack: app In [web], tier In [front]"},
	}
	constraints := []corev1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule},
		{MaxSkew: 2, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := tc.want
			if !strings.Contains(want, ":") && want != none {
				want = fmt.Sprintf("kubernetes.io/hostname: %s; topology.kubernetes.io/zone: %[1]s", want)
			}
			backwards := slices.Clone(tc.objects)
			slices.Reverse(backwards)
			for _, order := range [][]client.Object{tc.objects, backwards} {
				store := fleet.NewStore()
				mirror := NewMirror(store, Settings{Spread: NewDefaultSpread(constraints)})
				for _, o := range order {
					mirror.Apply(o)
				}
				if got := spreadOf(store); got != want {
					t.Errorf("the pod counts %q, want %q", got, want)
				}
			}
		})
	}
	t.Run("a Service that changes and goes", func(t *testing.T) {
		store := fleet.NewStore()
		mirror := NewMirror(store, Settings{Spread: NewDefaultSpread(constraints[:1])})
		mirror.Apply(pod("", "", ""))
		var got []string
		for _, change := range []func(){
			func() { mirror.Apply(service("front", map[string]string{"app": "web"})) },
			func() { mirror.Apply(service("front", map[string]string{"tier": "front"})) },
			func() { mirror.Apply(service("front", map[string]string{"tier": "back"})) },
			func() { mirror.Apply(service("front", map[string]string{"app": "web"})) },
			func() { mirror.Delete(service("front", nil)) },
			func() {
				mirror.Delete(pod("", "", ""))
				mirror.Apply(service("front", map[string]string{"app": "web"}))
			},
		} {
			change()
			got = append(got, spreadOf(store))
		}
		want := []string{"kubernetes.io/hostname: app In [web]", "kubernetes.io/hostname: tier In [front]", none,
			"kubernetes.io/hostname: app In [web]", none, none}
		if !slices.Equal(got, want) {
			t.Errorf("the pod counts\n%q, want\n%q", got, want)
		}
		if n := len(slices.Collect(store.Snapshot().Pods())); n != 0 {
			t.Errorf("%d pods are left, want none", n)
		}
	})
}

// spreadOf says what the spread constraints of the pods in the store count.
func spreadOf(store *fleet.Store) string {
	var out []string
	for p := range store.Snapshot().Pods() {
		for _, s := range p.Spec.Spread {
			var terms []string
			for _, r := range s.Selector.Requirements {
				terms = append(terms, fmt.Sprintf("%s %s %v", r.Key, r.Operator, r.Values))
			}
			out = append(out, s.TopologyKey+": "+strings.Join(terms, ", "))
		}
	}
	return strings.Join(out, "; ")
}
