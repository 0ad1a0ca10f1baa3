package prerequisites

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// host is one that machines are provisioned from.
type host struct {
	name string
	// tags are the service tags under which rules may speak of it, beside Internet and
	// AzureCloud.
	tags []string
}

// Service tags of what machines are provisioned from.
const (
	tagCloud     = "AzureCloud"
	tagRegistry  = "MicrosoftContainerRegistry"
	tagFrontDoor = "AzureFrontDoor.FirstParty"
	tagManager   = "AzureResourceManager"
	tagDirectory = "AzureActiveDirectory"
)

// hosts are those that machines are provisioned from
// (https://learn.microsoft.com/azure/aks/outbound-rules-control-egress); through a proxy
// they reach the API server alone themselves.
func (f *Facts) hosts() []host {
	var out []host
	if name := f.Cluster.APIServer(); name != "" && f.Cluster.APIServerSubnetID == "" && !f.Cluster.Private {
		out = append(out, host{name, nil})
	}
	if f.proxy() != "" {
		return out
	}
	registry := []string{tagRegistry, tagFrontDoor}
	return append(out, host{"mcr.microsoft.com", registry}, host{"*.data.mcr.microsoft.com", registry},
		host{"mcr-0001.mcr-msedge.net", registry},
		host{"packages.microsoft.com", nil}, host{"acs-mirror.azureedge.net", nil}, host{"packages.aks.azure.com", nil},
		host{"management.azure.com", []string{tagManager}}, host{"login.microsoftonline.com", []string{tagDirectory}})
}

// proxy is the URL through which machines reach the internet, empty for none.
func (f *Facts) proxy() string {
	return cmp.Or(f.Cluster.Proxy.HTTPS, f.Cluster.Proxy.HTTP)
}

// tagged are the service tags of a host, each also with the region as rules may name it.
func (f *Facts) tagged(h host) []string {
	var out []string
	for _, tag := range append([]string{tagInternet, tagCloud}, h.tags...) {
		out = append(out, tag, tag+"."+f.Cluster.Location)
	}
	return out
}

func requiredFQDNs(f *Facts) answer {
	is := f.Cluster.Network.OutboundType
	cached := strings.EqualFold(f.Cluster.ArtifactSource, "Cache")
	if strings.EqualFold(is, "none") || strings.EqualFold(is, "block") {
		a := answer{read: "outboundType " + is + ", artifact source " + f.Cluster.ArtifactSource}
		if !cached {
			a.fault = "the outbound type is " + is + ", and machines bootstrap from the internet: the artifact source is not Cache"
			a.fix = update(f.Cluster, "--bootstrap-artifact-source Cache --bootstrap-container-registry-resource-id REGISTRY_ID")
		}
		return a
	}
	var names []string
	stopped := map[string][]string{} // hosts by the rule that stops machines
	for _, h := range f.hosts() {
		names = append(names, h.name)
		w := flow{protocol: "Tcp", port: "443", from: f.nodes(), toTags: f.tagged(h)}
		if rule := f.stopped(w, f.nodeSubnets(), nil); rule != "" && !cached {
			stopped[rule] = append(stopped[rule], h.name)
		}
	}
	a := answer{read: groups(f.nodeSubnets()...) + "; needed on TCP 443: " + strings.Join(names, ", ")}
	if strings.EqualFold(is, "userDefinedRouting") {
		a.read += "; a firewall behind the route table is not read"
	}
	var faults []string
	for _, rule := range slices.Sorted(maps.Keys(stopped)) {
		faults = append(faults, rule+" stops machines on their way to TCP 443 of "+strings.Join(stopped[rule], ", "))
		a.fix = permit(f.nodeSubnets()[0], "Outbound", spaced(f.nodes()), tagInternet, "Tcp", "443")
	}
	if proxy := f.proxy(); proxy != "" {
		a.read += "; all else through the proxy " + shown(proxy)
		if rule, to, port := f.proxyStopped(proxy); rule != "" {
			faults = append(faults, fmt.Sprintf("%s stops machines on their way to the proxy, TCP %s of %s", rule, port, to))
			a.fix = permit(f.nodeSubnets()[0], "Outbound", spaced(f.nodes()), to, "Tcp", port)
		}
	}
	a.fault = strings.Join(faults, "; ")
	return a
}

// proxyStopped is the rule that keeps machines from the proxy, with its address and port;
// empty where none does, and where the proxy has a name, whose address is not known here.
func (f *Facts) proxyStopped(text string) (rule, to, port string) {
	u, err := url.Parse(text)
	if err != nil {
		return "", "", ""
	}
	address, err := netip.ParseAddr(u.Hostname())
	if err != nil || !address.Is4() {
		return "", "", ""
	}
	if port = u.Port(); port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	w := flow{protocol: "Tcp", port: port, from: f.nodes(), to: []netip.Prefix{netip.PrefixFrom(address, address.BitLen())}}
	if !slices.ContainsFunc(f.local(), func(p netip.Prefix) bool { return p.Contains(address) }) {
		w.to, w.toTags = nil, []string{tagInternet, address.String(), address.String() + "/32"}
	}
	return f.stopped(w, f.nodeSubnets(), nil), address.String(), port
}
