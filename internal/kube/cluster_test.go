package kube

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// apiServer answers discovery and lists as an API server without AKSNodeClasses
// does; its pods come in two pages.
func apiServer(t *testing.T) *rest.Config {
	t.Helper()
	resources := map[string][]string{
		"/api/v1": {"pods:Pod", "nodes:Node", "namespaces:Namespace", "limitranges:LimitRange",
			"persistentvolumes:PersistentVolume", "persistentvolumeclaims:PersistentVolumeClaim"},
		"/apis/apps/v1":             {"daemonsets:DaemonSet"},
		"/apis/storage.k8s.io/v1":   {"storageclasses:StorageClass", "csinodes:CSINode", "volumeattachments:VolumeAttachment"},
		"/apis/policy/v1":           {"poddisruptionbudgets:PodDisruptionBudget"},
		"/apis/some.other.group/v2": {},
		"/apis/karpenter.sh/v1":     {"nodepools:NodePool", "nodeclaims:NodeClaim"},
	}
	pods := map[string]string{
		"":  `{"apiVersion":"v1","kind":"PodList","metadata":{"continue":"2"},"items":[{"metadata":{"name":"a","namespace":"ns"}}]}`,
		"2": `{"apiVersion":"v1","kind":"PodList","metadata":{},"items":[{"metadata":{"name":"b","namespace":"ns"}}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := func(v any) {
			if err := json.NewEncoder(w).Encode(v); err != nil {
				t.Error(err)
			}
		}
		switch path := r.URL.Path; {
		case path == "/api":
			answer(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		case path == "/apis":
			list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
			for _, g := range []string{"apps/v1", "storage.k8s.io/v1", "policy/v1", "karpenter.sh/v1"} {
				name, version, _ := strings.Cut(g, "/")
				v := metav1.GroupVersionForDiscovery{GroupVersion: g, Version: version}
				list.Groups = append(list.Groups, metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
			}
			answer(list)
		case path == "/api/v1/pods":
			if _, err := w.Write([]byte(pods[r.URL.Query().Get("continue")])); err != nil {
				t.Error(err)
			}
		case resources[path] != nil:
			group := strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")
			list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group}
			for _, entry := range resources[path] {
				name, kind, _ := strings.Cut(entry, ":")
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: kind, Verbs: metav1.Verbs{"list"}})
			}
			answer(list)
		case path == "/apis/karpenter.sh/v1/nodepools":
			answer(map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePoolList", "metadata": map[string]any{}, "items": []any{
				map[string]any{"metadata": map[string]any{"name": "general"}},
			}})
		case resources[path[:strings.LastIndex(path, "/")]] != nil:
			answer(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": []any{}})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestReadClusterPagesAndMissingKinds(t *testing.T) {
	objects, missing, _, err := ListCluster(t.Context(), apiServer(t))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	if !slices.Equal(names, []string{"a", "b", "general"}) {
		t.Errorf("read %v, want the pods of both pages and the NodePool", names)
	}
	if want := []string{"RuntimeClasses", "PriorityClasses", "AKSNodeClasses"}; !slices.Equal(missing, want) {
		t.Errorf("missing %v, want %v", missing, want)
	}
}

func TestReadClusterUnreachable(t *testing.T) {
	config := apiServer(t)
	config.Host = "http://127.0.0.1:1"
	if _, _, _, err := ListCluster(t.Context(), config); err == nil {
		t.Error("no error")
	}
}
