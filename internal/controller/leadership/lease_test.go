package leadership

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// clocks are both clocks of a lease, which a test sets.
type clocks struct{ at moment }

func testLease() (*Lease, *clocks) {
	c := &clocks{moment{time.Hour, time.Unix(1e9, 0)}}
	l := NewLease(Default())
	l.now = func() moment { return c.at }
	return l, c
}

func TestLeaseIsHeldUntilTheDeadlineOfItsRenewal(t *testing.T) {
	for name, c := range map[string]struct {
		boot, wall time.Duration
		held       bool
	}{
		"at once":                         {0, 0, true},
		"as long as renewals are tried":   {6 * time.Second, 6 * time.Second, true},
		"stopped by a signal":             {7 * time.Second, 7 * time.Second, false},
		"suspended, by the boot clock":    {time.Minute, 0, false},
		"paused, by the wall clock alone": {0, time.Minute, false},
		"wall clock set back":             {7 * time.Second, -time.Hour, false},
		"wall clock set back, renewed":    {time.Second, -time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := testLease()
			if l.Held() == nil {
				t.Error("the lease is held before it was ever renewed")
			}
			l.renew(now.at)
			now.at = moment{now.at.boot + c.boot, now.at.wall.Add(c.wall)}
			if err := l.Held(); (err == nil) != c.held {
				t.Errorf("held: %v, want %v", err, c.held)
			}
			l.giveBack()
			if l.Held() == nil {
				t.Error("the lease is held although it was given back")
			}
		})
	}
	if (*Lease)(nil).Held() != nil {
		t.Error("without an election nothing is refused")
	}
}

// The others see the last renewal late by what they wait between two looks at the lease,
// and take it late by as much.
func TestDefaultElectionEndsWithin20Seconds(t *testing.T) {
	e := Default()
	longestPause := time.Duration(float64(e.RetryPeriod) * (1 + leaderelection.JitterFactor))
	if worst := e.LeaseDuration + 2*longestPause; worst > 15*time.Second {
		t.Errorf("another replica may lead %s after the last renewal only", worst)
	}
}

func TestLeaderStopsWritingWellBeforeItsLeaseIsTaken(t *testing.T) {
	for _, c := range []struct{ e, renew, want time.Duration }{
		{15 * time.Second, 10 * time.Second, 10 * time.Second},
		{15 * time.Second, 14 * time.Second, 10 * time.Second},
		{60 * time.Second, 10 * time.Second, 10 * time.Second},
	} {
		if got := (Election{LeaseDuration: c.e, RenewDeadline: c.renew}).WritesWithin(); got != c.want {
			t.Errorf("a lease of %s with deadline %s: writes for %s, want %s", c.e, c.renew, got, c.want)
		}
	}
}

func TestRealClocksGoOn(t *testing.T) {
	l := NewLease(Election{LeaseDuration: 30 * time.Millisecond, RenewDeadline: 20 * time.Millisecond})
	l.renew(l.now())
	if err := l.Held(); err != nil {
		t.Errorf("right after the renewal: %v", err)
	}
	time.Sleep(50 * time.Millisecond)
	var no *NotHeldError
	if err := l.Held(); !errors.As(err, &no) || no.Ago < 40*time.Millisecond {
		t.Errorf("after 50 ms: %v", err)
	}
}

