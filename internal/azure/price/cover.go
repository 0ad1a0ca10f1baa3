package price

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// microDollars is the unit in which savings plans are counted as quota lines.
const microDollars = 1e6

// cover is how much of reservations and savings plans the cluster's machines
// leave.
type cover struct {
	reserved map[string]int   // by lower-case size: machines that are left
	plans    map[string]int64 // by name: micro-dollars an hour that are left
}

// coverOf lets on-demand machines use up the terms: reservations first, as Azure
// does, in the order of their claims' names.
func coverOf(t *Terms, machines map[string]string) cover {
	c := cover{reserved: map[string]int{}, plans: map[string]int64{}}
	for _, r := range t.Reservations {
		c.reserved[strings.ToLower(r.Size)] = r.Count
	}
	for _, p := range t.SavingsPlans {
		c.plans[p.Name] = int64(p.Hourly * microDollars)
	}
	for _, claim := range slices.Sorted(maps.Keys(machines)) {
		size := strings.ToLower(machines[claim])
		if c.reserved[size] > 0 {
			c.reserved[size]--
			continue
		}
		if p, price, ok := c.plan(t, size); ok {
			c.plans[p.Name] -= price
		}
	}
	return c
}

// plan finds the first savings plan that has room for a size, and what the size
// takes from it.
func (c cover) plan(t *Terms, size string) (*SavingsPlan, int64, bool) {
	for i := range t.SavingsPlans {
		p := &t.SavingsPlans[i]
		for name, dollars := range p.Prices {
			if price := int64(dollars * microDollars); strings.EqualFold(name, size) && c.plans[p.Name] >= price {
				return p, price, true
			}
		}
	}
	return nil, 0, false
}

// Line names of quota lines that bound how many machines a plan may count on.
const (
	lineReservation = "reservation of "
	linePlan        = "savings plan "
)

// Covered is the price of the next on-demand machine of a size while a
// reservation or a savings plan covers it, and what it takes from that: a quota
// line of [Book.Lines], so that no plan counts on more than there is. It is false
// when nothing covers it; then Price counts.
func (b *Book) Covered(size string) (model.Money, model.QuotaUse, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cover.reserved[strings.ToLower(size)] > 0 {
		for _, r := range b.terms.Reservations {
			if strings.EqualFold(r.Size, size) {
				return model.USD(r.Hourly), model.QuotaUse{Quota: lineReservation + r.Size, Amount: 1}, true
			}
		}
	}
	return b.planned(size)
}

// Planned is [Book.Covered] for machines beyond the reservation of a size: what a savings plan
// covers.
func (b *Book) Planned(size string) (model.Money, model.QuotaUse, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.planned(size)
}

func (b *Book) planned(size string) (model.Money, model.QuotaUse, bool) {
	if p, price, ok := b.cover.plan(&b.terms, size); ok {
		return model.USD(float64(price) / microDollars), model.QuotaUse{Quota: linePlan + p.Name, Amount: price}, true
	}
	return 0, model.QuotaUse{}, false
}

// Lines are what reservations and savings plans still hold, in machines and in
// micro-dollars an hour.
func (b *Book) Lines() []model.Quota {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []model.Quota
	for _, r := range b.terms.Reservations {
		out = append(out, model.Quota{Name: lineReservation + r.Size, Left: int64(b.cover.reserved[strings.ToLower(r.Size)])})
	}
	for _, p := range b.terms.SavingsPlans {
		out = append(out, model.Quota{Name: linePlan + p.Name, Left: b.cover.plans[p.Name]})
	}
	return out
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
	b.cover = coverOf(&b.terms, b.machines)
	b.settle()
}

// SetMachines says which on-demand machines the cluster has: sizes by claim.
func (b *Book) SetMachines(machines map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.machines = maps.Clone(machines)
	b.recount()
}

// Bought says that the cluster has one machine more.
func (b *Book) Bought(claim, size string, capacityType model.CapacityType) {
	if capacityType != model.OnDemand {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.machines == nil {
		b.machines = map[string]string{}
	}
	b.machines[claim] = size
	b.recount()
}

// Gone says that the cluster has a machine less.
func (b *Book) Gone(claim string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.machines, claim)
	b.recount()
}

// recount counts again what is left. The caller holds mu.
func (b *Book) recount() {
	if len(b.terms.Reservations)+len(b.terms.SavingsPlans) == 0 {
		return
	}
	now := coverOf(&b.terms, b.machines)
	if !maps.Equal(now.reserved, b.cover.reserved) || !maps.Equal(now.plans, b.cover.plans) {
		b.cover = now
		b.revision++
	}
}
