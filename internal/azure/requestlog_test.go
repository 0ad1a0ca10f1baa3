package azure

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// sender answers or fails as a test wants.
type sender func(*http.Request) (*http.Response, error)

func (s sender) Do(r *http.Request) (*http.Response, error) { return s(r) }

// Addresses with signatures and tokens, headers and errors that repeat an address show
// no secret, and what is not secret is there.
func TestRequestLogShowsNoSecret(t *testing.T) {
	const address = "https://user:pass-secret@store.test/console/log.txt?sv=2021&sig=sig-secret&api-version=2024-01-01"
	for _, c := range []struct {
		name string
		send sender
		want []string
	}{
		{"answer", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{
				"X-Ms-Request-Id": {"r-1"}, "X-Ms-Correlation-Request-Id": {"c-1"}, "Retry-After": {"7"},
				"Location": {"https://store.test/?t=header-secret"}, "Set-Cookie": {"header-secret"},
			}}, nil
		}, []string{"status=403", "requestID=r-1", "correlationID=c-1", "retryAfter=7", "took=2s"}},
		{"no answer", func(r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("send: %w", &url.Error{Op: "Get", URL: r.URL.String(), Err: errors.New("connection refused")})
		}, []string{"connection refused", "took=2s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			at := time.Unix(0, 0)
			now := func() time.Time { at = at.Add(2 * time.Second); return at }
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer header-secret")
			request.Header.Set("X-Ms-Client-Request-Id", "mine")
			log := loggedTransport{requestLog{slog.New(slog.NewTextHandler(&out, nil)), now}, c.send}
			if answer, err := log.Do(request); err == nil && answer.Body != nil {
				_ = answer.Body.Close()
			}
			for _, want := range append(c.want, "method=GET", "https://store.test/console/log.txt", "api-version=2024-01-01", "clientRequestID=mine") {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in %s", want, out.String())
				}
			}
			if strings.Contains(out.String(), "secret") {
				t.Errorf("a secret is in %s", out.String())
			}
		})
	}
}
