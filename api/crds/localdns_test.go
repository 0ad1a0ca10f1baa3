package crds

import (
	"fmt"
	"strings"
)

// DNSSpec is a class whose local DNS has the zones in one list, or in both where it is empty.
func DNSSpec(list string, zones ...string) string {
	sound := "[" + DNSZone(".", "") + ", " + DNSZone("cluster.local", "") + "]"
	own := "[" + strings.Join(zones, ", ") + "]"
	switch list {
	case "vnetDNSOverrides":
		return fmt.Sprintf("{localDNS: {mode: Required, vnetDNSOverrides: %s, kubeDNSOverrides: %s}}", own, sound)
	default:
		return fmt.Sprintf("{localDNS: {mode: Required, vnetDNSOverrides: %s, kubeDNSOverrides: %s}}", sound, own)
	}
}

// DNSZone is a zone with every field that a zone needs; fields given in other replace them.
func DNSZone(zone, other string) string {
	fields, destination := []string{fmt.Sprintf("zone: %q", zone)}, "VnetDNS"
	if strings.HasSuffix(zone, "cluster.local") {
		destination = "ClusterCoreDNS"
	}
	for _, f := range []string{"queryLogging: Error", "protocol: PreferUDP", "forwardDestination: " + destination, "forwardPolicy: Sequential",
		"maxConcurrent: 1000", "cacheDuration: 1h", "serveStaleDuration: 1h", "serveStale: Immediate"} {
		name, _, _ := strings.Cut(f, ":")
		if !strings.Contains(other, name+":") {
			fields = append(fields, f)
		}
	}
	if other != "" {
		fields = append(fields, other)
	}
	return "{" + strings.Join(fields, ", ") + "}"
}
