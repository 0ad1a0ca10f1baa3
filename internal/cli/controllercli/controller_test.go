package controllercli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/nodeautoprovision/nap/internal/cli/clitest"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller"
	"github.com/nodeautoprovision/nap/internal/controller/shadowkeeper"
	"github.com/nodeautoprovision/nap/internal/mask"
)

var _ = flag.Bool("rewrite", false, "write golden files instead of comparing with them")

// program is nap-controller.
var program clitest.Main = func(ctx context.Context, args []string, s command.Streams) int {
	return Main(ctx, args, "test", s)
}

func TestHelpOfEveryControllerCommand(t *testing.T) {
	program.Help(t, newController(command.Streams{}))
}

// runController runs "nap controller" in a world of its own: run takes the place
// of the controller, and the cloud needs no configuration.
func runController(t *testing.T, env map[string]string, run func(context.Context, controller.Config) error, args ...string) error {
	t.Helper()
	c := &controllerCommand{
		streams:   command.Streams{Out: io.Discard, Err: io.Discard},
		lookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		run:       run,
		newCloud: func(cloudWorld) (newCloud, error) {
			return nil, nil
		},
	}
	cmd := c.command()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	return cmd.ExecuteContext(t.Context())
}

// kubeconfigOf writes a kubeconfig for a server.
func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "token"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestControllerOptionsPreferFlagsOverVariablesOverDefaults(t *testing.T) {
	var got controller.Config
	err := runController(t,
		map[string]string{
			"BATCH_IDLE_DURATION": "3s", "BATCH_MAX_DURATION": "20s", "KUBE_CLIENT_QPS": "50", "METRICS_PORT": "9090",
			"PREFERENCE_POLICY": "Ignore", "FEATURE_GATES": "NodeRepair=true", "ENGINE": "karpenter", "LOG_LEVEL": "",
			"CONTEXT": "not for kubeconfigs", "DISABLE_LEADER_ELECTION": "true",
		},
		func(_ context.Context, c controller.Config) error { got = c; return nil },
		"--kubeconfig", kubeconfigOf(t, "https://127.0.0.1:1"), "--batch-idle-duration=2s", "--health-probe-bind-address=127.0.0.1:0",
		"--leader-election-namespace=nap")
	if err != nil {
		t.Fatal(err)
	}
	want := controller.DefaultOptions()
	want.Engine = controller.EngineKarpenter
	want.BatchIdleDuration, want.BatchMaxDuration = 2*time.Second, 20*time.Second
	want.KubeClientQPS = 50
	want.MetricsBindAddress, want.HealthProbeBindAddress = ":9090", "127.0.0.1:0"
	want.PreferencePolicy = "Ignore"
	want.FeatureGates.NodeRepair = true
	want.DisableLeaderElection, want.LeaderElectionNamespace = true, "nap"
	if want.FeatureGates != got.Options.FeatureGates {
		t.Errorf("gates: got %+v, want %+v", got.Options.FeatureGates, want.FeatureGates)
	}
	got.Options.FeatureGates, want.FeatureGates = controller.Options{}.FeatureGates, controller.Options{}.FeatureGates
	if got.Options != want {
		t.Errorf("got  %+v\nwant %+v", got.Options, want)
	}
	if got.REST.Host != "https://127.0.0.1:1" {
		t.Errorf("the API server is %s", got.REST.Host)
	}
}

// refusal is a command line or an environment that the controller refuses.
type refusal struct {
	args string
	env  map[string]string
}

