package ratelimit

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A provider without published limits refuses for itself: what it is asked for again waits,
// and requests to all others do not. What Resource Manager refuses holds all of its kind.
func TestRefusalHoldsRequestsOfItsProviderAlone(t *testing.T) {
	const (
		group    = "/subscriptions/s/resourceGroups/g/providers/"
		window   = group + "Microsoft.ContainerService/managedClusters/c/maintenanceConfigurations/"
		cluster  = group + "Microsoft.ContainerService/managedClusters/c"
		usages   = "/subscriptions/s/providers/Microsoft.Compute/locations/eastus/usages"
		machine  = group + "Microsoft.Compute/virtualMachines/m"
		location = "/subscriptions/s/locations"
	)
	for _, c := range []struct {
		name, refused, body, left string
		waits, passes             []string
	}{
		{"AKS", window + "default", "TooManyRequests", "", []string{window + "other"}, []string{cluster, usages, machine, location}},
		{"figures of quota", usages, "TooManyRequests", "", []string{usages}, []string{window + "default", machine, location}},
		{"Resource Manager says so", usages, "SubscriptionRequestsThrottled", "", []string{usages, window + "default", machine, location}, nil},
		{"Resource Manager grants none", usages, "TooManyRequests", "0", []string{usages, window + "default", machine, location}, nil},
		{"Resource Manager itself", location, "TooManyRequests", "", []string{usages, machine, location}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := New(Published(), NewCircuitBreaker(time.Now), time.Minute, time.Now)
				w, err := l.admit(t.Context(), http.MethodGet, c.refused)
				if err != nil {
					t.Fatal(err)
				}
				answer := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.body))}
				answer.Header.Set("Retry-After", "600")
				if c.left != "" {
					answer.Header.Set(headerSubscription+"reads", c.left)
				}
				l.answered(w, answer)
				for waits, paths := range map[bool][]string{true: c.waits, false: c.passes} {
					for _, path := range paths {
						w := &waiter{buckets: l.bucketsOf(http.MethodGet, path)}
						longest := time.Duration(0)
						for _, b := range w.buckets {
							longest = max(longest, b.ready(time.Now()))
						}
						if (longest > 0) != waits {
							t.Errorf("%s waits for %s, want it to wait: %v", path, longest, waits)
						}
					}
				}
				time.Sleep(10 * time.Minute)
				if _, err := l.admit(t.Context(), http.MethodGet, c.refused); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
