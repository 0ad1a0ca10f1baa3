package clitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// resources are what the API server has, by group and version, as plural:Kind, with a
// star for those in namespaces.
var resources = map[string][]string{
	"v1": {"pods:Pod*", "nodes:Node", "namespaces:Namespace", "limitranges:LimitRange*", "persistentvolumes:PersistentVolume",
		"persistentvolumeclaims:PersistentVolumeClaim*", "services:Service*", "replicationcontrollers:ReplicationController*",
		"resourcequotas:ResourceQuota*", "secrets:Secret*", "serviceaccounts:ServiceAccount*", "configmaps:ConfigMap*"},
	"apps/v1": {"daemonsets:DaemonSet*", "replicasets:ReplicaSet*", "statefulsets:StatefulSet*", "deployments:Deployment*"},
	"rbac.authorization.k8s.io/v1": {"roles:Role*", "rolebindings:RoleBinding*", "clusterroles:ClusterRole",
		"clusterrolebindings:ClusterRoleBinding"},
	"apiextensions.k8s.io/v1": {"customresourcedefinitions:CustomResourceDefinition"},
	"networking.k8s.io/v1":    {"networkpolicies:NetworkPolicy*"},
	"autoscaling/v2":          {"horizontalpodautoscalers:HorizontalPodAutoscaler*"},
	"admissionregistration.k8s.io/v1": {"validatingadmissionpolicies:ValidatingAdmissionPolicy",
		"validatingadmissionpolicybindings:ValidatingAdmissionPolicyBinding"},
	"storage.k8s.io/v1":           {"storageclasses:StorageClass", "csinodes:CSINode", "volumeattachments:VolumeAttachment"},
	"policy/v1":                   {"poddisruptionbudgets:PodDisruptionBudget*"},
	"node.k8s.io/v1":              {"runtimeclasses:RuntimeClass"},
	"scheduling.k8s.io/v1":        {"priorityclasses:PriorityClass"},
	"karpenter.sh/v1":             {"nodepools:NodePool", "nodeclaims:NodeClaim"},
	"karpenter.azure.com/v1beta1": {"aksnodeclasses:AKSNodeClass"},
	"nap.azure.com/v1alpha1": {
		"nodeautoprovisionings:NodeAutoProvisioning", "snapshots:Snapshot", "snapshotshards:SnapshotShard", "ledgerpages:LedgerPage",
		"shadowreports:ShadowReport",
	},
}

// APIServer answers discovery, reads and writes of objects as an API server does.
type APIServer struct {
	mu      sync.Mutex
	objects []*unstructured.Unstructured
	// forbidden are plurals that may not be read.
	forbidden []string
	// patches are the writes, one line each.
	patches []string
	// read are the resources that were asked for, as "plural.group".
	read map[string]bool
	// users are the users that requests impersonated, one each, with their groups.
	users []string
}