// refusals are one or more of each check of flags.
func refusals() []refusal {
	return []refusal{
		{args: "--engine=karpentr"},
		{args: "--preference-policy=ignore"},
		{args: "--min-values-policy=Some"},
		{args: "--feature-gates=NodeRepairs=true"},
		{args: "--feature-gates=NodeRepair=yes"},
		{args: "--ignore-dra-requests=no"},
		{args: `--scheduler-config={"defaultConstraints":[]}`},
		{args: `--scheduler-config={"podTopologySpread":{"defaultConstraints":[{"maxSkew":0,"topologyKey":"zone"}]}}`},
		{args: "--scheduler-config=nosuch"},
		{args: "--scheduler-config={}x"},
		{args: "--batch-idle-duration=0s"},
		{args: "--batch-idle-duration=soon"},
		{args: "--batch-max-duration=500ms"},
		{args: "--batch-idle-duration=20s"},
		{args: "--plan-budget=2m"},
		{args: "--consolidation-budget=2h"},
		{args: "--consolidation-minimum-saving=1"},
		{args: "--eviction-price=1001"},
		{args: "--eviction-payback=0s"},
		{args: "--default-node-pools=Some"},
		{args: "--max-nodes=-1"},
		{args: "--max-new-nodes-per-minute=-1"},
		{args: "--workload-share-per-node=1.5"},
		{args: "--fleet-share-per-node=-1"},
		{args: "--ledger-labels=a,b,c,d,e"},
		{args: "--ledger-labels=team,a/b/c"},
		{env: map[string]string{"LEDGER_LABELS": "a b"}},
		{args: "--bootstrap-tokens=foo"},
		{args: "--bootstrap-join-time=2h"},
		{args: "--bootstrap-token-life=30m"},
		{args: "--bootstrap-token-life=1000h"},
		{args: "--kube-client-qps=0"},
		{args: "--kube-client-burst=0"},
		{args: "--cpu-requests=-1"},
		{args: "--memory-limit=-5"},
		{args: "--memory-limit=1"},
		{args: "--memory-limit=512"},
		{env: map[string]string{"MEMORY_LIMIT": "1Gi"}},
		{env: map[string]string{"BATCH_IDLE_DURATION": "3"}},
		{env: map[string]string{"METRICS_SECURE": "maybe"}},
		{args: "--metrics-port=99999"},
		{args: "--metrics-port=8080 --health-probe-port=8080"},
		{args: "--metrics-bind-address=127.0.0.1:8081"},
		{args: "--metrics-bind-address=localhost"},
		{args: "--metrics-bind-address=127.0.0.1:http"},
		{args: "--health-probe-bind-address=127.0.0.1:1 --health-probe-port=2"},
		{args: "--enable-profiling"},
		{args: "--enable-profiling --metrics-bind-address=0.0.0.0:8080"},
		{args: "--metrics-cert-dir=/etc/nap/metrics"},
		{args: "--metrics-secure --metrics-cert-dir=/nonexistent"},
		{args: "--leader-election-name="},
		{args: "--leader-election-name=Upper"},
		{env: map[string]string{"LEADER_ELECTION_NAME": "Bad Name"}},
		{env: map[string]string{"LEADER_ELECTION_NAMESPACE": "Bad NS"}},
		{args: "--leader-election-namespace=a.b"},
		{args: "--leader-election-lease-duration=1500ms"},
		{args: "--leader-election-lease-duration=1h"},
		{args: "--leader-election-renew-deadline=10s"},
		{args: "--leader-election-lease-duration=8s"},
		{args: "--leader-election-retry-period=6s"},
		{args: "--leader-election-retry-period=0s"},
		{args: "--log-level=loud"},
		{args: "--log-format=xml"},
		{args: "--shadow --engine=karpenter"},
		{args: "--unknown"},
		{args: "now"},
		{args: "--context=nowhere"},
		{env: map[string]string{"KUBE_CLIENT_QPS": "many"}},
		{env: map[string]string{"ENGINE": "cas"}},
	}
}

func TestControllerFlagErrorsAreOneLine(t *testing.T) {
	kubeconfig := kubeconfigOf(t, "https://127.0.0.1:1")
	var errs strings.Builder
	for _, c := range refusals() {
		run := func(context.Context, controller.Config) error { t.Errorf("%s %v: it ran", c.args, c.env); return nil }
		err := runController(t, c.env, run, append(strings.Fields(c.args), "--kubeconfig="+kubeconfig)...)
		fmt.Fprintf(&errs, "%s%s\n  %s\n", c.args, envText(c.env), mask.Text(fmt.Sprint(err)))
	}
	clitest.Golden(t, "controller-refusals", errs.String())
}

func envText(env map[string]string) string {
	var out string
	for name, value := range env {
		out += name + "=" + value
	}
	return out
}

