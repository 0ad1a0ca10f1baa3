package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// send is a request of another client in the subscription, which succeeds.
func (w *world) send(t *testing.T, method, resource, body string) int {
	t.Helper()
	status, text := w.ask(t, method, resource, body)
	if status >= 300 {
		t.Fatalf("%s %s: %d %s", method, resource, status, text)
	}
	return status
}

// ask is a request of another client in the subscription.
func (w *world) ask(t *testing.T, method, resource, body string) (status int, text string) {
	t.Helper()
	token, err := w.Credential.GetToken(t.Context(), policy.TokenRequestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method,
		armtest.Endpoint+"/subscriptions/"+w.SubscriptionID+"/resourceGroups/"+w.NodeResourceGroup+
			"/providers/"+resource+"?api-version="+apiVersion(resource), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token.Token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := w.HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(raw)
}

// apiVersion is one that the resource's provider takes.
func apiVersion(resource string) string {
	if strings.HasPrefix(resource, "Microsoft.Network") {
		return "2025-05-01"
	}
	return "2025-04-01"
}

// get reads a resource of the node resource group.
func (w *world) get(t *testing.T, resource string) string {
	t.Helper()
	status, text := w.ask(t, http.MethodGet, resource, "")
	if status != http.StatusOK {
		t.Fatalf("read %s: %d %s", resource, status, text)
	}
	return text
}

// machine is a request for an AKS machine by another client in the subscription.
func (w *world) machine(t *testing.T, method, name, body string) string {
	t.Helper()
	token, err := w.Credential.GetToken(t.Context(), policy.TokenRequestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method,
		armtest.Endpoint+w.Server.ClusterID()+"/agentPools/machines/machines/"+name+"?api-version=2026-04-02-preview", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token.Token)
	answer, err := armtest.Around(w.Server).HTTP.Do(r)
	if err != nil || answer.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s machine %s: %v, %v", method, name, answer, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// loseTags takes all tags off a resource, as a policy or a person may.
func (w *world) loseTags(t *testing.T, resource string) {
	t.Helper()
	w.send(t, http.MethodPatch, resource, `{"tags": {"cost-center": "4711"}}`)
}

// retag replaces the tags of an AKS machine.
func (w *world) retag(t *testing.T, name string, tags map[string]string) {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(w.machine(t, http.MethodGet, name, "")), &m); err != nil {
		t.Fatal(err)
	}
	m["properties"].(map[string]any)["tags"] = tags
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	w.machine(t, http.MethodPut, name, string(body))
}

// roundTrip is a transport made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answerWith is an answer to a request.
func answerWith(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}
}

var errKilled = errors.New("killed")

// killAfter is a transport that dies after a matching request was served.
type killAfter struct {
	http.RoundTripper
	method, path string
	kill         context.CancelCauseFunc
}

func (k *killAfter) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := k.RoundTripper.RoundTrip(r)
	if r.Method == k.method && strings.Contains(strings.ToLower(r.URL.Path), k.path) {
		k.kill(errKilled)
		return nil, errKilled
	}
	return answer, err
}

// puts counts the machines' PUT calls.
type puts struct {
	http.RoundTripper
	n atomic.Int64
}

func (p *puts) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/machines/") {
		p.n.Add(1)
	}
	return p.RoundTripper.RoundTrip(r)
}

// changes counts the calls that change a resource, by its kind: PATCH, and for AKS
// machines, which have none, PUT with If-Match.
type changes struct {
	http.RoundTripper
	mu sync.Mutex
	n  map[string]int
}

func (p *changes) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch || r.Method == http.MethodPut && r.Header.Get("If-Match") != "" {
		parts := strings.Split(strings.ToLower(r.URL.Path), "/")
		p.mu.Lock()
		p.n[parts[len(parts)-2]]++
		p.mu.Unlock()
	}
	return p.RoundTripper.RoundTrip(r)
}

func (p *changes) take() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.n
	p.n = map[string]int{}
	return out
}
