package controller

import (
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/controller/bootstraptoken"
	"github.com/nodeautoprovision/nap/internal/controller/leadership"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Engine says who decides what to buy.
type Engine string

// The engines.
const (
	// EngineNap is nap's own planner.
	EngineNap Engine = "nap"
	// EngineKarpenter is Karpenter's provisioner, on the same cloud provider.
	EngineKarpenter Engine = "karpenter"
)

// Engines lists the engines, the default first.
func Engines() []Engine { return []Engine{EngineNap, EngineKarpenter} }

// Options are the settings of the controller. Those that Karpenter has bear its
// names, units and defaults.
type Options struct {
	Engine Engine
	// PlanBudget is the time in which the planner may improve a plan after the
	// first feasible one. Zero takes the first; seconds make large batches wait
	// without making them much cheaper.
	PlanBudget time.Duration
	// NominatePods writes the planned node into the status.nominatedNodeName of pods, the
	// largest first, so that the scheduler follows the plan where it can (engine nap). It
	// takes at most half of KubeClientQPS. Without it the scheduler spreads pods over new
	// nodes its own way, and a tight plan needs a node more now and then.
	NominatePods bool
	// ConsolidationBudget is the time for the search of one decision about
	// nodes to remove, Terms are what a command must be worth (engine nap). The gate
	// SpotToSpotConsolidation decides about Terms.SpotToSpot.
	ConsolidationBudget time.Duration
	Terms               model.ConsolidationTerms
	// ConsolidateInWindow lets consolidation, empty nodes included, happen in the
	// cluster's maintenance window alone (engine nap).
	ConsolidateInWindow bool

	// MetricsBindAddress and HealthProbeBindAddress are host:port; port 0 takes a
	// free one, "0" alone switches the endpoint off.
	MetricsBindAddress     string
	HealthProbeBindAddress string
	EnableProfiling        bool
	// MetricsSecure serves metrics and profiles over TLS, to users alone that the API
	// server knows and allows to; MetricsCertDir has the certificate, empty makes one.
	MetricsSecure  bool
	MetricsCertDir string
	// DetailedMetrics serves metrics whose number grows with the cluster: of each node, pod
	// and NodeClaim; and those of work queues, of requests to the API server and of reconcilers.
	DetailedMetrics bool

	// KubeClientQPS and KubeClientBurst bound the requests to the API server. Too
	// small a rate makes large scale-ups wait on the client itself.
	KubeClientQPS   int
	KubeClientBurst int

	DisableControllerWarmup          bool
	DisableLeaderElection            bool
	DisableClusterStateObservability bool
	LeaderElectionName               string
	LeaderElectionNamespace          string
	// Election says when the lease changes hands, and for how long after a renewal the
	// leader writes.
	Election leadership.Election

	// MemoryLimit is the container's limit in bytes, -1 for none: the garbage
	// collector works harder from 90 % of it. CPURequests are milli-cores; the
	// parallelism of Karpenter's controllers grows with them.
	MemoryLimit int64
	CPURequests int64

	// BatchMaxDuration is the longest that pods are collected before a plan is
	// made, BatchIdleDuration the pause between two pods that ends it earlier. An
	// idle time near zero plans every pod alone; a long one delays all of them.
	BatchMaxDuration  time.Duration
	BatchIdleDuration time.Duration

	// BootstrapTokens says whose tokens plain machines join with, BootstrapTokenLife
	// how long a token of nap's own lives, JoinTime how long a machine may take until
	// it has joined: none is launched with a token that ends earlier.
	BootstrapTokens    bootstraptoken.Mode
	BootstrapTokenLife time.Duration
	JoinTime           time.Duration
	// MaxNodes is the most machines that there may be, MaxNewNodesPerMinute the most
	// that may be bought for pods within a minute (engine nap); 0 means no limit. They
	// bound what a mistake can cost.
	MaxNodes             int
	MaxNewNodesPerMinute int
	// NodeShare caps what one node may hold of a workload and of the fleet (engine nap).
	NodeShare model.NodeShare

	// DefaultNodePools says whether a cluster without NodeAutoProvisioning gets one that
	// wants default NodePools; where it is empty, it does unless there are NodePools.
	DefaultNodePools v1alpha1.DefaultNodePools
	// LedgerLabels are the keys of the pods' labels by which the ledger tells costs apart,
	// separated by commas, at most four (engine nap).
	LedgerLabels string

	PreferencePolicy options.PreferencePolicy
	MinValuesPolicy  options.MinValuesPolicy
	// IgnoreDRARequests leaves pods with resource claims alone, and lets DaemonSets with
	// some take no room on new machines.
	IgnoreDRARequests bool
	// LegacyNodeRepair replaces unhealthy nodes without asking disruption budgets or the
	// annotation do-not-repair, as Karpenter did before 1.15.
	LegacyNodeRepair bool
	// Scheduler is what kube-scheduler is configured to do; nil for its defaults.
	Scheduler    *options.SchedulerConfiguration
	FeatureGates options.FeatureGates
}

// DefaultOptions are the options without any flag.
func DefaultOptions() Options {
	return Options{
		Engine:                  EngineNap,
		PlanBudget:              250 * time.Millisecond,
		NominatePods:            true,
		ConsolidationBudget:     time.Second,
		Terms:                   model.DefaultConsolidationTerms(),
		MetricsBindAddress:      ":8080",
		HealthProbeBindAddress:  ":8081",
		KubeClientQPS:           200,
		KubeClientBurst:         300,
		DisableControllerWarmup: true,
		LeaderElectionName:      "karpenter-leader-election",
		Election:                leadership.Default(),
		MemoryLimit:             -1,
		CPURequests:             1000,
		BatchMaxDuration:        10 * time.Second,
		BatchIdleDuration:       time.Second,
		BootstrapTokens:         bootstraptoken.Own,
		BootstrapTokenLife:      24 * time.Hour,
		JoinTime:                15 * time.Minute,
		MaxNodes:                5000,
		MaxNewNodesPerMinute:    1000,
		LedgerLabels:            "app.kubernetes.io/name",
		PreferencePolicy:        options.PreferencePolicyRespect,
		MinValuesPolicy:         options.MinValuesPolicyStrict,
		IgnoreDRARequests:       true,
		FeatureGates:            options.DefaultFeatureGates(),
	}
}

// checkDurations refuses durations of batches and plans that cannot be.
func checkDurations(o *Options) error {
	switch {
	case o.BatchIdleDuration <= 0:
		return fmt.Errorf("--batch-idle-duration %s: must be more than 0", o.BatchIdleDuration)
	case o.BatchMaxDuration < o.BatchIdleDuration:
		return fmt.Errorf("--batch-max-duration %s: must be at least --batch-idle-duration %s", o.BatchMaxDuration, o.BatchIdleDuration)
	case o.PlanBudget < 0 || o.PlanBudget > time.Minute:
		return fmt.Errorf("--plan-budget %s: allowed are 0s to 1m", o.PlanBudget)
	case o.ConsolidationBudget < 0 || o.ConsolidationBudget > time.Minute:
		return fmt.Errorf("--consolidation-budget %s: allowed are 0s to 1m", o.ConsolidationBudget)
	}
	return nil
}

// Validate reports the first option that cannot be, naming the flag, its value
// and what is allowed.
func (o *Options) Validate() error {
	if !slices.Contains(Engines(), o.Engine) {
		return fmt.Errorf("--engine %q: allowed are %s", o.Engine, join(Engines()))
	}
	preferences := []options.PreferencePolicy{options.PreferencePolicyRespect, options.PreferencePolicyIgnore}
	if !slices.Contains(preferences, o.PreferencePolicy) {
		return fmt.Errorf("--preference-policy %q: allowed are %s", o.PreferencePolicy, join(preferences))
	}
	minValues := []options.MinValuesPolicy{options.MinValuesPolicyStrict, options.MinValuesPolicyBestEffort}
	if !slices.Contains(minValues, o.MinValuesPolicy) {
		return fmt.Errorf("--min-values-policy %q: allowed are %s", o.MinValuesPolicy, join(minValues))
	}
	if allowed := []v1alpha1.DefaultNodePools{"", v1alpha1.DefaultNodePoolsAuto, v1alpha1.DefaultNodePoolsNone}; !slices.Contains(
		allowed, o.DefaultNodePools) {
		return fmt.Errorf("--default-node-pools %q: allowed are %s", o.DefaultNodePools, join(allowed[1:]))
	}
	if err := checkDurations(o); err != nil {
		return err
	}
	if o.MemoryLimit < -1 || o.MemoryLimit > 0 && o.MemoryLimit < leastMemory {
		return fmt.Errorf("--memory-limit %d: allowed are -1 and 0 for none, and %d bytes (16Mi) or more", o.MemoryLimit, int64(leastMemory))
	}
	for _, n := range []struct {
		flag  string
		value int64
	}{
		{"--kube-client-qps", int64(o.KubeClientQPS)},
		{"--kube-client-burst", int64(o.KubeClientBurst)},
		{"--cpu-requests", o.CPURequests},
	} {
		if n.value <= 0 {
			return fmt.Errorf("%s %d: must be more than 0", n.flag, n.value)
		}
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"--max-nodes", o.MaxNodes}, {"--max-new-nodes-per-minute", o.MaxNewNodesPerMinute}} {
		if n.value < 0 {
			return fmt.Errorf("%s %d: must be 0 (no limit) or more", n.flag, n.value)
		}
	}
	if err := o.NodeShare.Check(); err != nil {
		return err
	}
	if err := checkLedgerLabels(o.LedgerLabels); err != nil {
		return err
	}
	if err := checkElection(o); err != nil {
		return err
	}
	if err := o.tokens(); err != nil {
		return err
	}
	if err := o.endpoints(); err != nil {
		return err
	}
	return o.metrics()
}

