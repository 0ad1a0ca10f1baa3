// Package controllercli is the command line of nap-controller, the program that runs
// in a cluster. Users can reach it as "nap controller", too.
package controllercli

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	karpoptions "sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller"
	"github.com/nodeautoprovision/nap/internal/controller/bootstraptoken"
	"github.com/nodeautoprovision/nap/internal/controller/shadowkeeper"
	"github.com/nodeautoprovision/nap/internal/document"
	"github.com/nodeautoprovision/nap/internal/mask"
)

// controllerCommand is "nap controller" before it runs: what its flags say, and
// the world that tests replace.
type controllerCommand struct {
	streams   command.Streams
	lookupEnv func(string) (string, bool)
	run       func(context.Context, controller.Config) error
	runShadow func(context.Context, controller.ShadowConfig) error
	newCloud  cloudFactory

	options    controller.Options
	kubeconfig string
	context    string
	pricesFile string
	// shadow only watches, with a sample after each interval.
	shadow         bool
	shadowInterval time.Duration
	terms          command.TermFlags

	engine, preferencePolicy, minValuesPolicy, gates, schedulerConfig string
	tokens                                                            string
	metricsAddress, healthAddress                                     string
	metricsPort, healthPort                                           int
	logLevel, logFormat                                               string
}

// cloudFactory reads the cloud's configuration from the environment, and returns
// how to connect to it. The config is the one that reaches the cluster.
type cloudFactory func(world cloudWorld) (newCloud, error)

// cloudWorld is what a cloud is configured from.
type cloudWorld struct {
	lookupEnv func(string) (string, bool)
	// pricesFile is what the subscription pays; empty means retail prices.
	pricesFile string
	// overlays gives NodeOverlays their effect.
	overlays bool
	// tokens say with which bootstrap tokens machines join.
	tokens bootstraptoken.Settings
	// cluster is the connection that the controller uses.
	cluster *rest.Config
	log     *slog.Logger
}

// Main runs nap-controller with the arguments that follow the program's name, and
// returns the exit code.
func Main(ctx context.Context, args []string, version string, s command.Streams) int {
	root := newController(s)
	root.Version = version
	return command.Run(ctx, root, args, s)
}

func newController(s command.Streams) *cobra.Command {
	c := &controllerCommand{
		streams: s, lookupEnv: os.LookupEnv, run: controller.Run, runShadow: controller.RunShadow, newCloud: newAzure,
	}
	return c.command()
}

