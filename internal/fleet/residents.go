package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// DisruptionOptions are what a question about giving machines back needs beyond the
// snapshot.
type DisruptionOptions struct {
	Options
	Terms model.ConsolidationTerms
	// Bound asks for a floor under the price of the fleet.
	Bound bool
	// Marked are the nodes that somebody is giving up, by name, beside those that
	// their objects show.
	Marked map[string]bool
	// Own are nodes, by name, that carry the taint of a disruption and are stated as
	// if they did not: to look again at a move that is under way.
	Own map[string]bool
	// Promised are NodeClaims, by name, that were bought for moves under way.
	Promised map[string]bool
	// Planned is where moves under way have a place for pods that still run on
	// nodes which leave: the name of a node or of its claim. Such a pod takes its
	// room there already.
	Planned map[model.PodRef]string
	// Resting are nodes, by name, whose last move failed, and until when they are
	// left alone.
	Resting map[string]time.Time
	// Unclaimed counts nodes with a NodePool's label as the pool's although they
	// have no NodeClaim, as in files that hold only nodes.
	Unclaimed bool
	// ConsolidateFrom is the start of the maintenance window that consolidation
	// waits for; zero when it need not wait.
	ConsolidateFrom time.Time
}

// DisruptionInput is a question about giving machines back together with the way back
// from its indices to the cluster.
type DisruptionInput struct {
	*Input
	Fleet *model.DisruptionProblem
}

// Movable names the pods of an entry that speaks of DisruptionProblem.Movable.
func (in *DisruptionInput) Movable(entries []model.ClassPods) []model.PodRef {
	var refs []model.PodRef
	for _, e := range entries {
		for _, i := range e.Pods {
			refs = append(refs, in.Fleet.Movable[e.Class].Pods[i])
		}
	}
	return refs
}

// Fleet states what could be given back: the planning problem, and beside it who
// lives on every node and what guards it. Everything in it is ordered by name.
//
// It fails only when ctx ends.
func (s *Snapshot) Fleet(ctx context.Context, catalogs Catalogs, opts DisruptionOptions) (*DisruptionInput, error) {
	a := &assembly{Snapshot: s, opts: opts.Options, own: opts.Own, planned: opts.Planned, in: &Input{Revision: s.revision, snapshot: s}}
	h := &household{assembly: a, opts: opts, fleet: &model.DisruptionProblem{Terms: opts.Terms, Now: opts.Now, Bound: opts.Bound, ConsolidateFrom: opts.ConsolidateFrom}}
	p, err := a.state(ctx, catalogs, h)
	if err != nil {
		return nil, err
	}
	h.fleet.Problem = p
	h.addPolicies()
	h.addUsages()
	return &DisruptionInput{Input: a.in, Fleet: h.fleet}, nil
}

// household is the work of one Fleet call: what it adds to a problem.
type household struct {
	*assembly
	opts  DisruptionOptions
	fleet *model.DisruptionProblem
	// budgets index DisruptionProblem.Budgets.
	budgets map[*Budget]int
	// guarding are the budgets by namespace, sorted by name.
	guarding map[string][]*Budget
	// guarded remembers which budgets speak of pods that look alike to them.
	guarded map[guardKey][]int
	// place is where a resident is found in DisruptionProblem.Movable.
	place map[*Pod]model.ClassPods
	// stuck are the residents whose volumes cannot be placed anywhere else.
	stuck map[*Pod]bool
}

// guardKey is what budgets see of a pod.
type guardKey struct {
	namespace string
	labels    *Labels
	unready   bool
}

// residentKey is what residents of one unit share beyond what waiting pods do.
type residentKey struct {
	unitKey
	cost    float64
	budgets string
}

// resident is a unit of pods that run, with what their eviction costs and counts
// against.
type resident struct {
	unit
	cost    float64
	budgets []int
}

// residents groups the pods that would need a place if their node went, in the
// order of their nodes and names.
func (h *household) residents() []*resident {
	h.sortBudgets()
	h.place, h.stuck = map[*Pod]model.ClassPods{}, map[*Pod]bool{}
	index := map[residentKey]*resident{}
	var out []*resident
	for _, m := range h.machines {
		for _, p := range m.pods {
			if !m.houses(p) || p.Daemon || p.Static || p.Terminal || p.Terminating && p.Owner.Kind != "StatefulSet" {
				continue
			}
			var d disks
			if len(p.Claims) > 0 {
				var problem string
				if d, problem = h.disksOf(p); problem != "" {
					h.stuck[p] = true
					continue
				}
			}
			budgets := h.guards(p)
			key := residentKey{unitKey{p.Spec, p.Labels, p.Ref.Namespace, d.key}, p.EvictionCost, fmt.Sprint(budgets)}
			r := index[key]
			if r == nil {
				r = &resident{unit: unit{spec: p.Spec, labels: p.Labels, namespace: p.Ref.Namespace, disks: d}, cost: p.EvictionCost, budgets: budgets}
				index[key] = r
				out = append(out, r)
			}
			r.pods = append(r.pods, p)
		}
	}
	return out
}