// leastMemory is a limit in bytes below which a number was meant in another unit: no controller
// runs with so little.
const leastMemory = 16 << 20

// mostLedgerLabels bounds the ledger: each label has rows of its own.
const mostLedgerLabels = 4

// ledgerLabels are the keys that Options.LedgerLabels names.
func ledgerLabels(text string) []string {
	var keys []string
	for key := range strings.SplitSeq(text, ",") {
		if key = strings.TrimSpace(key); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

func checkLedgerLabels(text string) error {
	keys := ledgerLabels(text)
	if len(keys) > mostLedgerLabels {
		return fmt.Errorf("--ledger-labels %q: allowed are at most %d keys", text, mostLedgerLabels)
	}
	for _, key := range keys {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return fmt.Errorf("--ledger-labels %q: allowed are keys of labels, separated by commas: %s", key, strings.Join(problems, "; "))
		}
	}
	return nil
}

// hostAndPort are the parts of an address, both empty where it has no port.
func hostAndPort(address string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", ""
	}
	return host, port
}

// endpoints refuses two endpoints that would listen on one port. Port 0 takes a free one.
func (o *Options) endpoints() error {
	host, port := hostAndPort(o.MetricsBindAddress)
	other, otherPort := hostAndPort(o.HealthProbeBindAddress)
	if port != otherPort || port == "" || port == "0" {
		return nil
	}
	all := func(host string) bool { return host == "" || net.ParseIP(host).IsUnspecified() }
	if host == other || all(host) || all(other) {
		return fmt.Errorf("metrics on %q and health probes on %q: choose another --metrics-port or --health-probe-port",
			o.MetricsBindAddress, o.HealthProbeBindAddress)
	}
	return nil
}