func (c *controllerCommand) command() *cobra.Command {
	c.options = controller.DefaultOptions()
	cmd := &cobra.Command{
		Use:   "nap-controller",
		Short: "Run the controller: buy nodes for pending pods, remove nodes that are not needed",
		Long: `Run nap's controller until it is told to stop (Ctrl-C, SIGTERM). In a cluster it
uses its service account; elsewhere --kubeconfig and --context say which
cluster.

Karpenter's flags have the same names and defaults here, but for three that do
not exist (docs/differences.md). Every flag but --kubeconfig and --context can
be set by an environment variable: --batch-idle-duration is BATCH_IDLE_DURATION.
A flag on the command line wins.

The engine decides what to buy. nap is this project's planner; karpenter is
Karpenter's own provisioner on the same cloud, to fall back to or to compare
with.

The cluster and Azure are described by environment variables. CLUSTER_NAME,
ARM_RESOURCE_GROUP and AZURE_SUBSCRIPTION_ID say which cluster it is; nap reads
the rest from it, variables win, and what contradicts the cluster is refused by
name. PROVISION_MODE says how machines are made: aksscriptless (virtual
machines), aksmachineapi or aksmachineapiheaderbatch (machines of an AKS agent
pool, singly or in batches). Without it nap chooses: aksmachineapi where the
cluster has an agent pool of mode Machines, or NAP_CREATE_MACHINES_POOL=true
lets nap make one, else aksscriptless.

With --shadow it buys and removes nothing, and needs none of this: it watches a
cluster that Karpenter, AKS or the cluster autoscaler rules, and writes one
ShadowReport, which nap shadow reads. Of the flags only --shadow-interval,
--plan-budget, --batch-max-duration, --batch-idle-duration, --prices-file,
--kube-client-qps and --kube-client-burst have an effect then, and those that
choose the cluster, the health endpoint and the log.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.start(cmd.Context(), cmd.Flags()) },
	}
	c.addFlags(cmd.Flags())
	cmd.AddCommand(newControllerManifests(c.streams), newControllerRole(c.streams))
	return cmd
}

func (c *controllerCommand) addFlags(fs *pflag.FlagSet) {
	o := &c.options
	fs.SortFlags = false
	fs.StringVar(&c.engine, "engine", string(o.Engine), "who decides what to buy: nap or karpenter")
	fs.DurationVar(&o.PlanBudget, "plan-budget", o.PlanBudget, "time for improving a plan after the first feasible one (engine nap)")
	fs.BoolVar(&o.NominatePods, "nominate-pods", o.NominatePods,
		"tell the scheduler where the plan puts each pod, by its status.nominatedNodeName (engine nap)")
	fs.DurationVar(&o.ConsolidationBudget, "consolidation-budget", o.ConsolidationBudget,
		"time for the search of one decision about nodes to remove (engine nap)")
	fs.BoolVar(&o.ConsolidateInWindow, "consolidate-in-maintenance-window", o.ConsolidateInWindow,
		"consolidate, and give empty nodes back, in the cluster's maintenance window for node images alone (engine nap)")
	c.terms.Add(fs)
	fs.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig file; default: $KUBECONFIG, ~/.kube/config, or the service account")
	fs.StringVar(&c.context, "context", "", "context of the kubeconfig; default: its current one")

	fs.StringVar(&c.pricesFile, "prices-file", "",
		"what the subscription pays instead of retail prices: negotiated prices, discounts, reservations, savings plans; see docs/prices.md")
	fs.BoolVar(&c.shadow, "shadow", false,
		"only watch a cluster that another autoscaler rules, and write down for nap shadow what nap would have cost; docs/shadow.md")
	fs.DurationVar(&c.shadowInterval, "shadow-interval", time.Minute, "usual pause between two samples of the shadow")
	fs.DurationVar(&o.BatchMaxDuration, "batch-max-duration", o.BatchMaxDuration,
		"longest time that pending pods are collected before planning")
	fs.DurationVar(&o.BatchIdleDuration, "batch-idle-duration", o.BatchIdleDuration, "pause between pending pods that ends the collecting")
	fs.IntVar(&o.MaxNodes, "max-nodes", o.MaxNodes, "most machines that there may be; 0 for no limit (engine nap)")
	fs.IntVar(&o.MaxNewNodesPerMinute, "max-new-nodes-per-minute", o.MaxNewNodesPerMinute,
		"most machines that are bought for pods within a minute; 0 for no limit (engine nap)")
	command.AddNodeShare(fs, &o.NodeShare)
	fs.StringVar((*string)(&o.DefaultNodePools), "default-node-pools", "",
		"Auto makes the NodePools default and system-surge in a cluster that nap meets for the first time, None does not; "+
			"default: Auto where there are no NodePools")
	fs.StringVar(&o.LedgerLabels, "ledger-labels", o.LedgerLabels,
		"keys of the pods' labels by which the ledger tells costs apart, separated by commas, at most four (engine nap)")
	fs.StringVar(&c.preferencePolicy, "preference-policy", string(o.PreferencePolicy),
		"whether preferred affinities and soft spreads are honoured: Respect or Ignore")
	fs.StringVar(&c.minValuesPolicy, "min-values-policy", string(o.MinValuesPolicy),
		"what happens when minValues cannot be met: Strict or BestEffort")
	fs.StringVar(&c.gates, "feature-gates", "", "comma separated Gate=true|false; gates: "+gateDefaults())
	fs.BoolVar(&o.IgnoreDRARequests, "ignore-dra-requests", o.IgnoreDRARequests,
		"leave pods with resource claims alone, instead of planning their devices")
	fs.BoolVar(&o.LegacyNodeRepair, "legacy-node-repair", o.LegacyNodeRepair,
		"with gate NodeRepair, replace unhealthy nodes without asking disruption budgets and karpenter.sh/do-not-repair")
	fs.StringVar(&c.schedulerConfig, "scheduler-config", "",
		"YAML or JSON itself, no file: podTopologySpread.defaultConstraints as kube-scheduler has them")

	fs.StringVar(&c.tokens, "bootstrap-tokens", "",
		"whose bootstrap tokens machines join with: own, cluster, given or none; default: given with KUBELET_BOOTSTRAP_TOKEN, else own")
	fs.DurationVar(&o.BootstrapTokenLife, "bootstrap-token-life", o.BootstrapTokenLife,
		"how long a token of nap's own lives; it is renewed at half of that")
	fs.DurationVar(&o.JoinTime, "bootstrap-join-time", o.JoinTime,
		"how long a machine may take until it has joined; none is launched with a token that ends earlier")

	fs.IntVar(&c.metricsPort, "metrics-port", 8080, "port of the metrics endpoint, on all addresses")
	fs.StringVar(&c.metricsAddress, "metrics-bind-address", "",
		"host:port of the metrics endpoint instead; port 0 takes a free one, \"0\" alone none")
	fs.IntVar(&c.healthPort, "health-probe-port", 8081, "port of the health endpoint, on all addresses")
	fs.StringVar(&c.healthAddress, "health-probe-bind-address", "", "host:port of the health endpoint instead; as above")
	fs.BoolVar(&o.EnableProfiling, "enable-profiling", o.EnableProfiling,
		"serve /debug/pprof/ on the metrics endpoint; needs --metrics-secure, or a loopback address")
	fs.BoolVar(&o.MetricsSecure, "metrics-secure", o.MetricsSecure,
		"serve the metrics over TLS, to users alone that the API server knows by their token and allows to")
	fs.StringVar(&o.MetricsCertDir, "metrics-cert-dir", "", "folder with tls.crt and tls.key for it; default: a certificate made at the start")

	fs.BoolVar(&o.DetailedMetrics, "detailed-metrics", o.DetailedMetrics,
		"serve metrics of each node, pod and NodeClaim, of work queues, requests to the API server and reconcilers; docs/metrics.md")

	fs.IntVar(&o.KubeClientQPS, "kube-client-qps", o.KubeClientQPS, "requests per second to the API server")
	fs.IntVar(&o.KubeClientBurst, "kube-client-burst", o.KubeClientBurst, "requests at once to the API server")
	fs.BoolVar(&o.DisableLeaderElection, "disable-leader-election", o.DisableLeaderElection,
		"act without holding the lease; only where no other controller runs")
	fs.StringVar(&o.LeaderElectionName, "leader-election-name", o.LeaderElectionName, "name of the lease")
	fs.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the lease; default: the pod's own, or kube-system")
	fs.DurationVar(&o.Election.LeaseDuration, "leader-election-lease-duration", o.Election.LeaseDuration,
		"how long other replicas wait after the last renewal of the lease before one of them leads, in whole seconds")
	fs.DurationVar(&o.Election.RenewDeadline, "leader-election-renew-deadline", o.Election.RenewDeadline,
		"how long the leader tries to renew the lease before it ends, and writes after a renewal; less than the lease's duration")
	fs.DurationVar(&o.Election.RetryPeriod, "leader-election-retry-period", o.Election.RetryPeriod,
		"how often the lease is renewed, and asked for; at most half of the deadline")
	fs.BoolVar(&o.DisableControllerWarmup, "disable-controller-warmup",
		o.DisableControllerWarmup, "fill the caches only once the lease is held")
	fs.BoolVar(&o.DisableClusterStateObservability, "disable-cluster-state-observability",
		o.DisableClusterStateObservability, "leave out the metrics of single pods, nodes and NodePools")
	fs.Int64Var(&o.MemoryLimit, "memory-limit", o.MemoryLimit, "memory limit of the container in bytes, -1 for none")
	fs.Int64Var(&o.CPURequests, "cpu-requests", o.CPURequests, "CPU requests of the container in milli-cores; parallelism grows with it")
	fs.StringVar(&c.logLevel, "log-level", "info", "least level that is logged: debug, info or error")
	fs.StringVar(&c.logFormat, "log-format", "json", "form of the log lines on standard error: json or text")
}

func gateDefaults() string {
	gates := controller.Gates()
	var parts []string
	for name, on := range gates {
		parts = append(parts, fmt.Sprintf("%s (%t)", name, on))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// start runs the controller. Everything up to the run is about input, and none
// of it has an effect.
func (c *controllerCommand) start(ctx context.Context, fs *pflag.FlagSet) error {
	if err := applyEnv(fs, c.lookupEnv); err != nil {
		return err
	}
	if err := c.resolve(fs); err != nil {
		return err
	}
	handler, err := logHandler(c.streams.Err, c.logLevel, c.logFormat)
	if err != nil {
		return err
	}
	config, err := command.ClusterConfig(c.kubeconfig, c.context)
	if err != nil {
		return err
	}
	config.UserAgent = "nap-controller"
	if c.shadow {
		config.QPS, config.Burst = float32(c.options.KubeClientQPS), c.options.KubeClientBurst
		return c.runShadow(ctx, controller.ShadowConfig{
			Settings: shadowkeeper.Settings{
				Every: c.shadowInterval, Budget: c.options.PlanBudget, BatchIdle: c.options.BatchIdleDuration,
				BatchMax: c.options.BatchMaxDuration, PricesFile: c.pricesFile,
			},
			REST: config, HealthProbeBindAddress: c.options.HealthProbeBindAddress,
			Logger: logr.FromSlogHandler(handler), Clock: clock.RealClock{},
		})
	}
	factory, err := c.newCloud(cloudWorld{
		lookupEnv: c.lookupEnv, pricesFile: c.pricesFile, cluster: config, log: slog.New(handler),
		overlays: c.options.FeatureGates.NodeOverlay,
		tokens: bootstraptoken.Settings{
			Mode: c.options.BootstrapTokens, Life: c.options.BootstrapTokenLife, Join: c.options.JoinTime,
		},
	})
	if err != nil {
		return err
	}
	return c.run(ctx, controller.Config{
		Options: c.options, REST: config, Logger: logr.FromSlogHandler(handler), Clock: clock.RealClock{}, Connect: factory,
		Patience: c.patience(), HeapGrowth: c.heapGrowth(),
	})
}

// leanHeap is by how many percent the heap may grow until the garbage collector runs. Go's own
// 100 take a quarter more of memory while a thousand pods wait (docs/scale.md).
const leanHeap = 60

// heapGrowth is leanHeap unless Go's own variable says otherwise.
func (c *controllerCommand) heapGrowth() int {
	if _, set := c.lookupEnv("GOGC"); set {
		return 0
	}
	return leanHeap
}

// startWithin is for how long a controller in a pod waits for an API server that does not
// answer, such as one that is being replaced.
const startWithin = time.Minute

// patience is 0 outside of a pod, where a person waits for the answer.
func (c *controllerCommand) patience() time.Duration {
	if _, inPod := c.lookupEnv("KUBERNETES_SERVICE_HOST"); inPod {
		return startWithin
	}
	return 0
}

// applyEnv sets every flag that the command line left alone from its variable.
func applyEnv(fs *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var failed error
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "kubeconfig" || f.Name == "context" || f.Name == "help" || failed != nil {
			return
		}
		name := strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, set := lookup(name)
		if !set || value == "" {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			if must := command.MustBe(err); must != "" {
				err = fmt.Errorf("must be %s: %s", must, f.Usage)
			}
			failed = fmt.Errorf("environment variable %s=%q: %w", name, value, err)
		}
	})
	return failed
}

// resolve turns the text of flags into options.
func (c *controllerCommand) resolve(fs *pflag.FlagSet) error {
	o := &c.options
	o.Engine = controller.Engine(c.engine)
	o.BootstrapTokens = bootstraptoken.Mode(c.tokens)
	if token, set := c.lookupEnv("KUBELET_BOOTSTRAP_TOKEN"); c.tokens == "" {
		o.BootstrapTokens = bootstraptoken.Own
		if set && token != "" {
			o.BootstrapTokens = bootstraptoken.Given
		}
		if mode, _ := c.lookupEnv("PROVISION_MODE"); strings.HasPrefix(mode, "aksmachineapi") {
			o.BootstrapTokens = bootstraptoken.None
		}
	}
	o.PreferencePolicy = karpoptions.PreferencePolicy(c.preferencePolicy)
	o.MinValuesPolicy = karpoptions.MinValuesPolicy(c.minValuesPolicy)
	var err error
	if o.FeatureGates, err = controller.ParseGates(c.gates); err != nil {
		return fmt.Errorf("--feature-gates: %w", err)
	}
	if o.Scheduler, err = parseScheduler(c.schedulerConfig); err != nil {
		return err
	}
	if o.MetricsBindAddress, err = bindAddress(fs, "metrics", c.metricsAddress, c.metricsPort); err != nil {
		return err
	}
	if o.HealthProbeBindAddress, err = bindAddress(fs, "health-probe", c.healthAddress, c.healthPort); err != nil {
		return err
	}
	if err := checkCertificate(o); err != nil {
		return err
	}
	if o.LeaderElectionNamespace == "" {
		o.LeaderElectionNamespace = ownNamespace()
	}
	if err := c.terms.Check(); err != nil {
		return err
	}
	o.Terms = c.terms.Terms()
	if c.shadow && o.Engine == controller.EngineKarpenter {
		return fmt.Errorf("--engine %s with --shadow: a shadow says what nap's own planner would cost; leave one of them out", o.Engine)
	}
	return o.Validate()
}

// checkCertificate refuses a folder without the certificate of the metrics, which would not be
// served while all else works.
func checkCertificate(o *controller.Options) error {
	if !o.MetricsSecure || o.MetricsCertDir == "" {
		return nil
	}
	_, err := tls.LoadX509KeyPair(filepath.Join(o.MetricsCertDir, "tls.crt"), filepath.Join(o.MetricsCertDir, "tls.key"))
	if err != nil {
		return fmt.Errorf("--metrics-cert-dir %q: must have tls.crt and tls.key, a certificate and its key as PEM: %w", o.MetricsCertDir, err)
	}
	return nil
}

// parseScheduler reads --scheduler-config. In nap the flag of the same name has a file.
func parseScheduler(text string) (*karpoptions.SchedulerConfiguration, error) {
	config, err := karpoptions.ParseSchedulerConfiguration(text)
	if err == nil { // that reads the first value alone
		if _, err := document.One([]byte(text)); err != nil {
			return nil, fmt.Errorf("--scheduler-config %q: %w", text, err)
		}
		return config, nil
	}
	var word string
	if yaml.Unmarshal([]byte(text), &word) == nil {
		return nil, fmt.Errorf("--scheduler-config %q: must be the YAML or JSON itself, such as podTopologySpread: {defaultConstraints: []}, "+
			"and not the name of a file; of a file: --scheduler-config=\"$(cat FILE)\"", text)
	}
	return nil, fmt.Errorf("--scheduler-config: %w", err)
}

func bindAddress(fs *pflag.FlagSet, endpoint, address string, port int) (string, error) {
	if address == "" {
		if port < 0 || port > 65535 {
			return "", fmt.Errorf("--%s-port %d: allowed are 0 to 65535", endpoint, port)
		}
		return ":" + strconv.Itoa(port), nil
	}
	if fs.Changed(endpoint + "-port") {
		return "", fmt.Errorf("--%s-port and --%s-bind-address exclude each other: use the latter alone", endpoint, endpoint)
	}
	if address == "0" {
		return address, nil
	}
	if _, p, err := net.SplitHostPort(address); err != nil {
		return "", fmt.Errorf("--%s-bind-address %q: allowed are host:port and \"0\"", endpoint, address)
	} else if n, err := strconv.ParseUint(p, 10, 16); err != nil {
		return "", fmt.Errorf("--%s-bind-address %q: port %q: allowed are 0 to 65535", endpoint, address, p)
	} else if n == 0 && p != "0" {
		return "", fmt.Errorf("--%s-bind-address %q: write port 0 as 0", endpoint, address)
	}
	return address, nil
}

// ownNamespace is the namespace of the pod that this runs in, or kube-system.
func ownNamespace() string {
	const file = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
		return strings.TrimSpace(string(text))
	}
	return "kube-system"
}

func logHandler(w io.Writer, level, format string) (slog.Handler, error) {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "error": slog.LevelError}
	least, ok := levels[level]
	if !ok {
		return nil, fmt.Errorf("--log-level %q: allowed are debug, info, error", level)
	}
	w = mask.Writer(w)
	opts := &slog.HandlerOptions{Level: least}
	switch format {
	case "json":
		return slog.NewJSONHandler(w, opts), nil
	case "text":
		opts.ReplaceAttr = readable
		return slog.NewTextHandler(w, opts), nil
	}
	return nil, fmt.Errorf("--log-format %q: allowed are json, text", format)
}

// readable writes amounts of resources as people do. JSON does so by itself.
func readable(_ []string, a slog.Attr) slog.Attr {
	list, ok := a.Value.Any().(corev1.ResourceList)
	if !ok {
		return a
	}
	var parts []string
	for name, amount := range list {
		parts = append(parts, string(name)+"="+amount.String())
	}
	slices.Sort(parts)
	return slog.String(a.Key, strings.Join(parts, " "))
}
