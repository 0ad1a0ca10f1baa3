package price

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Line names of quota lines that bound how many machines a plan may count on.
const (
	lineReservation = "reservation of "
	linePlan        = "savings plan "
)

// advance states reservations and savings plans, in micro-dollars an hour, as what pays for
// machines: reservations first, and of a savings plan the sizes with the greatest discount off
// these prices first, as Azure does.
func (t *Terms) advance(onDemand map[string]model.Money) *model.Advance {
	if len(t.Reservations)+len(t.SavingsPlans) == 0 {
		return nil
	}
	out := &model.Advance{}
	for _, r := range t.Reservations {
		out.Lines = append(out.Lines, model.AdvanceLine{
			Quota: model.Quota{Name: lineReservation + r.Size, Left: int64(r.Count)},
			Sizes: []model.AdvanceSize{{Size: strings.ToLower(r.Size), Price: model.USD(r.Hourly), Amount: 1}},
		})
	}
	full := make(map[string]model.Money, len(onDemand))
	for size, price := range onDemand {
		full[strings.ToLower(size)] = price
	}
	for _, p := range t.SavingsPlans {
		line := model.AdvanceLine{Quota: model.Quota{Name: linePlan + p.Name, Left: int64(model.USD(p.Hourly))}}
		for _, size := range slices.Sorted(maps.Keys(p.Prices)) {
			price := model.USD(p.Prices[size])
			line.Sizes = append(line.Sizes, model.AdvanceSize{Size: strings.ToLower(size), Price: price, Amount: int64(price)})
		}
		slices.SortStableFunc(line.Sizes, func(a, b model.AdvanceSize) int {
			return cmp.Compare(float64(a.Price)/float64(max(1, full[a.Size])), float64(b.Price)/float64(max(1, full[b.Size])))
		})
		out.Lines = append(out.Lines, line)
	}
	return out
}

// machine is an on-demand machine that uses up what is paid in advance.
type machine struct {
	size string
	// buying says that Azure has not been heard of yet.
	buying bool
	// beside says that its plan counted on nothing that is paid in advance: what there is goes to
	// machines whose plan did, which may be bought later. The next list makes it one of all.
	beside bool
	// change is the number of the change with which it came.
	change uint64
}

// machines are those that use up what is paid in advance.
type machines struct {
	byClaim map[string]machine
	// gone are the numbers of the changes with which machines have gone, by claim, since the last list.
	gone map[string]uint64
	// change is the number of the last change.
	change uint64
	// listed says that Azure has told of all.
	listed bool

	// account is what they leave, covers what they have, by claim.
	account *model.AdvanceAccount
	covers  map[string]model.Cover
}

// count counts how many have a right to what is paid in advance, by size.
func (m *machines) count() map[string]int {
	out := map[string]int{}
	for _, one := range m.byClaim {
		if !one.beside {
			out[one.size]++
		}
	}
	return out
}

// recount lets the machines use up what is paid in advance, those of one size by the names of
// their claims. It reports whether something else is left than before.
func (m *machines) recount(advance *model.Advance) bool {
	before := m.account.Left()
	m.account, m.covers = advance.Account(m.count()), map[string]model.Cover{}
	used := map[string]int{}
	for _, claim := range slices.Sorted(maps.Keys(m.byClaim)) {
		if one := m.byClaim[claim]; !one.beside {
			size := strings.ToLower(one.size)
			if of := m.account.Of(size); used[size] < len(of) {
				m.covers[claim] = of[used[size]]
				used[size]++
			}
		}
	}
	return !slices.Equal(before, m.account.Left())
}

// put notes a machine.
func (m *machines) put(claim string, one machine) {
	if m.byClaim == nil {
		m.byClaim = map[string]machine{}
	}
	m.change++
	one.change = m.change
	m.byClaim[claim] = one
	delete(m.gone, claim)
}

// remove forgets a machine.
func (m *machines) remove(claim string) {
	if m.gone == nil {
		m.gone = map[string]uint64{}
	}
	m.change++
	m.gone[claim] = m.change
	delete(m.byClaim, claim)
}