// metrics refuses profiles that everything in the network could read: they hold what is
// in memory, tokens too.
func (o *Options) metrics() error {
	if o.MetricsCertDir != "" && !o.MetricsSecure {
		return fmt.Errorf("--metrics-cert-dir %q: is for --metrics-secure, which is not set", o.MetricsCertDir)
	}
	if !o.EnableProfiling || o.MetricsSecure || o.MetricsBindAddress == "0" {
		return nil
	}
	host, _, err := net.SplitHostPort(o.MetricsBindAddress)
	if err != nil {
		return fmt.Errorf("--metrics-bind-address %q: allowed are host:port and \"0\"", o.MetricsBindAddress)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--enable-profiling with metrics on %q: profiles hold what is in memory, tokens too: "+
			"set --metrics-secure, or --metrics-bind-address 127.0.0.1:8080", o.MetricsBindAddress)
	}
	return nil
}

// longestLease bounds how long a cluster may be without a leader.
const longestLease = 10 * time.Minute

// checkElection refuses times with which no leader could keep its lease, or two could
// write. The API server keeps the first one in whole seconds.
func checkElection(o *Options) error {
	if !o.DisableLeaderElection && o.LeaderElectionName == "" {
		return fmt.Errorf("--leader-election-name is empty: name the lease, or set --disable-leader-election")
	}
	if problems := validation.IsDNS1123Subdomain(o.LeaderElectionName); !o.DisableLeaderElection && len(problems) > 0 {
		return fmt.Errorf("--leader-election-name %q: allowed are names of Leases, at most 253 small letters, digits, dots and -, "+
			"with a letter or digit at both ends and beside each dot", o.LeaderElectionName)
	}
	if problems := validation.IsDNS1123Label(o.LeaderElectionNamespace); o.LeaderElectionNamespace != "" && len(problems) > 0 {
		return fmt.Errorf("--leader-election-namespace %q: allowed are names of namespaces, at most 63 small letters, digits and -, "+
			"with a letter or digit at both ends", o.LeaderElectionNamespace)
	}
	e := o.Election
	const lease, renew, retry = "--leader-election-lease-duration", "--leader-election-renew-deadline", "--leader-election-retry-period"
	switch {
	case e.LeaseDuration < 3*time.Second || e.LeaseDuration > longestLease || e.LeaseDuration%time.Second != 0:
		return fmt.Errorf("%s %s: allowed are whole seconds, 3s to %s", lease, e.LeaseDuration, longestLease)
	case e.RenewDeadline < time.Second || e.RenewDeadline >= e.LeaseDuration:
		return fmt.Errorf("%s %s: allowed are 1s to less than %s, %s", renew, e.RenewDeadline, lease, e.LeaseDuration)
	case e.RetryPeriod < leastRetry || 2*e.RetryPeriod > e.RenewDeadline:
		return fmt.Errorf("%s %s: allowed are %s to half of %s, %s", retry, e.RetryPeriod, leastRetry, renew, e.RenewDeadline/2)
	}
	return nil
}

