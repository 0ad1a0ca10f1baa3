package ratelimit

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// An API is out once it has failed this often in a row, for this long. A single
	// request that the SDK repeats gets there in about twelve seconds.
	failuresToOpen = 5
	failingFor     = 10 * time.Second
	// firstProbe doubles up to lastProbe: how long no launch is tried.
	firstProbe = 2 * time.Second
	lastProbe  = 15 * time.Second
	// forgetAfter is when an outage that no request has met again is believed over.
	forgetAfter = 5 * time.Minute
)

// Outage says that an API of Azure does not answer, so that nothing is launched.
type Outage struct {
	// API is what fails: a resource provider, and whether it is read or written.
	API string
	// Since is the first failure of the row, Retry when it is tried again.
	Since, Retry time.Time
	// Detail is the last failure.
	Detail string
}

// Error says what is out, since when, and when it is tried again.
func (o *Outage) Error() string {
	return fmt.Sprintf("Azure does not answer: %s has failed since %s (%s); no machine is launched, the next try is at %s",
		o.API, o.Since.UTC().Format(time.RFC3339), o.Detail, o.Retry.UTC().Format(time.RFC3339))
}

// NonRetriable tells the SDK not to try again by itself.
func (o *Outage) NonRetriable() {}

// CircuitBreaker knows which of Azure's APIs are out. It is safe for concurrent use.
type CircuitBreaker struct {
	now func() time.Time

	mu     sync.Mutex
	apis   map[string]*health
	jitter *rand.Rand
}

// health is the present row of failures of an API.
type health struct {
	failures    int
	first, last time.Time
	detail      string
	open        bool
	retry       time.Time
	pause       time.Duration
}

// NewCircuitBreaker returns a circuit breaker that has seen no failure.
func NewCircuitBreaker(now func() time.Time) *CircuitBreaker {
	seed := uint64(now().UnixNano())            //nolint:gosec // any number will do
	jitter := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // it spreads requests, it keeps no secret
	return &CircuitBreaker{now: now, apis: map[string]*health{}, jitter: jitter}
}

// Allow says whether a launch may begin: nil, or the *Outage that forbids it.
// During an outage it lets one launch pass now and then, to find out.
func (b *CircuitBreaker) Allow() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.forget(now)
	var blocking *Outage
	var due []*health
	for api, h := range b.apis {
		switch {
		case !h.open:
		case now.Before(h.retry):
			if o := h.outage(api); blocking == nil || o.Since.Before(blocking.Since) {
				blocking = o
			}
		default:
			due = append(due, h)
		}
	}
	if blocking != nil {
		return blocking
	}
	for _, h := range due {
		h.pause = min(2*h.pause, lastProbe)
		// Jitter keeps several controllers of a region from asking in step.
		h.retry = now.Add(h.pause*4/5 + time.Duration(b.jitter.Int64N(int64(h.pause*2/5))))
	}
	return nil
}

// Outages lists what is out at the moment, by name.
func (b *CircuitBreaker) Outages() []Outage {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(b.now())
	var out []Outage
	for api, h := range b.apis {
		if h.open {
			out = append(out, *h.outage(api))
		}
	}
	slices.SortFunc(out, func(x, y Outage) int { return cmp.Compare(x.API, y.API) })
	return out
}

func (h *health) outage(api string) *Outage {
	return &Outage{API: api, Since: h.first, Retry: h.retry, Detail: h.detail}
}

// forget drops rows that have not been continued for long. The caller holds mu.
func (b *CircuitBreaker) forget(now time.Time) {
	for api, h := range b.apis {
		if now.Sub(h.last) > forgetAfter {
			delete(b.apis, api)
		}
	}
}

// observe learns how a request ended. It returns the outage that the request has
// met: then no caller should wait for it to be tried again at once.
func (b *CircuitBreaker) observe(method, path string, answer *http.Response, err error) *Outage {
	api := apiOf(method, path)
	if api == "" {
		return nil
	}
	detail := ""
	switch {
	case err != nil:
		detail = err.Error()
	case aboutMachines(answer): // AKS answers, and says of which machines it cannot make
	case answer.StatusCode == http.StatusRequestTimeout, answer.StatusCode >= http.StatusInternalServerError:
		detail = answer.Status
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if detail == "" {
		delete(b.apis, api)
		return nil
	}
	now := b.now()
	h := b.apis[api]
	if h == nil {
		h = &health{first: now}
		b.apis[api] = h
	}
	h.failures++
	h.last, h.detail = now, detail
	if !h.open && h.failures >= failuresToOpen && now.Sub(h.first) >= failingFor {
		h.open, h.pause = true, firstProbe
		h.retry = now.Add(firstProbe)
	}
	if !h.open {
		return nil
	}
	return h.outage(api)
}

// apiOf names what a launch depends on: reading and writing of the providers
// that make machines. Other requests do not matter here; a deletion that works
// says nothing about making.
func apiOf(method, path string) string {
	_, rest, found := strings.Cut(strings.ToLower(path), "/providers/")
	if !found || method == http.MethodDelete {
		return ""
	}
	use := " (writes)"
	if method == http.MethodGet || method == http.MethodHead {
		use = " (reads)"
	}
	for _, provider := range []string{"Microsoft.Compute", "Microsoft.Network", "Microsoft.ContainerService"} {
		if strings.HasPrefix(rest, strings.ToLower(provider)+"/") {
			return provider + use
		}
	}
	return ""
}
