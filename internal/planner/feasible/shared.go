package feasible

import (
	"slices"
	"sync"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/noderules"
	"github.com/nodeautoprovision/nap/internal/planner/validate"
)

// Catalogs keeps what was read of catalogues, and what was compiled from them, for problems which
// share them, like the parts of one: to do so takes as long as to plan for a few pods. Any number of
// goroutines may use one. Nil keeps nothing.
type Catalogs struct {
	// of are the catalogues. Problems with others are compiled as if there were no Catalogs.
	of []model.Catalog
	mu sync.Mutex
	// read and spaces are by all that they depend on; mu guards them.
	read   map[string]*readCatalogs
	spaces map[string]*sharedSpace
}

// NewCatalogs is for problems with these catalogues, which must not change any more.
func NewCatalogs(of []model.Catalog) *Catalogs {
	return &Catalogs{of: of, read: map[string]*readCatalogs{}, spaces: map[string]*sharedSpace{}}
}

// readCatalogs is all that is read of the catalogues of a problem. Nothing changes it.
type readCatalogs struct {
	catalogs []*catalog
	rejected []model.Rejection
	// dicts, varies and picked are those of the LabelIndex when the catalogues are read.
	dicts          []dict
	varies, picked []bool
}

// serve reports whether a problem has these catalogues.
func (c *Catalogs) serve(p *model.Problem) bool {
	return c != nil && len(c.of) > 0 && len(p.Catalogs) == len(c.of) && &p.Catalogs[0] == &c.of[0]
}

// mostRead is how many readings and spaces are kept. Parts of a problem are mostly alike, and share a
// few.
const mostRead = 32

// get returns what was read under a key before, or reads it.
func (c *Catalogs) get(key string, read func() *readCatalogs) *readCatalogs {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.read[key]
	if known == nil {
		known = read()
		if len(c.read) < mostRead {
			c.read[key] = known
		}
	}
	return known
}

// sharedSpace is a space for all problems that differ from its own in what is of no concern to it,
// as in the requests of their pods, and in what limits their NodePools.
type sharedSpace struct {
	space *Space
	// catalogs are the compiled ones, by index in the problem.
	catalogs []*catalog
}

// dependencies are all of a problem that its space depends on beside the catalogues and the supply.
type dependencies struct {
	axes    model.Axes
	pools   []model.Pool
	classes []model.PodClass
	// domains are the keys by which running pods repel others.
	domains []string
}

// key is a text of what the space of a problem depends on. It is empty where nothing is to be shared:
// nodes tell problems apart.
func (c *Catalogs) key(p *model.Problem) string {
	if !c.serve(p) || len(p.Nodes) > 0 {
		return ""
	}
	of := dependencies{axes: p.Axes, pools: slices.Clone(p.Pools)}
	for i := range of.pools {
		pool := &of.pools[i]
		if validate.Pool(pool, p) != nil {
			return ""
		}
		pool.StartupTaints, pool.Limits, pool.Usage, pool.CostLimit = nil, nil, nil, nil
		pool.NodeLimit, pool.Nodes, pool.Cost = 0, 0, 0
	}
	for i := range p.Classes {
		of.classes = append(of.classes, rulesAlone(&p.Classes[i]))
	}
	for i := range p.Shapes {
		for t := range p.Shapes[i].AntiAffinity {
			if key := p.Shapes[i].AntiAffinity[t].TopologyKey; !slices.Contains(of.domains, key) {
				of.domains = append(of.domains, key)
			}
		}
	}
	return string(model.CompactKey(model.AppendKey(nil, &of)))
}

// rulesAlone is a class without what no space depends on: which pods they are, and what they request.
func rulesAlone(c *model.PodClass) model.PodClass {
	out := noderules.Anonymous(c)
	out.Requests, out.Tolerations, out.HostPorts, out.MaxPrice, out.Priority = nil, nil, nil, 0, 0
	out.Volumes = slices.Clone(out.Volumes)
	for i := range out.Volumes {
		out.Volumes[i].ID = ""
	}
	return out
}

// space is the space of a problem with a key if one was kept, else nil.
func (c *Catalogs) space(key string, p *model.Problem) *Space {
	if key == "" {
		return nil
	}
	c.mu.Lock()
	known := c.spaces[key]
	c.mu.Unlock()
	if known == nil {
		return nil
	}
	s := *known.space
	s.Problem = p
	if !limitedAlike(known.space.Problem, p) {
		s.Options = slices.Clone(s.Options)
		s.Supply = newSupply(p, &s.Dims, s.Pools, s.Options, known.catalogs)
	}
	return &s
}

// keep keeps a space under the key of its problem. Spaces that leave NodePools out are not kept: they
// depend on all of what pods ask.
func (c *Catalogs) keep(key string, s *Space, catalogs []*catalog) {
	if key == "" || s.asked.whole != nil || len(s.PoolErrors) > 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spaces) < mostRead {
		c.spaces[key] = &sharedSpace{s, catalogs}
	}
}

// limitedAlike reports whether two problems with equal keys may buy the same.
func limitedAlike(p, q *model.Problem) bool {
	limited := func(pool model.Pool) bool {
		return len(pool.Limits) > 0 || pool.NodeLimit >= 0 || pool.CostLimit != nil
	}
	return slices.Equal(p.Quotas, q.Quotas) && !slices.ContainsFunc(p.Pools, limited) && !slices.ContainsFunc(q.Pools, limited)
}
