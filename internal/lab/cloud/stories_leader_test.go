//go:build scale

package cloud_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
	"github.com/nodeautoprovision/nap/internal/pages"
)

// takeovers follows the lease of a lab's controller: how long it has been without a
// holder that renews it, for each change of the holder.
func takeovers(t *testing.T, l *labtest.Lab) (stop func() []time.Duration) {
	t.Helper()
	leases := l.Client().CoordinationV1().Leases("nap-system")
	var gaps []time.Duration
	var following sync.WaitGroup
	end := make(chan struct{})
	following.Go(func() {
		holder, renewed := "", time.Time{}
		for {
			select {
			case <-end:
				return
			case <-time.After(100 * time.Millisecond):
			}
			lease, err := leases.Get(t.Context(), "karpenter-leader-election", metav1.GetOptions{})
			if err != nil || lease.Spec.HolderIdentity == nil || lease.Spec.RenewTime == nil {
				continue
			}
			if now := *lease.Spec.HolderIdentity; now != holder {
				if holder != "" {
					gaps = append(gaps, lease.Spec.AcquireTime.Sub(renewed))
				}
				holder = now
			}
			renewed = lease.Spec.RenewTime.Time
		}
	})
	return func() []time.Duration {
		close(end)
		following.Wait()
		return gaps
	}
}

// TestLeaderKilledOtherReplicaTakesOver plays the story again and again in one lab. The
// moment of the kill lies behind the last renewal, so that the gap bounds the takeover.
func TestLeaderKilledOtherReplicaTakesOver(t *testing.T) {
	story, err := scenario.Story("leader")
	if err != nil {
		t.Fatal(err)
	}
	const kills, most = 5, 20 * time.Second
	l := start(t, "nap", cloud.Options{ProvisionMode: config.ModeVMs, Replicas: 2})
	stop := takeovers(t, l)
	for range kills {
		var told strings.Builder
		err := cloud.Play(t.Context(), l.Env.Dir, story, &told)
		t.Log(told.String())
		if err != nil {
			t.Fatal(err)
		}
	}
	gaps := stop()
	t.Logf("from the last renewal to the other's lead: %v", gaps)
	if len(gaps) < kills {
		t.Errorf("the lease has changed hands %d times in %d kills", len(gaps), kills)
	}
	for _, gap := range gaps {
		if gap > most {
			t.Errorf("the other replica took over after %s, want at most %s", gap, most)
		}
	}
}

// TestLabPageCommandsRun runs the commands of the pages that show labs, in their order.
func TestLabPageCommandsRun(t *testing.T) {
	s := newShell(t)
	t.Cleanup(func() { _, _ = s.run("nap lab down") })
	for _, c := range pages.Of(t, root) {
		// The pages show several labs, of which each is to be started.
		starts := strings.Contains(c.Text, "nap lab up")
		missing := strings.HasPrefix(c.Text, "kubectl --namespace nap-system get")
		if starts || missing {
			if out, err := s.run("nap lab down || true; rm -rf .lab"); err != nil {
				t.Fatal(err, out)
			}
		}
		if missing {
			if out, err := s.run("nap lab up --detach"); err != nil {
				t.Fatal(err, out)
			}
		}
		out, err := s.run(c.Text)
		t.Logf("%s\n%s", c.Text, out)
		if err != nil || out == "" && !strings.HasPrefix(c.Text, "export ") {
			t.Errorf("%s: %v\n%s", &c, err, out)
		}
	}
}
