//go:build scale

package cloud_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
	"github.com/nodeautoprovision/nap/internal/pages"
)

// enableWithin is how long it may take from an empty cluster to a running pod on a machine
// that was bought for it: nap enable and one deployment.
const enableWithin = 90 * time.Second

// asOwner runs nap as the owner of the lab's subscription.
func asOwner(t *testing.T, l *labtest.Lab, args ...string) (string, error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.Env.Dir, cloud.AdminFile))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), build(t, "nap"), args...)
	cmd.Env = os.Environ()
	for line := range strings.Lines(string(text)) {
		name, quoted, _ := strings.Cut(strings.TrimSpace(line), "=")
		cmd.Env = append(cmd.Env, name+"="+strings.Trim(quoted, "'"))
	}
	out, err := cmd.CombinedOutput()
	t.Logf("nap %s\n%s", strings.Join(args, " "), out)
	return string(out), err
}

// TestEnableOnEmptyCluster: in a cluster without anything of nap, nap enable and one
// deployment lead to a pod that runs on a bought machine; a second run changes nothing, and
// --undo leaves nothing in Azure.
func TestEnableOnEmptyCluster(t *testing.T) {
	build(t, "nap")
	cfg, err := cloud.Complete(lab.Config{
		Dir: filepath.Join(t.TempDir(), "lab"), Executable: controllerProgram(t), Audit: account,
	}, cloud.Options{Release: "none", Replicas: 2}, "nap")
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, cfg)
	enable, dryRun, undo := documentedEnable(t, filepath.Join(l.Env.Dir, cloud.ValuesFile))
	if out, err := asOwner(t, l, dryRun...); err != nil || !strings.Contains(out, "az identity create") || strings.Contains(out, ": made") {
		t.Errorf("a dry run: %v", err)
	}
	began := time.Now()
	out, err := asOwner(t, l, enable...)
	if err != nil {
		t.Fatal(err)
	}
	enabled := time.Since(began)
	if err := lab.Apply(t.Context(), l.Config(), []byte(demand)); err != nil {
		t.Fatal(err)
	}
	labtest.Await(t, "the pod on a machine", func() bool {
		d, err := l.Client().AppsV1().Deployments("default").Get(t.Context(), "demand", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 1
	})
	took := time.Since(began)
	t.Logf("nap enable took %s, the pod runs %s after its start", enabled.Round(100*time.Millisecond), took.Round(100*time.Millisecond))
	if took > enableWithin {
		t.Errorf("%s, want at most %s", took, enableWithin)
	}
	for _, made := range []string{"identity nap-nap: made", "release nap-crd in namespace nap-system: installed", "release nap in namespace nap-system: installed"} {
		if !strings.Contains(out, made) {
			t.Errorf("it does not say %q", made)
		}
	}
	expectAllowed(t, l)

	out, err = asOwner(t, l, enable...)
	if err != nil || strings.Contains(out, ": made") || strings.Contains(out, ": installed") || strings.Contains(out, ": upgraded") {
		t.Errorf("the second run changes something: %v", err)
	}
	if _, err = asOwner(t, l, undo...); err == nil || exitCode(err) != 2 {
		t.Errorf("undo with machines: %v, want exit code 2", err)
	}
	if err := lab.Remove(t.Context(), l.Config(), []byte(demand)); err != nil {
		t.Fatal(err)
	}
	if _, err = asOwner(t, l, "disable", "--wait", "--timeout", "3m"); err != nil {
		t.Fatal(err)
	}
	if _, err = asOwner(t, l, undo...); err != nil {
		t.Fatal(err)
	}
	if out, err = asOwner(t, l, undo...); err != nil || strings.Contains(out, ": removed") {
		t.Errorf("undo again: %v", err)
	}
}

// documentedEnable are the commands of nap enable that the pages show, as arguments: what
// enables, the same as a dry run, and what removes it. The image is left out: the lab's values
// name its own, of which the system node knows which program it stands for.
func documentedEnable(t *testing.T, values string) (enable, dryRun, undo []string) {
	t.Helper()
	for _, c := range pages.By(t, root, "TestEnableOnEmptyCluster") {
		args := strings.Fields(os.Expand(c.Text, func(name string) string {
			return map[string]string{"CLUSTER_NAME": "nap", "ARM_RESOURCE_GROUP": "nap"}[name]
		}))[1:]
		if i := slices.Index(args, "--image"); i >= 0 {
			args = slices.Delete(args, i, i+2)
		}
		switch {
		case slices.Contains(args, "--undo"):
			undo = args
		case slices.Contains(args, "--dry-run"):
			dryRun = append(args, "--values", values)
		case enable == nil || slices.Equal(enable, append(args, "--values", values)):
			enable = append(args, "--values", values)
		default:
			t.Errorf("%s: the pages enable in several ways", &c)
		}
	}
	return enable, dryRun, undo
}

func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}
