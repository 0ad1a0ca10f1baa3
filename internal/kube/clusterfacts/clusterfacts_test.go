package clusterfacts

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

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
	// This server has no Deployments and no definitions: that is no knowledge.
	if f.Unread[prerequisites.SourceDeployments] == "" || f.Unread[prerequisites.SourceTokens] == "" {
		t.Errorf("unread: %v", f.Unread)
	}
}
