package validate

import (
	"errors"
	"fmt"

	"github.com/nodeautoprovision/nap/internal/model"
)

// MaxPrice is the highest price per hour that the planner accepts, a million
// dollars: sums over any fleet then stay exact.
const MaxPrice = model.Money(1_000_000 * 1_000_000)

// AmountLimit is the smallest amount of a resource that is refused as too large: sums of smaller
// ones, and their differences, stay in range.
const AmountLimit = int64(1) << 58

// amounts refuses amounts that are negative, that could overflow when they are
// added, or that stand on an axis without a name. The field is named in the error.
func amounts(field string, r model.Resources, axes model.Axes) error {
	for i, v := range r {
		if i >= len(axes) {
			if v != 0 {
				return fmt.Errorf("%s: amount %d on axis %d, which the problem does not have: allowed are axes 0 to %d", field, v, i, len(axes)-1)
			}
			continue
		}
		name := axes[i]
		if v < 0 {
			return fmt.Errorf("%s: %s is %d, allowed are amounts from 0", field, name, v)
		}
		if v >= AmountLimit {
			return fmt.Errorf("%s: %s is %d, allowed are amounts below 2^58", field, name, v)
		}
	}
	return nil
}

// Pool reports the first thing wrong with a NodePool or with its daemons. A pool
// with an error buys nothing; other pools go on.
func Pool(pool *model.Pool, p *model.Problem) error {
	if pool.Name == "" {
		return fmt.Errorf("name is empty")
	}
	if pool.Catalog < 0 || pool.Catalog >= len(p.Catalogs) {
		return fmt.Errorf("catalog %d does not exist, allowed are 0 to %d", pool.Catalog, len(p.Catalogs)-1)
	}
	for _, r := range pool.Requirements {
		if err := r.Validate(); err != nil {
			return err
		}
		if r.MinValues < 0 {
			return fmt.Errorf("requirement %q: minValues is %d, allowed are numbers from 0", r.Key, r.MinValues)
		}
	}
	for _, l := range pool.Limits {
		if l.Axis < 0 || l.Axis >= max(len(p.Axes), model.Pods+1) {
			return fmt.Errorf("limits: axis %d does not exist, allowed are 0 to %d", l.Axis, len(p.Axes)-1)
		}
		if l.Value < 0 {
			return fmt.Errorf("limits: %s is %d, allowed are amounts from 0", p.Axes[l.Axis], l.Value)
		}
	}
	if pool.CostLimit != nil && *pool.CostLimit < 0 {
		return fmt.Errorf("limits: %s, allowed are amounts from $0/h", *pool.CostLimit)
	}
	for i := range pool.Daemons {
		if err := Daemon(&pool.Daemons[i], p.Axes); err != nil {
			return err
		}
	}
	return nil
}

// Daemon reports the first thing wrong with a DaemonSet: a NodePool with one buys nothing.
func Daemon(d *model.Daemon, axes model.Axes) error {
	if err := amounts(fmt.Sprintf("DaemonSet %s: requests", d.Name), d.Requests, axes); err != nil {
		return err
	}
	for _, rs := range d.Requirements {
		if err := requirements(rs); err != nil {
			return fmt.Errorf("DaemonSet %s: %w", d.Name, err)
		}
	}
	return nil
}

// InstanceType reports the first thing wrong with an instance type. Seen are the names of
// the types before it in the catalogue.
func InstanceType(t *model.InstanceType, seen map[string]bool) error {
	if t.Name == "" {
		return fmt.Errorf("name is empty")
	}
	if seen[t.Name] {
		return fmt.Errorf("name %q appears twice in the catalogue: names must be unique", t.Name)
	}
	for _, r := range []struct {
		field string
		r     model.Resources
	}{{"capacity", t.Capacity}, {"overhead", t.Overhead}} {
		for i, v := range r.r {
			if v < 0 || v >= AmountLimit {
				return fmt.Errorf("%s: amount %d on axis %d, allowed are amounts from 0 to 2^58", r.field, v, i)
			}
		}
	}
	if t.Capacity.Get(model.CPU) == 0 && t.Capacity.Get(model.Memory) == 0 {
		return fmt.Errorf("capacity: neither cpu nor memory, a machine needs both")
	}
	return nil
}

// Offering refuses prices that sums over a fleet could not hold.
func Offering(o *model.Offering) error {
	if o.Price < 0 || o.Price > MaxPrice {
		return fmt.Errorf("price: %d micro-dollars per hour, allowed are 0 to %d", o.Price, MaxPrice)
	}
	return nil
}

// requirements reports the first malformed requirement.
func requirements(rs model.Requirements) error {
	for _, r := range rs {
		if err := r.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Class reports the first thing about a class of pods that no scheduler
// could grant, naming the field, the value and what is allowed.
func Class(c *model.PodClass, axes model.Axes) error {
	if c.Quarantined != "" {
		return errors.New(c.Quarantined)
	}
	if err := amounts("requests", c.Requests, axes); err != nil {
		return err
	}
	if err := requirements(c.NodeRequirements); err != nil {
		return fmt.Errorf("nodeSelector: %w", err)
	}
	for _, rs := range c.NodeAlternatives {
		if err := requirements(rs); err != nil {
			return fmt.Errorf("nodeAffinity: %w", err)
		}
	}
	for _, pref := range c.NodePreferences {
		if err := requirements(pref.Requirements); err != nil {
			return fmt.Errorf("preferred nodeAffinity: %w", err)
		}
	}
	for _, rs := range c.VolumeAlternatives {
		if err := requirements(rs); err != nil {
			return fmt.Errorf("volume topology: %w", err)
		}
	}
	if err := requirements(c.Devices); err != nil {
		return fmt.Errorf("resource claims: %w", err)
	}
	return topology(c)
}

// topology reports the first malformed topology term of a class, by the name of
// its field in the pod.
func topology(c *model.PodClass) error {
	for i := range c.Spread {
		sp := &c.Spread[i]
		if sp.TopologyKey == "" {
			return fmt.Errorf("topologySpreadConstraints[%d]: topologyKey is empty", i)
		}
		if sp.MaxSkew < 1 {
			return fmt.Errorf("topologySpreadConstraints[%d]: maxSkew is %d, allowed are numbers from 1", i, sp.MaxSkew)
		}
		if sp.MinDomains < 0 {
			return fmt.Errorf("topologySpreadConstraints[%d]: minDomains is %d, allowed are numbers from 1", i, sp.MinDomains)
		}
		if err := selector(sp.Selector); err != nil {
			return fmt.Errorf("topologySpreadConstraints[%d]: %w", i, err)
		}
	}
	check := func(field string, i int, t *model.AffinityTerm) error {
		if t.TopologyKey == "" {
			return fmt.Errorf("%s[%d]: topologyKey is empty", field, i)
		}
		if err := selector(t.Selector); err != nil {
			return fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		return nil
	}
	for i := range c.Affinity {
		if err := check("podAffinity", i, &c.Affinity[i]); err != nil {
			return err
		}
	}
	for i := range c.AntiAffinity {
		if err := check("podAntiAffinity", i, &c.AntiAffinity[i]); err != nil {
			return err
		}
	}
	for i := range c.Preferences {
		if err := check("preferred pod affinity", i, &c.Preferences[i].Term); err != nil {
			return err
		}
	}
	return nil
}

// selector refuses malformed requirements; without a selector there are none.
func selector(s *model.Selector) error {
	if s == nil {
		return nil
	}
	return requirements(s.Requirements)
}
