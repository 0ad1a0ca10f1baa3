package feasible

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// Supply is what may be bought: what the cloud sells, and what quotas, reservations and
// limits leave room for before anything is planned. Nothing changes it after
// compilation; a [Ledger] keeps what a plan leaves.
type Supply struct {
	// Lines are what runs out. [Use.Line] and the ledger number them by index.
	Lines []Line
	// Available are the options that the cloud sells right now and that the lines leave
	// room for, each on its own, with what nodes give back that may be removed.
	Available bitset.Set
	// sold are the options that the cloud sells right now.
	sold bitset.Set
	// within are the options for which lines of each kind leave room, for one machine.
	within map[model.Reason]bitset.Set
	// most is the largest amount that an option takes of each line.
	most []int64
	// uses are the lists of what options take, the first one empty.
	uses [][]Use
	// limits are the lines of the limits of NodePools, by index in Problem.Pools.
	limits map[int][]int
}

// Most is the largest amount that an option takes of a line.
func (s *Supply) Most(line int) int64 { return s.most[line] }

// Line is something that runs out and that several machines draw on: a pool's
// limit on one axis, on nodes or on dollars per hour, a quota, a capacity reservation.
type Line struct {
	Reason model.Reason
	// Name says in words what runs out.
	Name string
	// Axis is that of the amounts, -1 for plain counts, and [Dollars] for prices.
	Axis int
	// Left is what remains before anything is planned; it may be negative.
	Left int64
	// Returnable is what nodes give back that may be removed in the same plan.
	Returnable int64
}

// Dollars is the Axis of a line of which machines take their price per hour, in
// [model.Money].
const Dollars = -2

// quotaLine begins the name of a quota's line.
const quotaLine = "quota "

// Use is what one machine takes from a line.
type Use struct {
	Line   int
	Amount int64
}

// lineReasons are the kinds of lines in the order of the checks.
var lineReasons = []model.Reason{
	model.ReasonQuota, model.ReasonReservation, model.ReasonLimit, model.ReasonNodeLimit, model.ReasonCostLimit,
}

// RunsOut reports whether a reason is that of a line.
func RunsOut(reason model.Reason) bool { return slices.Contains(lineReasons, reason) }

// supplyCompiler collects the lines and what each option takes of them. It exists while
// a space is compiled.
type supplyCompiler struct {
	problem *model.Problem
	dims    *Dimensions
	// lines are those found so far.
	lines []Line
	// quotas and reservations are the numbers of their lines, by the quota's name and
	// the reservation's.
	quotas, reservations map[string]int
	// uses are those of the [Supply] so far, and limits, too.
	uses   [][]Use
	limits map[int][]int
	// catalogs are the compiled ones, by index in the problem.
	catalogs []*catalog
	// ofQuotas are the lists of what offerings take of quotas, the same in every pool: by
	// catalogue and instance type the number of the first offering's, which those of the others
	// follow. It is 0 of types that no pool buys.
	ofQuotas [][]int32
}

// newSupply collects everything that limits purchases, tells every option what one
// machine of it takes, and asks for every option whether one machine can be bought.
func newSupply(p *model.Problem, dims *Dimensions, pools []Pool, options []Option, catalogs []*catalog) Supply {
	k := &supplyCompiler{
		problem: p, dims: dims, quotas: map[string]int{}, reservations: map[string]int{},
		uses: make([][]Use, 1), limits: map[int][]int{}, catalogs: catalogs, ofQuotas: make([][]int32, len(p.Catalogs)),
	}
	for i := range p.Catalogs {
		k.ofQuotas[i] = make([]int32, len(p.Catalogs[i].InstanceTypes))
	}
	for _, q := range p.Quotas {
		if _, twice := k.quotas[q.Name]; !twice {
			k.quotas[q.Name] = k.line(Line{Reason: model.ReasonQuota, Name: quotaLine + q.Name, Axis: -1, Left: q.Left})
		}
	}
	for _, pool := range pools {
		k.limits[pool.Index] = k.addUses(&p.Pools[pool.Index], options[pool.First:pool.End])
	}
	return k.finish(options)
}

