package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/systemnode"
)

// SystemNode is what the service is called that plays the cluster's system node, on
// which the release of the chart runs.
const SystemNode = "system-node"

// Controller is what the process of the release's first replica is called in the lab;
// more have a number behind it.
const Controller = "controller"

// Releases are the allowed values of Options.Release, the default first: nap in a
// namespace of its own, nap in the place of Karpenter, with its names, its lease and
// its plain metrics in kube-system, and none for a cluster in which nap enable installs nap.
func Releases() []string { return []string{releaseNap, releaseKarpenter, releaseNone} }

const (
	releaseNap       = "nap"
	releaseKarpenter = "karpenter"
	releaseNone      = "none"
	releaseNamespace = "nap-system"
)

// release installs the chart nap in the lab's cluster, and plays the node that its pods
// run on. It implements lab.Service.
type release struct {
	engine    string
	replicas  int
	name      string // the release's, which is also the Deployment's
	namespace string
	profile   string   // a file of values that comes with the chart
	defaults  string   // Options.DefaultNodePools
	variables []string // Options.Variables
	azure     *Service
	none      bool // there is the node, and nap enable installs what runs on it
}

func newRelease(o Options, engine string, azure *Service) *release {
	r := &release{engine: engine, replicas: max(o.Replicas, 1), name: releaseNap, namespace: releaseNamespace, azure: azure,
		defaults: cmp.Or(o.DefaultNodePools, defaultsNone), variables: o.Variables}
	if o.Release == releaseKarpenter {
		r.name, r.namespace, r.profile = releaseKarpenter, metav1.NamespaceSystem, releaseKarpenter
		r.defaults = defaultsNone // as its profile says: variables count before that
	}
	r.none = o.Release == releaseNone
	return r
}

// Name implements lab.Service.
func (r *release) Name() string { return SystemNode }

// image is the reference that stands for the built program.
const image = "nap:lab"

// azureConfig is the ConfigMap with what tells a pod which Azure there is, and where the
// chart mounts it.
const (
	azureConfig      = "nap-lab-azure"
	azureConfigMount = "/etc/nap/azure"
)

// Run implements lab.Service: the release is applied again at each start of the lab,
// and is ready when all replicas are.
func (r *release) Run(ctx context.Context, env lab.Environment) error {
	admin, err := env.AdminConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	azure := r.azure.current()
	if azure == nil {
		return fmt.Errorf("the simulated Azure is not running")
	}
	node, err := systemnode.New(r.node(env, azure), env)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return node.Run(ctx) })
	g.Go(func() error {
		if r.none {
			return r.offer(ctx, env)
		}
		if err := r.install(ctx, env); err != nil {
			return err
		}
		return r.watch(ctx, client, env)
	})
	return g.Wait()
}

// systemScaleSet is the scale set of the system pool, in which the system node is the
// first instance. The simulated Azure does not have it: nap never asks for it.
const (
	systemScaleSet = "aks-system-10000001-vmss"
	systemNodeName = systemScaleSet + "000000"
)

// fixedNodeName is the name of a node of the fixed agent pool, by its number from 0. The
// system node is in the same pool.
func fixedNodeName(i int) string { return fmt.Sprintf("%s%06d", systemScaleSet, i+1) }

// ControllerPorts are the ports that the controller listens on.
func ControllerPorts() []systemnode.Port {
	return []systemnode.Port{
		{Number: "METRICS_PORT", Address: "METRICS_BIND_ADDRESS", Default: 8080},
		{Number: "HEALTH_PROBE_PORT", Address: "HEALTH_PROBE_BIND_ADDRESS", Default: 8081},
	}
}

