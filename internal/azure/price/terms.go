package price

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/document"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Terms are what a subscription pays instead of retail prices: a file that its
// owner keeps. All amounts are US dollars an hour for one machine with Linux.
//
//	prices:                # negotiated; wins over discounts
//	- size: Standard_D4s_v5
//	  onDemand: 0.15
//	  spot: 0.031
//	discounts:             # off the retail price; the first that matches counts
//	- sizes: Standard_D*_v5
//	  capacityType: on-demand   # or spot; both where it is missing
//	  percent: 12
//	reservations:          # the first so many machines cost this
//	- size: Standard_D4s_v5
//	  count: 10
//	  hourly: 0.09         # 0 where the money is spent in any case
//	savingsPlans:          # machines beyond reservations cost this, until it is spent
//	- name: team
//	  hourly: 5.00         # the commitment
//	  prices: {Standard_D4s_v5: 0.11, Standard_D8s_v5: 0.22}
//	perNode:               # on top of the machine's price; all that match are added
//	- name: monitoring agent
//	  hourly: 0.02
//	  sizes: Standard_D*        # all where it is missing
//	  capacityType: on-demand   # or spot; both where it is missing
type Terms struct {
	Prices       []Negotiated  `json:"prices,omitempty"`
	Discounts    []Discount    `json:"discounts,omitempty"`
	Reservations []Reservation `json:"reservations,omitempty"`
	SavingsPlans []SavingsPlan `json:"savingsPlans,omitempty"`
	PerNode      []NodeCost    `json:"perNode,omitempty"`
}

// Negotiated is the price of one size; what is nil stays at the retail price.
type Negotiated struct {
	Size     string   `json:"size"`
	OnDemand *float64 `json:"onDemand,omitempty"`
	Spot     *float64 `json:"spot,omitempty"`
}

// Discount is a percentage off the retail prices of the sizes that match a
// pattern, in which * stands for any characters.
type Discount struct {
	Sizes        string             `json:"sizes"`
	CapacityType model.CapacityType `json:"capacityType,omitempty"`
	Percent      float64            `json:"percent"`
}

// Reservation is a number of machines of a size that are bought in advance.
type Reservation struct {
	Size   string  `json:"size"`
	Count  int     `json:"count"`
	Hourly float64 `json:"hourly"`
}

// SavingsPlan is an amount that is spent every hour on on-demand machines of some
// sizes, at prices of its own.
type SavingsPlan struct {
	Name   string             `json:"name"`
	Hourly float64            `json:"hourly"`
	Prices map[string]float64 `json:"prices"`
}

// NodeCost is what every node costs beside its machine and its disk, such as an
// agent's licence. Sizes is a pattern as that of a [Discount], empty for all.
type NodeCost struct {
	Name         string             `json:"name"`
	Hourly       float64            `json:"hourly"`
	Sizes        string             `json:"sizes,omitempty"`
	CapacityType model.CapacityType `json:"capacityType,omitempty"`
}

// ParseTerms reads a file of terms. The error names every field that is wrong,
// with its value and what is allowed.
func ParseTerms(text []byte) (*Terms, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("it is empty; write {} where there is nothing but retail prices")
	}
	t, err := readTerms(text)
	if err != nil {
		return nil, err
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	return t, nil
}

// readTerms reads a file of terms which has the fields of one.
func readTerms(text []byte) (*Terms, error) {
	value, err := document.One(text)
	if err != nil {
		return nil, fmt.Errorf("it is no file of prices: %w", err)
	}
	t := &Terms{}
	if value == nil { // nothing but comments
		return t, nil
	}
	if err := document.Check(value, t); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(value, t); err != nil { // takes a number for a name, which JSON does not
		return nil, fmt.Errorf("it is no file of prices: %w", err)
	}
	return t, nil
}

