package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// poolCatalogs are the catalogues of a snapshot's NodePools, and the reasons of
// the NodePools that buy nothing.
type poolCatalogs struct {
	// byPool has the catalogues that could be read, by the name of the NodePool.
	// NodePools that buy nothing are included: their catalogue prices the nodes
	// that they have.
	byPool map[string]*Catalog
	// costed are catalogues with the cost per node of NodePools added.
	costed map[costKey]*Catalog
	// types are the instance types of a catalogue by name. A catalogue gets its
	// entry when it is first asked for a type.
	types map[*Catalog]map[string]*model.InstanceType
	// forecasts are what claims that are not launched will become, by what they ask of a
	// catalogue. The value is nil where no offering satisfies the claim.
	forecasts map[string]*forecast
	// keys are the labels that machines of a catalogue have, once they are asked for.
	keys map[*Catalog]map[string]bool
	// bare are catalogues without what is paid in advance, advance is that, nil for nothing, and
	// account what nodes leave of it, nil until they are counted.
	bare    map[*Catalog]*Catalog
	advance *model.Advance
	account *model.AdvanceAccount
	// leftOut are the NodePools that buy nothing; their catalogues are not looked up yet.
	leftOut []model.LeftOut
}

// readCatalogs reads the catalogue of every pool, in the given order; paused says why
// pools must not buy, by name. It fails only when ctx ends.
func readCatalogs(ctx context.Context, pools []*Pool, source Catalogs, paused map[string]string) (*poolCatalogs, error) {
	c := &poolCatalogs{
		byPool:    map[string]*Catalog{},
		costed:    map[costKey]*Catalog{},
		types:     map[*Catalog]map[string]*model.InstanceType{},
		forecasts: map[string]*forecast{},
		keys:      map[*Catalog]map[string]bool{},
		bare:      map[*Catalog]*Catalog{},
	}
	for _, pool := range pools {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("reading the catalogue of NodePool %q: %w", pool.Name, err)
		}
		catalog, err := source.Catalog(ctx, pool.Name)
		if err != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("reading the catalogue of NodePool %q: %w", pool.Name, ctx.Err())
		}
		if err == nil && catalog != nil {
			c.byPool[pool.Name] = c.withCost(c.withoutCover(catalog), pool.NodeCost)
		}
		if why := cmp.Or(pool.closed(), pausedWhy(paused[pool.Name]), catalogFault(catalog, err)); why != (closedWhy{}) {
			c.leaveOut(pool, why)
		}
	}
	return c, nil
}

// closedWhy is why a NodePool buys nothing; the zero value is none.
type closedWhy struct {
	reason model.Reason
	// message does not name the NodePool.
	message string
	// static is as in model.LeftOut.
	static bool
}

// leaveOut lets a NodePool buy nothing.
func (c *poolCatalogs) leaveOut(p *Pool, why closedWhy) {
	c.leftOut = append(c.leftOut, model.LeftOut{
		Pool: p.Name, Reason: why.reason, Message: why.message, Static: why.static, Requirements: p.Requirements, Taints: p.Taints,
	})
}

// closed is why the state of the NodePool forbids it to buy.
func (p *Pool) closed() closedWhy {
	switch {
	case p.Invalid != "":
		return closedWhy{reason: model.ReasonPoolInvalid, message: p.Invalid}
	case p.Deleting:
		return closedWhy{reason: model.ReasonNoPool, message: "it is being deleted"}
	case p.Static:
		const message = "it keeps a fixed number of nodes (spec.replicas) and buys for no pod"
		return closedWhy{reason: model.ReasonNoPool, message: message, static: true}
	case !p.Ready:
		return closedWhy{reason: model.ReasonNoPool, message: "it is not Ready: " + cmp.Or(p.NotReady, "its status has not been written yet")}
	}
	return closedWhy{}
}

// pausedWhy is why a NodePool buys nothing for now.
func pausedWhy(paused string) closedWhy {
	if paused == "" {
		return closedWhy{}
	}
	return closedWhy{reason: model.ReasonPoolPaused, message: paused}
}

// catalogFault is why a NodePool cannot buy from its catalogue; err is the error of reading
// the catalogue.
func catalogFault(catalog *Catalog, err error) closedWhy {
	switch {
	case err != nil:
		return closedWhy{reason: model.ReasonPoolInvalid, message: fmt.Sprintf("its catalogue cannot be read: %v", err)}
	case catalog == nil || len(catalog.InstanceTypes) == 0:
		return closedWhy{reason: model.ReasonPoolInvalid, message: "its node class offers no instance types"}
	}
	return closedWhy{}
}

// buys reports whether the NodePool may buy nodes.
func (c *poolCatalogs) buys(pool string) bool {
	return c.byPool[pool] != nil && !slices.ContainsFunc(c.leftOut, func(l model.LeftOut) bool { return l.Pool == pool })
}

// complete adds to a node what only the catalogue of its NodePool knows: the
// price and the volume slots and, for a node that is not launched yet, everything
// that its possible offerings have in common.
func (c *poolCatalogs) complete(n *stateNode) {
	catalog := c.byPool[n.pool]
	if catalog == nil {
		return
	}
	if n.unlaunched {
		c.foresee(n, catalog)
		return
	}
	t := c.instanceType(catalog, n.boughtAs(model.LabelInstanceType))
	if t == nil {
		return
	}
	n.slots = t.VolumeSlots
	if t.GPU != nil {
		n.gpus = []*model.GPU{t.GPU}
	}
	for i := range t.Offerings {
		o := &t.Offerings[i]
		if o.Zone == n.boughtAs(model.LabelZone) && string(o.CapacityType) == n.boughtAs(model.LabelCapacityType) {
			n.cost = costOfOffering(o, n.claim)
			return
		}
	}
	n.cost = n.costWithoutLabels(t)
}

func (c *poolCatalogs) instanceType(catalog *Catalog, name string) *model.InstanceType {
	index := c.types[catalog]
	if index == nil {
		index = make(map[string]*model.InstanceType, len(catalog.InstanceTypes))
		for i := range catalog.InstanceTypes {
			index[catalog.InstanceTypes[i].Name] = &catalog.InstanceTypes[i]
		}
		c.types[catalog] = index
	}
	return index[name]
}
