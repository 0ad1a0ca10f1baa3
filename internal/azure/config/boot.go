package config

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
)

// Boot is what plain machines are told beside the facts of their cluster: what the
// cluster does not tell, or not to every client. AKS knows it of its own machines.
type Boot struct {
	// SecureTLS has machines prove by Azure's instance metadata who they are; their
	// bootstrap token is then what they fall back to. SecureTLSResource is what they ask
	// Entra ID a token for; empty means AKS's own server.
	SecureTLS         bool
	SecureTLSResource string
	// RestrictIMDS keeps pods from the instance metadata service.
	RestrictIMDS bool
	// NoSSH turns the machines' SSH servers off.
	NoSSH bool
	// PrivateEgressProxy is the address of AKS's proxy for private egress, or empty.
	PrivateEgressProxy string
	// Registry is the registry from which machines take everything in the place of
	// Microsoft's, with the path of its copies; empty where they take it from Microsoft's.
	Registry string
	// PackagesURL serves programs that an image does not carry; empty means AKS's own.
	PackagesURL string
}

// The values of NAP_SSH_ACCESS, in AKS's words.
const (
	sshLocalUser = "LocalUser"
	sshDisabled  = "Disabled"
)

var (
	addressPattern  = regexp.MustCompile(`^[A-Za-z0-9._:/\[\]-]+$`)
	registryPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+(/[a-z0-9._-]+)*$`)
	resourcePattern = regexp.MustCompile(`^[A-Za-z0-9._:/-]+$`)
)

// boot reads what plain machines are told.
func (l *loader) boot(c *Config) {
	b := &c.Boot
	b.SecureTLS = l.yes("NAP_SECURE_TLS_BOOTSTRAPPING")
	b.SecureTLSResource = l.form("NAP_SECURE_TLS_AAD_RESOURCE", resourcePattern, "an application id or its URI")
	if b.SecureTLSResource != "" && !b.SecureTLS {
		l.refuse("NAP_SECURE_TLS_AAD_RESOURCE", "is set and NAP_SECURE_TLS_BOOTSTRAPPING is not true; set that to true, or remove this")
	}
	b.RestrictIMDS = l.yes("NAP_RESTRICT_IMDS")
	b.NoSSH = l.oneOf("NAP_SSH_ACCESS", sshLocalUser, sshLocalUser, sshDisabled) == sshDisabled
	for _, name := range []string{"NAP_RESTRICT_IMDS", "NAP_SSH_ACCESS"} {
		c.given[name] = l.text(name, "") != ""
	}
	b.PrivateEgressProxy = l.form("NAP_PRIVATE_EGRESS_PROXY", addressPattern, "an address such as 10.1.2.3:8443")
	b.Registry = l.form("NAP_BOOTSTRAP_REGISTRY", registryPattern, "a host with the path of its copies, such as prod.azurecr.io/"+copies)
	b.PackagesURL = l.text("NAP_PACKAGES_URL", "")
	if u, err := url.Parse(b.PackagesURL); b.PackagesURL != "" &&
		(err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "") {
		l.refuse("NAP_PACKAGES_URL", "%q is not an http or https URL", b.PackagesURL)
	}
}

// form reads a variable whose value has a form; it may be unset.
func (l *loader) form(name string, pattern *regexp.Regexp, what string) string {
	v := l.text(name, "")
	if v != "" && !pattern.MatchString(v) {
		l.refuse(name, "%q is not %s", v, what)
	}
	return v
}

// copies is the path under which a registry of one's own has copies of Microsoft's
// images, by the cache rule that AKS asks for.
const copies = "aks-managed-repository"

// boot takes from the cluster what is not set of how machines boot, and refuses what
// contradicts it.
func (l *learner) boot(c *Config, f *managedcluster.Facts) {
	b := &c.Boot
	switch {
	case !f.Network.IMDSKeptFromPods:
	case c.given["NAP_RESTRICT_IMDS"] && !b.RestrictIMDS:
		l.differ("NAP_RESTRICT_IMDS", "false", "pods may not reach the instance metadata service (podLinkLocalAccess None)")
	default:
		b.RestrictIMDS = true
	}
	if !c.given["NAP_SSH_ACCESS"] {
		b.NoSSH = strings.EqualFold(f.SSHAccess, sshDisabled)
	}
	l.registry(c, f)
}

// registry takes the registry that machines bootstrap from. Its host follows from its
// resource id, unless it was made with a host name that is not guessed easily.
func (l *learner) registry(c *Config, f *managedcluster.Facts) {
	const variable = "NAP_BOOTSTRAP_REGISTRY"
	given := c.Boot.Registry
	if !strings.EqualFold(f.ArtifactSource, "Cache") {
		if given != "" {
			l.differ(variable, given, "its machines bootstrap from Microsoft's registry (artifactSource "+
				strings.TrimSpace(f.ArtifactSource+" is not Cache)"))
		}
		return
	}
	name := strings.ToLower(f.ContainerRegistryID[strings.LastIndexByte(f.ContainerRegistryID, '/')+1:])
	switch {
	case given == "" && name == "":
		if !c.StartsAKSMachines() {
			l.refuse("%s: must be set, because the cluster bootstraps from a registry (artifactSource Cache) and does not say which: "+
				"its host with the path of its copies, such as prod.azurecr.io/%s", variable, copies)
		}
	case given == "":
		c.Boot.Registry = name + c.Cloud.registrySuffix(c.Location) + "/" + copies
	case name != "" && !ofRegistry(given, name):
		l.differ(variable, given, "its registry is "+name)
	}
}

// ofRegistry reports whether a host is that of a registry: its name, or its name with a
// hash after a hyphen.
func ofRegistry(host, name string) bool {
	label, _, _ := strings.Cut(host, ".")
	return label == name || strings.HasPrefix(label, name+"-")
}

// registrySuffix is the domain of the login servers of Azure's container registries.
func (c *Cloud) registrySuffix(location string) string {
	switch {
	case c.Environment != nil && c.Environment.RegistrySuffix != "":
		return "." + strings.TrimPrefix(c.Environment.RegistrySuffix, ".")
	case strings.HasPrefix(location, "usgov"), strings.HasPrefix(location, "usdod"):
		return ".azurecr.us"
	case strings.HasPrefix(location, "china"):
		return ".azurecr.cn"
	}
	return ".azurecr.io"
}
