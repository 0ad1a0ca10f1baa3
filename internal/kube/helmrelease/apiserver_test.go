package helmrelease

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// cluster is an API server for the objects of a chart: it discovers their kinds from their
// manifests, stores what is written to it, and lets its client be killed at a write.
type cluster struct {
	http *httptest.Server

	mu      sync.Mutex
	kinds   map[string]map[string]metav1.APIResource // by group and version, and plural
	objects map[string]*unstructured.Unstructured    // by path
	writes  int
	killAt  int // the write at which the client dies, before it is done; 0: never
}

// inNamespace reports whether objects of a kind are in a namespace, of those that the tests
// know.
func inNamespace(kind string) bool {
	return !strings.HasPrefix(kind, "Cluster") && !strings.Contains(kind, "AdmissionPolicy") && kind != "CustomResourceDefinition"
}

func newCluster(t *testing.T, known ...*unstructured.Unstructured) *cluster {
	t.Helper()
	c := &cluster{kinds: map[string]map[string]metav1.APIResource{}, objects: map[string]*unstructured.Unstructured{}}
	secret := &unstructured.Unstructured{}
	secret.SetAPIVersion("v1")
	secret.SetKind("Secret")
	for _, o := range append(known, secret) {
		plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		if c.kinds[o.GetAPIVersion()] == nil {
			c.kinds[o.GetAPIVersion()] = map[string]metav1.APIResource{}
		}
		c.kinds[o.GetAPIVersion()][plural.Resource] = metav1.APIResource{
			Name: plural.Resource, Kind: o.GetKind(), Namespaced: inNamespace(o.GetKind()),
		}
	}
	c.http = httptest.NewServer(c)
	t.Cleanup(c.http.Close)
	return c
}

func (c *cluster) config() *rest.Config {
	config := &rest.Config{Host: c.http.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return mortal{c, next} })
	return config
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	status, body := c.answer(r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the test's own client
}

// mortal is the connection of a client that dies.
type mortal struct {
	cluster *cluster
	next    http.RoundTripper
}

func (m mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	c := m.cluster
	c.mu.Lock()
	if r.Method != http.MethodGet {
		c.writes++
	}
	dead := c.killAt > 0 && c.writes >= c.killAt
	c.mu.Unlock()
	if dead {
		return nil, errors.New("killed")
	}
	return m.next.RoundTrip(r)
}

func (c *cluster) answer(r *http.Request) (int, any) {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	version, rest := "v1", segments[1:]
	if segments[0] == "apis" && len(segments) >= 3 {
		version, rest = segments[1]+"/"+segments[2], segments[3:]
	} else if len(rest) > 0 {
		rest = rest[1:]
	}
	switch {
	case len(segments) == 1:
		return http.StatusOK, c.versions(segments[0])
	case len(rest) == 0:
		list := metav1.APIResourceList{GroupVersion: version}
		for _, kind := range c.kinds[version] {
			list.APIResources = append(list.APIResources, kind)
		}
		return http.StatusOK, list
	}
	if rest[0] == "namespaces" && len(rest) > 2 {
		rest = rest[2:]
	}
	kind, known := c.kinds[version][rest[0]]
	if !known {
		return failed(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	if len(rest) == 1 {
		return c.collection(r, version, kind.Kind)
	}
	return c.object(r)
}

// versions are the answers of /api and /apis.
func (c *cluster) versions(root string) any {
	if root == "api" {
		return metav1.APIVersions{Versions: []string{"v1"}}
	}
	out := metav1.APIGroupList{}
	for version := range c.kinds {
		if group, v, grouped := strings.Cut(version, "/"); grouped {
			of := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: v}
			out.Groups = append(out.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{of}, PreferredVersion: of})
		}
	}
	return out
}

// collection lists, by the name in a label where there is a selector, or creates.
func (c *cluster) collection(r *http.Request, version, kind string) (int, any) {
	if r.Method == http.MethodGet {
		list := unstructured.UnstructuredList{Object: map[string]any{"apiVersion": version, "kind": kind + "List"}}
		selector := r.FormValue("labelSelector")
		for path, o := range c.objects {
			if strings.HasPrefix(path, r.URL.Path+"/") && (selector == "" || strings.HasSuffix(selector, "name="+o.GetLabels()["name"])) {
				list.Items = append(list.Items, *o)
			}
		}
		return http.StatusOK, list.UnstructuredContent()
	}
	o, err := read(r)
	path := r.URL.Path + "/" + o.GetName()
	if err != nil {
		return failed(http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
	if c.objects[path] != nil {
		return failed(http.StatusConflict, metav1.StatusReasonAlreadyExists)
	}
	c.objects[path] = o
	return http.StatusCreated, o
}

func (c *cluster) object(r *http.Request) (int, any) {
	have := c.objects[r.URL.Path]
	switch {
	case r.Method == http.MethodPatch || r.Method == http.MethodPut && have != nil:
		o, err := read(r)
		if err != nil {
			return failed(http.StatusBadRequest, metav1.StatusReasonBadRequest)
		}
		c.objects[r.URL.Path] = o
		return http.StatusOK, o
	case have == nil:
		return failed(http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodDelete:
		delete(c.objects, r.URL.Path)
	}
	return http.StatusOK, have
}

func read(r *http.Request) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	text, err := io.ReadAll(r.Body)
	return o, errors.Join(err, json.Unmarshal(text, &o.Object))
}

func failed(code int, reason metav1.StatusReason) (int, any) {
	return code, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: string(reason)}
}