func (h *household) sortBudgets() {
	h.budgets, h.guarding, h.guarded = map[*Budget]int{}, map[string][]*Budget{}, map[guardKey][]int{}
	for _, b := range h.Snapshot.budgets {
		h.guarding[b.Namespace] = append(h.guarding[b.Namespace], b)
	}
	for _, list := range h.guarding {
		slices.SortFunc(list, func(x, y *Budget) int { return cmp.Compare(x.Name, y.Name) })
	}
}

// guards are the budgets that an eviction of the pod counts against.
func (h *household) guards(p *Pod) []int {
	key := guardKey{p.Ref.Namespace, p.Labels, p.Unready}
	out, known := h.guarded[key]
	if known {
		return out
	}
	for _, b := range h.guarding[p.Ref.Namespace] {
		if b.FreesUnready && p.Unready || !b.Selector.Matches(p.Labels.Values) {
			continue
		}
		i, known := h.budgets[b]
		if !known {
			i = len(h.fleet.Budgets)
			h.budgets[b] = i
			h.fleet.Budgets = append(h.fleet.Budgets, model.PodBudget{Namespace: b.Namespace, Name: b.Name, Allowed: int(b.Allowed), Blocking: b.Blocking})
		}
		out = append(out, i)
	}
	h.guarded[key] = out
	return out
}

// addMovable merges residents that no rule can tell apart, and that cost the same
// and count against the same budgets, into classes.
func (h *household) addMovable(residents []*resident) {
	type movableKey struct {
		classKey
		cost    float64
		budgets string
	}
	merged := map[movableKey][]*resident{}
	var keys []movableKey
	for _, r := range residents {
		key := movableKey{h.classKey(&r.unit), r.cost, fmt.Sprint(r.budgets)}
		if merged[key] == nil {
			keys = append(keys, key)
		}
		merged[key] = append(merged[key], r)
	}
	for _, key := range keys {
		list := merged[key]
		units := make([]*unit, len(list))
		for i, r := range list {
			units[i] = &r.unit
		}
		all := joined(units)
		class := model.MovableClass{PodClass: h.class(all), Budgets: list[0].budgets, EvictionCost: list[0].cost}
		for i, p := range all.pods {
			h.place[p] = model.ClassPods{Class: len(h.fleet.Movable), Pods: []int{i}}
		}
		h.fleet.Movable = append(h.fleet.Movable, class)
	}
}

// addPolicies states what the NodePools allow.
func (h *household) addPolicies() {
	nodes, disrupting := map[string]int{}, map[string]int{}
	for _, m := range h.machines {
		if h.poolOf(m) == "" || m.node == nil || !h.initialized(m) || m.claim != nil && m.claim.Terminating {
			continue
		}
		nodes[m.pool]++
		if !h.ready(m) || h.marked(m) {
			disrupting[m.pool]++
		}
	}
	for _, pool := range h.Pools() {
		d := &pool.Disruption
		policy := model.DisruptionPolicy{Pool: pool.Name, Consolidation: d.Policy, Never: d.Never, After: d.After, Static: pool.Static}
		if d.Allowed != nil {
			policy.Allowed = map[model.DisruptionReason]int{}
			for _, reason := range []model.DisruptionReason{model.DisruptEmpty, model.DisruptUnderutilized, model.DisruptDrifted} {
				policy.Allowed[reason] = max(0, d.Allowed(h.opts.Now, nodes[pool.Name], reason)-disrupting[pool.Name])
			}
		}
		h.fleet.Policies = append(h.fleet.Policies, policy)
	}
}

// poolOf is the NodePool that a machine belongs to, empty when nap may not give
// it back.
func (h *household) poolOf(m *machine) string {
	if m.pool == "" || h.pools[m.pool] == nil || m.claim == nil && !h.opts.Unclaimed {
		return ""
	}
	return m.pool
}

func (h *household) initialized(m *machine) bool {
	return m.node != nil && (m.node.Initialized || m.claim == nil)
}

// ready reports whether the kubelet works. Nodes in files often do not say.
func (h *household) ready(m *machine) bool {
	return m.node != nil && (m.node.Ready || m.claim == nil && h.opts.Unclaimed)
}

