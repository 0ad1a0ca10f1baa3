package ratelimit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// Limiter is a policy of the SDK that every try of every request goes through. It
// is safe for concurrent use.
type Limiter struct {
	now     func() time.Time
	limits  []Limit
	breaker *CircuitBreaker
	timeout time.Duration

	mu      sync.Mutex
	buckets map[string]*bucket
	sweepAt int // how many buckets there may be before idle ones are dropped
	queue   []*waiter
	timer   *time.Timer
}

// waiter is a request that has not been sent yet, or has no answer yet.
type waiter struct {
	rank    int
	buckets []*bucket
	numbers []uint64 // its numbers in the buckets, once it may go
	granted chan struct{}
}

// fewBuckets are kept without looking whether they are still needed.
const fewBuckets = 256

// New returns a limiter for a subscription with these limits, which tells the
// circuit breaker how every request ended. A try that Azure has not answered after the
// timeout is given up. The SDK's own timeout must be off, since it would count
// the time in the queue.
func New(limits []Limit, breaker *CircuitBreaker, timeout time.Duration, now func() time.Time) *Limiter {
	return &Limiter{now: now, limits: limits, breaker: breaker, timeout: timeout, buckets: map[string]*bucket{}, sweepAt: fewBuckets}
}

// Do implements policy.Policy.
func (l *Limiter) Do(request *policy.Request) (*http.Response, error) {
	raw := request.Raw()
	w, err := l.admit(raw.Context(), raw.Method, raw.URL.Path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(raw.Context(), l.timeout)
	answer, err := request.Clone(ctx).Next()
	if answer != nil && answer.Body != nil {
		// The body is still to be read; its end is the end of the try.
		answer.Body = &body{answer.Body, cancel}
	} else {
		cancel()
	}
	l.answered(w, answer)
	var withheld *Withheld
	if raw.Context().Err() != nil || errors.As(err, &withheld) {
		return answer, err
	}
	if outage := l.breaker.observe(raw.Method, raw.URL.Path, answer, err); outage != nil {
		if err == nil {
			runtime.Drain(answer)
		}
		return nil, outage
	}
	if err == nil && aboutMachines(answer) {
		return nil, &Settled{runtime.NewResponseError(answer)}
	}
	return answer, err
}

// Settled is an answer with the status of a server's fault that is none: it says
// what has become of what was asked for, and the same again would have the same
// answer. It wraps the SDK's error.
type Settled struct{ err error }

// Error is the SDK's.
func (s *Settled) Error() string { return s.err.Error() }

// Unwrap gives the SDK's error.
func (s *Settled) Unwrap() error { return s.err }

// NonRetriable tells the SDK not to try again by itself.
func (s *Settled) NonRetriable() {}

// aboutMachines reports whether a server's fault is what AKS says of the machines
// of a batch, each with its own reason.
func aboutMachines(answer *http.Response) bool {
	if answer == nil || answer.StatusCode != http.StatusInternalServerError {
		return false
	}
	body, err := runtime.Payload(answer) // the SDK reads it again from memory
	return err == nil && strings.Contains(string(body), `"BatchMachineInternalServerError"`)
}

// body cancels the context of a try when it is closed.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// admit waits until the request may be sent.
func (l *Limiter) admit(ctx context.Context, method, path string) (*waiter, error) {
	l.mu.Lock()
	w := &waiter{rank: rankOf(method, path), buckets: l.bucketsOf(method, path), granted: make(chan struct{})}
	at := len(l.queue)
	for at > 0 && l.queue[at-1].rank > w.rank {
		at--
	}
	l.queue = slices.Insert(l.queue, at, w)
	l.dispatch()
	l.mu.Unlock()
	select {
	case <-w.granted:
		return w, nil
	default:
	}
	select {
	case <-w.granted:
		return w, nil
	case <-ctx.Done():
		l.leave(w)
		return nil, ctx.Err()
	}
}

// leave takes a request that is no longer wanted out of the queue.
func (l *Limiter) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, w); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		return
	}
	w.land()
}

// land says that the request is not in flight any more.
func (w *waiter) land() {
	for i, b := range w.buckets {
		delete(b.inFlight, w.numbers[i])
	}
}

// bucketsOf finds or makes the buckets of a request. The caller holds mu.
func (l *Limiter) bucketsOf(method, path string) []*bucket {
	manager, provider := classes(method, path)
	now := l.now()
	var out []*bucket
	for _, limit := range l.limits {
		if limit.Class != manager && limit.Class != provider {
			continue
		}
		id := limit.Class
		if limit.PerResource {
			id += " " + resourceOf(path)
		}
		out = append(out, l.bucket(id, limit, now))
	}
	if kind := unpublishedKind(manager, path); provider == "" && kind != "" {
		out = append(out, l.bucket(kind, unlimited(kind), now))
	}
	return out
}

// bucket finds or makes a bucket. The caller holds mu.
func (l *Limiter) bucket(id string, limit Limit, now time.Time) *bucket {
	b := l.buckets[id]
	if b == nil {
		l.sweep(now)
		b = newBucket(limit, now)
		l.buckets[id] = b
	}
	return b
}

// resourceOf is the machine that a path is about.
func resourceOf(path string) string {
	path = strings.ToLower(path)
	const marker = "/virtualmachines/"
	i := strings.Index(path, marker)
	if i < 0 {
		return path
	}
	name, _, _ := strings.Cut(path[i+len(marker):], "/")
	return path[:i+len(marker)] + name
}