// node is the system node, as one of the cluster's system pool.
func (r *release) node(env lab.Environment, azure *armsim.Server) systemnode.Config {
	cfg := azure.Config()
	group := cfg.Cluster.NodeResourceGroup
	return systemnode.Config{
		Name: systemNodeName,
		ProviderID: "azure:///subscriptions/" + cfg.SubscriptionID + "/resourceGroups/" + strings.ToLower(group) +
			"/providers/Microsoft.Compute/virtualMachineScaleSets/" + systemScaleSet + "/virtualMachines/0",
		Region: cfg.Region, Zone: cfg.Region + "-1",
		Labels: map[string]string{
			"agentpool": "system", "kubernetes.azure.com/agentpool": "system", "kubernetes.azure.com/mode": "system",
			"kubernetes.azure.com/role": "agent", "kubernetes.azure.com/cluster": group,
			corev1.LabelInstanceTypeStable: "Standard_D4s_v5",
		},
		Programs: map[string]systemnode.Program{image: {
			Name: Controller, Path: env.Executable, Ports: ControllerPorts(),
		}},
		WorkloadIdentity: systemnode.WorkloadIdentity{AuthorityHost: endpoint(env), TenantID: cfg.TenantID},
	}
}

// chart is the release with its values: the controller's variables in the environment of
// this process, those of the lab's options, and those that say which cluster and which Azure
// there is.
func (r *release) chart(told []string) lab.Chart {
	variables := slices.Concat([]string{"LOG_FORMAT=text", "DEFAULT_NODE_POOLS=" + r.defaults}, os.Environ(), r.variables)
	for _, v := range told {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "AZURE_ENVIRONMENT_FILEPATH", "AZURE_TENANT_ID": // elsewhere in the values
		default:
			variables = append(variables, v)
		}
	}
	settings := map[string]any{
		"engine": r.engine, "azureEnvironmentFilepath": azureConfigMount + "/azure-environment.json",
	}
	if r.replicas == 1 {
		// There is one replica, and a killed one's lease would keep its successor waiting.
		settings["disableLeaderElection"] = true
	}
	repository, tag, _ := strings.Cut(image, ":")
	return lab.Chart{
		Chart: "nap", Name: r.name, Namespace: r.namespace, Profile: r.profile, Variables: variables,
		Values: map[string]any{
			"image": map[string]any{"repository": repository, "tag": tag}, "replicas": r.replicas, "settings": settings,
			"workloadIdentity": map[string]any{"clientId": clientID},
			// Nodes of the fixed pool are system nodes, too, and only play what they run.
			"nodeSelector": map[string]any{corev1.LabelHostname: systemNodeName},
			// The simulated Azure has a certificate of the lab's.
			"extraEnv":          []any{map[string]any{"name": "SSL_CERT_FILE", "value": azureConfigMount + "/ca.crt"}},
			"extraVolumes":      []any{map[string]any{"name": "azure", "configMap": map[string]any{"name": azureConfig}}},
			"extraVolumeMounts": []any{map[string]any{"name": "azure", "mountPath": azureConfigMount, "readOnly": true}},
		},
	}
}

// Check says what the chart refuses of a lab's options and of the controller's variables
// in the environment of this process, before anything is started.
func Check(ctx context.Context, binary string, o Options, engine string) error {
	if engine == NoController {
		return nil
	}
	facts := []string{"CLUSTER_NAME=nap-lab", "ARM_RESOURCE_GROUP=nap-lab", "AZURE_SUBSCRIPTION_ID=nap-lab"}
	_, err := newRelease(o, engine, nil).chart(facts).Render(ctx, binary)
	return err
}

// installed is the file with the objects of the release as they were applied last.
func installed(dir string) string { return filepath.Join(dir, "release.yaml") }

// install applies the release's namespace, what it mounts, and the chart. What an earlier
// release had besides is removed, as Helm removes it.
func (r *release) install(ctx context.Context, env lab.Environment) error {
	told, err := ControllerEnvironment(env.Dir)
	if err != nil {
		return err
	}
	chart := r.chart(told)
	chart.Kubernetes = env.KubernetesVersion
	rendered, err := chart.Render(ctx, env.Binary)
	if err != nil {
		return err
	}
	mounted, err := r.mounted(env)
	if err != nil {
		return err
	}
	release := append(append(mounted, "\n---\n"...), rendered...)
	admin, err := env.AdminConfig()
	if err != nil {
		return err
	}
	before, err := os.ReadFile(installed(env.Dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the objects of the release before: %w", err)
	}
	if err := lab.RemoveOthers(ctx, admin, before, release); err != nil {
		return err
	}
	first, err := manifestOf(r.ownNamespace())
	if err != nil {
		return err
	}
	if err := os.WriteFile(installed(env.Dir), release, 0o600); err != nil {
		return fmt.Errorf("the objects of the release: %w", err)
	}
	if err := r.note(env, chart, rendered, mounted); err != nil {
		return err
	}
	return lab.Apply(ctx, admin, first, release)
}

// ownNamespace is the release's namespace.
func (r *release) ownNamespace() *corev1.Namespace {
	namespace := &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: r.namespace},
	}
	if r.namespace != metav1.NamespaceSystem {
		// The chart's pods are admitted under the strictest standard.
		namespace.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	}
	return namespace
}

