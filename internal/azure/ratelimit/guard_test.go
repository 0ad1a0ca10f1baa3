package ratelimit

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

type answering struct{ sent []string }

func (a *answering) Do(r *http.Request) (*http.Response, error) {
	a.sent = append(a.sent, r.Method)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r, Header: http.Header{}}, nil
}

// A request that is withheld is not repeated, and does not count as a fault of Azure.
func TestGuardWithholdsWhatChangesSomething(t *testing.T) {
	no := errors.New("not the leader")
	now := time.Now()
	clock := func() time.Time { now = now.Add(time.Minute); return now }
	breaker := NewCircuitBreaker(clock)
	transport := &answering{}
	pipeline := runtime.NewPipeline("nap", "test", runtime.PipelineOptions{PerRetry: []policy.Policy{
		New(Published(), breaker, time.Minute, clock), Guard(func() error { return no }),
	}}, &policy.ClientOptions{Transport: transport})
	const machine = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m"
	const pool = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/c/agentPools/p"
	for _, c := range []struct {
		method, path string
		sent         bool
	}{
		{http.MethodGet, machine, true}, {http.MethodHead, machine, true},
		{http.MethodPut, machine, false}, {http.MethodPatch, machine, false}, {http.MethodDelete, machine, false},
		{http.MethodPost, pool + "/deleteMachines", false},
		{http.MethodPost, "/providers/Microsoft.ResourceGraph/resources", true},
	} {
		for range 12 {
			transport.sent = nil
			req, err := runtime.NewRequest(context.Background(), c.method, "https://azure.test"+c.path)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := pipeline.Do(req)
			if err == nil {
				_ = answer.Body.Close()
			}
			if sent := len(transport.sent) == 1; sent != c.sent || errors.Is(err, no) == c.sent {
				t.Fatalf("%s %s: sent %v, error %v, want it sent: %v", c.method, c.path, sent, err, c.sent)
			}
		}
	}
	if out := breaker.Outages(); len(out) > 0 {
		t.Errorf("withheld requests open the circuit breaker: %+v", out)
	}
}