// sweep drops buckets of single resources that are as good as new ones. Requests
// that wait keep theirs. The caller holds mu.
func (l *Limiter) sweep(now time.Time) {
	if len(l.buckets) < l.sweepAt {
		return
	}
	wanted := map[*bucket]bool{}
	for _, w := range l.queue {
		for _, b := range w.buckets {
			wanted[b] = true
		}
	}
	for id, b := range l.buckets {
		if b.limit.PerResource && b.idle(now) && !wanted[b] {
			delete(l.buckets, id)
		}
	}
	l.sweepAt = max(fewBuckets, 2*len(l.buckets))
}

// dispatch lets pass, in the order of the queue, all requests whose buckets
// have a token, and sets the timer for the next one. The caller holds mu.
func (l *Limiter) dispatch() {
	now := l.now()
	next := time.Duration(-1)
	kept := l.queue[:0]
	for _, w := range l.queue {
		wait := time.Duration(0)
		for _, b := range w.buckets {
			wait = max(wait, b.ready(now))
		}
		if wait > 0 {
			kept = append(kept, w)
			if next < 0 || wait < next {
				next = wait
			}
			continue
		}
		for _, b := range w.buckets {
			w.numbers = append(w.numbers, b.take())
		}
		close(w.granted)
	}
	clear(l.queue[len(kept):])
	l.queue = kept
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if next >= 0 {
		l.timer = time.AfterFunc(next, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.dispatch()
		})
	}
}

// answered learns from Azure's answer, which is nil when there was none.
func (l *Limiter) answered(w *waiter, answer *http.Response) {
	var left map[string]float64
	var pause time.Duration
	var manager bool
	refused := answer != nil && answer.StatusCode == http.StatusTooManyRequests
	if refused {
		pause = retryAfter(answer, l.now())
		body, err := runtime.Payload(answer) // the SDK reads it again from memory
		manager = err == nil && strings.Contains(string(body), "SubscriptionRequestsThrottled") || exhausted(answer.Header)
	} else if answer != nil {
		left = remaining(answer.Header)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w.land()
	now := l.now()
	for i, b := range w.buckets {
		switch n, said := left[b.limit.Class]; {
		case refused:
			if l.blames(w, b, manager) {
				b.refused(now, pause)
			}
		case answer == nil || b.limit.PerResource:
		case said:
			b.remaining(w.numbers[i], n)
		case !b.learned:
			// This API does not say what is left; the published figure holds.
			b.learned = true
			b.level = b.limit.Burst - float64(b.started)
		}
	}
	l.dispatch()
}

// exhausted reports whether Resource Manager says that it grants no more requests of a kind.
func exhausted(h http.Header) bool {
	left := remaining(h)
	return slices.ContainsFunc(managerClasses(), func(class string) bool { n, said := left[class]; return said && n == 0 })
}

// blames decides whether a refusal speaks of this bucket of the request. Azure
// says whether it is Resource Manager's. Of a provider's, one machine may have
// been asked about too often while the subscription has plenty left. A provider without
// published limits has a bucket for each kind of request, so that its refusal holds no
// request to others.
func (l *Limiter) blames(w *waiter, b *bucket, manager bool) bool {
	isManager := slices.Contains(managerClasses(), b.limit.Class)
	if manager || len(w.buckets) == 1 {
		return isManager
	}
	if isManager {
		return false
	}
	const plenty = 0.5
	single := func() bool {
		for _, other := range w.buckets {
			if other.limit.PerResource {
				return true
			}
		}
		return false
	}
	return b.limit.PerResource || !single() || b.level < plenty*b.limit.Burst
}

const (
	headerSubscription = "X-Ms-Ratelimit-Remaining-Subscription-"
	headerResource     = "X-Ms-Ratelimit-Remaining-Resource"
)

// window ends the name of a provider's policy that counts in windows, such as
// PutVM3Min.
var window = regexp.MustCompile(`[0-9]+(Min|Sec|Hour)$`)

// remaining reads how many requests of each class Azure still grants. Of several
// windows of one class the tightest counts.
func remaining(h http.Header) map[string]float64 {
	out := map[string]float64{}
	for _, class := range managerClasses() {
		if n, err := strconv.ParseFloat(h.Get(headerSubscription+class), 64); err == nil && n >= 0 {
			out[class] = n
		}
	}
	for entry := range strings.SplitSeq(h.Get(headerResource), ",") {
		policy, count, ok := strings.Cut(strings.TrimSpace(entry), ";")
		n, err := strconv.ParseFloat(count, 64)
		if !ok || err != nil || n < 0 {
			continue
		}
		class := window.ReplaceAllString(policy[strings.LastIndex(policy, "/")+1:], "")
		if known, twice := out[class]; !twice || n < known {
			out[class] = n
		}
	}
	return out
}

// longestPause bounds what an answer can make all requests wait: Azure's windows are
// five minutes long at most.
const longestPause = 10 * time.Minute

// retryAfter is how long Azure asks to wait, a second if it does not say.
func retryAfter(answer *http.Response, now time.Time) time.Duration {
	limited := func(n int, unit time.Duration) time.Duration {
		return time.Duration(min(n, int(longestPause/unit))) * unit
	}
	for _, header := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if n, err := strconv.Atoi(answer.Header.Get(header)); err == nil && n >= 0 {
			return limited(n, time.Millisecond)
		}
	}
	text := answer.Header.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return limited(n, time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		sent, err := http.ParseTime(answer.Header.Get("Date"))
		if err != nil {
			sent = now // then clocks have to agree
		}
		if at.After(sent) {
			return min(at.Sub(sent), longestPause)
		}
	}
	return time.Second
}
