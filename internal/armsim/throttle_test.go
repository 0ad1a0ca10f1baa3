package armsim_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

func limits(ls ...armsim.Limit) func(*armsim.Config) {
	return func(c *armsim.Config) { c.Limits = ls }
}

func TestThrottlingBurstAndRefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, limits(armsim.Limit{Class: "NetworkWrite", Burst: 5, PerMinute: 60}))
		for i := range 5 {
			if _, err := u.nic(fmt.Sprint("n", i)); err != nil {
				t.Fatal(err)
			}
		}
		_, err := u.nic("n5")
		wantError(t, err, "TooManyRequests", "NetworkWrite")
		wantStatus(t, err, http.StatusTooManyRequests)
		time.Sleep(time.Second)
		if _, err := u.nic("n5"); err != nil {
			t.Error(err)
		}
	})
}

func TestThrottlingSDKHonorsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := armtest.New(t, limits(armsim.Limit{Class: "writes", Burst: 1, PerMinute: 6}))
		u := clientsOf(t, env)
		if _, err := u.nic("a"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		patient := clientsOf(t, env)
		o := env.ClientOptions()
		o.Retry.MaxRetries = 1
		patient.nics = newNICs(t, env, o)
		if _, err := patient.nic("b"); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited < 9*time.Second || waited > 11*time.Second {
			t.Errorf("waited %s, want 10 s", waited)
		}
	})
}

func TestThrottlingPerVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic, func(c *armsim.Config) { c.Latency = armsim.Latencies{Boot: armsim.Distribution{Max: 1}} })
		u.mustBuy("a", machine{size: "Standard_D4s_v5"})
		refused := 0
		for range 60 {
			if _, err := u.vms.Get(t.Context(), u.NodeResourceGroup, "a", nil); err != nil {
				refused++
			}
		}
		if refused < 20 || refused > 25 {
			t.Errorf("%d of 60 reads at once refused, want those beyond 36", refused)
		}
	})
}

func TestThrottlingHeadersSayWhatRemains(t *testing.T) {
	u := subscribe(t, limits(armsim.PublishedLimits()...))
	var left atomic.Value
	env := *u.Env
	env.HTTP = &http.Client{Transport: answerRecorder{u.HTTP.Transport, func(r *http.Response) {
		if r.Request.Method == http.MethodPut {
			left.Store(r.Header)
		}
	}}}
	v := clientsOf(t, &env)
	if _, err := v.nic("a"); err != nil {
		t.Fatal(err)
	}
	h := left.Load().(http.Header)
	for name, want := range map[string]string{
		"x-ms-ratelimit-remaining-subscription-writes": "199",
		"x-ms-ratelimit-remaining-resource":            "Microsoft.Network/NetworkWrite;999",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if h.Get("x-ms-request-id") == "" || h.Get("x-ms-correlation-request-id") == "" {
		t.Error("the answer has no request ID")
	}
}

// answerRecorder shows answers on their way to the client.
type answerRecorder struct {
	http.RoundTripper
	see func(*http.Response)
}

func (s answerRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.RoundTripper.RoundTrip(r)
	if err == nil {
		s.see(resp)
	}
	return resp, err
}
