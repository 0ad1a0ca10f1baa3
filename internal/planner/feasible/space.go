package feasible

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Unlimited is the capacity on an axis that limits nobody, and the largest
// amount that the planner accepts: sums of two such amounts do not overflow.
const Unlimited = int64(1) << 58

// Option is one way to buy a machine, with all its labels known.
type Option struct {
	// Pool, Type and Offering index Problem.Pools, the pool's catalogue and the
	// type's offerings.
	Pool, Type, Offering int
	Price                model.Money
	// Net is what pods can use: allocatable less daemons, per dimension of the
	// space. Gross is the machine's capacity, which pool limits count.
	Net, Gross []int64
	// Daemons indexes Space.DaemonSets.
	Daemons int
	// Uses is what one machine takes from the space's lines.
	Uses []Use
	// Run numbers neighbouring options that share Net.
	Run int
}

// DaemonSet is the daemons that share a machine, added up.
type DaemonSet struct {
	Requests []int64
	Ports    []model.HostPort
}

// Pool is a usable NodePool of the space.
type Pool struct {
	// Index into Problem.Pools; First and End bound its options.
	Index, First, End int
	// Tier numbers distinct weights from the heaviest, 0.
	Tier int
	// choosy says that labels are left to the buyer: there may be several options
	// to an offering.
	choosy bool
}

// Space is a problem compiled for planning. It is immutable once built, but for
// its caches.
type Space struct {
	Problem *model.Problem
	// Dims is the length of every vector: the problem's axes, then one per
	// volume driver that limits somebody.
	Dims    int
	Drivers []string
	Options []Option
	Pools   []Pool
	Tiers   int
	// Available are the options that the cloud sells right now and that quotas,
	// reservations and limits leave room for, each on its own.
	Available  Set
	DaemonSets []DaemonSet
	Runs       []Run
	Lines      []Line
	// Rejected says what is wrong with pools and instance types that are left
	// out of planning; PoolErrors holds the same by pool index.
	Rejected   []model.Rejection
	PoolErrors map[int]string

	constraints []Constraint
	sold        Set
	// within are the options that lines of each kind leave room for.
	within map[model.Reason]Set
	// most is the largest amount that an option takes of each line.
	most []int64

	labels labels
	masks  map[string]Set
	// nodeMasks caches sets of nodes by requirements.
	nodeMasks map[string]Set
	interned  []Set
	// levels are, per dimension, the options that have at least so much.
	levels     []*Levels
	internedBy map[uint64][]int
}

// Run is a stretch of options with the same net capacity.
type Run struct {
	First, End int
	Net        []int64
}

// New compiles the problem.
func New(p *model.Problem) *Space {
	s := &Space{
		Problem:     p,
		constraints: Constraints(),
		PoolErrors:  map[int]string{},
		masks:       map[string]Set{},
		nodeMasks:   map[string]Set{},
		internedBy:  map[uint64][]int{},
	}
	s.Drivers = limitedDrivers(p)
	s.Dims = max(len(p.Axes), model.Pods+1) + len(s.Drivers)
	s.levels = make([]*Levels, s.Dims)
	s.labels = newLabels(p)
	order := s.poolOrder()
	buyers := make([][]*model.Pool, len(p.Catalogs))
	for _, i := range order {
		buyers[p.Pools[i].Catalog] = append(buyers[p.Pools[i].Catalog], &p.Pools[i])
	}
	catalogs := make([]*catalog, len(p.Catalogs))
	for i := range p.Catalogs {
		catalogs[i] = s.compileCatalog(i, buyers[i])
	}
	s.labels.addNodes(p)
	templates := make([]*template, len(p.Pools))
	for _, i := range order {
		templates[i] = s.labels.forPool(&p.Pools[i], catalogs[p.Pools[i].Catalog])
	}
	s.reserve(templates, catalogs)
	for _, i := range order {
		s.addPool(i, templates[i], catalogs[p.Pools[i].Catalog])
	}
	s.addDaemons()
	s.addLines()
	s.findAvailable()
	return s
}

// poolOrder validates the pools and orders the valid ones by weight, then name.
func (s *Space) poolOrder() []int {
	var order []int
	seen := map[string]bool{}
	for i := range s.Problem.Pools {
		pool := &s.Problem.Pools[i]
		err := validatePool(pool, s.Problem)
		if err == nil && seen[pool.Name] {
			err = fmt.Errorf("name %q is taken by another NodePool: names must be unique", pool.Name)
		}
		if err != nil {
			s.PoolErrors[i] = err.Error()
			s.Rejected = append(s.Rejected, model.Rejection{Kind: "NodePool", Name: pool.Name, Message: err.Error()})
			continue
		}
		seen[pool.Name] = true
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		pa, pb := &s.Problem.Pools[a], &s.Problem.Pools[b]
		if pa.Weight != pb.Weight {
			return pb.Weight - pa.Weight
		}
		return strings.Compare(pa.Name, pb.Name)
	})
	return order
}

// addPool appends the options that the pool's own requirements leave.
func (s *Space) addPool(index int, template *template, cat *catalog) {
	pool := &s.Problem.Pools[index]
	first := len(s.Options)
	tier := 0
	if n := len(s.Pools); n > 0 {
		before := s.Pools[n-1]
		tier = before.Tier
		if s.Problem.Pools[before.Index].Weight != pool.Weight {
			tier++
		}
	}
	s.Tiers = tier + 1
	choosy := false
	for t := range cat.types {
		ct := &cat.types[t]
		if ct.unwanted {
			continue
		}
		choices := s.labels.choices(template, ct)
		choosy = choosy || len(choices) > 1
		for _, choice := range choices {
			s.addOfferings(index, t, ct, choice)
		}
	}
	s.Pools = append(s.Pools, Pool{Index: index, First: first, End: len(s.Options), Tier: tier, choosy: choosy})
}

