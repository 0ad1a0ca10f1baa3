package cloud

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/crds"
	"github.com/nodeautoprovision/nap/internal/controller/rbac"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// Controller is what the controller's process is called in the lab.
const Controller = "controller"

// The names of the controller's ports.
const (
	metricsPort = "controller-metrics"
	healthPort  = "controller-health"
)

// NoController is the engine of a lab that has none: to run one by hand.
const NoController = "none"

// Engines are the allowed values of a lab's engine, the default first.
func Engines() []string { return []string{"nap", "karpenter", NoController} }

// Complete adds to a lab everything that makes it a cluster on Azure: the
// simulated cloud, nap's custom resource definitions and permissions, and the
// controller with the given engine.
func Complete(cfg lab.Config, o Options, engine string) (lab.Config, error) {
	if !slices.Contains(Engines(), engine) {
		return cfg, fmt.Errorf("engine %q: allowed are %s", engine, strings.Join(Engines(), ", "))
	}
	if o.Speed < 0 || o.Speed > maxSpeed {
		return cfg, fmt.Errorf("speed %v: allowed are 1 (as the real Azure) to %d times faster", o.Speed, maxSpeed)
	}
	if modes := ProvisionModes(); o.ProvisionMode != "" && !slices.Contains(modes, o.ProvisionMode) {
		return cfg, fmt.Errorf("provision mode %q: allowed are %s", o.ProvisionMode, strings.Join(modes, ", "))
	}
	known, err := skutable.Load()
	if err != nil {
		return cfg, err
	}
	if o.Region != "" && !slices.Contains(known.Regions(), o.Region) {
		return cfg, fmt.Errorf("region %q: allowed are %s", o.Region, strings.Join(known.Regions(), ", "))
	}
	manifests, err := manifests()
	if err != nil {
		return cfg, err
	}
	cfg.Manifests = append(cfg.Manifests, manifests...)
	service := New(o)
	cfg.ServerName = "nap-dns-10000001.hcp." + service.options.Region + ".azmk8s.io"
	cfg.Services = append(cfg.Services, service)
	cfg.Ports = map[string]int{Name: 0, metricsPort: 0, healthPort: 0}
	if engine != NoController {
		cfg.Processes = append(cfg.Processes, controller(engine))
	}
	return cfg, nil
}

// maxSpeed bounds Options.Speed: beyond it boots take less time than the control
// plane needs to notice them.
const maxSpeed = 1000

// manifests are the definitions and permissions that nap needs in a cluster.
func manifests() ([][]byte, error) {
	definitions, err := crds.All()
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, d := range definitions {
		text, err := yaml.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("write custom resource definition %s: %w", d.Name, err)
		}
		out = append(out, text)
	}
	subject := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "nap"}
	roles, err := rbac.Manifests(metav1.NamespaceSystem, subject, features(os.LookupEnv)...)
	return append(out, roles), err
}

// features are those whose permissions the controller gets: what the gates in its
// environment need, beside what it always has.
func features(lookup func(string) (string, bool)) []rbac.Feature {
	out := []rbac.Feature{rbac.LeaderElection, rbac.BootstrapTokens}
	gates, _ := lookup("FEATURE_GATES")
	for gate := range strings.SplitSeq(gates, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(gate), "=")
		f := rbac.Feature(name)
		if value == "true" && slices.Contains([]rbac.Feature{rbac.NodeOverlay, rbac.CapacityBuffer, rbac.PodDeletionCost}, f) {
			out = append(out, f)
		}
	}
	if config, _ := lookup("SCHEDULER_CONFIG"); config != "" {
		out = append(out, rbac.SchedulerConfig)
	}
	if ignored, _ := lookup("IGNORE_DRA_REQUESTS"); ignored == "false" {
		out = append(out, rbac.DynamicResources)
	}
	return out
}

func controller(engine string) lab.Process {
	return lab.Process{
		Name: Controller,
		Args: func(env lab.Environment) []string {
			return []string{
				"--engine=" + engine, "--kubeconfig=" + env.ControllerKubeconfig,
				"--metrics-bind-address=" + local(env, metricsPort), "--health-probe-bind-address=" + local(env, healthPort),
				// The supervisor runs exactly one, and a killed one's lease would
				// keep its successor waiting.
				"--disable-leader-election", "--leader-election-namespace=" + metav1.NamespaceSystem,
				"--log-format=text",
			}
		},
		Env:   func(env lab.Environment) ([]string, error) { return ControllerEnvironment(env.Dir) },
		Ready: ready,
	}
}

func local(env lab.Environment, port string) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(env.Ports[port]))
}

// ready asks the controller whether it serves with filled caches.
func ready(ctx context.Context, env lab.Environment) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+local(env, healthPort)+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the controller's /readyz answers %s", resp.Status)
	}
	return nil
}
