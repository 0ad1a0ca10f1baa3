package cloud_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

// play plays a story on a lab of its own, with the given engine, plain machines, and
// variables of the controller. Labs wait more than they work, so their tests run side by
// side.
func play(t *testing.T, name, engine string, variables ...string) {
	t.Helper()
	playIn(t, name, engine, cloud.Options{ProvisionMode: config.ModeVMs, Variables: variables})
}

// playIn does so in a lab of which more is said, and returns what was changed in
// its Azure.
func playIn(t *testing.T, name, engine string, o cloud.Options) []armsim.AuditEntry {
	t.Helper()
	story, err := scenario.Story(name)
	if err != nil {
		t.Fatal(err)
	}
	return playStory(t, story, engine, o)
}

func playStory(t *testing.T, story *scenario.Scenario, engine string, o cloud.Options) []armsim.AuditEntry {
	t.Helper()
	l := start(t, engine, o)
	playOn(t, l, story)
	azure, err := cloud.Open(l.Env.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer azure.Close()
	audit, err := azure.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return audit
}

// playOn plays a story on a lab that runs.
func playOn(t *testing.T, l *labtest.Lab, story *scenario.Scenario) {
	t.Helper()
	var told strings.Builder
	err := cloud.Play(t.Context(), l.Env.Dir, story, &told)
	t.Log(told.String())
	if err != nil {
		logs, _ := os.ReadFile(filepath.Join(l.Env.Dir, "logs", "controller.log"))
		t.Fatalf("%v\nthe controller's last words:\n%s", err, logs[max(0, len(logs)-8000):])
	}
}

// start starts a lab that writes down what its controller asks of the API server.
func start(t *testing.T, engine string, o cloud.Options) *labtest.Lab {
	t.Helper()
	return startProgram(t, controllerProgram(t), engine, o)
}

// startProgram is start with another build of the controller.
func startProgram(t *testing.T, program, engine string, o cloud.Options) *labtest.Lab {
	t.Helper()
	cfg, err := cloud.Complete(lab.Config{
		Dir: filepath.Join(t.TempDir(), "lab"), Executable: program, Audit: account,
	}, o, engine)
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, cfg)
	t.Cleanup(func() { expectAllowed(t, l) }) // before the lab ends
	return l
}

// built is where programs are built; TestMain sets it. building is held by who builds one.
var (
	built    string
	building sync.Mutex
)

// build builds a program of this module when it is first asked for.
func build(t *testing.T, name string) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	path := filepath.Join(built, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/nodeautoprovision/nap/cmd/"+name).CombinedOutput()
	if err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return path
}

// controllerProgram is what the labs run as their controller.
func controllerProgram(t *testing.T) string { return build(t, "nap-controller") }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "nap-stories-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func TestDeploymentScalesUpAndDown(t *testing.T) {
	t.Parallel()
	play(t, "demo", "nap")
}

func TestControllerKilledTenTimesCreatesNoDuplicates(t *testing.T) {
	t.Parallel()
	play(t, "chaos", "nap")
}

func TestStaticPoolIsReplacedWhenItsTemplateChanges(t *testing.T) {
	t.Parallel()
	play(t, "static", "nap", "FEATURE_GATES=StaticCapacity=true")
}

// deployed are the variables of the Deployment's container that have a value of their own.
func deployed(t *testing.T, l *labtest.Lab) map[string]string {
	t.Helper()
	d, err := l.Client().AppsV1().Deployments("nap-system").Get(t.Context(), "nap", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		all[e.Name] = e.Value
	}
	return all
}

// setVariable changes a variable of the Deployment as kubectl set env does, and returns
// when it is rolled out.
func setVariable(t *testing.T, l *labtest.Lab, name, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"controller","env":[{"name":%q,"value":%q}]}]}}}}`, name, value)
	deployments := l.Client().AppsV1().Deployments("nap-system")
	if _, err := deployments.Patch(t.Context(), "nap", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	labtest.Await(t, "the rollout of "+name, func() bool {
		d, err := deployments.Get(t.Context(), "nap", metav1.GetOptions{})
		s := d.Status
		return err == nil && s.ObservedGeneration == d.Generation && s.UpdatedReplicas == 1 && s.AvailableReplicas == 1 && s.Replicas == 1
	})
}

// The same short story in each way of making machines, in one lab whose Deployment is
// rolled out for each. Without a mode nap chooses, and takes the pool of machines
// that the lab's cluster has.
func TestShortStoryInEveryProvisionMode(t *testing.T) {
	t.Parallel()
	story, err := scenario.Story("short")
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, "nap", cloud.Options{})
	azure, err := cloud.Open(l.Env.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer azure.Close()
	if _, set := deployed(t, l)["PROVISION_MODE"]; set {
		t.Fatal("the lab does not leave the choice to nap")
	}
	expectChart(t, l)
	told := 0 // entries of the audit log
	for i, mode := range []string{"", config.ModeVMs, config.ModeAKSMachinesBatched} {
		t.Run(fmt.Sprint(i+1, mode), func(t *testing.T) {
			if mode != "" {
				setVariable(t, l, "PROVISION_MODE", mode)
			}
			var said strings.Builder
			err := cloud.Play(t.Context(), l.Env.Dir, story, &said)
			t.Log(said.String())
			if err != nil {
				t.Fatal(err)
			}
			audit, err := azure.Audit(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			made := map[bool]int{} // by whether AKS has made the machine
			for _, e := range audit[told:] {
				switch {
				case e.Action == "machine.accepted":
					made[true]++
				case e.Action == "Microsoft.Compute/virtualMachines/write" && e.Kind == armsim.AuditCall && e.Status < http.StatusBadRequest:
					made[false]++
				}
			}
			told = len(audit)
			if byAKS := mode != config.ModeVMs; made[byAKS] < 2 || made[!byAKS] != 0 {
				t.Errorf("AKS has made %d machines, nap %d", made[true], made[false])
			}
		})
	}
}

// The tokens live 60 s, and the story lasts longer than one.
func TestTokensAreRenewedWhileMachinesJoin(t *testing.T) {
	t.Parallel()
	play(t, "tokens", "nap", shortTokens()...)
}

// shortTokens are the variables of controllers which renew tokens every 30 s.
func shortTokens() []string { return []string{"BOOTSTRAP_TOKEN_LIFE=60s", "BOOTSTRAP_JOIN_TIME=20s"} }

func TestSpotVMsInterruptedAreReplaced(t *testing.T) {
	t.Parallel()
	play(t, "eviction", "nap")
}

func TestControllerKilledDuringConsolidationLeavesNoOrphans(t *testing.T) {
	t.Parallel()
	play(t, "consolidate-killed", "nap")
}

// The story says itself that nothing is bought twice and nothing leaks; here it is
// seen that it was AKS that made the machines, alike ones in common calls.
func TestAKSBatchesWhileControllerIsKilled(t *testing.T) {
	t.Parallel()
	audit := playIn(t, "machines", "nap", cloud.Options{ProvisionMode: config.ModeAKSMachinesBatched})
	made, calls := 0, 0
	for _, e := range audit {
		switch {
		case e.Action == "machine.accepted":
			made++
		case e.Action == "Microsoft.ContainerService/managedClusters/agentPools/machines/write" && e.Status == http.StatusCreated:
			calls++
		case e.Action == "Microsoft.Compute/virtualMachines/write" && e.Kind == armsim.AuditCall:
			t.Errorf("the controller made virtual machine %s itself", e.Resource)
		}
	}
	if made != 8 || calls >= made {
		t.Errorf("AKS made %d machines in %d calls, want 8 in fewer", made, calls)
	}
}