func (h *household) marked(m *machine) bool {
	return m.state == model.NodeLeaving || m.node != nil && h.opts.Marked[m.node.Name]
}

// addUsages says what runs on every node.
func (h *household) addUsages() {
	policies := make(map[string]int, len(h.fleet.Policies))
	for i := range h.fleet.Policies {
		policies[h.fleet.Policies[i].Pool] = i
	}
	for _, m := range h.machines {
		t := model.NodeUsage{Policy: -1, Initialized: h.initialized(m), Ready: h.ready(m), Disrupting: h.marked(m)}
		if pool := h.poolOf(m); pool != "" {
			t.Policy = policies[pool]
		}
		if m.node != nil {
			t.DoNotDisrupt = m.node.DoNotDisrupt
			t.RetryAfter = h.opts.Resting[m.node.Name]
			t.Created, t.InitializedAt = m.node.Created, m.node.Created
		}
		if m.claim != nil {
			h.addClaim(&t, m)
		}
		h.addPods(&t, m)
		h.fleet.Usages = append(h.fleet.Usages, t)
	}
}

func (h *household) addClaim(t *model.NodeUsage, m *machine) {
	c := m.claim
	t.Created, t.LastPodEvent, t.GracePeriod = c.Created, lastEvent(m), c.GracePeriod
	t.Reserved = h.opts.Promised[c.Name]
	if !c.Initialized.IsZero() {
		t.InitializedAt = c.Initialized
	}
	if h.opts.Now.Before(t.InitializedAt.Add(h.opts.Terms.Payback)) {
		t.ExpectedSaving = model.Money(kept(c.Requests, m) * float64(c.Earned))
	}
	t.Drift, t.DriftSince = c.Drift, c.DriftSince
	if c.ExpireAfter > 0 {
		t.ExpiresAt = c.Created.Add(c.ExpireAfter)
	}
}

// lastEvent is when a pod last came to or left a machine. Its NodeClaim says so up to
// ten seconds late, as Karpenter writes it; pods that leave right now are known at
// once, so that nothing is decided in the midst of a workload that shrinks.
func lastEvent(m *machine) time.Time {
	last := m.claim.LastPodEvent
	for _, p := range m.pods {
		if m.houses(p) && p.Terminating && !p.Daemon && p.LeavingSince.After(last) {
			last = p.LeavingSince
		}
	}
	return last
}

// kept is the share of what a machine was bought for that its pods still ask for:
// those that have ended have nothing to lose.
func kept(bought Amounts, m *machine) float64 {
	var now Amounts
	for _, p := range m.pods {
		if m.houses(p) && !p.Terminating {
			now.CPU += p.Spec.Requests.CPU
			now.Memory += p.Spec.Requests.Memory
		}
	}
	share, said := 0.0, false
	for _, name := range []string{"cpu", "memory"} {
		if whole := bought.Get(name); whole > 0 {
			share, said = max(share, float64(now.Get(name))/float64(whole)), true
		}
	}
	if !said {
		return 1
	}
	return min(1, share)
}

// addPods lists the residents of a machine by class, and those that nobody may
// evict. The latter are residents too: a drain that ends in force moves them.
func (h *household) addPods(t *model.NodeUsage, m *machine) {
	byClass := map[int][]int{}
	for _, p := range m.pods {
		switch place, movable := h.place[p]; {
		case !m.houses(p):
			t.Nominated = true
		case movable:
			byClass[place.Class] = append(byClass[place.Class], place.Pods[0])
		}
		if p.Terminating || !m.houses(p) {
			continue
		}
		if h.stuck[p] {
			t.DoNotDisruptPods = append(t.DoNotDisruptPods, model.DoNotDisruptPod{Pod: p.Ref})
		} else if p.KeepUntil.After(h.opts.Now) {
			held := model.DoNotDisruptPod{Pod: p.Ref}
			if p.KeepUntil.Before(Forever) {
				held.Until = p.KeepUntil
			}
			t.DoNotDisruptPods = append(t.DoNotDisruptPods, held)
		}
	}
	for class, pods := range byClass {
		slices.Sort(pods)
		t.Pods = append(t.Pods, model.ClassPods{Class: class, Pods: pods})
	}
	slices.SortFunc(t.Pods, func(x, y model.ClassPods) int { return cmp.Compare(x.Class, y.Class) })
	slices.SortFunc(t.DoNotDisruptPods, func(x, y model.DoNotDisruptPod) int { return strings.Compare(x.Pod.String(), y.Pod.String()) })
}
