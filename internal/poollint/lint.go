package poollint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// Code names a rule.
type Code string

// The rules.
const (
	NothingToBuy        Code = "NothingToBuy"
	SizeCannotBeBought  Code = "SizeCannotBeBought"
	OneSize             Code = "OneSize"
	SpotWithoutFallback Code = "SpotWithoutFallback"
	NoLimit             Code = "NoLimit"
	LimitAboveQuota     Code = "LimitAboveQuota"
	LimitBelowMachine   Code = "LimitBelowMachine"
	UnknownLimit        Code = "UnknownLimit"
	Overlap             Code = "Overlap"
	PinnedForEver       Code = "PinnedForEver"
	UnreadableBudget    Code = "UnreadableBudget"
	// ManagedGPUNotRegistered is what Azure's refusal of such a machine is called, too.
	ManagedGPUNotRegistered Code = "ManagedGPUNotRegistered"
)

// Subscription is what is known of a subscription beside what is sold to it.
type Subscription struct {
	// Limits are the quotas of the region in vCPUs, by name, as far as they are known.
	Limits map[string]int64
	// NoManagedGPU says that AKS makes the machines and is known not to make any with
	// managed GPUs: the preview feature is not registered.
	NoManagedGPU bool
}

// Pool is a NodePool with what its rules are judged by.
type Pool struct {
	*fleet.Pool
	// Catalog is what its node class can buy, Lacking what is known of other sizes.
	Catalog *fleet.Catalog
	Lacking
	// NeverExpires says that its nodes have no end; Image is the version to which its class
	// pins node images, empty for the newest.
	NeverExpires bool
	Image        string
	// ManagedGPU says that its class has AKS manage NVIDIA's GPUs.
	ManagedGPU bool
}

// Finding is what is unwise about a NodePool.
type Finding struct {
	NodePool string `json:"nodePool"`
	Code     Code   `json:"code"`
	// Message says what it is, Fix what to do.
	Message string `json:"message"`
	Fix     string `json:"fix"`
}

// Text is the finding with what to do, in one line.
func (f *Finding) Text() string { return f.Message + ". " + f.Fix }

