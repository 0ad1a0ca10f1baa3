package kubeletflags

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/nodeconfig"
)

// Flags are the settings of a kubelet that change what a node looks like. Settings that
// only change how containers run are accepted and ignored.
type Flags struct {
	// Labels and Taints are put on the node when it registers.
	Labels map[string]string
	Taints []corev1.Taint
	// MaxPods is the node's pod capacity.
	MaxPods int64
	// KubeReserved and SystemReserved are kept from pods: cpu, memory and
	// ephemeral-storage.
	KubeReserved   corev1.ResourceList
	SystemReserved corev1.ResourceList
	// EvictionMemory and EvictionDisk are the hard eviction thresholds of
	// memory.available and nodefs.available, which are kept from pods too.
	EvictionMemory Threshold
	EvictionDisk   Threshold
	// ExternalCloud is --cloud-provider=external: the node registers with the
	// uninitialized taint and waits for the cloud node manager.
	ExternalCloud bool
	// ClusterDNS are the name servers that pods are given.
	ClusterDNS []string
	// NodeIP and ProviderID override what the machine says.
	NodeIP     string
	ProviderID string

	access access
}

// access is who may use the port on which the kubelet serves.
type access struct {
	anonymous     bool
	authorization string
	clientCA      string
	readOnlyPort  int64
}

// Threshold is an amount, either absolute or as a fraction of the capacity.
type Threshold struct {
	Bytes    int64
	Fraction float64
}

// Of returns the threshold in bytes for a capacity.
func (t Threshold) Of(capacity int64) int64 {
	return t.Bytes + int64(t.Fraction*float64(capacity))
}

// Defaults of a kubelet.
const (
	defaultMaxPods      = 110
	defaultReadOnlyPort = 10255
	defaultEviction     = "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<15%"
)

// CAFile is where the image writes the cluster's certificate authority.
const CAFile = "/etc/kubernetes/certs/ca.crt"

// noStreamingTimeout is the minor from which the node's program takes
// --streaming-connection-idle-timeout out of the configuration.
const noStreamingTimeout = 34

// Of works out the settings with which the kubelet of a version starts. The error names
// everything that keeps it from starting, each with its flag.
func Of(version string, c nodeconfig.KubeletConfig) (Flags, error) {
	minor, err := minorOf(version)
	if err != nil {
		return Flags{}, err
	}
	f := Flags{Labels: map[string]string{}}
	var errs []error
	if c.EnableKubeletConfigFile {
		errs = append(errs, f.fromFile(c.KubeletConfigFileConfig))
	} else {
		// Without a file a kubelet has its defaults of old.
		f.MaxPods = defaultMaxPods
		f.access = access{anonymous: true, authorization: "AlwaysAllow", readOnlyPort: defaultReadOnlyPort}
		errs = append(errs, f.setEviction(defaultEviction))
	}
	for _, key := range slices.Sorted(maps.Keys(c.KubeletFlags)) {
		errs = append(errs, f.flag(key, c.KubeletFlags[key], minor))
	}
	labels, err := parseNodeLabels(c.KubeletNodeLabels)
	errs = append(errs, err)
	maps.Copy(f.Labels, labels)
	errs = append(errs, f.access.check())
	return f, errors.Join(errs...)
}

// fromFile takes the settings of a configuration file, over the defaults that such a file
// has.
func (f *Flags) fromFile(c *nodeconfig.ConfigFile) error {
	if c == nil {
		c = &nodeconfig.ConfigFile{}
	}
	f.MaxPods = defaultMaxPods
	if c.MaxPods != nil {
		f.MaxPods = int64(*c.MaxPods)
	}
	f.ClusterDNS = c.ClusterDNS
	f.access = access{
		anonymous: c.Authentication.Anonymous.Enabled, authorization: c.Authorization.Mode,
		clientCA: c.Authentication.X509.ClientCAFile, readOnlyPort: int64(c.ReadOnlyPort),
	}
	if f.access.authorization == "" {
		f.access.authorization = "Webhook"
	}
	pairs := func(m map[string]string, mark string) string {
		var out []string
		for _, key := range slices.Sorted(maps.Keys(m)) {
			out = append(out, key+mark+m[key])
		}
		return strings.Join(out, ",")
	}
	eviction := defaultEviction
	if len(c.EvictionHard) > 0 {
		eviction = pairs(c.EvictionHard, "<")
	}
	var errs [3]error
	f.KubeReserved, errs[0] = parseReserved(pairs(c.KubeReserved, "="))
	f.SystemReserved, errs[1] = parseReserved(pairs(c.SystemReserved, "="))
	errs[2] = f.setEviction(eviction)
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("kubelet_config_file_config: %w", err)
	}
	return nil
}

