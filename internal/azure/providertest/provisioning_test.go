package providertest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

const (
	extensionWrite = "Microsoft.Compute/virtualMachines/extensions/write"
	extensionName  = "cse-agent-karpenter"
	extension      = "Microsoft.Compute/virtualMachines/aks-general-abc12/extensions/" + extensionName
)

// extensionFails has the provisioning of every machine end with an exit code, in the
// words of an extension's operation.
func extensionFails(exitCode int) armsim.Fault {
	return armsim.Fault{Kind: armsim.FaultFail, Operation: extensionWrite, Code: "VMExtensionProvisioningError", Message: fmt.Sprintf(
		"VM has reported a failure when processing extension '%s' (publisher 'Microsoft.Azure.Extensions' and type 'CustomScript'). "+
			"Error message: \"Enable failed: failed to execute command: command terminated with exit status=1\n[stdout]\n"+
			`{ "ExitCode": "%d", "Output": "+ nc -vz api 443\n+ exit %d", "Error": "", "ExecDuration": "20" }`+"\n\n[stderr]\n\". "+
			"More information on troubleshooting is available at https://aka.ms/VMExtensionCSELinuxTroubleshoot.", extensionName, exitCode, exitCode)}
}

// requests notes every request, as method and path with the query's $expand, and may
// answer some itself.
type requests struct {
	http.RoundTripper
	mu     sync.Mutex
	all    []string
	answer func(r *http.Request) *http.Response // nil, or nil for requests that pass
}

func (q *requests) RoundTrip(r *http.Request) (*http.Response, error) {
	q.mu.Lock()
	line := r.Method + " " + r.URL.Path
	if expand := r.URL.Query().Get("$expand"); expand != "" {
		line += " " + expand
	}
	q.all = append(q.all, strings.ToLower(line))
	answer := q.answer
	q.mu.Unlock()
	if answer != nil {
		if resp := answer(r); resp != nil {
			return resp, nil
		}
	}
	return q.RoundTripper.RoundTrip(r)
}

// count is how many requests there were that contain the text.
func (q *requests) count(text string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, line := range q.all {
		if strings.Contains(line, strings.ToLower(text)) {
			n++
		}
	}
	return n
}

// ending is how many requests there were whose path ends with the text.
func (q *requests) ending(text string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, line := range q.all {
		if strings.HasSuffix(line, text) {
			n++
		}
	}
	return n
}

// noting has the next process's requests noted.
func (w *world) noting(t *testing.T) *requests {
	t.Helper()
	q := &requests{}
	w.through(t, func(inner http.RoundTripper) http.RoundTripper {
		q.RoundTripper = inner
		return q
	})
	return q
}

// buy launches the machine of general-abc12.
func (w *world) buy(t *testing.T) launch.Machine {
	t.Helper()
	m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// bootFailure asks, as the controller does, every five seconds until the boot of a
// machine is known to have failed, at most for d, and returns what was said and when.
func (w *world) bootFailure(t *testing.T, m launch.Machine, d time.Duration) (launch.BootFailure, time.Time) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Second) {
		f, err := w.provider.Boots().Failure(t.Context(), m.Claim, m.ProviderID)
		if err != nil {
			t.Logf("%s: %v", time.Now(), err)
		}
		if f.Text != "" {
			return f, time.Now()
		}
	}
	return launch.BootFailure{}, time.Time{}
}

// extensionEnded is when the operation of the machine's extension ended.
func (w *world) extensionEnded(t *testing.T) time.Time {
	t.Helper()
	for _, e := range w.Server.Audit(0) {
		if e.Kind == "operation" && e.Action == extensionWrite && strings.HasSuffix(e.Resource, extensionName) {
			return e.Time
		}
	}
	t.Fatal("the operation of the extension has not ended")
	return time.Time{}
}

func (w *world) add(t *testing.T, f armsim.Fault) string {
	t.Helper()
	added, err := w.Server.AddFault(f)
	if err != nil {
		t.Fatal(err)
	}
	return added.ID
}

const saysExit51 = "exit code 51 (ERR_K8S_API_SERVER_CONN_FAIL: the machine does not reach the API server)"

func checkExit51(t *testing.T, f launch.BootFailure) {
	t.Helper()
	if f.ExitCode != 51 || !strings.Contains(f.Text, saysExit51) || !strings.Contains(f.Text, "last lines: + nc -vz api 443 | + exit 51") {
		t.Errorf("failure %+v", f)
	}
}

