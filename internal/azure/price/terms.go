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
type Terms struct {
	Prices       []Negotiated  `json:"prices,omitempty"`
	Discounts    []Discount    `json:"discounts,omitempty"`
	Reservations []Reservation `json:"reservations,omitempty"`
	SavingsPlans []SavingsPlan `json:"savingsPlans,omitempty"`
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

// ParseTerms reads a file of terms. The error names every field that is wrong,
// with its value and what is allowed.
func ParseTerms(text []byte) (*Terms, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("it is empty; write {} where there is nothing but retail prices")
	}
	t := &Terms{}
	if err := yaml.UnmarshalStrict(text, t); err != nil {
		return nil, fmt.Errorf("it is no file of prices: %s; its lists are prices, discounts, reservations and savingsPlans",
			strings.ReplaceAll(strings.TrimPrefix(err.Error(), "error unmarshaling JSON: "), "\n", " "))
	}
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
		if _, err := path.Match(d.Sizes, ""); err != nil || d.Sizes == "" {
			c.refuse("%s.sizes: %q is no pattern; give a size, * standing for any characters", at, d.Sizes)
		}
		if d.CapacityType != "" && d.CapacityType != model.OnDemand && d.CapacityType != model.Spot {
			c.refuse("%s.capacityType: %q is not allowed; allowed are %s, %s, and none for both", at, d.CapacityType, model.OnDemand, model.Spot)
		}
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
	slices.SortFunc(c.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	return t, nil
}

// check collects what is wrong with terms.
type check struct{ errs []error }

func (c *check) refuse(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
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

// apply makes the subscription's prices of retail prices.
func (t *Terms) apply(retail map[string]model.Money, capacityType model.CapacityType) map[string]model.Money {
	out := make(map[string]model.Money, len(retail))
	spelt := make(map[string]string, len(retail))
	for size, price := range retail {
		out[size] = price
		spelt[strings.ToLower(size)] = size
		for _, d := range t.Discounts {
			if d.CapacityType != "" && d.CapacityType != capacityType {
				continue
			}
			if ok, _ := path.Match(strings.ToLower(d.Sizes), strings.ToLower(size)); ok {
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