// flag reads one flag, as the command line has it.
func (f *Flags) flag(key, value string, minor int) error {
	name, ok := strings.CutPrefix(key, "--")
	switch {
	case !ok:
		return fmt.Errorf("%s=%s: unknown command; flags are written with two dashes", key, value)
	case strings.ContainsAny(value, " \t\n"):
		return fmt.Errorf("%s: value %q has blanks, at which the command line is split", key, value)
	case name == "streaming-connection-idle-timeout" && minor >= noStreamingTimeout:
		return nil // the node's program takes it out
	case !Known(name, minor):
		return fmt.Errorf("unknown flag: %s (Kubernetes 1.%d)", key, minor)
	}
	if err := f.set(name, value, minor); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// set applies one flag.
func (f *Flags) set(name, value string, minor int) (err error) {
	switch name {
	case "node-labels":
		err = f.setLabels(value)
	case "register-with-taints":
		f.Taints, err = parseTaints(value)
	case "max-pods":
		f.MaxPods, err = strconv.ParseInt(value, 10, 32)
		if err != nil || f.MaxPods < 1 {
			return fmt.Errorf("%q: want a positive number", value)
		}
	case "kube-reserved":
		f.KubeReserved, err = parseReserved(value)
	case "system-reserved":
		f.SystemReserved, err = parseReserved(value)
	case "eviction-hard":
		err = f.setEviction(value)
	case "cloud-provider":
		f.ExternalCloud = value == "external"
		if !f.ExternalCloud && value != "" && minor >= noCloudProviders {
			return fmt.Errorf("%q: want external or nothing; Kubernetes 1.%d has no cloud provider in the kubelet", value, minor)
		}
	case "cluster-dns":
		f.ClusterDNS = splitList(value)
		for _, address := range f.ClusterDNS {
			if _, err := netip.ParseAddr(address); err != nil {
				return fmt.Errorf("%q: want IP addresses", value)
			}
		}
	case "node-ip":
		if _, err := netip.ParseAddr(value); err != nil {
			return fmt.Errorf("%q: want an IP address", value)
		}
		f.NodeIP = value
	case "provider-id":
		f.ProviderID = value
	default:
		return f.access.set(name, value)
	}
	return err
}

// setLabels adds the labels of a comma-separated list of KEY=VALUE.
func (f *Flags) setLabels(value string) error {
	labels := map[string]string{}
	for _, pair := range splitList(value) {
		key, v, _ := strings.Cut(pair, "=")
		labels[key] = v
	}
	labels, err := parseNodeLabels(labels)
	if err != nil {
		return err
	}
	maps.Copy(f.Labels, labels)
	return nil
}

// noCloudProviders is the minor from which no cloud provider is part of the kubelet.
const noCloudProviders = 31

// set applies a flag that decides who may use the kubelet's port.
func (a *access) set(name, value string) (err error) {
	switch name {
	case "anonymous-auth":
		if a.anonymous, err = strconv.ParseBool(value); err != nil {
			return fmt.Errorf("%q: want true or false", value)
		}
	case "authorization-mode":
		if value != "Webhook" && value != "AlwaysAllow" {
			return fmt.Errorf("%q: want AlwaysAllow or Webhook", value)
		}
		a.authorization = value
	case "client-ca-file":
		if value != CAFile {
			return fmt.Errorf("%s: no such file or directory; the image writes %s", value, CAFile)
		}
		a.clientCA = value
	case "read-only-port":
		if a.readOnlyPort, err = strconv.ParseInt(value, 10, 32); err != nil {
			return fmt.Errorf("%q: want a number", value)
		}
	}
	return nil
}

// check refuses a kubelet that lets every client on the network run commands in every pod. A
// real kubelet would start.
func (a access) check() error {
	var missing []string
	if a.anonymous {
		missing = append(missing, "--anonymous-auth=false")
	}
	if a.authorization != "Webhook" {
		missing = append(missing, "--authorization-mode=Webhook")
	}
	if a.clientCA == "" {
		missing = append(missing, "--client-ca-file="+CAFile)
	}
	if a.readOnlyPort != 0 {
		missing = append(missing, "--read-only-port=0")
	}
	if len(missing) > 0 {
		return fmt.Errorf("the kubelet would serve every client on the network: set %s", strings.Join(missing, ", "))
	}
	return nil
}
