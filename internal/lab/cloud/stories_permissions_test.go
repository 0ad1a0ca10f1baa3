//go:build scale

package cloud_test

import (
	"crypto/tls"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/controller/rbac"
	"github.com/nodeautoprovision/nap/internal/lab/cloud"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
)

// withoutRare takes off what docs/permissions.md names a case for.
func (u unused) withoutRare(t *testing.T) {
	t.Helper()
	for text, p := range u {
		watch := p
		if watch.Verb = "watch"; p.Verb == "list" && u[watch.String()] == watch {
			delete(u, text) // where lists are not streamed
		}
	}
	for text := range rareCases(t) {
		delete(u, text)
	}
}

// seen takes off what a lab's controller has used.
func (u unused) seen(t *testing.T, l *labtest.Lab) {
	t.Helper()
	audited(t, l, func(_ event, p rbac.Permission) { delete(u, p.String()) })
}

// await looks until nothing is left, and fails with what is.
func (u unused) await(t *testing.T, l *labtest.Lab) {
	t.Helper()
	for end := time.Now().Add(90 * time.Second); len(u) > 0 && time.Now().Before(end); time.Sleep(time.Second) {
		u.seen(t, l)
	}
	for text := range u {
		t.Errorf("nothing has used: %s", text)
	}
}

// TestEveryPermissionIsUsed: what the chart's roles permit is used, with every feature on, or
// has a case in docs/permissions.md. That nothing is refused is looked at in every story.
func TestEveryPermissionIsUsed(t *testing.T) {
	t.Setenv("FEATURE_GATES", "NodeOverlay=true,CapacityBuffer=true,PodDeletionCostManagement=true")
	t.Setenv("SCHEDULER_CONFIG", `{"podTopologySpread":{"defaultConstraints":[`+
		`{"maxSkew":5,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway"}]}}`)
	left := grantedTo(t, rbac.NodeOverlay, rbac.CapacityBuffer, rbac.LeaderElection, rbac.SecureMetrics, rbac.PodDeletionCost,
		rbac.SchedulerConfig, rbac.DefaultNodePools, rbac.BootstrapTokens)
	left.withoutRare(t)
	story, err := scenario.Story("rights")
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, "nap", cloud.Options{ProvisionMode: config.ModeVMs, Replicas: 2, DefaultNodePools: "Auto"})
	askForMetrics(t, l)
	playOn(t, l, story)
	left.await(t, l)
}

// askForMetrics asks the controller's own port for metrics, with a token of the API server's.
func askForMetrics(t *testing.T, l *labtest.Lab) {
	t.Helper()
	token, err := l.Client().CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	environment, err := os.ReadFile("/proc/" + strconv.Itoa(l.Part(cloud.Controller).Process.PID) + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	_, address, _ := strings.Cut(string(environment), "METRICS_BIND_ADDRESS=")
	address, _, _ = strings.Cut(address, "\x00")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token.Status.Token)
	here := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // each pod makes its own certificate
	status := ""
	labtest.Await(t, "an answer about metrics", func() bool {
		answer, err := here.Do(request)
		if err != nil {
			return false // not listened on yet
		}
		status = answer.Status
		return answer.Body.Close() == nil
	})
	if !strings.HasPrefix(status, "403") {
		t.Errorf("metrics for a ServiceAccount that may not read them: %s", status)
	}
}

// TestPlanningUsesResourceClaims: the permissions for them are for that setting alone.
func TestPlanningUsesResourceClaims(t *testing.T) {
	t.Setenv("IGNORE_DRA_REQUESTS", "false")
	left := grantedTo(t, rbac.DynamicResources)
	left.withoutRare(t)
	for text := range left {
		if !strings.Contains(text, ".resource.k8s.io") {
			delete(left, text)
		}
	}
	if len(left) == 0 {
		t.Fatal("there is no such permission")
	}
	left.await(t, start(t, "nap", cloud.Options{ProvisionMode: config.ModeVMs}))
}

// TestTokensOfOthersAreListed: the permission is for that setting alone.
func TestTokensOfOthersAreListed(t *testing.T) {
	t.Setenv("BOOTSTRAP_TOKENS", "cluster")
	left := unused{"list secrets": {}}
	left.await(t, start(t, "nap", cloud.Options{ProvisionMode: config.ModeVMs}))
}
