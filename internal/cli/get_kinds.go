package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// list reads what a kind lists.
func (c *getCommand) list(ctx context.Context, kind string) (*listing, error) {
	switch kind {
	case "moves":
		return c.moves(ctx)
	case "offers":
		return c.offers(ctx)
	}
	read, err := c.input.read(ctx, c.streams.In)
	if err != nil {
		return nil, err
	}
	source, err := read.source(ctx, c.input.catalogFlags)
	if err != nil {
		return nil, err
	}
	tellRefused(c.streams.Err, read.problems)
	var l *listing
	switch kind {
	case "claims":
		l = c.claims(read)
	default:
		views, err := read.store.Snapshot().Views(ctx, source)
		if err != nil {
			return nil, err
		}
		if kind == "nodes" {
			l = c.nodes(read, source, views)
		} else {
			l = c.pools(read, views)
		}
	}
	l.assuming, l.refused = read.told.offline(), len(read.problems) > 0
	return l, nil
}

// shortSize is a size without the word that all have.
func shortSize(size string) string { return strings.TrimPrefix(size, sizePrefix) }

// sameSize reports whether two names are of one size, with that word or without, in any case.
func sameSize(x, y string) bool {
	return strings.EqualFold(x, y) || strings.EqualFold(sizePrefix+x, y) || strings.EqualFold(x, sizePrefix+y)
}

// age is how long ago something was, nil where that is not known.
func (c *getCommand) age(then time.Time) any {
	if then.IsZero() {
		return nil
	}
	return max(0, c.now().Sub(then)).Truncate(time.Second)
}

// share is a percentage, nil of nothing.
func share(part, whole int64) any {
	if whole <= 0 {
		return nil
	}
	return percentage((100*part + whole/2) / whole)
}

