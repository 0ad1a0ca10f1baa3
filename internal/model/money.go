package model

import (
	"fmt"
	"math"
)

// Money is an amount per hour in micro-dollars (1e-6 USD). Azure publishes
// prices with up to six decimals, so no price is rounded by it.
type Money int64

// HoursPerMonth is the month that Azure's price pages use.
const HoursPerMonth = 730

// USD converts dollars per hour, rounding to the nearest micro-dollar. Values
// that are not finite or out of range become the largest Money, so that a
// broken price is never the cheapest.
func USD(dollars float64) Money {
	micro := math.Round(dollars * 1e6)
	if math.IsNaN(micro) || math.Abs(micro) > math.MaxInt64/2 {
		return math.MaxInt64 / 2
	}
	return Money(micro)
}

// Dollars returns the amount in dollars per hour.
func (m Money) Dollars() float64 { return float64(m) / 1e6 }

// String prints dollars per hour: "$0.192/h", with at least three decimals and
// no more than needed.
func (m Money) String() string {
	if m%1000 == 0 {
		return fmt.Sprintf("$%.3f/h", m.Dollars())
	}
	return fmt.Sprintf("$%.6g/h", m.Dollars())
}