// ValuesFile is where a lab without a release says which values of the chart let its pods
// reach the simulated Azure, for nap enable --values.
const ValuesFile = "enable-values.yaml"

// offer has the cluster hold what pods of nap mount, and writes ValuesFile.
func (r *release) offer(ctx context.Context, env lab.Environment) error {
	if err := removeRelease(ctx, env); err != nil {
		return err
	}
	first, err := manifestOf(r.ownNamespace())
	if err != nil {
		return err
	}
	mounted, err := r.mounted(env)
	if err != nil {
		return err
	}
	admin, err := env.AdminConfig()
	if err != nil {
		return err
	}
	if err := lab.Apply(ctx, admin, first, mounted); err != nil {
		return err
	}
	values := r.chart(nil).Values
	delete(values, "workloadIdentity")
	values["settings"].(map[string]any)["napRetailPrices"] = endpoint(env) + "/api/retail/prices"
	text, err := yaml.Marshal(values)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(env.Dir, ValuesFile), text, 0o600); err != nil {
		return fmt.Errorf("the values for nap enable: %w", err)
	}
	env.Ready()
	<-ctx.Done()
	return nil
}

// removeRelease removes what a lab with a controller has left in the folder's cluster, for
// one without.
func removeRelease(ctx context.Context, env lab.Environment) error {
	before, err := os.ReadFile(installed(env.Dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the objects of the release before: %w", err)
	}
	node, err := manifestOf(&corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: systemNodeName},
	})
	if err != nil {
		return err
	}
	admin, err := env.AdminConfig()
	if err != nil {
		return err
	}
	if err := lab.Remove(ctx, admin, before, node); err != nil {
		return err
	}
	return os.Remove(installed(env.Dir))
}

// mounted is the ConfigMap that tells the release's pods which Azure there is.
func (r *release) mounted(env lab.Environment) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(env.Dir, "azure-environment.json"))
	if err != nil {
		return nil, fmt.Errorf("the lab's Azure is not ready: %w", err)
	}
	return manifestOf(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: azureConfig, Namespace: r.namespace},
		Data:       map[string]string{"ca.crt": string(env.CA), "azure-environment.json": string(text)},
	})
}

// manifestOf writes objects as YAML documents.
func manifestOf(objects ...any) ([]byte, error) {
	var all []byte
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		all = append(append(all, "---\n"...), text...)
	}
	return all, nil
}

// watch says whether the release is ready, until ctx is done.
func (r *release) watch(ctx context.Context, client kubernetes.Interface, env lab.Environment) error {
	const often, seldom = 50 * time.Millisecond, 2 * time.Second
	for {
		pause := often
		d, err := client.AppsV1().Deployments(r.namespace).Get(ctx, r.name, metav1.GetOptions{})
		if err == nil {
			err = available(d)
		}
		if err == nil {
			env.Ready()
			pause = seldom
		} else if ctx.Err() == nil {
			env.NotReady(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// available says what a Deployment lacks until all its replicas are there.
func available(d *appsv1.Deployment) error {
	want := *d.Spec.Replicas
	if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas < want || s.AvailableReplicas < want || s.Replicas > want {
		return fmt.Errorf("of %d replicas of Deployment %s/%s %d are up to date and %d available",
			want, d.Namespace, d.Name, s.UpdatedReplicas, s.AvailableReplicas)
	}
	return nil
}
