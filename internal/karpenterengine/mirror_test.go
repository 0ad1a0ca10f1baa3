package karpenterengine

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func pod(namespace, name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{NodeName: node}}
}

func TestMirrorListsInOrder(t *testing.T) {
	m, err := NewMirror([]client.Object{pod("b", "web", "n1"), pod("a", "web", "n1"),
		pod("a", "job", "n2"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		opts []client.ListOption
		want string
	}{
		"all":            {nil, "a/job a/web b/web "},
		"of a node":      {[]client.ListOption{client.MatchingFields{"spec.nodeName": "n1"}}, "a/web b/web "},
		"of a namespace": {[]client.ListOption{client.InNamespace("a")}, "a/job a/web "},
		"with a label":   {[]client.ListOption{client.MatchingLabels{"app": "web"}, client.InNamespace("b")}, "b/web "},
		"of no node":     {[]client.ListOption{client.MatchingFields{"spec.nodeName": "n3"}}, ""},
	} {
		var list corev1.PodList
		if err := m.List(t.Context(), &list, tc.opts...); err != nil {
			t.Fatal(err)
		}
		got := ""
		for i := range list.Items {
			got += client.ObjectKeyFromObject(&list.Items[i]).String() + " "
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	if err := m.List(t.Context(), &corev1.PodList{}, client.MatchingFields{"status.phase": "Running"}); err == nil {
		t.Error("a field without an index is not refused")
	}
}

func TestMirrorCopiesObjects(t *testing.T) {
	given := pod("a", "web", "n1")
	m, err := NewMirror([]client.Object{given})
	if err != nil {
		t.Fatal(err)
	}
	given.Labels["app"] = "changed"
	var got corev1.Pod
	for range 2 {
		if err := m.Get(t.Context(), client.ObjectKeyFromObject(given), &got); err != nil || got.Labels["app"] != "web" {
			t.Fatalf("got %v, %v; what was given first has label web", got.Labels, err)
		}
		got.Labels["app"] = "changed"
	}
	if err := m.Update(t.Context(), pod("a", "web", "n2")); err != nil {
		t.Fatal(err)
	}
	if err := m.Get(t.Context(), client.ObjectKeyFromObject(given), &got); err != nil || got.Spec.NodeName != "n2" {
		t.Errorf("after the update the pod is on %q, %v", got.Spec.NodeName, err)
	}
	if err := m.Delete(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	if err := m.Get(t.Context(), client.ObjectKeyFromObject(given), &got); !apierrors.IsNotFound(err) {
		t.Errorf("after deletion: %v", err)
	}
}

// Karpenter asks for volumes of the cluster by a claim's namespace.
func TestMirrorFindsClusterKindsWhateverTheNamespace(t *testing.T) {
	volume := &corev1.PersistentVolume{}
	volume.Name = "disk"
	m, err := NewMirror([]client.Object{volume})
	if err != nil {
		t.Fatal(err)
	}
	var got corev1.PersistentVolume
	if err := m.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "disk"}, &got); err != nil || got.Name != "disk" {
		t.Errorf("got %q, %v", got.Name, err)
	}
}
