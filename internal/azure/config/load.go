package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"

	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/azure/network"
	"github.com/nodeautoprovision/nap/internal/mask"
)

const (
	defaultMemoryOverhead = 0.075
	// defaultLaunchSettle covers the seconds in which Azure refuses an allocation,
	// and not the minute in which a machine boots.
	defaultLaunchSettle = 15 * time.Second
	maxLaunchSettle     = 4 * time.Minute
	// minUpgradeCheck keeps what is read at each look within Azure's limits.
	minUpgradeCheck, maxUpgradeCheck = time.Second, 24 * time.Hour
	// maxBatchWait keeps a launch from waiting for others for longer than it takes.
	maxBatchWait = 30 * time.Second
	// maxBatchSize is what AKS takes in one call.
	maxBatchSize = 50
)

var (
	usernamePattern = regexp.MustCompile(`^[A-Za-z][-A-Za-z0-9_]{0,31}$`)
	poolPattern     = regexp.MustCompile(`^[a-z][a-z0-9]{0,11}$`)
	uuidPattern     = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	tokenPattern    = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
)

// loader reads variables and collects what is wrong with them, so that one run
// names every fault.
type loader struct {
	lookup func(string) (string, bool)
	errs   []error
}

func (l *loader) refuse(name, format string, args ...any) {
	l.errs = append(l.errs, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
}

// DefaultUpgradeCheck is Config.UpgradeCheck where nothing else is asked for. AKS releases
// node images about once a week.
const DefaultUpgradeCheck = 15 * time.Minute

// UpgradesBelieved is how long what was read of versions, node images and maintenance
// windows is believed.
func UpgradesBelieved(c *Config) time.Duration { return cmp.Or(c.UpgradeCheck, DefaultUpgradeCheck) }

// text reads a variable for which empty is no value: set but empty is as good as not
// set.
func (l *loader) text(name, unset string) string {
	if v, _ := l.lookup(name); strings.TrimSpace(v) != "" {
		return strings.TrimSpace(v)
	}
	return unset
}

func (l *loader) required(name, what string) string {
	v := l.text(name, "")
	if v == "" {
		l.refuse(name, "must be set: %s", what)
	}
	return v
}

// oneOf reads a variable with a list of allowed values. Where empty is among them,
// set but empty means empty.
func (l *loader) oneOf(name, unset string, allowed ...string) string {
	v := l.text(name, unset)
	if raw, set := l.lookup(name); set && strings.TrimSpace(raw) == "" && slices.Contains(allowed, "") {
		v = ""
	}
	if !slices.Contains(allowed, v) {
		l.refuse(name, "%q is not allowed; allowed are %q", v, allowed)
	}
	return v
}

// Load reads the configuration from variables, given a way to look one up
// (os.LookupEnv) and one to read a file (os.ReadFile). The error names every fault.
// What the cluster knows of itself may be missing: [Config.Learn] fills it in and
// says what is missing then. ClusterCA is not a variable: the caller takes it from
// the kubeconfig in use.
func Load(lookup func(string) (string, bool), readFile func(string) ([]byte, error)) (Config, error) {
	l := &loader{lookup: lookup}
	c := Config{
		ClusterName:             l.required("CLUSTER_NAME", "the name of the AKS cluster"),
		ClusterEndpoint:         l.text("CLUSTER_ENDPOINT", ""),
		BootstrapToken:          jointoken.New(l.text("KUBELET_BOOTSTRAP_TOKEN", "")),
		SSHPublicKey:            l.text("SSH_PUBLIC_KEY", ""),
		AdminUsername:           l.text("LINUX_ADMIN_USERNAME", ""),
		SubscriptionID:          l.either("AZURE_SUBSCRIPTION_ID", "ARM_SUBSCRIPTION_ID"),
		Location:                strings.ToLower(l.text("LOCATION", "")),
		ResourceGroup:           l.text("ARM_RESOURCE_GROUP", ""),
		NodeResourceGroup:       l.text("AZURE_NODE_RESOURCE_GROUP", ""),
		VNETSubnetID:            l.text("VNET_SUBNET_ID", ""),
		VNETGUID:                l.uuid("VNET_GUID"),
		DNSServiceIP:            l.text("DNS_SERVICE_IP", ""),
		NodeIdentities:          l.list("NODE_IDENTITIES"),
		KubeletIdentityClientID: l.uuid("KUBELET_IDENTITY_CLIENT_ID"),
		DiskEncryptionSetID:     l.text("NODE_OSDISK_DISKENCRYPTIONSET_ID", ""),
		AdditionalTags:          l.tags("ADDITIONAL_TAGS"),
		VMMemoryOverhead:        l.fraction("VM_MEMORY_OVERHEAD_PERCENT", defaultMemoryOverhead),
		ExactResources:          l.yes("NAP_EXACT_NODE_RESOURCES"),
		LaunchSettle:            l.duration("NAP_LAUNCH_SETTLE", defaultLaunchSettle, maxLaunchSettle),
		UpgradeCheck:            l.duration("NAP_UPGRADE_CHECK_INTERVAL", DefaultUpgradeCheck, maxUpgradeCheck),
		PlacementScores:         l.yes("NAP_PLACEMENT_SCORES"),
		LogRequests:             l.yes("ENABLE_AZURE_SDK_LOGGING"),
		ProvisionMode:           l.provisionMode(),
		MachinesPool:            l.text("AKS_MACHINES_POOL_NAME", ""),
		CreatePool:              l.yes("NAP_CREATE_MACHINES_POOL"),
		ManageMachines:          l.yes("MANAGE_EXISTING_AKS_MACHINES"),
		Batching: Batching{
			Idle: l.duration("PROVIDER_BATCH_IDLE_DURATION", time.Second, maxBatchWait),
			Max:  l.duration("PROVIDER_BATCH_MAX_DURATION", 5*time.Second, maxBatchWait),
			Size: l.number("PROVIDER_BATCH_MAX_SIZE", maxBatchSize, 1, maxBatchSize),
		},
	}
	l.network(&c)
	l.boot(&c)
	c.Cloud = l.cloud(readFile)
	l.machines(&c)
	l.check(&c)
	return c, errors.Join(l.errs...)
}

// network reads how the cluster's network is made. Set but empty means empty: it is
// how the installer of the provider that users migrate from writes a cluster without
// AKS's network plugin, without overlay, without Cilium.
func (l *loader) network(c *Config) {
	c.given = given{}
	for name, read := range map[string]func(){
		"NETWORK_PLUGIN":      func() { c.NetworkPlugin = l.oneOf("NETWORK_PLUGIN", "", "", PluginAzure, PluginNone) },
		"NETWORK_PLUGIN_MODE": func() { c.NetworkPluginMode = l.oneOf("NETWORK_PLUGIN_MODE", "", "", ModeOverlay, "none") },
		"NETWORK_POLICY":      func() { c.NetworkPolicy = l.oneOf("NETWORK_POLICY", "", "", "azure", "calico", "cilium", "none") },
		"NETWORK_DATAPLANE":   func() { c.NetworkDataplane = l.oneOf("NETWORK_DATAPLANE", "", "", "azure", "cilium") },
	} {
		if _, set := l.lookup(name); set {
			c.given[name] = true
			read()
		}
	}
	if c.given["NETWORK_PLUGIN"] && c.NetworkPlugin == "" {
		c.NetworkPlugin = PluginNone
	}
	if c.NetworkPluginMode == "none" {
		c.NetworkPluginMode = ""
	}
}

func (l *loader) either(preferred, other string) string {
	if v := l.text(other, ""); v != "" && l.text(preferred, "") == "" {
		return v
	}
	return l.required(preferred, "the subscription of the cluster")
}

func (l *loader) list(name string) []string {
	var out []string
	for part := range strings.SplitSeq(l.text(name, ""), ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// uuid reads a variable that Azure writes as a UUID; it may be unset.
func (l *loader) uuid(name string) string {
	return l.form(name, uuidPattern, "a UUID such as 00000000-0000-0000-0000-000000000001")
}

func (l *loader) tags(name string) map[string]string {
	out, seen := map[string]string{}, map[string]bool{}
	for _, pair := range l.list(name) {
		key, value, ok := strings.Cut(pair, "=")
		switch {
		case !ok || key == "":
			l.refuse(name, "%q is not of the form key=value", pair)
		case strings.ContainsAny(key, `<>%&\?/`):
			l.refuse(name, `key %q must not contain any of < > %% & \ ? /`, key)
		case len(key) > 512 || len(value) > 256:
			l.refuse(name, "key %q is longer than 512 characters, or its value longer than 256", key)
		case seen[strings.ToLower(key)]:
			l.refuse(name, "key %q is there twice; Azure ignores the case of tag names", key)
		}
		seen[strings.ToLower(key)] = true
		out[key] = value
	}
	return out
}

func (l *loader) fraction(name string, unset float64) float64 {
	v := l.text(name, "")
	if v == "" {
		return unset
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || f < 0 || f >= 1 {
		l.refuse(name, "%q is not a fraction from 0 to below 1, such as 0.075", v)
	}
	return f
}

func (l *loader) duration(name string, unset, most time.Duration) time.Duration {
	v := l.text(name, "")
	if v == "" {
		return unset
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 || d > most {
		l.refuse(name, "%q is not a duration from 0s to %s", v, most)
	}
	return d
}

// yes reads true or false; unset is false.
func (l *loader) yes(name string) bool { return l.oneOf(name, "false", "true", "false") == "true" }

// provisionMode reads how machines are made; empty leaves it to [Config.Learn].
func (l *loader) provisionMode() string {
	const name = "PROVISION_MODE"
	if l.text(name, "") == "" {
		return ""
	}
	return l.oneOf(name, "", ModeVMs, ModeAKSMachines, ModeAKSMachinesBatched)
}

func (l *loader) number(name string, unset, least, most int) int {
	v := l.text(name, "")
	if v == "" {
		return unset
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		l.refuse(name, "%q is not a number from %d to %d", v, least, most)
	}
	return n
}

// machines checks what AKS machines need, and shared galleries.
func (l *loader) machines(c *Config) {
	if l.yes("USE_SIG") {
		c.SIGSubscriptionID = l.required("SIG_SUBSCRIPTION_ID", "with USE_SIG=true, the subscription of AKS's shared image galleries")
		c.SIGTokenServer = l.text("SIG_ACCESS_TOKEN_SERVER_URL", "")
		if u, err := url.Parse(c.SIGTokenServer); c.SIGTokenServer != "" &&
			(err != nil || u.Scheme != "https" || u.Hostname() == "") {
			l.refuse("SIG_ACCESS_TOKEN_SERVER_URL", "%q is not an https URL, and tokens are secrets", mask.Address(c.SIGTokenServer))
		}
	} else {
		for _, name := range []string{"SIG_SUBSCRIPTION_ID", "SIG_ACCESS_TOKEN_SERVER_URL"} {
			if l.text(name, "") != "" {
				l.refuse(name, "is set and USE_SIG is not true; set USE_SIG=true, or remove it")
			}
		}
	}
	// Only AKS's own control plane has the service that boot data would come from.
	if l.text("NODEBOOTSTRAPPING_SERVER_URL", "") != "" {
		l.refuse("NODEBOOTSTRAPPING_SERVER_URL", "is set, and no PROVISION_MODE of nap asks such a server, "+
			"since nap writes boot data itself; remove it")
	}
	if c.MachinesPool != "" && !poolPattern.MatchString(c.MachinesPool) {
		l.refuse("AKS_MACHINES_POOL_NAME", "%q must start with a letter and have at most 12 lower-case letters and digits", c.MachinesPool)
	}
	if c.CreatePool && c.ProvisionMode == ModeVMs {
		l.refuse("NAP_CREATE_MACHINES_POOL", "is true, and PROVISION_MODE %s makes no machines in an agent pool; remove one of them", ModeVMs)
	}
	why := "PROVISION_MODE " + c.ProvisionMode
	switch {
	case c.StartsAKSMachines():
	case c.ManageMachines:
		why = "MANAGE_EXISTING_AKS_MACHINES"
	case c.CreatePool:
		why = "NAP_CREATE_MACHINES_POOL"
	default:
		return
	}
	if c.ResourceGroup == "" {
		l.refuse("ARM_RESOURCE_GROUP", "must be set with %s: the resource group of the AKS cluster", why)
	}
	if c.Batching.Idle > c.Batching.Max {
		l.refuse("PROVIDER_BATCH_IDLE_DURATION", "%s is longer than PROVIDER_BATCH_MAX_DURATION, %s", c.Batching.Idle, c.Batching.Max)
	}
}

// check looks at values that have a form of their own.
func (l *loader) check(c *Config) {
	if c.UpgradeCheck < minUpgradeCheck {
		l.refuse("NAP_UPGRADE_CHECK_INTERVAL", "%s is too short; allowed are %s to %s", c.UpgradeCheck, minUpgradeCheck, maxUpgradeCheck)
	}
	if c.ClusterEndpoint != "" {
		if u, err := url.Parse(c.ClusterEndpoint); err != nil || u.Scheme != "https" || u.Hostname() == "" {
			l.refuse("CLUSTER_ENDPOINT", "%q is not an https URL", c.ClusterEndpoint)
		}
	}
	if !c.BootstrapToken.IsZero() && !tokenPattern.MatchString(c.BootstrapToken.Reveal()) {
		l.refuse("KUBELET_BOOTSTRAP_TOKEN", "is not of the form abcdef.0123456789abcdef")
	}
	if c.AdminUsername != "" && !usernamePattern.MatchString(c.AdminUsername) {
		l.refuse("LINUX_ADMIN_USERNAME", "%q must start with a letter and have at most 32 letters, digits, - and _", c.AdminUsername)
	}
	if c.VNETSubnetID != "" {
		if _, err := network.ParseSubnet(c.VNETSubnetID); err != nil {
			l.refuse("VNET_SUBNET_ID", "%v", err)
		}
	}
	if _, err := netip.ParseAddr(c.DNSServiceIP); c.DNSServiceIP != "" && err != nil {
		l.refuse("DNS_SERVICE_IP", "%q is not an IP address", c.DNSServiceIP)
	}
	for _, id := range c.NodeIdentities {
		l.resource("NODE_IDENTITIES", id, "Microsoft.ManagedIdentity/userAssignedIdentities")
	}
	if c.DiskEncryptionSetID != "" {
		l.diskSet(c)
	}
}

// diskSet checks the disk encryption set, which Azure takes from the machines' own
// subscription alone.
func (l *loader) diskSet(c *Config) {
	const name = "NODE_OSDISK_DISKENCRYPTIONSET_ID"
	l.resource(name, c.DiskEncryptionSetID, "Microsoft.Compute/diskEncryptionSets")
	if r, err := arm.ParseResourceID(c.DiskEncryptionSetID); err == nil && !strings.EqualFold(r.SubscriptionID, c.SubscriptionID) {
		l.refuse(name, "%q is in subscription %s; it must be in the cluster's, %s", c.DiskEncryptionSetID, r.SubscriptionID, c.SubscriptionID)
	}
}

func (l *loader) resource(name, id, kind string) {
	r, err := arm.ParseResourceID(id)
	if err != nil || !strings.EqualFold(r.ResourceType.String(), kind) {
		l.refuse(name, "%q is not the resource id of a %s", id, kind)
	}
}
