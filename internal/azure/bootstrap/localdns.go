package bootstrap

import (
	"maps"
	"strings"
)

// The zones that a DNS cache must have: without them the node answers nothing.
const (
	rootZone    = "."
	clusterZone = "cluster.local"
)

// localDNSAddress is where a node's DNS cache answers pods whose DNS policy is
// ClusterFirst (Azure/AgentBaker, parts/linux/cloud-init/artifacts/localdns.sh,
// LOCALDNS_CLUSTER_LISTENER_IP): AKS gives it to the kubelet in the place of the
// cluster's DNS, or no pod would ask the cache.
const localDNSAddress = "169.254.10.11"

// Values of DNS zones that the class leaves open, as AKS has them: the profile that
// its documentation of LocalDNS gives as the default.
const (
	defaultMaxConcurrent  = 1000
	defaultCacheSeconds   = 3600
	defaultLogging        = "Error"
	defaultPolicy         = "Sequential"
	defaultServeStale     = "Immediate"
	staleVerify           = "Verify"
	protocolUDP           = "PreferUDP"
	protocolTCP           = "ForceTCP"
	destinationVNet       = "VnetDNS"
	destinationClusterDNS = "ClusterCoreDNS"
)

// localDNS is the profile of a node that runs a DNS cache: the zones of the class and
// those that there must be, with every value, since the node takes what is missing
// into its configuration as it is.
func localDNS(p *LocalDNSProfile) *LocalDNSProfile {
	if p == nil {
		return nil
	}
	return &LocalDNSProfile{Enable: true, VNetDNS: zones(p.VNetDNS, destinationVNet), KubeDNS: zones(p.KubeDNS, destinationClusterDNS)}
}

// zones completes the zones of one side; destination is where it forwards names
// outside of the cluster.
func zones(of map[string]LocalDNSOverride, destination string) map[string]LocalDNSOverride {
	out := map[string]LocalDNSOverride{rootZone: {}, clusterZone: {}}
	maps.Copy(out, of)
	for zone, o := range out {
		forward, protocol := destination, protocolUDP
		if inCluster(zone) {
			forward, protocol = destinationClusterDNS, protocolTCP
		}
		if o.ServeStale == staleVerify {
			protocol = protocolUDP // Verify goes with no other
		}
		o.QueryLogging = orElse(o.QueryLogging, defaultLogging)
		o.Protocol = orElse(o.Protocol, protocol)
		o.ForwardDestination = orElse(o.ForwardDestination, forward)
		o.ForwardPolicy = orElse(o.ForwardPolicy, defaultPolicy)
		o.ServeStale = orElse(o.ServeStale, defaultServeStale)
		o.MaxConcurrent = orDefault(o.MaxConcurrent, defaultMaxConcurrent)
		o.CacheDurationSeconds = orDefault(o.CacheDurationSeconds, defaultCacheSeconds)
		o.ServeStaleDurationSeconds = orDefault(o.ServeStaleDurationSeconds, defaultCacheSeconds)
		out[zone] = o
	}
	return out
}

// inCluster reports whether the cluster's DNS alone knows the zone.
func inCluster(zone string) bool {
	return strings.HasSuffix(strings.TrimSuffix(zone, "."), clusterZone)
}

// orDefault is the value behind a pointer, or a default.
func orDefault(p *int32, unset int32) *int32 {
	if p == nil {
		return &unset
	}
	return p
}