// addUses makes the lines of a pool and of the reservations that it draws on, and sets what its options
// take. It returns the lines of the pool's limits. Options, of which there are thousands, share lists.
func (k *supplyCompiler) addUses(pool *model.Pool, options []Option) []int {
	fixed, axes := k.poolLines(pool)
	known := map[string]int32{}
	var uses []Use
	var key []byte
	for i := range options {
		o := &options[i]
		t, offering := offeringOf(k.problem, o)
		o.uses = k.ofOffering(pool.Catalog, t, o)
		if len(fixed) == 0 && offering.CapacityType != model.Reserved {
			continue
		}
		uses, key = uses[:0], key[:0]
		for j, line := range fixed {
			if amount := k.takes(pool.Catalog, o, axes[j]); amount > 0 {
				uses = append(uses, Use{line, amount})
			}
		}
		uses = append(uses, k.uses[o.uses]...)
		if offering.CapacityType == model.Reserved {
			uses = append(uses, Use{k.reservation(pool.Catalog, t, int(o.Offering)), 1})
		}
		for _, u := range uses {
			key = binary.AppendVarint(binary.AppendUvarint(key, uint64(u.Line)), u.Amount)
		}
		number, found := known[string(key)]
		if !found {
			number = int32(len(k.uses))
			known[string(key)] = number
			k.uses = append(k.uses, slices.Clone(uses))
		}
		o.uses = number
	}
	return fixed
}

// ofOffering is the number of the list of what an option's offering takes of quotas. The lists of
// all offerings of its instance type are made when the first one is asked for.
func (k *supplyCompiler) ofOffering(catalog int, t *model.InstanceType, o *Option) int32 {
	if len(k.quotas) == 0 {
		return 0
	}
	first := &k.ofQuotas[catalog][o.Type]
	if *first == 0 {
		*first = int32(len(k.uses))
		for i := range t.Offerings {
			var uses []Use
			for _, u := range t.Offerings[i].Quotas {
				if line, ok := k.quotas[u.Quota]; ok && u.Amount > 0 {
					uses = append(uses, Use{line, u.Amount})
				}
			}
			k.uses = append(k.uses, slices.Clip(uses))
		}
	}
	return *first + o.Offering
}

// takes is what one machine of the option takes of a pool's line with this axis: of an amount, what
// the machine has, daemons included.
func (k *supplyCompiler) takes(catalog int, o *Option, axis int) int64 {
	switch {
	case axis == Dollars:
		return int64(o.Price)
	case axis >= 0:
		return k.catalogs[catalog].types[o.Type].capacity[axis]
	}
	return 1
}

// reservation is the line of a reserved offering. Offerings that name the same
// reservation share it; one that names none has its own.
func (k *supplyCompiler) reservation(catalog int, t *model.InstanceType, offering int) int {
	of := &t.Offerings[offering]
	id := of.Reservation
	if id == "" {
		id = fmt.Sprintf("%d/%s/%d", catalog, t.Name, offering)
	}
	line, ok := k.reservations[id]
	if !ok {
		line = k.line(Line{Reason: model.ReasonReservation, Name: "reservation " + id, Axis: -1, Left: int64(of.Remaining)})
		k.reservations[id] = line
	}
	return line
}

// poolLines makes the lines of a pool's limits and says the axis of each.
func (k *supplyCompiler) poolLines(pool *model.Pool) (lines, axes []int) {
	for _, l := range pool.Limits {
		name := fmt.Sprintf("limit %s of NodePool %s", k.dims.axisName(l.Axis), pool.Name)
		lines = append(lines, k.line(Line{
			Reason: model.ReasonLimit, Name: name, Axis: l.Axis,
			Left: l.Value - pool.Usage.Get(l.Axis), Returnable: pool.Returnable.Get(l.Axis),
		}))
		axes = append(axes, l.Axis)
	}
	if pool.NodeLimit >= 0 {
		name := "limit nodes of NodePool " + pool.Name
		lines = append(lines, k.line(Line{
			Reason: model.ReasonNodeLimit, Name: name, Axis: -1,
			Left: int64(pool.NodeLimit - pool.Nodes), Returnable: int64(pool.ReturnableNodes),
		}))
		axes = append(axes, -1)
	}
	if pool.CostLimit != nil {
		name := fmt.Sprintf("limit of %s of NodePool %s", *pool.CostLimit, pool.Name)
		lines = append(lines, k.line(Line{Reason: model.ReasonCostLimit, Name: name, Axis: Dollars, Left: int64(*pool.CostLimit - pool.Cost)}))
		axes = append(axes, Dollars)
	}
	return lines, axes
}

