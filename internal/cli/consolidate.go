package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// termFlags are what a move must be worth.
type termFlags struct {
	evictionPrice float64
	payback       time.Duration
	minimumSaving float64
	spotToSpot    bool
}

// addWithGate adds the flags where no feature gate decides about spot.
func (f *termFlags) addWithGate(flags *pflag.FlagSet) {
	f.add(flags)
	flags.BoolVar(&f.spotToSpot, "spot-to-spot", false, "replace spot nodes by cheaper spot nodes")
}

func (f *termFlags) add(flags *pflag.FlagSet) {
	terms := model.DefaultConsolidationTerms()
	flags.Float64Var(&f.evictionPrice, "eviction-price", terms.EvictionPrice.Dollars(), "what evicting one pod is held to cost, in dollars; 0 saves all that can be saved")
	flags.DurationVar(&f.payback, "eviction-payback", terms.Payback, "the time in which a saving must have earned its evictions")
	flags.Float64Var(&f.minimumSaving, "consolidation-minimum-saving", terms.MinimumSaving, "least saving for which nodes are replaced, as a share of their price")
}

func (f *termFlags) check() error {
	switch {
	case !(f.evictionPrice >= 0 && f.evictionPrice <= 1000):
		return fmt.Errorf("--eviction-price: got %g, allowed are 0 to 1000 dollars", f.evictionPrice)
	case f.payback <= 0:
		return fmt.Errorf("--eviction-payback: got %s, must be more than 0", f.payback)
	case !(f.minimumSaving >= 0 && f.minimumSaving < 1):
		return fmt.Errorf("--consolidation-minimum-saving: got %g, allowed are 0 up to 1", f.minimumSaving)
	}
	return nil
}

func (f *termFlags) terms() model.ConsolidationTerms {
	return model.ConsolidationTerms{
		EvictionPrice: model.USD(f.evictionPrice), Payback: f.payback, MinimumSaving: f.minimumSaving, SpotToSpot: f.spotToSpot,
	}
}

// madeMoves is an answer to what could be given back, with everything that it
// takes to speak about it.
type madeMoves struct {
	read   *planInput
	source *source
	input  *fleet.DisruptionInput
	moves  *model.Commands
	took   time.Duration
}

// makeMoves reads the input and decides what could be given back.
func (c *planCommand) makeMoves(ctx context.Context) (*madeMoves, error) {
	read, err := c.input.read(ctx, c.streams.In)
	if err != nil {
		return nil, err
	}
	source, err := read.source(c.input.catalogFlags)
	if err != nil {
		return nil, err
	}
	start := c.now()
	elapsed := func() time.Duration { return c.now().Sub(start) }
	made := &madeMoves{read: read, source: source}
	made.input, err = read.store.Snapshot().Fleet(ctx, source, fleet.DisruptionOptions{
		Options:   fleet.Options{Now: start, Policy: c.policy(elapsed)},
		Terms:     c.terms.terms(),
		Bound:     true,
		Unclaimed: !c.input.live(),
	})
	if err != nil {
		return nil, err
	}
	made.moves = consolidate.Plan(made.input.Fleet)
	made.took = elapsed()
	return made, nil
}

// runConsolidate is nap plan --consolidate.
func (c *planCommand) runConsolidate(ctx context.Context) error {
	made, err := c.makeMoves(ctx)
	if err != nil {
		return err
	}
	made.read.talk(c.streams.Err, made.input.LeftOut, made.source)
	if err := made.write(c.streams.Out, c.output, c.alternatives); err != nil {
		return err
	}
	switch {
	case len(made.read.problems) > 0:
		return &ExitError{Code: 1}
	case len(made.moves.Commands) > 0:
		return &ExitError{Code: 2}
	}
	return nil
}
