package fleet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Catalog is what the nodes of a NodePool can be bought from, on axes of its
// own.
type Catalog struct {
	Axes          model.Axes
	InstanceTypes []model.InstanceType
	// Quotas are the subscription limits that the offerings name.
	Quotas []model.Quota
}

// Catalogs knows what each NodePool can buy. Pools that share a node class
// should get the same *Catalog, which is then planned with once.
type Catalogs interface {
	// Catalog returns the catalogue of a NodePool. An error leaves the pool out
	// of the plan, with the error as the reason.
	Catalog(ctx context.Context, nodePool string) (*Catalog, error)
}

// Options are what a problem needs beyond the snapshot.
type Options struct {
	Policy model.Policy
	// Now decides which do-not-disrupt periods have ended.
	Now time.Time
}

// Input is a planning problem together with the way back from its indices to
// the cluster.
type Input struct {
	Problem  *model.Problem
	Revision uint64
	// Rejected are the pods that cannot be planned, by name; the others are.
	Rejected []Rejection
	// LeftOut are the NodePools that buy nothing, by name.
	LeftOut []LeftOut

	snapshot *Snapshot
}

// Rejection is a pod that is not part of the problem.
type Rejection struct {
	Pod     model.PodRef
	Owner   string
	Reason  model.Reason
	Message string
	// Quiet rejections are the pod's own wish and no event for its user.
	Quiet bool
}

// LeftOut is a NodePool that buys nothing, and why.
type LeftOut struct {
	Pool    string
	Reason  model.Reason
	Message string
}

// Pods names the pods of a plan entry.
func (in *Input) Pods(entries []model.ClassPods) []model.PodRef {
	var refs []model.PodRef
	for _, e := range entries {
		for _, i := range e.Pods {
			refs = append(refs, in.Problem.Classes[e.Class].Pods[i])
		}
	}
	return refs
}

// Record returns what the snapshot knows of a pod, or nil.
func (in *Input) Record(ref model.PodRef) *Pod { return in.snapshot.pods[ref] }

// Owner names the workload that a pod belongs to, as in "Deployment
// default/web"; a bare pod is its own.
func (in *Input) Owner(ref model.PodRef) string {
	if p := in.snapshot.pods[ref]; p != nil {
		return p.ownerName()
	}
	return "Pod " + ref.String()
}

func (p *Pod) ownerName() string {
	if p.Owner.Kind == "" {
		return "Pod " + p.Ref.String()
	}
	return p.Owner.Kind + " " + p.Ref.Namespace + "/" + p.Owner.Name
}

// assembly is the work of one Problem call.
type assembly struct {
	*Snapshot
	opts     Options
	in       *Input
	axes     model.Axes
	machines []*machine
	byNode   map[string]*machine
	catalogs map[string]*Catalog
	types    map[*Catalog]map[string]*model.InstanceType
	// forecasts are what claims that are not launched will be, nil where nothing
	// that is sold would do.
	forecasts map[string]*forecast
	wanted    []*Pod
	// own are nodes whose taint of a disruption does not count.
	own map[string]bool
	// planned is where pods of nodes that leave have a place; promised holds the
	// machines by their names and those of their claims.
	planned  map[model.PodRef]string
	promised map[string]*machine
	// users counts the pods of each volume claim.
	users    map[objectKey]int
	resolver *resolver
}

// Problem states what there is to plan: the pods that wait and those that must
// move, the places that exist, and what the NodePools may buy. Everything in it
// is ordered by name, so that equal snapshots give equal problems.
//
// It fails only when ctx ends; what is wrong with single pods and pools is told
// in the Input.
func (s *Snapshot) Problem(ctx context.Context, catalogs Catalogs, opts Options) (*Input, error) {
	a := &assembly{Snapshot: s, opts: opts, in: &Input{Revision: s.revision, snapshot: s}}
	if _, err := a.state(ctx, catalogs, nil); err != nil {
		return nil, err
	}
	return a.in, nil
}

