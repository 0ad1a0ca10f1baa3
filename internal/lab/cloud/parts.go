package cloud

import (
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/controller/rbac"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/metricsapi"
)

// NoController is the engine of a lab that has none: to run one by hand.
const NoController = "none"

// Engines are the allowed values of a lab's engine, the default first.
func Engines() []string { return []string{"nap", "karpenter", NoController} }

// Complete adds to a lab everything that makes it a cluster on Azure: the simulated
// cloud, and nap as its charts install it, with the given engine. Without an engine
// there are the definitions of the chart nap-crd, and permissions for the user of
// Environment.ControllerKubeconfig.
func Complete(cfg lab.Config, o Options, engine string) (lab.Config, error) {
	if err := o.validate(engine); err != nil {
		return cfg, err
	}
	if o.Release != releaseNone {
		cfg.Charts = append(cfg.Charts, lab.Chart{Chart: "nap-crd", Name: "nap-crd", Namespace: releaseNamespace})
	}
	service := New(o)
	cfg.ServerName = "nap-dns-10000001.hcp." + service.options.Region + ".azmk8s.io"
	cfg.Services = append(cfg.Services, service, metricsapi.New())
	cfg.Ports = map[string]int{Name: 0}
	if engine == NoController {
		service.alone = true
		roles, err := handRun()
		cfg.Manifests = append(cfg.Manifests, roles)
		return cfg, err
	}
	if cfg.Executable == "" {
		var err error
		if cfg.Executable, err = lab.Controller(); err != nil {
			return cfg, err
		}
	}
	cfg.Services = append(cfg.Services, newRelease(o, engine, service))
	return cfg, nil
}

// maxReplicas bounds Options.Replicas: so many fit on the system node, and a rollout.
const maxReplicas = 5

// maxSpeed bounds Options.Speed: beyond it boots take less time than the control
// plane needs to notice them.
const maxSpeed = 1000

// handRun are the permissions of a controller that is started by hand.
func handRun() ([]byte, error) {
	subject := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "nap"}
	return rbac.Manifests(metav1.NamespaceSystem, subject, features(os.LookupEnv)...)
}

// features are those whose permissions the controller gets: what the gates in its
// environment need, beside what it always has.
func features(lookup func(string) (string, bool)) []rbac.Feature {
	out := []rbac.Feature{rbac.LeaderElection, rbac.BootstrapTokens}
	if pools, _ := lookup("DEFAULT_NODE_POOLS"); pools != defaultsNone {
		out = append(out, rbac.DefaultNodePools)
	}
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