// The operation of the extension is followed, and no instance view is read.
func TestBootFailureIsKnownWithin30Seconds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.noting(t)
		w.add(t, extensionFails(51))
		f, known := w.bootFailure(t, w.buy(t), 5*time.Minute)
		checkExit51(t, f)
		if took := known.Sub(w.extensionEnded(t)); took > 30*time.Second {
			t.Errorf("the failure was known after %s", took)
		}
		if n := q.count("instanceView"); n != 0 {
			t.Errorf("%d instance views were read", n)
		}
		if w.reported("general-abc12") != "" {
			t.Errorf("the launch was reported as failed: %s", w.reported("general-abc12"))
		}
		if got := w.get(t, extension); !strings.Contains(got, `"publisher":"Microsoft.Azure.Extensions"`) || strings.Contains(got, "provision-wait") {
			t.Errorf("the extension is %s", got)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestBootThatSucceedsHasNoFailure(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.noting(t)
		m := w.buy(t)
		if f, _ := w.bootFailure(t, m, 10*time.Minute); f.Text != "" {
			t.Errorf("failure %+v", f)
		}
		before := q.count("operations") + q.count("extensions")
		if f, _ := w.bootFailure(t, m, 10*time.Minute); f.Text != "" {
			t.Errorf("failure %+v", f)
		}
		if after := q.count("operations") + q.count("extensions"); after != before {
			t.Errorf("%d requests about a boot that has ended", after-before)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestBootIsNotFollowedOnceNodeJoined(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.noting(t)
		w.add(t, armsim.Fault{Kind: armsim.FaultHang, Operation: extensionWrite})
		m := w.buy(t)
		time.Sleep(2 * time.Minute)
		polls := q.count("/operations/")
		w.provider.Boots().Joined(m.Claim)
		time.Sleep(5 * time.Minute)
		if after := q.count("/operations/"); polls == 0 || after != polls {
			t.Errorf("%d looks at the operation before the node joined, %d after", polls, after-polls)
		}
		w.deleteAll(t)
	}, armtest.Realistic)
}

// A new process knows nothing of the operation: it reads how far the extension is, and
// once it has failed, its instance view a single time.
func TestBootFailureIsKnownAfterRestart(t *testing.T) {
	for _, when := range []string{"while the extension runs", "after it has ended"} {
		t.Run(when, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				hang := w.add(t, armsim.Fault{Kind: armsim.FaultHang, Operation: extensionWrite})
				w.add(t, extensionFails(51))
				m := w.buy(t)
				time.Sleep(2 * time.Minute)
				var q *requests
				release := func() {
					if err := w.Server.RemoveFault(hang); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
				}
				if when == "after it has ended" {
					w.stop()
					release()
					w.start(t)
					q = w.noting(t)
				} else {
					q = w.noting(t)
					if f, _ := w.bootFailure(t, m, time.Minute); f.Text != "" {
						t.Errorf("before its end: %+v", f)
					}
					release()
				}
				f, known := w.bootFailure(t, m, time.Minute)
				checkExit51(t, f)
				if took := known.Sub(w.extensionEnded(t)); when == "while the extension runs" && took > 90*time.Second {
					t.Errorf("the failure was known after %s", took)
				}
				if n := q.count(extensionName + " instanceView"); n != 1 {
					t.Errorf("the instance view of the extension was read %d times", n)
				}
				if n := q.count("put "); n != 0 {
					t.Errorf("something was written again:\n%s", strings.Join(q.all, "\n"))
				}
				w.deleteAll(t)
				w.noLeaks(t)
			}, armtest.Realistic)
		})
	}
}

// An operation may be lost, and a role that is narrower than any of Azure's own may not
// permit to read it: then the extension itself is read.
func TestBootFailureWithLostOperation(t *testing.T) {
	for status, code := range map[int]string{http.StatusNotFound: "NotFound", http.StatusForbidden: "AuthorizationFailed"} {
		t.Run(code, func(t *testing.T) { bootFailureWithoutOperation(t, status, code) })
	}
}

// bootFailureWithoutOperation has Azure answer so when the operation of the extension is
// read.
func bootFailureWithoutOperation(t *testing.T, status int, code string) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.noting(t)
		q.answer = func(r *http.Request) *http.Response {
			if strings.Contains(r.URL.Path, "/operations/") && q.count(extensionName) > 0 {
				return answerWith(r, status, `{"error":{"code":"`+code+`","message":"The entity was not found."}}`)
			}
			return nil
		}
		w.add(t, extensionFails(51))
		f, known := w.bootFailure(t, w.buy(t), 5*time.Minute)
		checkExit51(t, f)
		if took := known.Sub(w.extensionEnded(t)); took > 30*time.Second {
			t.Errorf("the failure was known after %s", took)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

// What Azure refuses is tried again after pauses that grow; the machine keeps running.
func TestExtensionRefusedIsPutLater(t *testing.T) {
	for name, f := range map[string]armsim.Fault{
		"conflict":  {Kind: armsim.FaultError, Operation: extensionWrite, Status: http.StatusConflict, Code: "Conflict"},
		"policy":    {Kind: armsim.FaultError, Operation: extensionWrite, Status: http.StatusForbidden, Code: "RequestDisallowedByPolicy"},
		"throttled": {Kind: armsim.FaultThrottle, Operation: extensionWrite, RetryAfter: 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.noting(t)
				refused := w.add(t, f)
				w.add(t, extensionFails(51))
				m := w.buy(t)
				if f, _ := w.bootFailure(t, m, 10*time.Minute); f.Text != "" {
					t.Errorf("failure without the extension: %+v", f)
				}
				puts := q.count("put /subscriptions/" + w.SubscriptionID + "/resourcegroups/" + w.NodeResourceGroup + "/providers/" + extension)
				if puts < 2 || puts > 40 {
					t.Errorf("the extension was asked for %d times in ten minutes", puts)
				}
				if w.reported(m.Claim) != "" {
					t.Errorf("the launch was reported as failed: %s", w.reported(m.Claim))
				}
				if err := w.Server.RemoveFault(refused); err != nil {
					t.Fatal(err)
				}
				got, _ := w.bootFailure(t, m, 5*time.Minute)
				checkExit51(t, got)
				w.deleteAll(t)
				w.noLeaks(t)
			}, armtest.Realistic)
		})
	}
}

