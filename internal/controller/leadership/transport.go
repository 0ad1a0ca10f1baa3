package leadership

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// WatchRenewals wraps the transport of the election's client. What it sends renews the
// lease when it succeeds.
func (l *Lease) WatchRenewals(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if !writes(req.Method) || !strings.Contains(req.URL.Path, "/leases") {
			return next.RoundTrip(req)
		}
		holder, err := holderOf(req)
		if err != nil {
			return nil, err
		}
		if holder == "" {
			l.giveBack()
			return next.RoundTrip(req)
		}
		begun := l.now()
		answer, err := next.RoundTrip(req)
		if err == nil && answer.StatusCode < http.StatusMultipleChoices {
			l.renew(begun)
		}
		return answer, err
	})
}

// holderOf reads who holds a lease by the request that writes it, and leaves the
// request as it was.
func holderOf(req *http.Request) (string, error) {
	if req.Body == nil {
		return "", nil
	}
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return "", fmt.Errorf("reading what is written on the lease: %w", err)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	var lease coordinationv1.Lease
	if err := json.Unmarshal(body, &lease); err != nil {
		return "", fmt.Errorf("reading what is written on the lease: %w", err)
	}
	if lease.Spec.HolderIdentity == nil {
		return "", nil
	}
	return *lease.Spec.HolderIdentity, nil
}

// Guard wraps the transport of a client whose writes are marked, see [Lease.Client]. It
// refuses them at the last moment before they are sent, behind all queues.
func (l *Lease) Guard(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if marked(req.Context()) {
			if err := l.Held(); err != nil {
				return nil, err
			}
		}
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

func writes(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

type markKey struct{}

// mark says that a request with this context is a write of the leader.
func mark(ctx context.Context) context.Context { return context.WithValue(ctx, markKey{}, true) }

func marked(ctx context.Context) bool { return ctx.Value(markKey{}) != nil }