// NewAPIServer starts an API server with the objects of YAML documents and writes a
// kubeconfig for it into a folder, with a context of the name "test". Forbidden are the
// plurals of what may not be read.
func NewAPIServer(t testing.TB, folder string, objects []byte, forbidden ...string) (server *APIServer, kubeconfig string) {
	t.Helper()
	s := &APIServer{forbidden: forbidden, read: map[string]bool{}}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(objects), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			s.Add(o)
		}
	}
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	kubeconfig = filepath.Join(folder, "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"test","clusters":[{"name":"c","cluster":{"server":%q}}],
"users":[{"name":"u","user":{}}],"contexts":[{"name":"test","context":{"cluster":"c","user":"u"}}]}`, listener.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, kubeconfig
}

// Add adds an object.
func (s *APIServer) Add(o *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = append(s.objects, o)
}

// Patches are the writes so far: the object and the patch.
func (s *APIServer) Patches() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.patches)
}

// Read are the resources that were asked for, as "plural.group", or "plural" of the core group,
// in order.
func (s *APIServer) Read() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.read))
}

// Users are the users that requests so far impersonated: for each the user and the groups.
func (s *APIServer) Users() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.users)
}

// ServeHTTP answers one request.
func (s *APIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users = append(s.users, strings.Join(append(r.Header["Impersonate-User"], r.Header["Impersonate-Group"]...), " "))
	w.Header().Set("Content-Type", "application/json")
	code, answer := s.answer(r)
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(err)
	}
}

func (s *APIServer) answer(r *http.Request) (int, any) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	version := ""
	switch {
	case r.URL.Path == "/api":
		return http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case r.URL.Path == "/apis":
		return http.StatusOK, groups()
	case parts[0] == "api" && len(parts) > 1:
		version, parts = parts[1], parts[2:]
	case len(parts) > 2:
		version, parts = parts[1]+"/"+parts[2], parts[3:]
	}
	if resources[version] == nil {
		return status(http.StatusNotFound, metav1.StatusReasonNotFound, "no such path")
	}
	if len(parts) == 0 {
		return http.StatusOK, resourceList(version)
	}
	s.note(r.Method, version, parts)
	namespace := ""
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	kind := kindOf(version, parts[0])
	if slices.Contains(s.forbidden, parts[0]) {
		return status(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q",
			parts[0], r.Header.Get("Impersonate-User"), strings.ToLower(r.Method), parts[0]))
	}
	if len(parts) == 1 && r.Method == http.MethodPost {
		return s.create(version, kind, namespace, r)
	}
	if len(parts) == 1 {
		list := map[string]any{"apiVersion": version, "kind": kind + "List", "metadata": map[string]any{}}
		list["items"] = selected(s.find(version, kind, namespace, ""), r.FormValue("labelSelector"))
		return http.StatusOK, list
	}
	found := s.find(version, kind, namespace, parts[1])
	if r.Method == http.MethodPatch && r.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType) {
		return s.apply(version, kind, namespace, parts[1], r)
	}
	if len(found) == 0 {
		return status(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", parts[0], parts[1]))
	}
	switch r.Method {
	case http.MethodPatch:
		return s.patch(found[0], kind, r)
	case http.MethodPut:
		return s.replace(found[0], r)
	case http.MethodDelete:
		return s.remove(found[0])
	}
	return http.StatusOK, found[0]
}

// note keeps which resource a request reads; parts follow its version.
func (s *APIServer) note(method, version string, parts []string) {
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if group, _, named := strings.Cut(version, "/"); method == http.MethodGet && named {
		s.read[parts[0]+"."+group] = true
	} else if method == http.MethodGet {
		s.read[parts[0]] = true
	}
}

// patch merges a patch into an object, unless it is a dry run or breaks the rule of the mode.
func (s *APIServer) patch(object any, kind string, r *http.Request) (int, any) {
	text, err := io.ReadAll(r.Body)
	patch := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &patch)
	}
	if err != nil || r.Header.Get("Content-Type") != "application/merge-patch+json" {
		return status(http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprint("not a merge patch: ", err))
	}
	o := object.(map[string]any)
	if blocked := blockedBy(o, patch); blocked != "" {
		return status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "mode Manual would leave machines behind: "+blocked)
	}
	if r.URL.Query().Has("dryRun") {
		return http.StatusOK, o
	}
	merge(o, patch)
	s.patches = append(s.patches, fmt.Sprintf("%s %s: %s", kind, (&unstructured.Unstructured{Object: o}).GetName(), text))
	return http.StatusOK, o
}

// blockedBy is why the definition of NodeAutoProvisioning refuses a patch, or "".
func blockedBy(o, patch map[string]any) string {
	if mode, _, err := unstructured.NestedString(patch, "spec", "mode"); err != nil || mode != "Manual" {
		return ""
	}
	blocked, _, err := unstructured.NestedString(o, "status", "disableBlockedBy")
	if err != nil {
		return err.Error()
	}
	return blocked
}

func merge(into, patch map[string]any) {
	for key, value := range patch {
		inner, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap:
			there, has := into[key].(map[string]any)
			if !has {
				there = map[string]any{}
				into[key] = there
			}
			merge(there, inner)
		default:
			into[key] = value
		}
	}
}

// find returns the objects of a kind, of one namespace or name where these are given.
func (s *APIServer) find(version, kind, namespace, name string) []any {
	out := []any{}
	for _, o := range s.objects {
		if o.GetAPIVersion() == version && o.GetKind() == kind &&
			(namespace == "" || o.GetNamespace() == namespace) && (name == "" || o.GetName() == name) {
			out = append(out, o.Object)
		}
	}
	return out
}

func groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for g := range resources {
		name, version, grouped := strings.Cut(g, "/")
		if !grouped {
			continue
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: g, Version: version}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	return list
}

func resourceList(version string) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version}
	for _, entry := range resources[version] {
		name, kind, _ := strings.Cut(entry, ":")
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: name, Kind: strings.TrimSuffix(kind, "*"), Namespaced: strings.HasSuffix(kind, "*"),
			Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update"},
		})
	}
	return list
}

func kindOf(version, plural string) string {
	for _, entry := range resources[version] {
		if name, kind, _ := strings.Cut(entry, ":"); name == plural {
			return strings.TrimSuffix(kind, "*")
		}
	}
	return ""
}

func status(code int, reason metav1.StatusReason, message string) (int, any) {
	return code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message,
	}
}
