package feasible

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/validate"
)

// compiler builds the options of a space, pool by pool. It exists while a space is
// compiled.
type compiler struct {
	// problem is what is being compiled.
	problem *model.Problem
	// dims are the dimensions of all vectors, known from the start.
	dims Dimensions
	// labels grows by the values of nodes and pools, then by the options.
	labels *labelCompiler
	// options and pools are those of the space so far. The options' DaemonSets and runs
	// are known once addDaemons has run.
	options []Option
	pools   []Pool
	runs    runBuilder
	// tiers is how many different weights the pools so far have.
	tiers int
	// daemonSets are the combinations of daemons found so far.
	daemonSets []DaemonSet
	// rejected and poolErrors are what is wrong with the problem, as far as it is read.
	rejected   []model.Rejection
	poolErrors map[int]string
	// unused and alike are the valid pools that are left out: those that no class needs, and by
	// the pool that stands for them those that offer the same to all classes.
	unused []int
	alike  map[int][]int
}

// New compiles the problem. What is wrong with NodePools, instance types and offerings
// does not fail: they are left out, and Rejected says why. Where there are many NodePools,
// those without which a plan costs the same are left out, too (see [Space.Whole]).
// Classes are not validated here ([validate.Class]). The problem must not change while the
// space is in use. Shared is nil, or what is known of the catalogues from other problems.
func New(p *model.Problem, shared *Catalogs) *Space {
	key := shared.key(p)
	if s := shared.space(key, p); s != nil {
		return s
	}
	s, catalogs := newSpace(p, shared, false)
	shared.keep(key, s, catalogs)
	return s
}

// newSpace compiles a problem. The order of the steps matters. Values of labels are
// complete only after all catalogues, nodes and pools are read; options follow, then the
// masks of requirements, then daemons, whose node affinity those masks answer, and then
// what pods can use. It returns the compiled catalogues, too.
func newSpace(p *model.Problem, shared *Catalogs, whole bool) (*Space, []*catalog) {
	k := &compiler{problem: p, dims: newDimensions(p), labels: newLabelCompiler(p), poolErrors: map[int]string{}}
	all := k.poolOrder()
	catalogs := k.compileCatalogs(all, shared)
	k.labels.addNodes(p)
	order := all
	if !whole && offerings(p, all, catalogs) > manyOptions {
		order = k.prune(all, catalogs, 0)
	}
	templates := k.templates(order, catalogs)
	n := k.count(order, templates, catalogs)
	if n > mostOptions && whole {
		order = k.prune(order, catalogs, explainingPools)
		n = k.count(order, templates, catalogs)
	}
	k.reserve(n)
	for _, i := range order {
		k.addPool(i, templates[i], catalogs[p.Pools[i].Catalog])
	}
	k.labels.finish(p, k.pools)
	for i := range k.pools {
		k.addDaemons(&k.pools[i], catalogs[p.Pools[k.pools[i].Index].Catalog])
	}
	axes := k.dims.Axes // the compiler is not to be kept
	s := &Space{
		Problem:     p,
		Dims:        k.dims,
		Capacity:    newCapacityIndex(k.runs.runs, k.dims.Count),
		Supply:      newSupply(p, &k.dims, k.pools, k.options, catalogs),
		Options:     k.options,
		Pools:       k.pools,
		Tiers:       k.tiers,
		DaemonSets:  k.daemonSets,
		Labels:      k.labels.labels,
		Rejected:    k.rejected,
		PoolErrors:  k.poolErrors,
		Unused:      k.unused,
		nodeFree:    k.dims.nodesFree(p.Nodes),
		constraints: Constraints(),
		asked:       &asked{},
	}
	s.asked.largest = sync.OnceValue(func() []int64 { return largestAmounts(p, axes) })
	if !whole && len(order) < len(all) {
		s.asked.whole = sync.OnceValue(func() *Space {
			s, _ := newSpace(p, shared, true)
			return s
		})
	}
	return s, catalogs
}