func TestKilledBetweenVMAndExtension(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.buy(t)
		w.stop() // before the machine runs
		time.Sleep(3 * time.Minute)
		if n := w.Server.Stats()["calls "+extensionWrite]; n != 0 {
			t.Fatalf("the extension was asked for %d times before", n)
		}
		w.add(t, extensionFails(51))
		w.start(t)
		f, known := w.bootFailure(t, m, 5*time.Minute)
		checkExit51(t, f)
		if took := known.Sub(w.extensionEnded(t)); took > 30*time.Second {
			t.Errorf("the failure was known after %s", took)
		}
		if n := w.Server.Stats()["calls "+extensionWrite]; n != 1 {
			t.Errorf("the extension was put %d times", n)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestVMDeletedWhileItsBootIsFollowed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.noting(t)
		w.add(t, armsim.Fault{Kind: armsim.FaultHang, Operation: extensionWrite})
		m := w.buy(t)
		time.Sleep(2 * time.Minute)
		if code := w.send(t, "DELETE", "Microsoft.Compute/virtualMachines/aks-general-abc12", ""); code >= 300 {
			t.Fatalf("deleting the machine: %d", code)
		}
		if f, _ := w.bootFailure(t, m, 5*time.Minute); f.Text != "" {
			t.Errorf("failure of a machine that is gone: %+v", f)
		}
		before := q.count("")
		time.Sleep(5 * time.Minute)
		if after := q.count(extensionName) + q.count("/operations/"); after > before {
			t.Errorf("%d more requests about a machine that is gone", after-before)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestAKSMachineBootFailureComesFromItsProvisioningError(t *testing.T) {
	inBothAKSModes(t, func(t *testing.T, w *world) {
		fault := extensionFails(51)
		fault.Operation = ""
		w.add(t, fault)
		m := w.buy(t)
		f, _ := w.bootFailure(t, m, 10*time.Minute)
		checkExit51(t, f)
		if w.reported(m.Claim) != "" {
			t.Errorf("the launch was reported as failed: %s", w.reported(m.Claim))
		}
		if blocked := w.blocked("Standard_D4s_v5"); len(blocked) != 0 {
			t.Errorf("a boot that failed makes offerings unavailable: %v", blocked)
		}
		w.stop()
		w.start(t) // another process, which knows only what AKS says
		f, _ = w.bootFailure(t, m, time.Minute)
		checkExit51(t, f)
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

// A policy that forbids the extension keeps no machine from counting as launched: it draws on
// the quota once, and Azure is not asked for the extension for ever.
func TestPolicyAgainstExtensionLeavesLaunchesDone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, armsim.Fault{Kind: armsim.FaultError, Operation: extensionWrite, Status: http.StatusForbidden,
			Code: "RequestDisallowedByPolicy", Message: "Only approved VM extensions"})
		const machines = 20
		var claims []string
		for i := range machines {
			claims = append(claims, fmt.Sprintf("general-ab%03d", i))
			if _, err := w.provider.Launch(t.Context(), w.order(claims[i], sizes("Standard_D4s_v5"), onDemand())); err != nil {
				t.Fatalf("machine %d of %d that the quota has room for: %v", i, machines, err)
			}
			if i == machines/2-1 {
				time.Sleep(25 * time.Minute) // by then Azure counts them
			}
		}
		time.Sleep(25 * time.Minute)
		before := w.Server.Stats()
		for range 30 { // an hour
			if _, err := w.provider.CollectMachines(t.Context(), claimed(claims...)); err != nil {
				t.Log(err)
			}
			time.Sleep(2 * time.Minute)
		}
		after := w.Server.Stats()
		if n := after[extensionCall] - before[extensionCall]; n > machines {
			t.Errorf("in an hour the extension was put %d times, want once a machine at most", n)
		}
		const read = "calls Microsoft.Compute/virtualMachines/read"
		if n := after[read] - before[read]; n > 2*machines {
			t.Errorf("in an hour machines were read %d times", n)
		}
		if len(w.failed) > 0 {
			t.Errorf("reported as failed: %v", w.failed)
		}
	}, armtest.Realistic, func(c *armsim.Config) { c.Quota = map[string]int64{"standardDSv5Family": 80} })
}