// replace takes over a list for which Azure was asked after a change. What came or went later,
// and what is being bought, the list need not show.
func (m *machines) replace(sizes map[string]string, after uint64) {
	now := make(map[string]machine, len(sizes))
	for claim, size := range sizes {
		if m.gone[claim] <= after {
			now[claim] = machine{size: size, change: after}
		}
	}
	for claim, one := range m.byClaim {
		if one.buying || one.change > after {
			now[claim] = one
		}
	}
	maps.DeleteFunc(m.gone, func(_ string, change uint64) bool { return change <= after })
	m.byClaim, m.listed = now, true
}

// Covered is the price of the next on-demand machine of a size while a
// reservation or a savings plan covers it, and what it takes from that: a quota
// line of [Book.Lines], so that no plan counts on more than there is. It is false
// when nothing covers it; then Price counts.
func (b *Book) Covered(size string) (model.Money, model.QuotaUse, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.machines.account.Next(size)
	if len(next) == 0 {
		return 0, model.QuotaUse{}, false
	}
	return next[0].Price, next[0].Use, true
}

// CoverOf is what the machine of a claim costs per hour, without its disk, where a reservation
// or a savings plan pays for it; false where none does.
func (b *Book) CoverOf(claim string) (model.Money, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	cover, covered := b.machines.covers[claim]
	return cover.Price, covered
}

// Lines are what reservations and savings plans still hold, in machines and in
// micro-dollars an hour.
func (b *Book) Lines() []model.Quota {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.machines.account.Left()
}

// Advance is what is paid in advance, whatever machines there are; nil for nothing.
func (b *Book) Advance() *model.Advance {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.advance
}

// Terms are what the subscription pays, nil for retail prices alone.
func (b *Book) Terms() *Terms {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reflect.DeepEqual(b.terms, Terms{}) {
		return nil
	}
	terms := b.terms // its lists are replaced as a whole, and never changed
	return &terms
}

// SetTerms replaces the terms.
func (b *Book) SetTerms(t *Terms) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.terms = *t
	b.settle()
}

// Unlisted reports whether something is paid in advance, and it is not known which machines use
// it up: [Book.SetMachines] has not been called.
func (b *Book) Unlisted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.advance != nil && !b.machines.listed
}

// Change numbers what is known of machines now, to be read before Azure is asked for all of
// them, and given to [Book.SetMachines] with the answer.
func (b *Book) Change() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.machines.change
}

// SetMachines says which on-demand machines the cluster has: sizes by claim. Machines that were
// bought or went after the change of this number stay so.
func (b *Book) SetMachines(machines map[string]string, after uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.machines.replace(machines, after)
	b.recount()
}

// Take covers the machine that is to be bought for a claim, as long as it is bought: [Book.Bought]
// or [Book.Gone] end that. It is false where nothing is left for an on-demand machine of the size.
func (b *Book) Take(claim, size string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := &b.machines
	if _, covered := m.covers[claim]; covered && strings.EqualFold(m.byClaim[claim].size, size) {
		return true
	}
	delete(m.byClaim, claim)
	room := len(b.advance.Account(m.count()).Next(size)) > 0
	if room {
		m.put(claim, machine{size: size, buying: true})
	}
	b.recount()
	return room
}

// Bought says that the cluster has the machine of a claim. Of one that [Book.Take] has not
// covered, beside says that its plan did not count on that either.
func (b *Book) Bought(claim, size string, capacityType model.CapacityType, beside bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, is := b.machines.byClaim[claim]
	switch {
	case capacityType != model.OnDemand:
		if !is {
			return
		}
		b.machines.remove(claim)
	case is && strings.EqualFold(known.size, size):
		b.machines.put(claim, machine{size: size, beside: known.beside})
	default:
		b.machines.put(claim, machine{size: size, beside: beside})
	}
	b.recount()
}

// Gone says that the claim has no machine, or has none any more.
func (b *Book) Gone(claim string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.machines.remove(claim)
	b.recount()
}

// recount counts again what is left. The caller holds mu.
func (b *Book) recount() {
	if b.advance != nil && b.machines.recount(b.advance) {
		b.revision++
	}
}
