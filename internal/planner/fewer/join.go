package fewer

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

type podCount = instance.PodCount

// join moves the pods of y to x, which becomes a machine that holds both, and reports
// whether that is possible now.
func (j *joiner) join(x, y *placement.Place) bool {
	option := j.offers.Joint(j.s, x, y, j.mostFor(x, y, j.left()))
	if option < 0 || !j.hostsAdmit(x, y) {
		return false
	}
	sum, s := j.standsFor(x)+j.standsFor(y), j.s
	s.NewNodes = slices.DeleteFunc(s.NewNodes, func(pl *placement.Place) bool { return pl == y })
	s.Ledger.Take(y.Option, -1)
	j.count(y.Pods, y.Place, -1)
	s.Exchange(x, option)
	x.Options.And(y.Options)
	for _, pc := range y.Pods {
		s.Put(&s.Instance.Classes[pc.Class], pc.Level, pc.Count, x)
	}
	j.stands[x] = sum
	return true
}

// count counts all of the pods on a place, or takes them back with the sign -1.
func (j *joiner) count(pods []podCount, at topology.Place, sign int) {
	for _, pc := range pods {
		j.s.Domains.Counts.Add(pc.Class, at, sign*pc.Count)
	}
}

// hostsAdmit reports whether rules on hosts let the pods of both be on x: each might be
// the last that comes.
func (j *joiner) hostsAdmit(x, y *placement.Place) bool {
	counts, classes := j.s.Domains.Counts, j.s.Instance.Classes
	j.count(y.Pods, y.Place, -1)
	j.count(y.Pods, x.Place, 1)
	admits := func(pc podCount) bool {
		rules := classes[pc.Class].Levels[pc.Level].Rules
		if rules.Free() {
			return true
		}
		counts.Add(pc.Class, x.Place, -1)
		room := counts.Room(rules, x.Place, topology.Hosts)
		counts.Add(pc.Class, x.Place, 1)
		return room > 0
	}
	refuses := func(pc podCount) bool { return !admits(pc) }
	ok := !slices.ContainsFunc(x.Pods, refuses) && !slices.ContainsFunc(y.Pods, refuses)
	j.count(y.Pods, x.Place, -1)
	j.count(y.Pods, y.Place, 1)
	return ok
}

// roomiest are what the options that are worth buying have for pods, the cheapest first: a
// quick test whether anything may hold two nodes' pods at a price.
type roomiest []choice

type choice struct {
	price model.Money
	net   []int64
}

func (j *joiner) roomiest() roomiest {
	var out roomiest
	space := j.s.Instance.Space
	for o := range j.s.Instance.Menu.All {
		out = append(out, choice{space.Options[o].Price, space.Net(o)})
	}
	slices.SortStableFunc(out, func(x, y choice) int { return cmp.Compare(x.price, y.price) })
	return slices.CompactFunc(out, func(x, y choice) bool { return x.price == y.price && slices.Equal(x.net, y.net) })
}

// holds reports whether an option of at most the price has room for both.
func (r roomiest) holds(x, y []int64, most model.Money) bool {
	for i := range r {
		if r[i].price > most {
			return false
		}
		fits := true
		for d, have := range r[i].net {
			if x[d]+y[d] > have && x[d]+y[d] > 0 {
				fits = false
				break
			}
		}
		if fits {
			return true
		}
	}
	return false
}