// Lint looks at all NodePools of a cluster. The findings are in order of NodePools and rules.
func Lint(pools []Pool, subscription Subscription) []Finding {
	pools = slices.Clone(pools)
	slices.SortFunc(pools, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	all := choicesOfAll(pools)
	offered, alike := offeringSets(all), alikePools(pools)
	var out []Finding
	for i := range pools {
		l := &linter{pools: pools, choices: all, offered: offered, alike: alike[i], at: i, subscription: subscription}
		l.look()
		out = append(out, l.findings...)
	}
	return out
}

// linter looks at one of the NodePools.
type linter struct {
	pools        []Pool
	choices      [][]choice
	offered      [][]uint64 // the same as sets
	alike        []int      // by index, those that take the same pods at the same weight, itself among them
	at           int
	subscription Subscription
	findings     []Finding
}

func (l *linter) say(code Code, fix, format string, args ...any) {
	l.findings = append(l.findings, Finding{l.pools[l.at].Name, code, fmt.Sprintf(format, args...), fix})
}

func (l *linter) look() {
	p := &l.pools[l.at]
	l.findings = append(l.findings, UnreadableBudgets(p.Pool)...)
	if p.Invalid != "" {
		l.say(NothingToBuy, "Correct the field that the message names.", "can buy nothing: %s", p.Invalid)
		return
	}
	if len(l.choices[l.at]) == 0 && len(UnknownSizes(p)) > 0 {
		return // it may be able to buy these
	}
	if len(l.choices[l.at]) == 0 {
		text := Nothing(p.Pool, p.Catalog, Advice(p.Catalog, p.Lacking))
		l.say(NothingToBuy, "Widen spec.template.spec.requirements.", "can buy nothing: %s", text)
		return
	}
	l.sizes(p)
	l.fallback()
	l.limits(p)
	l.unknownLimits(p)
	l.belowMachine(p)
	l.dollars(p)
	l.overlaps()
	if p.NeverExpires && p.Image != "" {
		l.say(PinnedForEver, "Remove spec.imageVersion of the AKSNodeClass, or set spec.template.spec.expireAfter.",
			"its nodes never expire and boot from image version %s for ever: they get no security updates", p.Image)
	}
	if l.subscription.NoManagedGPU && p.NeedsManagedGPU() {
		l.say(ManagedGPUNotRegistered, "nap doctor has the commands; or set gpu.nvidia.managementMode of the AKSNodeClass to Unmanaged.",
			"AKS refuses its GPU machines: the preview feature %s is not registered", prerequisites.FeatureManagedGPU)
	}
}

// UnreadableBudgets are the findings on budgets of a NodePool that cannot be read. Every command
// that tells of them does so in these words.
func UnreadableBudgets(p *fleet.Pool) []Finding {
	var out []Finding
	for _, budget := range p.Disruption.Unreadable {
		out = append(out, Finding{
			NodePool: p.Name, Code: UnreadableBudget,
			Message: "has a budget that cannot be read, so no node is disrupted: " + budget,
			Fix:     "Correct the schedule: minute, hour, day of a month, month and weekday, as cron has them, in UTC.",
		})
	}
	return out
}

// labelGPUManufacturer is the label of sizes with GPUs.
const labelGPUManufacturer = "karpenter.azure.com/sku-gpu-manufacturer"

// NeedsManagedGPU reports whether the NodePool can buy machines whose GPUs AKS would manage:
// a preview, which has to be registered where AKS makes the machines.
func (p *Pool) NeedsManagedGPU() bool {
	return p.ManagedGPU && slices.ContainsFunc(choices(p.Pool, p.Catalog), func(c choice) bool {
		return c.size.Labels[labelGPUManufacturer] == "nvidia"
	})
}

// sizes looks at how many sizes are left, and at sizes that are named and cannot be bought.
func (l *linter) sizes(p *Pool) {
	unknown := UnknownSizes(p)
	for _, r := range p.Requirements {
		if !namesSizes(r) {
			continue
		}
		for _, name := range r.Values {
			if !has(p.Catalog, name) && !slices.Contains(unknown, name) {
				l.say(SizeCannotBeBought, "Remove it from the requirement.", "%s", p.unbought(name))
			}
		}
	}
	sizes := map[string]bool{}
	for _, c := range l.choices[l.at] {
		sizes[c.size.Name] = true
	}
	if len(sizes) == 1 && len(unknown) == 0 {
		l.say(OneSize, "Name a family in place of the size, such as karpenter.azure.com/sku-family In [D].",
			"can buy size %s alone: where Azure has none left, pods wait", l.choices[l.at][0].size.Name)
	}
}

// spotAlone reports whether a NodePool can buy spot machines and no others.
func spotAlone(choices []choice) bool {
	return !slices.ContainsFunc(choices, func(c choice) bool { return c.offering.CapacityType != model.Spot })
}

// fallback looks for machines that are had when no spot machine is.
func (l *linter) fallback() {
	if !spotAlone(l.choices[l.at]) {
		return
	}
	for i := range l.pools {
		if i != l.at && len(l.choices[i]) > 0 && !spotAlone(l.choices[i]) {
			return
		}
	}
	l.say(SpotWithoutFallback, "Add on-demand to karpenter.sh/capacity-type, or a NodePool of lower weight that has it.",
		"buys spot machines alone, and no other NodePool buys others: where Azure has none left, pods wait")
}

func (l *linter) limits(p *Pool) {
	limit := int64(-1)
	for _, a := range p.Limits {
		if a.Name == "cpu" {
			limit = a.Value
		}
	}
	const milli = 1000
	switch {
	case len(p.Limits) == 0 && p.NodeLimit < 0 && p.CostLimit == nil && !p.Static: // static ones do not grow
		l.say(NoLimit, "Set spec.limits.cpu, or the annotation karpenter.azure.com/max-hourly-cost.",
			"has no limit: nothing but the subscription's quota keeps it from growing")
	case limit >= 0:
		if room, of := room(l.choices[l.at], l.subscription.Limits); room >= 0 && limit/milli > room {
			l.say(LimitAboveQuota, "Lower spec.limits.cpu, or ask Azure for more quota.",
				"may buy %d vCPUs, and the quota (%s) is %d", limit/milli, strings.Join(of, ", "), room)
		}
	}
}

// unknownLimits looks for limits of resources that no machine has: they hold nothing back. Those with
// a domain are of device plugins, of which any may be there.
func (l *linter) unknownLimits(p *Pool) {
	known := append([]string{"nodes"}, model.NewAxes()...)
	for _, axis := range p.Catalog.Axes {
		if !strings.Contains(axis, "/") && !slices.Contains(known, axis) {
			known = append(known, axis)
		}
	}
	for _, limit := range p.Limits {
		if strings.Contains(limit.Name, "/") || strings.HasPrefix(limit.Name, "hugepages-") || slices.Contains(known, limit.Name) {
			continue
		}
		fix := "Limit one of: " + strings.Join(slices.Sorted(slices.Values(known)), ", ") + "."
		if meant := model.Alike(limit.Name, known); meant != "" {
			fix = fmt.Sprintf("Write spec.limits.%s.", meant)
		}
		l.say(UnknownLimit, fix, "limits %s, a resource which no machine has: it holds nothing back", limit.Name)
	}
}

// belowMachine looks for limits of resources that are less than any machine has.
func (l *linter) belowMachine(p *Pool) {
	for _, limit := range p.Limits {
		axis := p.Catalog.Axes.Index(limit.Name)
		if axis < 0 || len(l.choices[l.at]) == 0 {
			continue
		}
		has := func(c choice) int64 { return c.size.Capacity.Get(axis) }
		least := slices.MinFunc(l.choices[l.at], func(a, b choice) int { return cmp.Compare(has(a), has(b)) })
		if has(least) > limit.Value {
			l.say(LimitBelowMachine, fmt.Sprintf("Raise spec.limits.%s, or allow smaller sizes.", limit.Name),
				"may have %s %s, and the smallest machine that it can buy has %s (%s)", limit.Name, p.Catalog.Axes.Amount(axis, limit.Value),
				p.Catalog.Axes.Amount(axis, has(least)), least.size.Name)
		}
	}
}

// dollars looks for a limit in dollars per hour that is less than any machine costs.
func (l *linter) dollars(p *Pool) {
	if p.CostLimit == nil || len(l.choices[l.at]) == 0 {
		return
	}
	cheapest := slices.MinFunc(l.choices[l.at], func(a, b choice) int { return cmp.Compare(a.offering.Price, b.offering.Price) })
	if price := cheapest.offering.Price + p.NodeCost; price > *p.CostLimit {
		l.say(LimitBelowMachine, "Raise the annotation karpenter.azure.com/max-hourly-cost, or allow cheaper sizes or spot.",
			"may cost %s, and the cheapest machine that it can buy costs %s (%s, %s)",
			*p.CostLimit, price, cheapest.size.Name, cheapest.offering.CapacityType)
	}
}

// mostNamed is how many other NodePools a finding names.
const mostNamed = 5

// overlaps looks for NodePools of the same weight that would buy the same machines for the
// same pods: which one does is decided by price alone.
func (l *linter) overlaps() {
	var others []string
	for _, i := range l.alike {
		if i != l.at && shares(l.offered[l.at], l.offered[i]) {
			others = append(others, l.pools[i].Name)
		}
	}
	if len(others) == 0 {
		return
	}
	named := strings.Join(others[:min(len(others), mostNamed)], ", ")
	if more := len(others) - mostNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	l.say(Overlap, "Give them different weights, or a taint or label that tells them apart.",
		"buys the same machines for the same pods as NodePool %s, at equal weight", named)
}

// alikePools are, for each NodePool, those with the same weight, taints and labels of their
// owners', by index, itself among them.
func alikePools(pools []Pool) [][]int {
	byKey, keys := map[string][]int{}, make([]string, len(pools))
	for i := range pools {
		p := &pools[i]
		var parts []string
		for _, t := range p.Taints {
			parts = append(parts, fmt.Sprint("taint ", t))
		}
		for key, value := range p.Labels {
			if key != "karpenter.sh/nodepool" && !strings.HasPrefix(key, "karpenter.azure.com/") {
				parts = append(parts, fmt.Sprintf("label %q %q", key, value))
			}
		}
		slices.Sort(parts)
		keys[i] = fmt.Sprint(p.Weight, parts)
		byKey[keys[i]] = append(byKey[keys[i]], i)
	}
	out := make([][]int, len(pools))
	for i, key := range keys {
		out[i] = byKey[key]
	}
	return out
}

// choicesOfAll are what NodePools can buy. Those with the same requirements and catalogue share
// the list.
func choicesOfAll(pools []Pool) [][]choice {
	type from struct {
		catalog      *fleet.Catalog
		requirements string
	}
	known, all := map[from][]choice{}, make([][]choice, len(pools))
	for i := range pools {
		if pools[i].Invalid != "" {
			continue // it buys nothing
		}
		asked := asks(pools[i].Pool, pools[i].Catalog)
		key := from{pools[i].Catalog, string(model.AppendKey(nil, &asked))}
		list, has := known[key]
		if !has {
			list = choices(pools[i].Pool, pools[i].Catalog)
			known[key] = list
		}
		all[i] = list
	}
	return all
}

// offeringSets are the choices of NodePools as sets of offerings, each offering a bit: with
// a hundred NodePools there are thousands of pairs to compare.
func offeringSets(all [][]choice) [][]uint64 {
	type key struct{ size, zone, capacity string }
	const word = 64
	numbers := map[key]int{}
	out := make([][]uint64, len(all))
	for i, choices := range all {
		for _, c := range choices {
			k := key{c.size.Name, c.offering.Zone, string(c.offering.CapacityType)}
			n, known := numbers[k]
			if !known {
				n = len(numbers)
				numbers[k] = n
			}
			for len(out[i]) <= n/word {
				out[i] = append(out[i], 0)
			}
			out[i][n/word] |= 1 << (n % word)
		}
	}
	return out
}

// shares reports whether two sets have an offering in common.
func shares(a, b []uint64) bool {
	for i := range min(len(a), len(b)) {
		if a[i]&b[i] != 0 {
			return true
		}
	}
	return false
}