// state puts the problem together. With a household, the residents of the nodes
// are grouped beside it, by the same rules.
func (a *assembly) state(ctx context.Context, catalogs Catalogs, h *household) (*model.Problem, error) {
	a.resolver = newResolver(a.Snapshot)
	if err := a.readCatalogs(ctx, catalogs); err != nil {
		return nil, err
	}
	a.joinMachines()
	a.sortPods()
	units := a.units()
	everyone := units
	var residents []*resident
	if h != nil {
		residents = h.residents()
		everyone = slices.Clone(units)
		for _, r := range residents {
			everyone = append(everyone, &r.unit)
		}
	}
	a.chooseAxes(everyone)
	p := &model.Problem{Axes: a.axes, Policy: a.opts.Policy}
	a.in.Problem = p
	a.addPools(p)
	a.resolver.listen(everyone, a.machines)
	a.addClassesAndShapes(p, units)
	if h != nil {
		h.addMovable(residents)
	}
	a.addNodes(p)
	slices.SortFunc(a.in.Rejected, func(x, y Rejection) int { return compareRefs(x.Pod, y.Pod) })
	return p, nil
}

func (a *assembly) readCatalogs(ctx context.Context, catalogs Catalogs) error {
	a.catalogs, a.types = map[string]*Catalog{}, map[*Catalog]map[string]*model.InstanceType{}
	a.forecasts = map[string]*forecast{}
	for _, pool := range a.Pools() {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("reading the catalogue of NodePool %q: %w", pool.Name, err)
		}
		usable := a.poolProblem(pool)
		catalog, err := catalogs.Catalog(ctx, pool.Name)
		switch {
		case err != nil && ctx.Err() != nil:
			return fmt.Errorf("reading the catalogue of NodePool %q: %w", pool.Name, ctx.Err())
		case err == nil && catalog != nil:
			// Pools that buy nothing still price the nodes that they have.
			a.catalogs[pool.Name] = catalog
		}
		switch {
		case usable != nil:
			a.in.LeftOut = append(a.in.LeftOut, *usable)
		case err != nil:
			a.in.LeftOut = append(a.in.LeftOut, LeftOut{pool.Name, model.ReasonPoolInvalid, fmt.Sprintf("its catalogue cannot be read: %v", err)})
		case catalog == nil || len(catalog.InstanceTypes) == 0:
			a.in.LeftOut = append(a.in.LeftOut, LeftOut{pool.Name, model.ReasonPoolInvalid, "its node class offers no instance types"})
		}
	}
	return nil
}

// poolProblem says why a pool may not buy, or nil.
func (a *assembly) poolProblem(p *Pool) *LeftOut {
	switch {
	case p.Invalid != "":
		return &LeftOut{p.Name, model.ReasonPoolInvalid, p.Invalid}
	case p.Deleting:
		return &LeftOut{p.Name, model.ReasonNoPool, "it is being deleted"}
	case p.Static:
		return &LeftOut{p.Name, model.ReasonNoPool, "it keeps a fixed number of nodes (spec.replicas) and buys for no pod"}
	case !p.Ready:
		return &LeftOut{p.Name, model.ReasonNoPool, "it is not Ready: " + cmp.Or(p.NotReady, "its status has not been written yet")}
	}
	return nil
}

func (a *assembly) buys(pool string) bool {
	return a.pools[pool] != nil && a.catalogs[pool] != nil && !slices.ContainsFunc(a.in.LeftOut, func(l LeftOut) bool { return l.Pool == pool })
}

// chooseAxes keeps the extended resources that decide anything: what pods or
// daemons ask for and pools limit.
func (a *assembly) chooseAxes(units []*unit) {
	var names []string
	for _, u := range units {
		for _, e := range u.spec.Requests.Extended {
			names = append(names, e.Name)
		}
	}
	for _, requests := range a.daemonRequests() {
		for _, e := range requests.Extended {
			names = append(names, e.Name)
		}
	}
	for _, p := range a.pools {
		for _, l := range p.Limits {
			names = append(names, l.Name)
		}
	}
	a.axes = model.NewAxes(names...)
}