func TestRenewalIsWhatTheAPIServerHasAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		slow               time.Duration
		held               bool
	}{
		"renewed":                      {http.MethodPut, "/leases/nap", `{"spec":{"holderIdentity":"a"}}`, 200, 0, true},
		"created":                      {http.MethodPost, "/leases", `{"spec":{"holderIdentity":"a"}}`, 201, 0, true},
		"refused":                      {http.MethodPut, "/leases/nap", `{"spec":{"holderIdentity":"a"}}`, 409, 0, false},
		"read":                         {http.MethodGet, "/leases/nap", "", 200, 0, false},
		"given back":                   {http.MethodPut, "/leases/nap", `{"spec":{"holderIdentity":""}}`, 200, 0, false},
		"event about it":               {http.MethodPost, "/events", `{"kind":"Event"}`, 201, 0, false},
		"answered after its deadline":  {http.MethodPut, "/leases/nap", `{"spec":{"holderIdentity":"a"}}`, 200, 7 * time.Second, false},
		"answered before its deadline": {http.MethodPut, "/leases/nap", `{"spec":{"holderIdentity":"a"}}`, 200, 6 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := testLease()
			got := ""
			transport := l.WatchRenewals(roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Body != nil {
					body, _ := io.ReadAll(r.Body)
					got = string(body)
				}
				now.at = moment{now.at.boot + c.slow, now.at.wall.Add(c.slow)}
				return &http.Response{StatusCode: c.status, Body: http.NoBody}, nil
			}))
			req := httptest.NewRequest(c.method, "http://server/apis/coordination.k8s.io/v1/namespaces/nap"+c.path, strings.NewReader(c.body))
			answer, err := transport.RoundTrip(req)
			if err != nil || answer.StatusCode != c.status || got != c.body {
				t.Errorf("the request came as %q, %v", got, err)
			}
			if err := l.Held(); (err == nil) != c.held {
				t.Errorf("held: %v, want %v", err, c.held)
			}
		})
	}
}

// Every way to write is refused; reading is not.
func TestClientWritesAsTheLeaderAlone(t *testing.T) {
	l, now := testLease()
	c := l.Client(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build())
	ctx := t.Context()
	m := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m"}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	patch := client.MergeFrom(m())
	for name, write := range map[string]func() error{
		"create": func() error { return c.Create(ctx, m()) }, "update": func() error { return c.Update(ctx, m()) },
		"patch": func() error { return c.Patch(ctx, m(), patch) }, "delete": func() error { return c.Delete(ctx, m()) },
		"apply":         func() error { return c.Apply(ctx, nil) },
		"delete all":    func() error { return c.DeleteAllOf(ctx, m()) },
		"status update": func() error { return c.Status().Update(ctx, pod) },
		"status patch":  func() error { return c.Status().Patch(ctx, pod, patch) },
		"status create": func() error { return c.Status().Create(ctx, pod, pod) },
		"status apply":  func() error { return c.Status().Apply(ctx, nil) },
		"eviction":      func() error { return c.SubResource("eviction").Create(ctx, pod, pod) },
	} {
		var no *NotHeldError
		if err := write(); !errors.As(err, &no) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
	l.renew(now.at)
	if err := c.Create(ctx, m()); err != nil {
		t.Errorf("the leader cannot write: %v", err)
	}
	now.at.boot += time.Minute
	if err := c.Get(ctx, client.ObjectKeyFromObject(m()), m()); err != nil {
		t.Errorf("reading: %v", err)
	}
}

// A write that waited in a queue is refused when it leaves it.
func TestGuardRefusesMarkedRequestsAtTheLastMoment(t *testing.T) {
	l, now := testLease()
	sent := 0
	guarded := l.Guard(roundTripper(func(*http.Request) (*http.Response, error) {
		sent++
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	plain := httptest.NewRequest(http.MethodPost, "http://server/tokenreviews", nil)
	write := plain.WithContext(mark(plain.Context()))
	for _, step := range []struct {
		req  *http.Request
		then func()
		sent int
	}{{plain, nil, 1}, {write, nil, 1}, {write, func() { l.renew(now.at) }, 2}, {write, func() { now.at.boot += time.Minute }, 2}} {
		if step.then != nil {
			step.then()
		}
		if answer, err := guarded.RoundTrip(step.req); err == nil {
			_ = answer.Body.Close()
		}
		if sent != step.sent {
			t.Errorf("%d requests were sent, want %d", sent, step.sent)
		}
	}
}
