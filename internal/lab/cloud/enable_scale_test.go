//go:build scale

package cloud_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
)

// enableWithin is how long it may take from an empty cluster to a running pod on a machine
// that was bought for it: nap enable and one deployment.
const enableWithin = 90 * time.Second

// demand is what kubectl create deployment makes, with requests.
const demand = `apiVersion: apps/v1
kind: Deployment
metadata: {name: demand, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: demand}}
  template:
    metadata: {labels: {app: demand}}
    spec:
      containers:
        - name: pause
          image: mcr.microsoft.com/oss/kubernetes/pause:3.9
          resources: {requests: {cpu: "1", memory: 1Gi}}
`

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
	enable := []string{"enable", "--resource-group", "nap", "--name", "nap", "--values", filepath.Join(l.Env.Dir, cloud.ValuesFile)}
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
	if _, err = asOwner(t, l, "enable", "--resource-group", "nap", "--name", "nap", "--undo"); err == nil || exitCode(err) != 2 {
		t.Errorf("undo with machines: %v, want exit code 2", err)
	}
	if err := lab.Remove(t.Context(), l.Config(), []byte(demand)); err != nil {
		t.Fatal(err)
	}
	if _, err = asOwner(t, l, "disable", "--wait", "--timeout", "3m"); err != nil {
		t.Fatal(err)
	}
	if _, err = asOwner(t, l, "enable", "--resource-group", "nap", "--name", "nap", "--undo"); err != nil {
		t.Fatal(err)
	}
	if out, err = asOwner(t, l, "enable", "--resource-group", "nap", "--name", "nap", "--undo"); err != nil || strings.Contains(out, ": removed") {
		t.Errorf("undo again: %v", err)
	}
}

func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}