// line adds a line and returns its number.
func (k *supplyCompiler) line(l Line) int {
	k.lines = append(k.lines, l)
	return len(k.lines) - 1
}

// finish asks for every option whether one machine can be bought. Precondition: all uses are known.
func (k *supplyCompiler) finish(options []Option) Supply {
	n := len(options)
	s := Supply{
		Lines: k.lines, sold: bitset.New(n), within: map[model.Reason]bitset.Set{},
		most: make([]int64, len(k.lines)), uses: k.uses, limits: k.limits,
	}
	for _, reason := range lineReasons {
		s.within[reason] = bitset.Full(n)
	}
	for i := range options {
		switch _, o := offeringOf(k.problem, &options[i]); {
		case o.Available:
			s.sold.Add(i)
		case o.NoQuota: // it is sold, to others
			s.sold.Add(i)
			s.within[model.ReasonQuota].Remove(i)
		}
		for _, u := range s.uses[options[i].uses] {
			s.most[u.Line] = max(s.most[u.Line], u.Amount)
			if line := &s.Lines[u.Line]; u.Amount > line.Left+line.Returnable {
				s.within[line.Reason].Remove(i)
			}
		}
	}
	s.Available = s.sold.Clone()
	for _, reason := range lineReasons {
		s.Available.And(s.within[reason])
	}
	return s
}

// Amount prints an amount of a line in its unit.
func (l *Line) Amount(v int64) string {
	if l.Axis == Dollars {
		return model.Money(v).String()
	}
	return model.FormatAmount(l.Axis, v)
}

// Ledger is what remains of the space's lines while a plan grows.
type Ledger struct {
	// space is the one that numbers the lines and options.
	space *Space
	// left is what remains of each line, in its unit; it may be negative.
	left []int64
}

// NewLedger starts with everything that the problem leaves.
func (s *Space) NewLedger() *Ledger {
	l := &Ledger{space: s, left: make([]int64, len(s.Supply.Lines))}
	for i := range s.Supply.Lines {
		l.left[i] = s.Supply.Lines[i].Left
	}
	return l
}

// Fork is a ledger with the same entries that is kept on by itself.
func (l *Ledger) Fork() *Ledger { return &Ledger{l.space, slices.Clone(l.left)} }

// Cap leaves of each line at most what another ledger of the same space has left.
func (l *Ledger) Cap(most *Ledger) {
	for i := range l.left {
		l.left[i] = min(l.left[i], most.left[i])
	}
}

// Left is what remains of a line.
func (l *Ledger) Left(line int) int64 { return l.left[line] }

// Admits reports whether one more machine of the option can be bought.
func (l *Ledger) Admits(option int) bool {
	for _, u := range l.space.Uses(option) {
		if u.Amount > l.left[u.Line] {
			return false
		}
	}
	return true
}

// Tight reports whether some line has less left than some option takes of it.
// Otherwise everything is admitted.
func (l *Ledger) Tight() bool {
	for i, left := range l.left {
		if left < l.space.Supply.most[i] {
			return true
		}
	}
	return false
}

// Returns is what a node that holds so much of the limits of a NodePool, by index in
// Problem.Pools, gives back of them when it is removed.
func Returns(s *Space, pool int, held model.Resources) []Use {
	var out []Use
	for _, line := range s.Supply.limits[pool] {
		switch axis := s.Supply.Lines[line].Axis; {
		case axis == Dollars: // it is paid until it is gone
		case axis >= 0:
			out = append(out, Use{line, held.Get(axis)})
		default:
			out = append(out, Use{line, 1})
		}
	}
	return out
}

// Return gives back n times what a node held of lines; a negative n takes it again.
func (l *Ledger) Return(held []Use, n int) {
	for _, u := range held {
		l.left[u.Line] += u.Amount * int64(n)
	}
}

// Take books n machines of the option; a negative n returns them.
func (l *Ledger) Take(option, n int) {
	for _, u := range l.space.Uses(option) {
		l.left[u.Line] -= u.Amount * int64(n)
	}
}
