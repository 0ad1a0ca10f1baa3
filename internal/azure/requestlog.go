package azure

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// requestLog writes a line for each request that goes to Azure, and for each one that
// is sent again. A line has the method, the address, the answer's status, Azure's ids of
// the request, and how long the answer took. Bodies and headers hold secrets: tokens,
// and the data that machines boot from. No line has any of them.
type requestLog struct {
	log *slog.Logger
	now func() time.Time
}

// Do writes about one try of a request of the SDK's. The policy belongs behind those
// that let requests wait.
func (l requestLog) Do(request *policy.Request) (*http.Response, error) {
	began := l.now()
	answer, err := request.Next()
	l.write(request.Raw(), answer, err, began)
	return answer, err
}

// loggedTransport writes about requests that do not go through the SDK's policies.
type loggedTransport struct {
	requestLog
	next policy.Transporter
}

// Do sends one request.
func (t loggedTransport) Do(request *http.Request) (*http.Response, error) {
	began := t.now()
	answer, err := t.next.Do(request)
	t.write(request, answer, err, began)
	return answer, err
}

func (l requestLog) write(request *http.Request, answer *http.Response, err error, began time.Time) {
	line := []any{"method", request.Method, "url", withoutSecrets(request.URL), "took", l.now().Sub(began)}
	if id := request.Header.Get("X-Ms-Client-Request-Id"); id != "" {
		line = append(line, "clientRequestID", id)
	}
	if err != nil {
		l.log.Info("Azure did not answer a request", append(line, "error", reason(err))...)
		return
	}
	line = append(line, "status", answer.StatusCode)
	for _, header := range []struct{ name, key string }{
		{"X-Ms-Request-Id", "requestID"}, {"X-Ms-Correlation-Request-Id", "correlationID"}, {"Retry-After", "retryAfter"},
	} {
		if value := answer.Header.Get(header.name); value != "" {
			line = append(line, header.key, value)
		}
	}
	l.log.Info("Azure answered a request", line...)
}

// reason is what went wrong. The errors of HTTP clients repeat the address as it was.
func reason(err error) string {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return err.Error()
}

// withoutSecrets is an address whose query has no value but the API's version: signatures
// and tokens are given there.
func withoutSecrets(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	query := u.Query()
	for name := range query {
		if !strings.EqualFold(name, "api-version") {
			query.Set(name, "REDACTED")
		}
	}
	shown.RawQuery = query.Encode()
	return shown.String()
}
