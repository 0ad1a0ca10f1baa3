package state

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// ChangeKind is what a change did.
type ChangeKind int8

// The kinds of changes.
const (
	Put ChangeKind = iota
	Lifted
	Removed
	Bought
	// Exchanged says that the ledger has another option for a new node; see [Buyer.Describe].
	Exchanged
)

// Change is one entry of the log of a state. Logs are long, so it is small: the pods that
// were taken off the bin by a change of kind Lifted or Removed are in State.lifted.
type Change struct {
	Kind ChangeKind
	// fresh and before are what undoing Put needs: see Bins.put.
	fresh bool
	// Bin is the bin that was changed.
	Bin int32
	// Relocated are the pods that were put; Kind is then Put.
	Relocated
	before sharing
	// from and to are options of the space; Kind is then Exchanged.
	from, to int32
}

// Mark is where the log is now.
func (s *State) Mark() int { return len(s.log) }

// Since lists the changes since a mark, oldest first, valid until the next change.
func (s *State) Since(mark int) []Change { return s.log[mark:] }

// Undo takes back everything since the mark, newest first. Afterwards the state is as
// it was at the mark, except for Unplaced's list and for summaries of the index, which
// may say that there is more room than there is.
func (s *State) Undo(mark int) {
	for len(s.log) > mark {
		c := &s.log[len(s.log)-1]
		switch c.Kind {
		case Put:
			s.unput(c)
		case Lifted:
			s.unlift(c)
		case Removed:
			s.unremove(c)
		case Bought:
			s.unbuy(c)
		case Exchanged:
			s.Bins.At(c.Bin).book(s.Ledger, c.to, c.from)
		}
		s.log = s.log[:len(s.log)-1]
	}
}

// Put lets pods move in.
// Precondition: the bin has room for them and permits them, and as many are unplaced.
func (s *State) Put(i int32, r Relocated) {
	c := &s.Problem.Classes[r.Class]
	before, fresh := s.Bins.put(c, i, r)
	s.countPods(r.Class, i, r.Count)
	s.Unplaced.count[r.Class] -= r.Count
	s.log = append(s.log, Change{Kind: Put, Bin: i, Relocated: r, before: before, fresh: fresh})
}

func (s *State) unput(c *Change) {
	s.Bins.unput(&s.Problem.Classes[c.Class], c.Bin, c.Relocated, c.before, c.fresh)
	s.countPods(c.Class, c.Bin, -c.Count)
	s.Unplaced.count[c.Class] += c.Count
	s.Index.grew(c.Bin)
}

// Lift takes all pods that moved in off a bin which stays; they need a place again.
// It does nothing where some of them share ports or disks with others on the bin.
func (s *State) Lift(i int32) {
	bin := s.Bins.At(i)
	if len(bin.Pods) == 0 {
		return
	}
	for _, r := range bin.Pods {
		if s.Problem.Classes[r.Class].Shares() {
			return
		}
	}
	for _, r := range bin.Pods {
		feasible.Add(s.Bins.Free(i), s.Problem.Classes[r.Class].Size, int64(r.Count))
	}
	s.takeOff(i)
	s.log, s.lifted = append(s.log, Change{Kind: Lifted, Bin: i}), append(s.lifted, bin.Pods)
	bin.Pods = nil
	s.Index.grew(i)
}

// unlog takes the pods of the last change of kind Lifted or Removed off the log.
func (s *State) unlog() []Relocated {
	last := len(s.lifted) - 1
	pods := s.lifted[last]
	s.lifted = s.lifted[:last]
	return pods
}

func (s *State) unlift(c *Change) {
	lifted := s.unlog()
	s.Bins.At(c.Bin).Pods = lifted
	for _, r := range lifted {
		feasible.Add(s.Bins.Free(c.Bin), s.Problem.Classes[r.Class].Size, -int64(r.Count))
	}
	s.putBack(c.Bin)
}

// takeOff makes the pods that moved into a bin unplaced.
func (s *State) takeOff(i int32) {
	for _, r := range s.Bins.At(i).Pods {
		s.countPods(r.Class, i, -r.Count)
		s.Unplaced.add(r.Class, r.Count, r.Level)
	}
}

// putBack undoes takeOff.
func (s *State) putBack(i int32) {
	for _, r := range s.Bins.At(i).Pods {
		s.Unplaced.count[r.Class] -= r.Count
		s.countPods(r.Class, i, r.Count)
	}
}

// Remove gives a bin up. Its pods, those that ran there and those that moved in, need
// a place.
// Precondition: the bin is not removed.
func (s *State) Remove(i int32) {
	bin := s.Bins.At(i)
	bin.Removed = true
	s.account(i, 1)
	if s.Bins.IsNode(i) {
		for _, g := range s.Problem.Nodes[i].Pods {
			s.countPods(g.Class, i, -g.Count)
			s.Unplaced.add(g.Class, g.Count, g.Level)
		}
	}
	s.takeOff(i)
	s.log, s.lifted = append(s.log, Change{Kind: Removed, Bin: i}), append(s.lifted, bin.Pods)
	bin.Pods = nil
}

func (s *State) unremove(c *Change) {
	bin := s.Bins.At(c.Bin)
	bin.Removed, bin.Pods = false, s.unlog()
	s.account(c.Bin, -1)
	if s.Bins.IsNode(c.Bin) {
		for _, g := range s.Problem.Nodes[c.Bin].Pods {
			s.Unplaced.count[g.Class] -= g.Count
			s.countPods(g.Class, c.Bin, g.Count)
		}
	}
	s.putBack(c.Bin)
	s.Index.grew(c.Bin)
}

// Buy adds a new node of a node option (an index into the problem's Options) and
// returns its bin.
func (s *State) Buy(option int32) int32 {
	i := int32(s.Bins.Len())
	o := &s.Problem.Options[option]
	daemons := s.Problem.Space.Options[o.Option].Daemons
	s.Bins.push(Bin{Option: option, ports: slices.Clip(s.Problem.Space.DaemonSets[daemons].Ports)}, o.Net)
	s.price += o.Price
	s.Ledger.Take(o.Option, 1)
	s.Index.push(i)
	s.log = append(s.log, Change{Kind: Bought, Bin: i})
	return i
}

func (s *State) unbuy(c *Change) {
	o := s.Bins.Option(c.Bin)
	s.Index.pop()
	s.Bins.pop()
	s.price -= o.Price
	s.Ledger.Take(o.Option, -1)
}

// exchange makes a change of kind Exchanged.
func exchange(s *State, c Change) {
	s.Bins.At(c.Bin).book(s.Ledger, c.from, c.to)
	s.log = append(s.log, c)
}

// book exchanges what the ledger has for a new node, from one option of the space to another.
func (b *Bin) book(ledger *feasible.Ledger, from, to int32) {
	ledger.Take(int(from), -1)
	ledger.Take(int(to), 1)
	b.exchanged = to + 1
}

// bookedFor is the option of the space that the ledger has for a new node.
func bookedFor(s *State, i int32) int32 {
	if own := s.Bins.At(i).exchanged; own > 0 {
		return own - 1
	}
	return int32(s.Bins.Option(i).Option)
}
