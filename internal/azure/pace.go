package azure

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"golang.org/x/time/rate"
)

// calmAfter is how long Azure must not have complained before a class of
// requests is sent freely again.
const calmAfter = time.Minute

// pacer shares Azure's request limits between all calls of the process. It does
// nothing until Azure says "too many requests"; then all requests of that class
// wait as long as Azure asks, and go on one by one at the rate at which Azure
// admits them. Without it every call would back off on its own, and together
// they would run into the limit again.
type pacer struct {
	now func() time.Time

	mu      sync.Mutex
	classes map[string]*pace
}

// pace is the state of one class of requests.
type pace struct {
	limiter  *rate.Limiter
	heldTo   time.Time
	lastFull time.Time
}

func newPacer(now func() time.Time) *pacer { return &pacer{now: now, classes: map[string]*pace{}} }

// classOf is how Resource Manager counts requests, with the rate in requests per
// second at which a subscription's budget is refilled.
func classOf(method string) (class string, refill rate.Limit) {
	switch method {
	case http.MethodGet, http.MethodHead:
		return "reads", 25
	case http.MethodDelete:
		return "deletes", 10
	}
	return "writes", 10
}

// Do is called for every try of every request.
func (p *pacer) Do(request *policy.Request) (*http.Response, error) {
	class, refill := classOf(request.Raw().Method)
	if err := p.wait(request, class); err != nil {
		return nil, err
	}
	answer, err := request.Next()
	if err == nil && answer.StatusCode == http.StatusTooManyRequests {
		p.slow(class, refill, retryAfter(answer))
	}
	return answer, err
}

func (p *pacer) wait(request *policy.Request, class string) error {
	p.mu.Lock()
	c, now := p.classes[class], p.now()
	if c != nil && now.Sub(c.lastFull) > calmAfter {
		delete(p.classes, class)
		c = nil
	}
	p.mu.Unlock()
	if c == nil {
		return nil
	}
	if hold := c.heldTo.Sub(now); hold > 0 {
		timer := time.NewTimer(hold)
		defer timer.Stop()
		select {
		case <-request.Raw().Context().Done():
			return request.Raw().Context().Err()
		case <-timer.C:
		}
	}
	return c.limiter.Wait(request.Raw().Context())
}

func (p *pacer) slow(class string, refill rate.Limit, pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	old := p.classes[class]
	// The state is replaced, not changed: others may be looking at it.
	next := &pace{heldTo: now.Add(pause), lastFull: now}
	if old != nil {
		next.limiter = old.limiter
	} else {
		next.limiter = rate.NewLimiter(refill, 1)
	}
	p.classes[class] = next
}

// retryAfter is how long Azure asks to wait, a second if it does not say.
func retryAfter(answer *http.Response) time.Duration {
	for _, header := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if n, err := strconv.Atoi(answer.Header.Get(header)); err == nil {
			return time.Duration(n) * time.Millisecond
		}
	}
	if n, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		return time.Duration(n) * time.Second
	}
	return time.Second
}