// templates are what the pools of the order say about labels, by index in the problem.
func (k *compiler) templates(order []int, catalogs []*catalog) []*template {
	out := make([]*template, len(k.problem.Pools))
	for _, i := range order {
		out[i] = k.labels.forPool(&k.problem.Pools[i], catalogs[k.problem.Pools[i].Catalog])
	}
	return out
}

// poolOrder validates the pools and orders the valid ones by weight, then name. It returns
// their indices in the problem; of two pools with one name the first is valid.
func (k *compiler) poolOrder() []int {
	var order []int
	seen := map[string]bool{}
	for i := range k.problem.Pools {
		pool := &k.problem.Pools[i]
		err := validate.Pool(pool, k.problem)
		if err == nil && seen[pool.Name] {
			err = fmt.Errorf("name %q is taken by another NodePool: names must be unique", pool.Name)
		}
		if err != nil {
			k.poolErrors[i] = err.Error()
			k.rejected = append(k.rejected, model.Rejection{Kind: "NodePool", Name: pool.Name, Message: err.Error()})
			continue
		}
		seen[pool.Name] = true
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		pa, pb := &k.problem.Pools[a], &k.problem.Pools[b]
		if pa.Weight != pb.Weight {
			return pb.Weight - pa.Weight
		}
		return strings.Compare(pa.Name, pb.Name)
	})
	return order
}

// compileCatalogs reads of every catalogue what the pools in the given order may buy.
func (k *compiler) compileCatalogs(order []int, shared *Catalogs) []*catalog {
	buyers := make([][]*model.Pool, len(k.problem.Catalogs))
	for _, i := range order {
		pool := &k.problem.Pools[i]
		buyers[pool.Catalog] = append(buyers[pool.Catalog], pool)
	}
	texts := make([][]string, len(buyers))
	for i := range buyers {
		buyers[i], texts[i] = distinctBuyers(&k.problem.Catalogs[i], buyers[i])
	}
	if !shared.serve(k.problem) {
		read := k.readCatalogs(buyers)
		k.rejected = append(k.rejected, read.rejected...)
		return read.catalogs
	}
	labels := &k.labels.labels
	depends := struct {
		Axes          int
		Drivers, Keys []string
		Buyers        [][]string
	}{k.dims.Axes, k.dims.Drivers, labels.keys, texts}
	read := shared.get(string(model.AppendKey(nil, &depends)), func() *readCatalogs { return k.readCatalogs(buyers) })
	k.rejected = append(k.rejected, read.rejected...)
	labels.varies, labels.picked = slices.Clone(read.varies), slices.Clone(read.picked)
	labels.dicts = make([]dict, len(read.dicts))
	for i, d := range read.dicts {
		labels.dicts[i] = dict{names: slices.Clip(d.names), ids: maps.Clone(d.ids)}
	}
	return read.catalogs
}

// readCatalogs reads of every catalogue what its buyers may buy.
func (k *compiler) readCatalogs(buyers [][]*model.Pool) *readCatalogs {
	reader := catalogCompiler{dims: &k.dims, labels: k.labels}
	out := &readCatalogs{catalogs: make([]*catalog, len(buyers))}
	for i := range buyers {
		out.catalogs[i] = reader.compile(&k.problem.Catalogs[i], buyers[i])
	}
	labels := &k.labels.labels
	out.rejected, out.dicts, out.varies, out.picked = reader.rejected, labels.dicts, labels.varies, labels.picked
	return out
}

// count is how many options the pools of the order have if types leave nothing to the
// buyer.
func (k *compiler) count(order []int, templates []*template, catalogs []*catalog) int {
	n := 0
	for _, i := range order {
		n += k.labels.options(templates[i], catalogs[k.problem.Pools[i].Catalog])
	}
	return n
}

// reserve makes room for n options.
func (k *compiler) reserve(n int) {
	k.options = make([]Option, 0, n)
	k.labels.reserve(n)
}

