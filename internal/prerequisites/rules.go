package prerequisites

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Rule is a security rule of a network security group.
type Rule struct {
	Name     string
	Priority int
	// Inbound is the direction, Allow what the rule does.
	Inbound, Allow bool
	// Protocol is Tcp, Udp or another one, * for all.
	Protocol string
	// Sources and Destinations are prefixes, service tags or *; Ports are those of the
	// destination, as 443, 1-1024 or *. SourcePorts likewise.
	Sources, Destinations []string
	SourcePorts, Ports    []string
}

// flow is traffic that must pass.
type flow struct {
	protocol string // Tcp, or * for all
	port     string // a number, or * for all
	// from and to are prefixes; fromTags or toTags stand instead of them where the one end is
	// known by service tags alone: a rule for any of them meets it.
	from, to         []netip.Prefix
	fromTags, toTags []string
}

// The service tags that rules and flows name.
const (
	tagNetwork  = "VirtualNetwork"
	tagBalancer = "AzureLoadBalancer"
	tagInternet = "Internet"
	anything    = "*"
)

// defaultRules are those that Azure adds to every group
// (https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview).
func defaultRules() []Rule {
	all := []string{anything}
	rule := func(name string, priority int, inbound, allow bool, from, to string) Rule {
		return Rule{name, priority, inbound, allow, anything, []string{from}, []string{to}, all, all}
	}
	return []Rule{
		rule("AllowVnetInBound", 65000, true, true, tagNetwork, tagNetwork),
		rule("AllowAzureLoadBalancerInBound", 65001, true, true, tagBalancer, anything),
		rule("DenyAllInBound", 65500, true, false, anything, anything),
		rule("AllowVnetOutBound", 65000, false, true, tagNetwork, tagNetwork),
		rule("AllowInternetOutBound", 65001, false, true, anything, tagInternet),
		rule("DenyAllOutBound", 65500, false, false, anything, anything),
	}
}

// match is how far a rule meets a flow.
type match int

const (
	misses match = iota
	meetsPart
	meetsAll
)

// blocked names the rule that stops a flow, or part of it, at a subnet, in one direction;
// empty while it passes. Rules of a lower priority number come first, and the first that
// meets a packet decides about it. local are the prefixes that the tag VirtualNetwork
// stands for.
func blocked(s *Subnet, inbound bool, f flow, local []netip.Prefix) string {
	if s == nil || s.GroupID == "" {
		return ""
	}
	rules := append(slices.Clone(s.Rules), defaultRules()...)
	slices.SortStableFunc(rules, func(a, b Rule) int { return a.Priority - b.Priority })
	for i := range rules {
		r := &rules[i]
		if r.Inbound != inbound {
			continue
		}
		switch r.meets(f, local) {
		case misses:
		case meetsPart:
			if !r.Allow {
				return r.Name
			}
		case meetsAll:
			if r.Allow {
				return ""
			}
			return r.Name
		}
	}
	return ""
}

func (r *Rule) meets(f flow, local []netip.Prefix) match {
	out := meetsAll
	for _, m := range []match{
		meetsProtocol(r.Protocol, f.protocol), meetsPort(r.Ports, f.port), meetsPort(r.SourcePorts, anything),
		meetsEnd(r.Sources, f.from, f.fromTags, local), meetsEnd(r.Destinations, f.to, f.toTags, local),
	} {
		out = min(out, m)
	}
	return out
}

func meetsProtocol(rule, wanted string) match {
	switch {
	case rule == anything || strings.EqualFold(rule, wanted):
		return meetsAll
	case wanted == anything:
		return meetsPart
	}
	return misses
}

func meetsPort(rule []string, wanted string) match {
	number, _ := strconv.Atoi(wanted) // zero for all
	out := misses
	for _, text := range rule {
		first, last, isRange := strings.Cut(text, "-")
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if !isRange {
			to, err2 = from, err1
		}
		switch {
		case text == anything || text == "0-65535":
			return meetsAll
		case err1 != nil || err2 != nil:
		case wanted == anything:
			out = meetsPart
		case from <= number && number <= to:
			return meetsAll
		}
	}
	return out
}

// meetsEnd compares one end of a rule with one of a flow.
func meetsEnd(rule []string, wanted []netip.Prefix, wantedTags []string, local []netip.Prefix) match {
	if slices.Contains(rule, anything) || slices.Contains(rule, "0.0.0.0/0") {
		return meetsAll
	}
	if len(wantedTags) > 0 {
		for _, tag := range wantedTags {
			if slices.ContainsFunc(rule, func(text string) bool { return strings.EqualFold(text, tag) }) {
				return meetsAll
			}
		}
		return misses
	}
	var prefixes []netip.Prefix
	for _, text := range rule {
		if strings.EqualFold(text, tagNetwork) {
			prefixes = append(prefixes, local...)
		} else if p, err := parsePrefix(text); err == nil {
			prefixes = append(prefixes, p)
		}
	}
	out, whole := misses, true
	for _, w := range wanted {
		covered := false
		for _, p := range prefixes {
			covered = covered || contains(p, w)
			if p.Overlaps(w) {
				out = meetsPart
			}
		}
		whole = whole && covered
	}
	if whole && len(wanted) > 0 {
		return meetsAll
	}
	return out
}

// parsePrefix reads a prefix, or a plain address as the prefix of itself.
func parsePrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("%q is no address prefix: %w", text, err)
	}
	return p.Masked(), nil
}

// contains reports whether all of one prefix is in another.
func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Overlaps(inner)
}
