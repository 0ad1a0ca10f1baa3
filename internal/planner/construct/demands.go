package construct

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Demand is a number of pods of a class of which the topology domain is decided and the
// new nodes are not.
type Demand struct {
	Class, Level, Count int
	// Options are those that the pods may use: of pools of one weight, in one domain.
	// The set belongs to the option index.
	Options bitset.Set
	// Rep is a node of the domain that is not bought.
	Rep topology.Place
	// Floating demands have no domain yet, and no class that is placed later asks for
	// it. The pods of others count in their domain from now on.
	Floating bool
}

// demands collect the pods that the bin packer has to find new nodes for.
type demands struct{ list []Demand }

// Collect places what existing nodes and rules on hosts decide, and returns the rest:
// pods with a place as far as Left goes, for which the caller has to buy new nodes. It
// has to take the demands that do not float off the counts again.
func (c *Constructor) Collect() []Demand {
	d := &demands{}
	collecting := c.with(c.params)
	collecting.demands = d
	collecting.PlaceAll()
	return d.list
}

// add records pods of a class in a slot of options and returns how many: all of them.
func (d *demands) add(st *placement.State, c *instance.Class, l int, s *slot, want int) int {
	floating := len(st.Domains.Keys(c.Index, l)) == 0
	if !floating {
		st.Domains.Counts.Add(c.Index, s.rep, want)
	}
	for i := range d.list {
		if last := &d.list[len(d.list)-1-i]; last.Class != c.Index || last.Level != l {
			break
		} else if slices.Equal(last.Options, s.options) {
			last.Count += want
			return want
		}
	}
	if d.list == nil {
		d.list = make([]Demand, 0, len(st.Instance.Classes))
	}
	d.list = append(d.list, Demand{c.Index, l, want, s.options, s.rep, floating})
	return want
}