func TestControllerNeedsClusterAndCloud(t *testing.T) {
	t.Setenv("KUBECONFIG", "none")
	t.Setenv("HOME", t.TempDir())
	for want, args := range map[string][]string{
		"nap: no cluster to work with: KUBECONFIG names none, which is not there: give --kubeconfig, set KUBECONFIG, or run in a pod\n":                    nil,
		"nap: --kubeconfig /does/not/exist: no such file or directory: give the path of an existing file\n":                                                {"--kubeconfig=/does/not/exist"},
		"nap: the Azure configuration in the environment cannot be used: CLUSTER_NAME: must be set: the name of the AKS cluster; AZURE_SUBSCRIPTION_ID: m": {"--kubeconfig=" + kubeconfigOf(t, "https://127.0.0.1:1")},
	} {
		out, errs, code := program.Run(t, args...)
		if out != "" || code != 1 || !strings.HasPrefix(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q, want %q", args, code, out, errs, want)
		}
	}
}

// apiServer answers as much of Kubernetes as the check before the start asks.
func apiServer(t *testing.T, resources []string, allowed func(*authorizationv1.ResourceAttributes) bool) string {
	t.Helper()
	write := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	list := func(w http.ResponseWriter, r *http.Request) {
		l := metav1.APIResourceList{GroupVersion: strings.TrimPrefix(r.URL.Path, "/apis/")}
		for _, name := range resources {
			l.APIResources = append(l.APIResources, metav1.APIResource{Name: name})
		}
		write(w, l)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { write(w, map[string]string{"gitVersion": "v1.34.2"}) })
	mux.HandleFunc("/apis/karpenter.sh/v1", list)
	mux.HandleFunc("/apis/karpenter.azure.com/v1beta1", list)
	mux.HandleFunc("/apis/nap.azure.com/v1alpha1", list)
	mux.HandleFunc("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		review := &authorizationv1.SelfSubjectAccessReview{}
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, review); err != nil {
			t.Error(err)
		}
		review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
		review.Status.Allowed = allowed(review.Spec.ResourceAttributes)
		write(w, review)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// Rights are advised only where they are missing.
func TestShadowToldWhatIsMissing(t *testing.T) {
	forbidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/v1": // enough for the kinds to be known
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true}]}`)
		case "/api":
			_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		default:
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","status":"Failure","reason":"Forbidden","code":403}`)
		}
	}))
	t.Cleanup(forbidden.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	const rights = "shadow.enabled=true"
	for server, want := range map[string]string{forbidden.URL: "may not list Pods", closed.URL: "check that the API server runs"} {
		config, err := command.ClusterConfig(kubeconfigOf(t, server), "")
		if err != nil {
			t.Fatal(err)
		}
		err = controller.RunShadow(t.Context(), controller.ShadowConfig{
			Settings: shadowkeeper.Settings{Every: time.Minute}, REST: config, HealthProbeBindAddress: "0",
		})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), rights) != (server == forbidden.URL) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestControllerDoesNotStartInUnfitCluster(t *testing.T) {
	all := []string{"nodepools", "nodeclaims", "aksnodeclasses", "nodeautoprovisionings", "snapshots", "snapshotshards", "ledgerpages"}
	granted := func(*authorizationv1.ResourceAttributes) bool { return true }
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, c := range []struct {
		name, server, want string
	}{
		{"nobody answers", closed.URL, "cannot reach the API server %s: dial tcp %s: connect: connection refused: check that it runs, or choose another with --kubeconfig or --context"},
		{
			"custom resources are missing", apiServer(t, []string{"nodepools"}, granted),
			`the cluster lacks the custom resource definitions nodeclaims.karpenter.sh (v1), aksnodeclasses.karpenter.azure.com (v1beta1), nodeautoprovisionings.nap.azure.com (v1alpha1), snapshots.nap.azure.com (v1alpha1), snapshotshards.nap.azure.com (v1alpha1), ledgerpages.nap.azure.com (v1alpha1): install them with "nap enable" or the chart nap-crd where nap comes from its charts, else "nap controller manifests --definitions | kubectl apply --server-side -f -"`,
		},
		{
			"permissions are missing", apiServer(t, all, func(a *authorizationv1.ResourceAttributes) bool {
				return a.Verb != "create" || a.Resource == "events"
			}),
			`the credentials lack 10 of 108 permissions: create nodeclaims.karpenter.sh, create pods/eviction, create nodeautoprovisionings.nap.azure.com, create snapshots.nap.azure.com, create snapshotshards.nap.azure.com, create ledgerpages.nap.azure.com, create nodepools.karpenter.sh, create aksnodeclasses.karpenter.azure.com, create leases.coordination.k8s.io in namespace nap, create secrets in namespace kube-system: grant them with "nap enable" or "helm upgrade" where a chart made them, else "nap controller manifests | kubectl apply --server-side -f -", with --namespace and --service-account, or --user, of these credentials`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(ctx context.Context, cfg controller.Config) error {
				cfg.Connect = func(context.Context, controller.Start) (controller.NewCloud, error) {
					t.Error("the cloud was connected")
					return nil, nil
				}
				return controller.Run(ctx, cfg)
			}
			err := runController(t, nil, run, "--kubeconfig="+kubeconfigOf(t, c.server), "--metrics-bind-address=0", "--health-probe-bind-address=0", "--leader-election-namespace=nap")
			want := c.want
			if strings.Contains(want, "%s") {
				want = fmt.Sprintf(want, c.server, strings.TrimPrefix(c.server, "http://"))
			}
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestManifestsBindSubject(t *testing.T) {
	out, errs, code := program.Run(t, "manifests", "--namespace=nap-system", "--service-account=buyer")
	if errs != "" || code != 0 {
		t.Fatalf("exit code %d, stderr %q", code, errs)
	}
	for _, want := range []string{"name: nodeclaims.karpenter.sh", "name: aksnodeclasses.karpenter.azure.com", "kind: ClusterRoleBinding", "- kind: ServiceAccount\n  name: buyer\n  namespace: nap-system"} {
		if !strings.Contains(out, want) {
			t.Errorf("the manifests lack %q", want)
		}
	}
	out, _, _ = program.Run(t, "manifests", "--user=jane")
	if want := "- apiGroup: rbac.authorization.k8s.io\n  kind: User\n  name: jane"; !strings.Contains(out, want) {
		t.Errorf("the manifests lack %q", want)
	}
}

// Definitions alone touch no right: an update of them must not bind the roles to another account.
func TestManifestsOfDefinitionsHaveNoRoles(t *testing.T) {
	for args, want := range map[string]int{"": 10, "--shadow": 1} {
		out, errs, code := program.Run(t, strings.Fields("manifests --definitions "+args)...)
		if errs != "" || code != 0 {
			t.Fatalf("exit code %d, stderr %q", code, errs)
		}
		if n := strings.Count("\n"+out, "\nkind: "); n != want || strings.Count(out, "\nkind: CustomResourceDefinition\n") != want {
			t.Errorf("%s: %d objects, want %d definitions and nothing else", args, n, want)
		}
	}
}

func TestControllerLogFormats(t *testing.T) {
	amounts := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi"), corev1.ResourceCPU: resource.MustParse("1500m")}
	for format, want := range map[string]string{
		"text": `level=INFO msg=launched size="cpu=1500m memory=2Gi"`,
		"json": `"msg":"launched","size":{"cpu":"1500m","memory":"2Gi"}`,
	} {
		var out bytes.Buffer
		handler, err := logHandler(&out, "info", format)
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(handler)
		log.Debug("not at this level")
		log.Info("launched", "size", amounts)
		if got := out.String(); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: got %s, want %s", format, got, want)
		}
		log.Error("refused", "error", `Get "https://y": invalid proxy address "http://me:swordfish@proxy:31z": no port`, "answer", `{"password":"a swordfish"}`)
		if got := out.String(); strings.Contains(got, "swordfish") || !strings.Contains(got, "http://***@proxy:31z") {
			t.Errorf("%s: secrets are in the log: %s", format, got)
		}
	}
}

// A person is told at once that nothing answers; a pod waits for an API server that comes
// back, instead of being restarted ever more slowly.
func TestControllerInPodIsPatientAtItsStart(t *testing.T) {
	for name, want := range map[string]time.Duration{"KUBERNETES_SERVICE_HOST": time.Minute, "OTHER": 0} {
		var got time.Duration
		run := func(_ context.Context, cfg controller.Config) error {
			got = cfg.Patience
			return nil
		}
		err := runController(t, map[string]string{name: "10.0.0.1"}, run, "--kubeconfig="+kubeconfigOf(t, "http://127.0.0.1:1"))
		if err != nil || got != want {
			t.Errorf("with %s: %v, patience %s, want %s", name, err, got, want)
		}
	}
}
