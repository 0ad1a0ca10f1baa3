package fleet

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Catalog is what the nodes of a NodePool can be bought from, on axes of its
// own.
type Catalog struct {
	// Axes name the resources of the instance types' vectors.
	Axes          model.Axes
	InstanceTypes []model.InstanceType
	// LabelKeys are the labels that only the cloud decides, as in model.Catalog.
	LabelKeys []string
	// Quotas are the subscription limits that the offerings name.
	Quotas []model.Quota
	// Advance is what is paid in advance, whatever machines there are; nil for nothing. Where it
	// is given, what of it the offerings and Quotas state does not count: a snapshot counts its
	// own machines, those that are to be launched included.
	Advance *model.Advance
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
	// Policy is the problem's, as it is.
	Policy model.Policy
	// Now decides which do-not-disrupt periods have ended.
	Now time.Time
	// Paused are the NodePools that must not buy for now, by name, with the reason.
	Paused map[string]string
}

// Input is a planning problem together with the way back from its indices to
// the cluster.
type Input struct {
	Problem *model.Problem
	// Revision is that of the snapshot.
	Revision uint64
	// Rejected are the pods that cannot be planned, by name; the others are.
	Rejected []Rejection

	snapshot *Snapshot
	// announced are the pods that do not exist, or not yet, living how many pods their owners
	// had, by UID.
	announced map[model.PodRef]*Pod
	living    map[string]int
}