// check is what is wrong with the values of terms.
func (t *Terms) check() error {
	c := &check{}
	sizes := map[string]bool{}
	for i, p := range t.Prices {
		at := fmt.Sprintf("prices[%d]", i)
		c.once(sizes, at+".size", p.Size)
		if p.OnDemand == nil && p.Spot == nil {
			c.refuse("%s: neither onDemand nor spot is given; give at least one", at)
		}
		c.amount(at+".onDemand", p.OnDemand)
		c.amount(at+".spot", p.Spot)
	}
	for i, d := range t.Discounts {
		at := fmt.Sprintf("discounts[%d]", i)
		c.pattern(at+".sizes", d.Sizes)
		c.capacityType(at+".capacityType", d.CapacityType)
		if !(d.Percent > 0 && d.Percent <= 100) {
			c.refuse("%s.percent: %v is not allowed; allowed is more than 0 and at most 100", at, d.Percent)
		}
	}
	clear(sizes)
	for i, r := range t.Reservations {
		at := fmt.Sprintf("reservations[%d]", i)
		c.once(sizes, at+".size", r.Size)
		if r.Count < 1 {
			c.refuse("%s.count: %d is not allowed; allowed is 1 and more", at, r.Count)
		}
		c.amount(at+".hourly", &r.Hourly)
	}
	names := map[string]bool{}
	for i, p := range t.SavingsPlans {
		at := fmt.Sprintf("savingsPlans[%d]", i)
		c.once(names, at+".name", p.Name)
		c.amount(at+".hourly", &p.Hourly)
		if len(p.Prices) == 0 {
			c.refuse("%s.prices: is empty; give the plan's price of every size that it covers", at)
		}
		for size, price := range p.Prices {
			c.amount(at+".prices."+size, &price)
		}
	}
	clear(names)
	for i, n := range t.PerNode {
		at := fmt.Sprintf("perNode[%d]", i)
		if n.Name == "" || names[n.Name] {
			c.refuse("%s.name: %q is not allowed; give each cost a name of its own", at, n.Name)
		}
		names[n.Name] = true
		c.amount(at+".hourly", &n.Hourly)
		if n.Sizes != "" {
			c.pattern(at+".sizes", n.Sizes)
		}
		c.capacityType(at+".capacityType", n.CapacityType)
	}
	slices.SortFunc(c.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(c.errs...)
}

// check collects what is wrong with terms.
type check struct{ errs []error }

func (c *check) refuse(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// pattern wants a size in which * stands for any characters.
func (c *check) pattern(field, sizes string) {
	if _, err := path.Match(sizes, ""); err != nil || sizes == "" {
		c.refuse("%s: %q is no pattern; give a size, * standing for any characters", field, sizes)
	}
}

// capacityType wants one of those that have a price, or none.
func (c *check) capacityType(field string, t model.CapacityType) {
	if t != "" && t != model.OnDemand && t != model.Spot {
		c.refuse("%s: %q is not allowed; allowed are %s, %s, and none for both", field, t, model.OnDemand, model.Spot)
	}
}

// once wants a name that has not been seen yet.
func (c *check) once(seen map[string]bool, field, name string) {
	key := strings.ToLower(name)
	switch {
	case name == "" || strings.ContainsAny(name, " \t*"):
		c.refuse("%s: %q is not allowed; give one name without spaces", field, name)
	case seen[key]:
		c.refuse("%s: %q is there twice; give it once", field, name)
	}
	seen[key] = true
}

// mostHourly is far above any machine's price, and catches amounts in cents.
const mostHourly = 1000

func (c *check) amount(field string, dollars *float64) {
	if dollars != nil && (math.IsNaN(*dollars) || *dollars < 0 || *dollars > mostHourly) {
		c.refuse("%s: %v is not allowed; allowed are 0 to %d dollars an hour", field, *dollars, mostHourly)
	}
}

// applies reports whether a pattern of sizes and a capacity type, empty for all, are
// those of an offering.
func applies(sizes string, only model.CapacityType, size string, capacityType model.CapacityType) bool {
	if only != "" && only != capacityType {
		return false
	}
	ok, _ := path.Match(strings.ToLower(cmp.Or(sizes, "*")), strings.ToLower(size))
	return ok
}

// perNode is what a node of the size costs beside its machine and its disk.
func (t *Terms) perNode(size string, capacityType model.CapacityType) model.Money {
	var sum model.Money
	for i := range t.PerNode {
		if n := &t.PerNode[i]; applies(n.Sizes, n.CapacityType, size, capacityType) {
			sum += model.USD(n.Hourly)
		}
	}
	return sum
}

// apply makes the subscription's prices of retail prices.
func (t *Terms) apply(retail map[string]model.Money, capacityType model.CapacityType) map[string]model.Money {
	out := make(map[string]model.Money, len(retail))
	spelt := make(map[string]string, len(retail))
	for size, price := range retail {
		out[size] = price
		spelt[strings.ToLower(size)] = size
		for _, d := range t.Discounts {
			if applies(d.Sizes, d.CapacityType, size, capacityType) {
				out[size] = model.USD(price.Dollars() * (1 - d.Percent/100))
				break
			}
		}
	}
	for _, p := range t.Prices {
		own := p.OnDemand
		if capacityType == model.Spot {
			own = p.Spot
		}
		if size := cmp.Or(spelt[strings.ToLower(p.Size)], p.Size); own != nil {
			out[size] = model.USD(*own)
		}
	}
	return out
}
