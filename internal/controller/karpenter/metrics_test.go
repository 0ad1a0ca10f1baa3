package karpenter

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// reviews is an API server that knows the token "reader", which may read everything.
func reviews(t *testing.T) *rest.Config {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var answer any
		if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
			answer = authenticationv1.TokenReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"},
				Status:   authenticationv1.TokenReviewStatus{Authenticated: strings.Contains(string(body), "reader")},
			}
		} else {
			answer = authorizationv1.SubjectAccessReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
				Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: true},
			}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

func TestSecureMetricsNeedTLSAndAToken(t *testing.T) {
	options := metricsServer(ManagerConfig{MetricsBindAddress: "127.0.0.1:0", SecureMetrics: true}, true)
	s, err := server.NewServer(options, reviews(t), http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	address := func() string {
		a, _ := s.(interface{ GetBindAddr() string })
		return a.GetBindAddr()
	}
	for range 100 {
		if address() != "" {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // its own certificate
	for _, c := range []struct {
		scheme, path, token string
		want                int
	}{
		{"http", "/metrics", "reader", http.StatusBadRequest},
		{"https", "/metrics", "", http.StatusUnauthorized},
		{"https", "/metrics", "unknown", http.StatusUnauthorized},
		{"https", "/debug/pprof/cmdline", "", http.StatusUnauthorized},
		{"https", "/metrics", "reader", http.StatusOK},
		{"https", "/debug/pprof/cmdline", "reader", http.StatusOK},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.scheme+"://"+address()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %s with token %q: %d, want %d", c.scheme, c.path, c.token, resp.StatusCode, c.want)
		}
	}
}