// reserve makes room for the options of all pools, as many as there are if types
// leave nothing to the buyer.
func (s *Space) reserve(templates []*template, catalogs []*catalog) {
	n := 0
	for i, t := range templates {
		if t != nil {
			n += t.options(catalogs[s.Problem.Pools[i].Catalog])
		}
	}
	s.Options = make([]Option, 0, n)
	for k := range s.labels.ofOption {
		s.labels.ofOption[k] = make([]int32, 0, n)
	}
}

// options is how many options of a catalogue a pool has, if its types leave nothing
// to the buyer.
func (t *template) options(cat *catalog) int {
	n, ways, c := 0, 1, choice{set: slices.Clone(t.fixed), template: t}
	for _, o := range t.open {
		c.set[o.key] = Absent // whatever it is, it is one that the pool admits
		ways = min(ways*len(o.values), maxChoices)
	}
	for i := range cat.types {
		for o := range cat.types[i].offerings {
			if co := &cat.types[i].offerings[o]; !co.invalid && c.admits(co.values) {
				n++
			}
		}
	}
	return n * ways
}

func (s *Space) addOfferings(pool, t int, ct *catalogType, choice choice) {
	for o := range ct.offerings {
		co := &ct.offerings[o]
		if co.invalid || !choice.admits(co.values) {
			continue
		}
		s.labels.appendOption(co.values, choice)
		s.Options = append(s.Options, Option{Pool: pool, Type: t, Offering: o, Price: co.price, Net: ct.allocatable, Gross: ct.capacity})
	}
}

// PoolOf returns the space's pool of an option.
func (s *Space) PoolOf(option int) *Pool {
	i := sort.Search(len(s.Pools), func(i int) bool { return option < s.Pools[i].End })
	return &s.Pools[i]
}

// Tier returns the set of options whose pools have this tier.
func (s *Space) Tier(tier int) Set {
	set := NewSet(len(s.Options))
	for _, p := range s.Pools {
		if p.Tier == tier {
			set.AddRange(p.First, p.End)
		}
	}
	return set
}

// Offering returns the catalogue's entries behind an option.
func (s *Space) Offering(option int) (*model.InstanceType, *model.Offering) {
	o := &s.Options[option]
	t := &s.Problem.Catalogs[s.Problem.Pools[o.Pool].Catalog].InstanceTypes[o.Type]
	return t, &t.Offerings[o.Offering]
}

// Vector lays a resource vector and disks per driver out along the space's
// dimensions.
func (s *Space) Vector(r model.Resources, disks map[string]int) []int64 {
	v := make([]int64, s.Dims)
	axes := s.axes()
	for i := range axes {
		v[i] = r.Get(i)
	}
	for i, d := range s.Drivers {
		v[axes+i] = int64(disks[d])
	}
	return v
}

// layCapacity is Vector for a place: a driver without a figure is unlimited.
func (s *Space) layCapacity(v []int64, r model.Resources, slots map[string]int) {
	axes := s.axes()
	for i := range axes {
		v[i] = r.Get(i)
	}
	for i, d := range s.Drivers {
		v[axes+i] = Unlimited
		if n, limited := slots[d]; limited {
			v[axes+i] = int64(n)
		}
	}
}

// limitedDrivers lists the volume drivers that pods use and that some type or
// node limits.
func limitedDrivers(p *model.Problem) []string {
	limited := map[string]bool{}
	for c := range p.Catalogs {
		for t := range p.Catalogs[c].InstanceTypes {
			for d := range p.Catalogs[c].InstanceTypes[t].VolumeSlots {
				limited[d] = true
			}
		}
	}
	for n := range p.Nodes {
		for d := range p.Nodes[n].VolumeSlots {
			limited[d] = true
		}
	}
	var drivers []string
	for c := range p.Classes {
		for _, v := range p.Classes[c].Volumes {
			if limited[v.Driver] && !slices.Contains(drivers, v.Driver) {
				drivers = append(drivers, v.Driver)
			}
		}
	}
	slices.Sort(drivers)
	return drivers
}

// axes is how many of the dimensions are axes of the problem; the volume drivers
// follow.
func (s *Space) axes() int { return s.Dims - len(s.Drivers) }

// formatAmount prints an amount of a dimension with its name.
func (s *Space) formatAmount(dim int, v int64) string {
	if axes := s.axes(); dim >= axes {
		return fmt.Sprintf("%s disks %d", s.Drivers[dim-axes], v)
	}
	return s.AxisName(dim) + " " + model.FormatAmount(dim, v)
}

// DriverDim returns the dimension that counts a volume driver's disks, or -1
// when nothing limits them.
func (s *Space) DriverDim(driver string) int {
	i := slices.Index(s.Drivers, driver)
	if i < 0 {
		return -1
	}
	return s.axes() + i
}

// NodeFree is what an existing node has left for pods.
func (s *Space) NodeFree(n int) []int64 {
	node := &s.Problem.Nodes[n]
	free := make([]int64, s.Dims)
	s.layCapacity(free, node.Free(), node.VolumeSlots)
	for i, v := range free {
		free[i] = min(v, Unlimited)
	}
	return free
}