// listedNode is a node in JSON.
type listedNode struct {
	Name          string            `json:"name"`
	NodePool      string            `json:"nodePool,omitempty"`
	NodeClaim     string            `json:"nodeClaim,omitempty"`
	State         string            `json:"state"`
	InstanceType  string            `json:"instanceType,omitempty"`
	Zone          string            `json:"zone,omitempty"`
	CapacityType  string            `json:"capacityType,omitempty"`
	HourlyCost    float64           `json:"hourlyCost"`
	CPUPercent    any               `json:"cpuPercent,omitempty"`
	MemoryPercent any               `json:"memoryPercent,omitempty"`
	Pods          int               `json:"pods"`
	Drift         string            `json:"drift,omitempty"`
	DoNotDisrupt  bool              `json:"doNotDisrupt,omitempty"`
	Created       *time.Time        `json:"created,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
}

func (c *getCommand) nodes(read *planInput, source *offline.Source, views []fleet.NodeView) *listing {
	allReady := !slices.ContainsFunc(views, func(v fleet.NodeView) bool { return v.Status() != string(model.NodeReady) })
	l := &listing{kind: "nodes", single: "node", columns: []listColumn{
		{"NAME", false}, {"NODEPOOL", false}, {"SIZE", false}, {"CAPACITY", true}, {"ZONE", true}, {"STATE", allReady}, {"CPU", false},
		{"MEMORY", false}, {"PODS", false}, {"$/H", false}, {"AGE", false}, {"DRIFT", true}, {"PROTECTED", true},
	}}
	prices := map[string]model.Money{}
	for _, o := range read.objects.Distinct() {
		if node, is := o.(*corev1.Node); is && outsidePools(read.pools, node) {
			prices[node.Name], _ = source.PriceOf(node)
		}
	}
	for i := range views {
		v := &views[i]
		price := cmp.Or(v.Price, prices[v.Name])
		o := listedNode{
			Name: v.Name, NodePool: v.Pool, NodeClaim: v.Claim, State: v.Status(), InstanceType: v.Labels[model.LabelInstanceType],
			Zone: v.Labels[model.LabelZone], CapacityType: v.CapacityType(), HourlyCost: price.Dollars(), Pods: v.Pods,
			CPUPercent: share(v.Requested.CPU, v.Allocatable.CPU), MemoryPercent: share(v.Requested.Memory, v.Allocatable.Memory),
			Drift: v.Drift, DoNotDisrupt: v.DoNotDisrupt, Labels: v.Labels,
		}
		if !v.Created.IsZero() {
			created := v.Created.UTC()
			o.Created = &created
		}
		protected := ""
		if v.DoNotDisrupt {
			protected = "yes"
		}
		l.rows = append(l.rows, listRow{name: v.Name, labels: v.Labels, object: o, cells: []any{
			v.Name, v.Pool, shortSize(o.InstanceType), o.CapacityType, zoneText(o.Zone), o.State, o.CPUPercent, o.MemoryPercent, v.Pods,
			priceCell(price), c.age(v.Created), v.Drift, protected,
		}})
	}
	return l
}

// priceCell is a price, nil where it is not known.
func priceCell(price model.Money) any {
	if price == 0 {
		return nil
	}
	return money(price.Dollars())
}

// listedPool is a NodePool in JSON.
type listedPool struct {
	v1alpha1.NodePoolState
	// Managed is false for a NodePool of another node class, with which nap does nothing.
	Managed bool `json:"managed"`
}

// listedPools are the NodePools of these states and those of other node classes, by name.
func listedPools(states []v1alpha1.NodePoolState, pools map[string]*v1.NodePool, views []fleet.NodeView) []listedPool {
	var out []listedPool
	for i := range states {
		out = append(out, listedPool{NodePoolState: states[i], Managed: true})
	}
	for name, p := range pools {
		err := kube.CheckManaged(p)
		if err == nil {
			continue
		}
		other := listedPool{NodePoolState: v1alpha1.NodePoolState{Name: name, Why: err.Error()}}
		for i := range views {
			if views[i].Pool == name {
				other.Nodes++
			}
		}
		out = append(slices.DeleteFunc(out, func(l listedPool) bool { return l.Name == name }), other)
	}
	slices.SortFunc(out, func(x, y listedPool) int { return cmp.Compare(x.Name, y.Name) })
	return out
}

// cells are the columns of a NodePool. Of one that nap does not manage it knows neither load nor
// price.
func (p *listedPool) cells(weight any) []any {
	if !p.Managed {
		return []any{p.Name, int(p.Nodes), nil, nil, nil, nil, nil, weight, nil, p.Why, "no"}
	}
	cost, err := strconv.ParseFloat(p.HourlyCost, 64)
	if err != nil {
		cost = 0 // a NodePool without nodes has no price
	}
	return []any{
		p.Name, int(p.Nodes), percentCell(p.CPUPercent), percentCell(p.MemoryPercent), limitText(p.Limits), money(cost), int(p.SpotNodes),
		weight, p.Frozen, p.Why, "yes",
	}
}

func (c *getCommand) pools(read *planInput, views []fleet.NodeView) *listing {
	var states []v1alpha1.NodePoolState
	if read.told.tellsFleet() {
		states = read.told.document.Status.NodePools
	} else {
		states, _ = snapshot.Pools(read.store.Snapshot(), views, c.now())
	}
	all := listedPools(states, read.pools, views)
	allManaged := !slices.ContainsFunc(all, func(p listedPool) bool { return !p.Managed })
	l := &listing{kind: "pools", single: "nodepool", columns: []listColumn{
		{"NAME", false}, {"NODES", false}, {"CPU", false}, {"MEMORY", false}, {"LIMIT", false}, {"$/H", false}, {"SPOT", false},
		{"WEIGHT", true}, {"FROZEN", true}, {"WHY", true}, {"MANAGED", allManaged},
	}}
	for i := range all {
		p := &all[i]
		var labels map[string]string
		weight := any(nil)
		if np := read.pools[p.Name]; np != nil {
			labels = np.Labels
			if np.Spec.Weight != nil {
				weight = int(*np.Spec.Weight)
			}
		}
		row := listRow{name: p.Name, labels: labels, object: p, cells: p.cells(weight)}
		if !p.Managed {
			row.note = notManaged(p.Name, p.Why)
		}
		l.rows = append(l.rows, row)
	}
	return l
}

func percentCell(p *int32) any {
	if p == nil {
		return nil
	}
	return percentage(*p)
}

// listedClaim is a NodeClaim in JSON.
type listedClaim struct {
	Name         string            `json:"name"`
	NodePool     string            `json:"nodePool"`
	Node         string            `json:"node,omitempty"`
	Stage        string            `json:"stage"`
	InstanceType string            `json:"instanceType,omitempty"`
	Zone         string            `json:"zone,omitempty"`
	CapacityType string            `json:"capacityType,omitempty"`
	Plan         string            `json:"plan,omitempty"`
	Why          string            `json:"why,omitempty"`
	Created      time.Time         `json:"created"`
	Labels       map[string]string `json:"labels,omitempty"`
}

func (c *getCommand) claims(read *planInput) *listing {
	l := &listing{kind: "claims", single: "nodeclaim", columns: []listColumn{
		{"NAME", false}, {"NODEPOOL", false}, {"SIZE", false}, {"CAPACITY", false}, {"STAGE", false}, {"AGE", false}, {"NODE", true},
		{"ZONE", true}, {"PLAN", true}, {"WHY", true},
	}}
	for _, object := range read.objects.Distinct() {
		claim, is := object.(*v1.NodeClaim)
		if !is {
			continue
		}
		o := listedClaim{
			Name: claim.Name, NodePool: claim.Labels[v1.NodePoolLabelKey], Node: claim.Status.NodeName, Stage: stageOf(claim),
			InstanceType: claim.Labels[corev1.LabelInstanceTypeStable], Zone: claim.Labels[corev1.LabelTopologyZone],
			CapacityType: claim.Labels[v1.CapacityTypeLabelKey], Plan: claim.Annotations[v1beta1.AnnotationPlan],
			Why: claim.Annotations[v1beta1.AnnotationWhy], Created: claim.CreationTimestamp.UTC(), Labels: claim.Labels,
		}
		l.rows = append(l.rows, listRow{name: claim.Name, labels: claim.Labels, object: o, cells: []any{
			o.Name, o.NodePool, shortSize(o.InstanceType), o.CapacityType, o.Stage, c.age(o.Created), o.Node, zoneText(o.Zone), o.Plan, o.Why,
		}})
	}
	slices.SortFunc(l.rows, func(x, y listRow) int { return cmp.Compare(x.name, y.name) })
	return l
}

// stageOf is how far a NodeClaim is.
func stageOf(claim *v1.NodeClaim) string {
	is := func(kind string) bool {
		for i := range claim.Status.Conditions {
			if cond := &claim.Status.Conditions[i]; cond.Type == kind {
				return string(cond.Status) == "True"
			}
		}
		return false
	}
	switch {
	case claim.DeletionTimestamp != nil:
		return "Leaving"
	case is(v1.ConditionTypeInitialized):
		return "Ready"
	case claim.Status.NodeName != "":
		return "Registered"
	case claim.Status.ProviderID != "":
		return "Launched"
	}
	return "Ordered"
}

func (c *getCommand) moves(ctx context.Context) (*listing, error) {
	l := &listing{kind: "moves", single: "move", columns: []listColumn{
		{"ID", false}, {"REASON", false}, {"STAGE", false}, {"NODES", false}, {"EVICTS", false}, {"SAVES/H", false}, {"AGE", false},
		{"NODE", true}, {"NODEPOOLS", true}, {"WHY", true},
	}}
	if len(c.input.files) > 0 {
		return nil, errors.New("-f: moves are what the controller of a cluster publishes, and files have none; " +
			"leave it out: nap get moves --context NAME")
	}
	config, err := c.input.cluster.Config(ctx)
	if err != nil {
		return nil, err
	}
	told, err := readSnapshot(ctx, config)
	if err != nil {
		return nil, unreadable(&c.input.cluster, config.Host, err)
	}
	if told.document == nil {
		return nil, fmt.Errorf("moves are what the controller publishes, and %s", told.why)
	}
	if !told.tellsFleet() {
		return nil, errors.New("moves are those of engine nap, and the controller runs with --engine=karpenter; what that removes: " +
			"kubectl get events -A --field-selector reason=DisruptionTerminating")
	}
	for _, m := range slices.Concat(told.document.Status.Moves, told.document.Status.LastMoves) {
		saving, err := strconv.ParseFloat(m.HourlySaving, 64)
		if err != nil {
			return nil, fmt.Errorf("move %s of the snapshot: hourlySaving: %w", m.ID, err)
		}
		row := listRow{name: m.ID, object: m, cells: []any{
			m.ID, m.Reason, m.Stage, int(m.Nodes), int(m.Evictions), money(saving), c.age(m.Begun.Time), m.Node,
			strings.Join(m.NodePools, ","), m.Why,
		}}
		if nodes := snapshot.LeavingOf(&told.document.Status, m.ID); m.Stage == v1alpha1.MoveLeaving && len(nodes) > 0 {
			row.note = fmt.Sprintf("move %s: %s: nap explain node %s", m.ID, m.Why, cmp.Or(nodes[0].Node, nodes[0].NodeClaim))
		}
		l.rows = append(l.rows, row)
	}
	return l, nil
}

// listedOffer is what can be bought, or not, in JSON.
type listedOffer struct {
	InstanceType string   `json:"instanceType"`
	CapacityType string   `json:"capacityType"`
	Zones        []string `json:"zones"`
	// RefusedZones are those in which it cannot be bought now, Why what Azure said.
	RefusedZones []string          `json:"refusedZones,omitempty"`
	Why          string            `json:"why,omitempty"`
	VCPUs        int64             `json:"vcpus"`
	MemoryBytes  int64             `json:"memoryBytes"`
	HourlyPrice  float64           `json:"hourlyPrice"`
	Labels       map[string]string `json:"labels,omitempty"`
}

// offers are those of the catalogue, with what the controller knows to be refused.
func (c *getCommand) offers(ctx context.Context) (*listing, error) {
	l := &listing{kind: "offers", single: "offer", columns: []listColumn{
		{"SIZE", false}, {"CAPACITY", false}, {"VCPU", false}, {"MEMORY", false}, {"$/H", false}, {"ZONES", false}, {"REFUSED", false},
		{"WHY", true},
	}}
	var s *offline.Source
	if c.input.live() || len(c.input.files) > 0 {
		read, err := c.input.read(ctx, c.streams.In)
		if err != nil {
			return nil, err
		}
		if s, err = read.source(ctx, c.input.catalogFlags); err != nil {
			return nil, err
		}
		tellRefused(c.streams.Err, read.problems)
		l.assuming, l.refused = read.told.offline(), len(read.problems) > 0
	} else {
		if err := c.input.checkRegion(); err != nil {
			return nil, err
		}
		var err error
		if s, err = c.input.unused().open(nil, func(string) string { return "" }); err != nil {
			return nil, err
		}
		l.assuming = "offline: " + s.Note
	}
	types := s.ForClass("").InstanceTypes
	for i := range types {
		for _, capacityType := range []model.CapacityType{model.OnDemand, model.Spot, model.Reserved} {
			l.addOffer(&types[i], capacityType)
		}
	}
	slices.SortStableFunc(l.rows, func(x, y listRow) int { return cmp.Compare(x.name, y.name) })
	return l, nil
}

// addOffer adds a size of one capacity type, unless it is not sold so.
func (l *listing) addOffer(t *model.InstanceType, capacityType model.CapacityType) {
	price := cheapest(t, capacityType)
	if price == notSold {
		return
	}
	o := listedOffer{
		InstanceType: t.Name, CapacityType: string(capacityType), Zones: []string{}, VCPUs: t.Capacity.Get(model.CPU) / 1000,
		MemoryBytes: t.Capacity.Get(model.Memory), HourlyPrice: price.Dollars(), Labels: t.Labels,
	}
	for i := range t.Offerings {
		switch offering := &t.Offerings[i]; {
		case offering.CapacityType != capacityType:
		case offering.Available:
			o.Zones = append(o.Zones, zoneText(offering.Zone))
		default:
			o.RefusedZones, o.Why = append(o.RefusedZones, zoneText(offering.Zone)), offering.Unavailable
		}
	}
	refused := strings.Join(o.RefusedZones, ",")
	if len(o.Zones) == 0 {
		refused = "everywhere"
	}
	l.rows = append(l.rows, listRow{name: t.Name, labels: t.Labels, object: o, cells: []any{
		shortSize(t.Name), o.CapacityType, int(o.VCPUs), memoryText(t), priceCell(price), zonesList(o.Zones), refused, o.Why,
	}})
}

// zonesList is zones without the region's name, which all have in common.
func zonesList(zones []string) string {
	var short []string
	for _, z := range zones {
		if at := strings.LastIndex(z, "-"); at >= 0 {
			z = z[at+1:]
		}
		if z != "none" {
			short = append(short, z)
		}
	}
	slices.Sort(short)
	return strings.Join(slices.Compact(short), ",")
}