// Rejection is a pod that is not part of the problem.
type Rejection struct {
	Pod model.PodRef
	// Owner is the workload as [Pod.ShownName] names it.
	Owner  string
	Reason model.Reason
	// Message says what is wrong, without the name of the pod.
	Message string
	// Fix is what to change; empty stands for what helps against the reason in general.
	Fix string
	// Quiet rejections are the pod's own wish and no event for its user.
	Quiet bool
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

// Record returns what the snapshot knows of a pod, also of one that is announced, or nil.
func (in *Input) Record(ref model.PodRef) *Pod {
	if p := in.snapshot.pods[ref]; p != nil {
		return p
	}
	return in.announced[ref]
}

// Living is how many pods the owner of an announced pod had in the snapshot, or the
// workloads of a set together.
func (in *Input) Living(ownerUID string) int { return in.living[ownerUID] }

// Set is the name of the set of workloads that the owner with this UID belongs to, empty for
// none.
func (in *Input) Set(ownerUID string) string {
	if w := in.snapshot.coming.workloads[ownerUID]; w != nil {
		return w.Set
	}
	return ""
}

// Owner names the workload that a pod belongs to, as in "Deployment
// default/web"; a bare pod is its own.
func (in *Input) Owner(ref model.PodRef) string {
	if p := in.Record(ref); p != nil {
		return p.OwnerName()
	}
	return "Pod " + ref.String()
}

// OwnerName names the workload that the pod belongs to, as in "Deployment
// default/web"; a bare pod is its own. Where another pod controls it, as the driver of Spark
// does its executors, that pod is the workload, of which this one is a part.
func (p *Pod) OwnerName() string {
	if p.Owner.Kind == "" {
		return "Pod " + p.Ref.String()
	}
	return p.Owner.Kind + " " + p.Ref.Namespace + "/" + p.Owner.Name
}

// ShownName is the pod's OwnerName, but its own name where another pod controls it: by the name of
// that one alone, which runs, a list would seem to speak of it.
func ShownName(p *Pod) string {
	if p.Owner.Kind == "Pod" {
		return "Pod " + p.Ref.String()
	}
	return p.OwnerName()
}

// Problem states what there is to plan: the pods that wait and those that must
// move, the places that exist, and what the NodePools may buy. Everything in it
// is ordered by name, so that equal snapshots give equal problems.
//
// It fails only when ctx ends; what is wrong with single pods and pools is told
// in the Input.
func (s *Snapshot) Problem(ctx context.Context, catalogs Catalogs, opts Options) (*Input, error) {
	a, err := newAssembly(ctx, s, catalogs, &DisruptionOptions{Options: opts})
	if err != nil {
		return nil, err
	}
	for _, p := range s.virtualPods() {
		a.virtual = append(a.virtual, p)
		a.pending.add(p)
	}
	a.vacated = opts.Now
	pending := a.pendingClasses()
	return a.input(a.problem(pending, a.writer(pending))), nil
}

// assembly holds the parts of which one problem is put together.
type assembly struct {
	snapshot *Snapshot
	policy   model.Policy
	catalogs *poolCatalogs
	daemons  *daemonSets
	nodes    *clusterNodes
	volumes  *volumeResolver
	claims   *deviceResolver
	budgets  *podBudgets
	pending  *pendingPods
	extended *extendedResources
	terms    *resolver
	// living is as in Input.
	living map[string]int
	// virtual are the pods of buffers that are to be planned, or that have a place.
	virtual []*Pod
	// vacated is when pods are planned that may wait for room: what pods take that vacate it
	// soon is free then. It is zero where room counts that is free already.
	vacated time.Time
}

// newAssembly reads the parts. Every pod is then with its node or among the
// pending ones. It fails only when ctx ends.
func newAssembly(ctx context.Context, s *Snapshot, source Catalogs, opts *DisruptionOptions) (*assembly, error) {
	catalogs, err := readCatalogs(ctx, s.Pools(), source, opts.Paused)
	if err != nil {
		return nil, err
	}
	nodes := joinNodes(s, &nodeDescriber{
		catalogs: catalogs, drivers: s.attaching.drivers, own: opts.Own, showNames: podsNameNodes(s), features: featuresAsked(s),
		byDriver: s.devices.resources(), withoutClaims: s.withoutClaims(),
	})
	catalogs.leaveOutUncounted(s.Pools(), nodes)
	a := &assembly{
		snapshot: s,
		policy:   opts.Policy,
		catalogs: catalogs,
		daemons:  newDaemonSets(s),
		nodes:    nodes,
		volumes:  newVolumeResolver(s, nodes),
		claims:   newDeviceResolver(s, nodes, catalogs),
		budgets:  newPodBudgets(s.budgets, opts.Now),
	}
	a.extended = a.newExtendedResources()
	a.pending = &pendingPods{
		nodes: nodes, daemons: a.daemons, budgets: a.budgets, placements: opts.Placements, keepDisplaced: opts.KeepDisplaced, now: opts.Now,
	}
	a.pending.sort(s.pods, a.volumes, a.claims)
	a.pending.announced, a.living = s.announced(opts.Now)
	for _, p := range a.pending.announced {
		a.pending.add(p)
	}
	a.terms = newResolver(s, newWorkloadShares(opts.Policy.Share.Workload, s.pods, a.pending.announced))
	return a, nil
}

// writer makes ready to state classes: placed are all those of the problem,
// pending and movable. Nothing may change the pods of nodes afterwards.
func (a *assembly) writer(placed []*podClass) *classWriter {
	a.terms.listen(placed, a.nodes.list)
	return &classWriter{terms: a.terms, axes: a.axes(placed)}
}

// problem states the problem of placing the pending classes.
func (a *assembly) problem(pending []*podClass, w *classWriter) *model.Problem {
	p := &model.Problem{Axes: w.axes, ByDriver: a.snapshot.devices.resources(), Policy: a.policy}
	a.addPools(p)
	p.Classes = w.writeAll(w.merged(pending))
	p.Shapes = a.terms.shapesOn(a.nodes.list)
	for _, n := range a.nodes.list {
		p.Nodes = append(p.Nodes, a.writeNode(n, p.Axes))
	}
	a.capShares(p)
	return p
}

// input is the problem with what is known of pods and NodePools that are not part
// of it.
func (a *assembly) input(p *model.Problem) *Input {
	rejected := a.pending.rejected
	slices.SortFunc(rejected, func(x, y Rejection) int { return compareRefs(x.Pod, y.Pod) })
	in := &Input{Problem: p, Revision: a.snapshot.revision, Rejected: rejected, snapshot: a.snapshot}
	in.announced, in.living = make(map[model.PodRef]*Pod, len(a.pending.announced)), a.living
	for _, one := range a.pending.announced {
		in.announced[one.Ref] = one
	}
	for _, one := range a.virtual {
		in.announced[one.Ref] = one
	}
	return in
}

// addPools adds the NodePools, those that buy the heaviest first, with their catalogues
// and quotas.
func (a *assembly) addPools(p *model.Problem) {
	known := catalogued{index: map[*Catalog]int{}, quotas: map[string]model.Quota{}}
	daemons := a.daemons.onNewNodes(p.Axes)
	pools := slices.DeleteFunc(a.snapshot.Pools(), func(p *Pool) bool { return !a.catalogs.buys(p.Name) })
	slices.SortStableFunc(pools, func(x, y *Pool) int { return y.Weight - x.Weight })
	for _, record := range pools {
		pool := record.on(p.Axes)
		pool.Catalog, pool.Daemons = a.addCatalog(p, record.Name, known), daemons
		pool.Usage, pool.Nodes = a.nodes.ofPool(record.Name, p.Axes)
		if pool.CostLimit != nil {
			pool.Cost, _ = a.nodes.costOf(record.Name) // where it is not known, the NodePool is left out
		}
		p.Pools = append(p.Pools, pool)
	}
	p.LeftOut = slices.SortedFunc(slices.Values(a.catalogs.leftOut), func(x, y model.LeftOut) int { return cmp.Compare(x.Pool, y.Pool) })
	for i := range p.LeftOut {
		p.LeftOut[i].Catalog = a.addCatalog(p, p.LeftOut[i].Pool, known)
	}
	for _, q := range a.catalogs.account.Left() {
		known.quotas[q.Name] = q
	}
	for _, name := range slices.Sorted(maps.Keys(known.quotas)) {
		p.Quotas = append(p.Quotas, known.quotas[name])
	}
}

// catalogued are the catalogues that a problem has already, and the quotas of all of them.
type catalogued struct {
	index  map[*Catalog]int
	quotas map[string]model.Quota
}

// addCatalog adds the catalogue of a NodePool unless the problem has it, and returns its
// index; it is -1 where the catalogue could not be read.
func (a *assembly) addCatalog(p *model.Problem, pool string, known catalogued) int {
	catalog := a.catalogs.byPool[pool]
	if catalog == nil {
		return -1
	}
	i, has := known.index[catalog]
	if !has {
		i = len(p.Catalogs)
		known.index[catalog] = i
		p.Catalogs = append(p.Catalogs, a.claims.kinds.mark(a.catalogs.beyond(catalog).on(p.Axes), p.Axes))
		for _, q := range catalog.Quotas {
			known.quotas[q.Name] = q
		}
	}
	return i
}

// on states what the record says of the NodePool, with its limits on the axes.
func (p *Pool) on(axes model.Axes) model.Pool {
	pool := model.Pool{
		Name:          p.Name,
		Weight:        p.Weight,
		Requirements:  p.Requirements,
		Labels:        p.Labels,
		Taints:        p.Taints,
		StartupTaints: p.StartupTaints,
		NodeLimit:     p.NodeLimit,
		CostLimit:     p.CostLimit,
	}
	for _, l := range p.Limits {
		pool.Limits = append(pool.Limits, model.Limit{Axis: axes.Index(l.Name), Value: l.Value})
	}
	return pool
}

// writeNode states a node with what its pods and DaemonSets use.
func (a *assembly) writeNode(n *stateNode, axes model.Axes) model.Node {
	out := model.Node{
		Name:        n.name,
		Pool:        n.pool,
		State:       n.state,
		Labels:      n.labels,
		Taints:      n.taints,
		Allocatable: n.allocatable.Vector(axes),
		Used:        make(model.Resources, len(axes)),
		Price:       n.cost.price,
	}
	if n.claim != nil {
		out.Claim = n.claim.Name
	}
	for _, p := range n.pods {
		if vacates(p, a.vacated) {
			out.Vacating++
		} else {
			p.Spec.Requests.addTo(out.Used, axes)
			out.HostPorts = append(out.HostPorts, p.Spec.HostPorts...)
		}
		a.claims.addUsed(p, n, out.Used, axes)
		out.Attached = append(out.Attached, a.volumes.attached(p)...)
	}
	a.claims.kinds.markNode(n, &out, axes)
	a.daemons.addMissing(n, &out, axes)
	out.Attached = distinctVolumes(append(out.Attached, a.volumes.left(n)...))
	out.VolumeSlots = freeSlots(n.slots, out.Attached)
	out.Bound = a.terms.bound(n)
	return out
}

// on returns the catalogue with its resources on other axes.
func (c *Catalog) on(axes model.Axes) model.Catalog {
	if slices.Equal(c.Axes, axes) {
		return model.Catalog{InstanceTypes: c.InstanceTypes, LabelKeys: c.LabelKeys}
	}
	types := slices.Clone(c.InstanceTypes)
	for i := range types {
		types[i].Capacity = reaxis(types[i].Capacity, c.Axes, axes)
		types[i].Overhead = reaxis(types[i].Overhead, c.Axes, axes)
	}
	return model.Catalog{InstanceTypes: types, LabelKeys: c.LabelKeys}
}

func compare(a, b string) int { return cmp.Compare(a, b) }

func compareRefs(a, b model.PodRef) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
