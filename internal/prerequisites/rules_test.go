package prerequisites

import (
	"net/netip"
	"testing"
)

func TestSecurityRulesDecideInOrder(t *testing.T) {
	nodes, pods := netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("192.168.0.0/16")
	local := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), pods}
	all := []string{"*"}
	in := func(name string, priority int, allow bool, protocol string, from, ports string) Rule {
		return Rule{name, priority, true, allow, protocol, []string{from}, all, all, []string{ports}}
	}
	between := flow{protocol: "*", port: "*", from: []netip.Prefix{nodes}, to: []netip.Prefix{nodes}}
	kubelet := flow{protocol: "Tcp", port: "10250", from: []netip.Prefix{pods}, to: []netip.Prefix{nodes}}
	for name, tt := range map[string]struct {
		rules []Rule
		flow  flow
		want  string
	}{
		"defaults permit the network":      {nil, between, ""},
		"defaults permit pods":             {nil, kubelet, ""},
		"defaults deny the internet":       {nil, flow{protocol: "Tcp", port: "443", fromTags: []string{tagInternet}, to: []netip.Prefix{nodes}}, "DenyAllInBound"},
		"part denied":                      {[]Rule{in("no", 200, false, "Udp", "10.1.0.7", "53")}, between, "no"},
		"another port denied":              {[]Rule{in("no", 200, false, "Tcp", "*", "22")}, kubelet, ""},
		"range denied":                     {[]Rule{in("no", 200, false, "Tcp", "*", "10000-11000")}, kubelet, "no"},
		"allowed before":                   {[]Rule{in("no", 200, false, "*", "*", "*"), in("yes", 100, true, "*", "VirtualNetwork", "*")}, between, ""},
		"part allowed before":              {[]Rule{in("no", 200, false, "*", "*", "*"), in("yes", 100, true, "Tcp", "VirtualNetwork", "*")}, between, "no"},
		"allowed from a part of the nodes": {[]Rule{in("no", 200, false, "*", "*", "*"), in("yes", 100, true, "*", "10.1.0.0/25", "*")}, between, "no"},
		"outbound rules do not count":      {[]Rule{{"no", 100, false, false, "*", all, all, all, all}}, between, ""},
	} {
		s := &Subnet{GroupID: "/g", Rules: tt.rules}
		if got := blocked(s, true, tt.flow, local); got != tt.want {
			t.Errorf("%s: stopped by %q, want %q", name, got, tt.want)
		}
	}
	if got := blocked(&Subnet{Rules: []Rule{in("no", 1, false, "*", "*", "*")}}, true, between, local); got != "" {
		t.Errorf("a subnet without a group stops by %q", got)
	}
}

func TestGrantsReachBelowTheirScope(t *testing.T) {
	grants := []Grant{{Scope: "/subscriptions/s/resourceGroups/g", Actions: []string{"Microsoft.Network/*/read", "Microsoft.Compute/disks/delete"},
		NotActions: []string{"Microsoft.Network/secret/read"}}}
	for need, want := range map[Need]bool{
		{"Microsoft.Network/virtualNetworks/read", "/subscriptions/S/resourcegroups/G/providers/x"}: true,
		{"Microsoft.Network/virtualNetworks/read", "/subscriptions/s"}:                              false,
		{"Microsoft.Network/virtualNetworks/read", "/subscriptions/s/resourceGroups/g2"}:            false,
		{"Microsoft.Network/virtualNetworks/write", "/subscriptions/s/resourceGroups/g"}:            false,
		{"microsoft.compute/disks/delete", "/subscriptions/s/resourceGroups/g"}:                     true,
		{"Microsoft.Network/secret/read", "/subscriptions/s/resourceGroups/g"}:                      false,
	} {
		if got := may(grants, need); got != want {
			t.Errorf("%+v: %v", need, got)
		}
	}
}