func (a *assembly) addPools(p *model.Problem) {
	index := map[*Catalog]int{}
	quotas := map[string]model.Quota{}
	daemons := a.poolDaemons()
	pools := slices.DeleteFunc(a.Pools(), func(p *Pool) bool { return !a.buys(p.Name) })
	slices.SortStableFunc(pools, func(x, y *Pool) int { return y.Weight - x.Weight })
	for _, record := range pools {
		catalog := a.catalogs[record.Name]
		i, known := index[catalog]
		if !known {
			i = len(p.Catalogs)
			index[catalog] = i
			p.Catalogs = append(p.Catalogs, catalog.on(a.axes))
			for _, q := range catalog.Quotas {
				quotas[q.Name] = q
			}
		}
		p.Pools = append(p.Pools, a.pool(record, i, daemons))
	}
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		p.Quotas = append(p.Quotas, quotas[name])
	}
}

func (a *assembly) pool(record *Pool, catalog int, daemons []model.Daemon) model.Pool {
	pool := model.Pool{
		Name:          record.Name,
		Weight:        record.Weight,
		Requirements:  record.Requirements,
		Labels:        record.Labels,
		Taints:        record.Taints,
		StartupTaints: record.StartupTaints,
		Catalog:       catalog,
		Usage:         make(model.Resources, len(a.axes)),
		NodeLimit:     record.NodeLimit,
		Daemons:       daemons,
	}
	for _, l := range record.Limits {
		pool.Limits = append(pool.Limits, model.Limit{Axis: a.axes.Index(l.Name), Value: l.Value})
	}
	for _, m := range a.machines {
		if m.pool == record.Name && m.state != model.NodeLeaving {
			m.capacity.addTo(pool.Usage, a.axes)
			pool.Nodes++
		}
	}
	return pool
}

// poolDaemons are the DaemonSets with what their pods will take on new nodes, the same
// for every pool.
func (a *assembly) poolDaemons() []model.Daemon {
	requests := a.daemonRequests()
	var out []model.Daemon
	for _, d := range a.sortedDaemons() {
		out = append(out, model.Daemon{
			Name:         d.Namespace + "/" + d.Name,
			Requests:     requests[objectKey{d.Namespace, d.Name}].Vector(a.axes),
			Requirements: d.Spec.nodeRules(),
			Tolerations:  d.Spec.Tolerations,
			HostPorts:    d.Spec.HostPorts,
		})
	}
	return out
}

// nodeRules are the nodeSelector and the required node affinity as OR-ed
// alternatives.
func (s *PodSpec) nodeRules() []model.Requirements {
	if len(s.NodeAlternatives) == 0 {
		if len(s.NodeRequirements) == 0 {
			return nil
		}
		return []model.Requirements{s.NodeRequirements}
	}
	rules := make([]model.Requirements, len(s.NodeAlternatives))
	for i, alternative := range s.NodeAlternatives {
		rules[i] = slices.Concat(s.NodeRequirements, alternative)
	}
	return rules
}

// on returns the catalogue with its resources on other axes.
func (c *Catalog) on(axes model.Axes) model.Catalog {
	if slices.Equal(c.Axes, axes) {
		return model.Catalog{InstanceTypes: c.InstanceTypes}
	}
	types := slices.Clone(c.InstanceTypes)
	for i := range types {
		types[i].Capacity = reaxis(types[i].Capacity, c.Axes, axes)
		types[i].Overhead = reaxis(types[i].Overhead, c.Axes, axes)
	}
	return model.Catalog{InstanceTypes: types}
}

func (a *assembly) sortedDaemons() []*Daemon {
	return slices.SortedFunc(maps.Values(a.daemons), func(x, y *Daemon) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}

func compare(a, b string) int { return cmp.Compare(a, b) }

func compareRefs(a, b model.PodRef) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
