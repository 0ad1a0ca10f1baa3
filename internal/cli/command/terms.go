package command

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/nodeautoprovision/nap/internal/model"
)

// TermFlags are the flags that say what a command of consolidation must be worth.
type TermFlags struct {
	evictionPrice float64
	payback       time.Duration
	minimumSaving float64
	// spotToSpot is false where a feature gate decides about it instead.
	spotToSpot bool
}

// AddWithGate adds the flags where no feature gate decides about spot.
func (f *TermFlags) AddWithGate(flags *pflag.FlagSet) {
	f.Add(flags)
	flags.BoolVar(&f.spotToSpot, "spot-to-spot", false, "replace spot nodes by cheaper spot nodes")
}

// Add adds the flags but for --spot-to-spot.
func (f *TermFlags) Add(flags *pflag.FlagSet) {
	terms := model.DefaultConsolidationTerms()
	flags.Float64Var(&f.evictionPrice, "eviction-price", terms.EvictionPrice.Dollars(),
		"what evicting one pod is held to cost, in dollars; 0 saves all that can be saved")
	flags.DurationVar(&f.payback, "eviction-payback", terms.Payback, "the time in which a saving must have earned its evictions")
	flags.Float64Var(&f.minimumSaving, "consolidation-minimum-saving", terms.MinimumSaving,
		"least saving for which nodes are replaced, as a share of their price")
}

// IsZero reports whether the flags were not added: then there is nothing to check.
func (f *TermFlags) IsZero() bool { return *f == TermFlags{} }

// Check refuses values that are out of range; the error names flag, value and range.
func (f *TermFlags) Check() error {
	switch {
	case !(f.evictionPrice >= 0 && f.evictionPrice <= 1000):
		return fmt.Errorf("--eviction-price: got %g, allowed are 0 to 1000 dollars", f.evictionPrice)
	case f.payback <= 0:
		return fmt.Errorf("--eviction-payback: got %s, must be more than 0", f.payback)
	case !(f.minimumSaving >= 0 && f.minimumSaving < 1):
		return fmt.Errorf("--consolidation-minimum-saving: got %g, allowed are 0 to less than 1", f.minimumSaving)
	}
	return nil
}

// Terms are the flags as the planner reads them. Call Check first.
func (f *TermFlags) Terms() model.ConsolidationTerms {
	return model.ConsolidationTerms{
		EvictionPrice: model.USD(f.evictionPrice), Payback: f.payback, MinimumSaving: f.minimumSaving, SpotToSpot: f.spotToSpot,
	}
}
