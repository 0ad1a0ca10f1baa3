package cli

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bundleOf writes the bundle of a patient and opens it.
func bundleOf(t *testing.T, p *patient, args ...string) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "support.tar.gz")
	if _, _, code := p.examine(append([]string{"-o", "text", "--bundle", path}, args...)...); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if err := writeBundle(t.Context(), path, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "not there yet") {
		t.Errorf("overwritten: %v", err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "nap-support/")] = string(raw)
	}
}

// plantedSecrets are texts with a secret, of which the word swordfish is a part.
func plantedSecrets() []string {
	return []string{
		"{\"password\":\"sword swordfish\",\"zone\":\"1\"}", "Authorization: Bearer swordfish", "token: swordfish", "clientSecret=swordfish",
		"client-key-data: swordfish", "https://acc.blob.core.windows.net/c/b?sv=1&sig=swordfish%3D&se=2", "AccountKey=swordfish==;EndpointSuffix=x",
		"SharedAccessKey=swordfish=", "http://me:a swordfish@proxy:3128", "me:a/swordfish@proxy:3128", "swordfish@proxy:3128",
		"-----BEGIN PRIVATE KEY-----\nswordfish\n-----END PRIVATE KEY-----", "eyJhbGciOiJSUzI1NiJ9.swordfish.swordfish",
		"-----BEGIN CERTIFICATE-----\nswordfish\n-----END CERTIFICATE-----",
	}
}

// TestBundleHasNoSecrets plants secrets into what a bundle is made of, and opens it.
func TestBundleHasNoSecrets(t *testing.T) {
	p := healthy(t)
	p.says(`{"httpProxyConfig": {"httpProxy": "http://me:swordfish@proxy:3128", "httpsProxy": "https://swordfish@proxy:3129"}}`)
	annotations := map[string]any{"shop/color": "blue"}
	var events []any
	var log strings.Builder
	for i, text := range plantedSecrets() {
		quoted, err := json.Marshal(map[string]string{"m": text})
		if err != nil {
			t.Fatal(err)
		}
		annotations[fmt.Sprintf("shop/a%d", i)], annotations[fmt.Sprintf("shop/b%d", i)] = text, string(quoted)
		events = append(events, map[string]any{"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": fmt.Sprintf("e%d", i), "namespace": "shop"},
			"reason": "Planted", "message": strings.Repeat("a long text ", 8) + text})
		line, err := json.Marshal(map[string]string{"level": "info", "msg": "got " + string(quoted), "error": text, "zone": "eastus-1"})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&log, "%s\n", line)
	}
	pool := map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "general", "annotations": annotations}}
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "nap-1", "namespace": "nap-system"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		items, found := map[string][]any{"/apis/karpenter.sh/v1/nodepools": {pool}, "/api/v1/events": events, "/api/v1/pods": {pod}}[r.URL.Path]
		switch {
		case r.URL.Path == "/api/v1/namespaces/nap-system/pods/nap-1/log":
			_, _ = io.WriteString(w, log.String())
		case !found:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "no such token: swordfish", "code": 404}`)
		default:
			if err := json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "PodList", "metadata": map[string]any{}, "items": items}); err != nil {
				t.Error(err)
			}
		}
	}))
	defer server.Close()
	files := bundleOf(t, p, "--kubeconfig", kubeconfigOf(t, server.URL))
	for name, text := range files {
		if at := strings.Index(text, "swordfish"); at >= 0 {
			t.Errorf("%s has a secret: %s", name, text[max(0, at-100):at+len("swordfish")])
		}
	}
	for name, want := range map[string]string{
		"report.txt": "httpProxy http://***@proxy:3128, httpsProxy https://***@proxy:3129", "read/cluster.json": "https://***@proxy:3129",
		"objects/nodepools.yaml": "shop/color: blue", "objects/events.yaml": "reason: Planted",
		"logs/nap-system_nap-1.log": `"zone":"eastus-1"`, "left-out.txt": "aksnodeclasses: ",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s lacks %q:\n%s", name, want, files[name])
		}
	}
	for line := range strings.Lines(files["logs/nap-system_nap-1.log"]) {
		if !json.Valid([]byte(line)) || !strings.Contains(line, "***") {
			t.Errorf("a line of the log became %s", line)
		}
	}
}
