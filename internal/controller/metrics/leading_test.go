package metrics

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestLeaderSaysThatItActs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewLeading(prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		says := func(when string, want float64) {
			t.Helper()
			synctest.Wait()
			if got := testutil.ToFloat64(l.leading); got != want || !l.NeedLeaderElection() {
				t.Errorf("%s: nap_leading is %v, want %v", when, got, want)
			}
		}
		says("before the lease is had", 0)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if err := l.Start(ctx); err != nil {
				t.Error(err)
			}
		}()
		says("with the lease", 1)
		cancel()
		says("after it", 0)
	})
}