// leastRetry keeps the renewals of a lease from being a load.
const leastRetry = 100 * time.Millisecond

// longestTokenLife bounds the life of a token: it may have been copied.
const longestTokenLife = 30 * 24 * time.Hour

// tokens refuses settings with which machines could not join. A token is renewed at
// half of its life, so that half is the least that a launch finds.
func (o *Options) tokens() error {
	if modes := bootstraptoken.Modes(); !slices.Contains(modes, o.BootstrapTokens) {
		// The value does not follow the name, after which the program's errors mask what it is.
		return fmt.Errorf("--bootstrap-tokens: allowed are %s; got %q", join(modes), o.BootstrapTokens)
	}
	if o.JoinTime <= 0 || o.JoinTime > time.Hour {
		return fmt.Errorf("--bootstrap-join-time %s: allowed are more than 0s to 1h", o.JoinTime)
	}
	if o.BootstrapTokenLife <= 2*o.JoinTime || o.BootstrapTokenLife > longestTokenLife {
		return fmt.Errorf("--bootstrap-token-life %s: allowed are more than twice --bootstrap-join-time, %s, to %s",
			o.BootstrapTokenLife, 2*o.JoinTime, longestTokenLife)
	}
	return nil
}

// defaultSpread are the constraints that pods without spread constraints get.
func (o *Options) defaultSpread() []corev1.TopologySpreadConstraint {
	if o.Scheduler == nil || o.Scheduler.PodTopologySpread == nil {
		return nil
	}
	return o.Scheduler.PodTopologySpread.DefaultConstraints
}

// karpenter returns the options in the form in which Karpenter's controllers
// read them.
func (o *Options) karpenter() *options.Options {
	return &options.Options{
		KubeClientQPS:                    o.KubeClientQPS,
		KubeClientBurst:                  o.KubeClientBurst,
		EnableProfiling:                  o.EnableProfiling,
		DisableControllerWarmup:          o.DisableControllerWarmup,
		DisableLeaderElection:            o.DisableLeaderElection,
		DisableClusterStateObservability: o.DisableClusterStateObservability,
		LeaderElectionName:               o.LeaderElectionName,
		LeaderElectionNamespace:          o.LeaderElectionNamespace,
		MemoryLimit:                      o.MemoryLimit,
		CPURequests:                      o.CPURequests,
		BatchMaxDuration:                 o.BatchMaxDuration,
		BatchIdleDuration:                o.BatchIdleDuration,
		PreferencePolicy:                 o.PreferencePolicy,
		MinValuesPolicy:                  o.MinValuesPolicy,
		IgnoreDRARequests:                o.IgnoreDRARequests,
		LegacyNodeRepair:                 o.LegacyNodeRepair || o.Engine == EngineNap,
		SchedulerConfig:                  o.Scheduler,
		FeatureGates:                     o.FeatureGates,
	}
}

// Gates lists the feature gates by name with their defaults.
func Gates() map[string]bool {
	gates := map[string]bool{}
	for _, gate := range options.KarpenterFeatureGates {
		gates[gate.Name] = gate.Default
	}
	return gates
}

// gatesOn lists the feature gates that are on, in the order of [Gates]' names.
func gatesOn(on options.FeatureGates) []string {
	gates := reflect.ValueOf(on)
	return slices.DeleteFunc(sortedKeys(Gates()), func(name string) bool { return !gates.FieldByName(name).Bool() })
}

// ParseGates reads "Gate=true,Other=false". Unlike Karpenter it refuses a gate
// that does not exist, which is nearly always a typing error.
func ParseGates(text string) (options.FeatureGates, error) {
	known := Gates()
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if _, exists := known[name]; !exists {
			return options.FeatureGates{}, fmt.Errorf("unknown feature gate %q: allowed are %s", name, strings.Join(sortedKeys(known), ", "))
		}
		if !ok || value != "true" && value != "false" {
			return options.FeatureGates{}, fmt.Errorf("feature gate %s=%q: allowed are true and false", name, value)
		}
	}
	return options.ParseFeatureGates(text)
}

func sortedKeys(m map[string]bool) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func join[T ~string](values []T) string {
	var out []string
	for _, v := range values {
		out = append(out, string(v))
	}
	return strings.Join(out, ", ")
}