// addPool appends the options that the pool's own requirements leave. Pools come in order
// of weight: a pool with another weight than the one before opens the next tier.
func (k *compiler) addPool(index int, template *template, cat *catalog) {
	pool := &k.problem.Pools[index]
	first := len(k.options)
	tier := 0
	if n := len(k.pools); n > 0 {
		before := k.pools[n-1]
		tier = before.Tier
		if k.problem.Pools[before.Index].Weight != pool.Weight {
			tier++
		}
	}
	k.tiers = tier + 1
	choosy := false
	for t := range cat.types {
		ct := &cat.types[t]
		if ct.unwanted {
			continue
		}
		choices := k.labels.choices(template, ct)
		choosy = choosy || len(choices) > 1
		for _, choice := range choices {
			k.addOfferings(index, t, ct, choice)
		}
	}
	k.pools = append(k.pools, Pool{Index: index, First: first, End: len(k.options), Tier: tier, Alike: k.alike[index], choosy: choosy})
}

// addOfferings appends an option for each offering of an instance type that the choice
// admits.
func (k *compiler) addOfferings(pool, t int, ct *catalogType, choice choice) {
	for o := range ct.offerings {
		co := &ct.offerings[o]
		if co.invalid || !choice.admits(co.values) || !choice.picks(co) {
			continue
		}
		k.labels.appendOption(co.values, choice)
		k.options = append(k.options, Option{Price: co.price, Pool: int32(pool), Type: int32(t), Offering: int32(o)})
	}
}

// addDaemons works out which DaemonSet pods run on each option of a pool, and with that
// what every option leaves for pods. Precondition: the labels can answer requirements.
func (k *compiler) addDaemons(pool *Pool, cat *catalog) {
	src := &k.problem.Pools[pool.Index]
	// here are the daemons that the taints of the pool let in, by index in the pool, and
	// where[j] the options on which daemon here[j] runs, nil for all.
	var here []int
	var where []bitset.Set
	for d := range src.Daemons {
		if model.Untolerated(src.Taints, src.Daemons[d].Tolerations) == nil {
			here = append(here, d)
			where = append(where, k.labels.labels.anyOf(src.Daemons[d].Requirements))
		}
	}
	sets := map[string]int{} // numbers of the sets of daemons, by their members
	net := make([]int64, k.dims.Count)
	key := make([]byte, 0, 2*len(here))
	for i := pool.First; i < pool.End; i++ {
		key = key[:0]
		for j, d := range here {
			if where[j] == nil || where[j].Has(i) {
				key = binary.AppendUvarint(key, uint64(d))
			}
		}
		set, ok := sets[string(key)]
		if !ok {
			set = k.newDaemonSet(src, here, where, i)
			sets[string(key)] = set
		}
		o := &k.options[i]
		o.Daemons = int32(set)
		for d, v := range cat.types[o.Type].allocatable {
			net[d] = v - k.daemonSets[set].Requests[d]
		}
		o.Run = k.runs.add(i, net, i == pool.First)
	}
}

// newDaemonSet adds up those daemons of a pool that run on an option, and returns the
// number of their set. See addDaemons for here and where. Sums are capped at Unlimited, so
// that what is left stays in range.
func (k *compiler) newDaemonSet(pool *model.Pool, here []int, where []bitset.Set, option int) int {
	var sum model.Resources
	var ports []model.HostPort
	for j, d := range here {
		if where[j] != nil && !where[j].Has(option) {
			continue
		}
		sum = sum.Add(withPodSlot(pool.Daemons[d].Requests))
		ports = append(ports, pool.Daemons[d].HostPorts...)
	}
	set := DaemonSet{Requests: k.dims.Vector(sum, nil), Ports: ports}
	for i, v := range set.Requests {
		set.Requests[i] = min(v, Unlimited)
	}
	k.daemonSets = append(k.daemonSets, set)
	return len(k.daemonSets) - 1
}
