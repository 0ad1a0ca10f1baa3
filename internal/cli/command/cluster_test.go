package command

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// slow is an API server whose answers begin after a while, and take a while to be read.
type slow struct{ begin, reading time.Duration }

// RoundTrip implements http.RoundTripper.
func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-time.After(s.begin):
		return &http.Response{Body: io.NopCloser(slowBody{r, s.reading})}, nil
	}
}

// slowBody is an answer that ends after a while.
type slowBody struct {
	request *http.Request
	reading time.Duration
}

func (b slowBody) Read([]byte) (int, error) {
	select {
	case <-b.request.Context().Done():
		return 0, b.request.Context().Err()
	case <-time.After(b.reading):
		return 0, io.EOF
	}
}

// An answer has to begin in time; a long one, such as a list of many pods, is read to its end.
func TestAnswersHaveToBeginInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(s slow) error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server", nil)
			if err != nil {
				return err
			}
			response, err := bounded{t.Context(), requestTimeout, s}.RoundTrip(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			_, err = io.ReadAll(response.Body)
			return err
		}
		if err := ask(slow{requestTimeout - time.Second, 10 * time.Minute}); err != nil {
			t.Errorf("a long answer: %v", err)
		}
		if err := ask(slow{requestTimeout + time.Second, 0}); !utilnet.IsTimeout(err) {
			t.Errorf("a late answer: %v, want a timeout", err)
		}
	})
}

// A kubeconfig without a current context is found, and the error names the contexts.
func TestKubeconfigWithoutCurrentContextIsFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
"contexts": [{"name": "prod", "context": {"cluster": "c"}}, {"name": "dev", "context": {"cluster": "c"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	if c := (&Cluster{}); !c.Found() {
		t.Error("the kubeconfig is not found")
	}
	const want = "the kubeconfig has no current context: choose one with --context: dev, prod"
	for name, c := range map[string]*Cluster{"KUBECONFIG": {}, "--kubeconfig": {Kubeconfig: file}} {
		if _, err := c.Config(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	if config, err := (&Cluster{Context: "dev"}).Config(t.Context()); err != nil || config.Host != "https://127.0.0.1:1" {
		t.Errorf("with --context: %v, %v", config, err)
	}
}
