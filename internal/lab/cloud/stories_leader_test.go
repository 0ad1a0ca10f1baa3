//go:build scale

package cloud_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/binary"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
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

// shell runs lines of pages in a folder of its own, where nap is in PATH and kubectl finds
// the folder's lab.
func shell(t *testing.T) func(line string) (string, error) {
	t.Helper()
	labProgram, err := binary.Ensure(t.Context(), func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	bin, dir := filepath.Dir(build(t, "nap")), t.TempDir()
	controllerProgram(t)
	linked := filepath.Join(bin, binary.Name)
	if err := os.Symlink(labProgram, linked); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	return func(line string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(dir, lab.DefaultDir, "kubeconfig"),
			binary.Variable+"="+linked)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// Every command of the lab's page runs, in the order of the page. Those of kubectl are
// left out where there is none.
func TestLabPageCommandsRun(t *testing.T) {
	text, err := os.ReadFile("../../../docs/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	run := shell(t)
	t.Cleanup(func() { _, _ = run("nap lab down") })
	_, noKubectl := exec.LookPath("kubectl")
	for _, found := range regexp.MustCompile(`(?m)^    (.*)$`).FindAllStringSubmatch(string(text), -1) {
		line := found[1]
		if noKubectl != nil && strings.HasPrefix(line, "kubectl") {
			continue
		}
		// The page shows several labs, of which each is to be started.
		if strings.Contains(line, "nap lab up") || strings.HasPrefix(line, "kubectl --namespace nap-system get") {
			if out, err := run("nap lab down || true; rm -rf .lab"); err != nil {
				t.Fatal(err, out)
			}
		}
		if strings.HasPrefix(line, "kubectl --namespace nap-system get") {
			if out, err := run("nap lab up --detach"); err != nil {
				t.Fatal(err, out)
			}
		}
		out, err := run(line)
		t.Logf("%s\n%s", line, out)
		if err != nil || out == "" {
			t.Errorf("%s: %v", line, err)
		}
	}
}
