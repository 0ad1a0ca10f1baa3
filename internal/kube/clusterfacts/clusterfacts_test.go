package clusterfacts

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/crds"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// TestReaderAsksAPIServers reads NodePools, version and time over HTTP: a fake client does
// not notice what the scheme lacks for that.
func TestReaderAsksAPIServers(t *testing.T) {
	answers := map[string]string{
		"/version": `{"gitVersion": "v1.35.1"}`,
		"/apis":    `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "karpenter.sh", "versions": [{"groupVersion": "karpenter.sh/v1", "version": "v1"}]}]}`,
		"/apis/karpenter.sh/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "karpenter.sh/v1",
			"resources": [{"name": "nodepools", "kind": "NodePool", "namespaced": false, "verbs": ["list"]}]}`,
		"/apis/karpenter.sh/v1/nodepools": `{"kind": "NodePoolList", "apiVersion": "karpenter.sh/v1", "metadata": {},
			"items": [{"metadata": {"name": "a"}, "spec": {"limits": {"cpu": "10"}}}]}`,
		"/api": `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
			{"name": "nodes", "kind": "Node", "namespaced": false, "verbs": ["list"]}, {"name": "pods", "kind": "Pod", "namespaced": true, "verbs": ["list"]}]}`,
		"/api/v1/nodes": `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"continue": "more", "remainingItemCount": 4999},
			"items": [{"metadata": {"name": "a"}}]}`,
		"/api/v1/pods": `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": []}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, known := answers[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()
	reader, err := New(&rest.Config{Host: server.URL}, func(context.Context, *karpv1.NodePool, map[string]int64) (string, int64, []string) {
		return "nothing fits", 7, []string{"cores"}
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &prerequisites.Facts{Now: time.Now(), Unread: map[prerequisites.Source]string{}}
	reader.Read(t.Context(), f)
	k := f.Kubernetes
	if why := f.Unread[prerequisites.SourceNodePools] + f.Unread[prerequisites.SourceKubernetes]; why != "" {
		t.Error(why)
	}
	if len(k.NodePools) != 1 || k.NodePools[0].LimitCPU != 10 || k.NodePools[0].Nothing != "nothing fits" || k.NodePools[0].Quota != 7 ||
		k.Version != "1.35.1" || k.Clock.IsZero() {
		t.Errorf("read %+v", k)
	}
	if why := f.Unread[prerequisites.SourceSize]; why != "" || k.Nodes != 5000 || k.Pods != 0 {
		t.Errorf("counted %d nodes and %d pods, want 5000 and none; unread: %s", k.Nodes, k.Pods, why)
	}
	// This server has no Deployments and no definitions: that is no knowledge.
	if f.Unread[prerequisites.SourceDeployments] == "" || f.Unread[prerequisites.SourceTokens] == "" {
		t.Errorf("unread: %v", f.Unread)
	}
}

// Nap's own Deployment is that of its chart, whatever the release is called.
func TestControllerIsTheDeploymentOfTheChart(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter", Labels: map[string]string{
		"helm.sh/chart": "nap-0.9.0", "app.kubernetes.io/instance": "autoscaler",
	}}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
	}}
	if own, is := controllerOf(d); !is || own != (prerequisites.Controller{Deployment: "kube-system/karpenter", Release: "autoscaler", MemoryLimit: 1 << 30}) {
		t.Errorf("read %+v, %t", own, is)
	}
	d.Spec.Template.Spec.Containers[0].Resources.Limits = nil
	if own, is := controllerOf(d); !is || own.MemoryLimit != 0 {
		t.Errorf("without a limit: %+v, %t", own, is)
	}
	d.Labels["helm.sh/chart"] = "karpenter-1.15.0"
	if _, is := controllerOf(d); is {
		t.Error("another's chart is taken for nap's")
	}
}

// Beside a shadow, the one of the two that may use less memory is looked at.
func TestScarcerDeploymentIsLookedAt(t *testing.T) {
	none := prerequisites.Controller{}
	free, small, large := prerequisites.Controller{Deployment: "a/nap"}, prerequisites.Controller{Deployment: "b/shadow", MemoryLimit: 1}, prerequisites.Controller{Deployment: "c/nap", MemoryLimit: 2}
	for _, tc := range [][3]prerequisites.Controller{
		{none, free, free}, {free, small, small}, {small, free, small}, {small, large, small}, {large, small, small},
	} {
		if got := scarcer(tc[0], tc[1]); got != tc[2] {
			t.Errorf("of %+v and %+v: %+v", tc[0], tc[1], got)
		}
	}
}

// The release that has made the definitions is told, also while some of them are missing.
func TestReleaseOfDefinitionsIsRead(t *testing.T) {
	s, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1].DeepCopy()
	last.Annotations = map[string]string{"meta.helm.sh/release-name": "nap-crd", "meta.helm.sh/release-namespace": "own"}
	last.Spec.Versions[0].Schema = nil
	reader := &Reader{Kube: fake.NewClientBuilder().WithScheme(s).WithObjects(last).Build()}
	k := &prerequisites.Kubernetes{}
	if err := reader.definitions(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if len(k.Missing) != len(all)-1 || !slices.Equal(k.Outdated, []string{last.Name}) || k.DefinitionsRelease != "own/nap-crd" {
		t.Errorf("missing %v, outdated %v, release %q", k.Missing, k.Outdated, k.DefinitionsRelease)
	}
}
