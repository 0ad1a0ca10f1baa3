package cli

import (
	"context"
	"time"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// madeMoves is an answer to which nodes could be removed, with everything that it
// takes to speak about it.
type madeMoves struct {
	read   *planInput
	source *offline.Source
	input  *fleet.DisruptionInput
	moves  *model.Commands
	// parts are of the prices of nodes, by their names; none where the price is not known.
	parts map[string]partsOfPrice
	took  time.Duration
}

// partsOfPrice are a node's price, and the parts of it for its managed disk and for what the user
// adds to every node.
type partsOfPrice struct{ whole, disk, node model.Money }

// makeMoves reads the input and decides which nodes could be removed.
func (c *planCommand) makeMoves(ctx context.Context) (*madeMoves, error) {
	read, err := c.input.read(ctx, c.streams.In)
	if err != nil {
		return nil, err
	}
	source, err := read.source(ctx, c.input.catalogFlags)
	if err != nil {
		return nil, err
	}
	return c.movesFor(ctx, read, source)
}

// movesFor decides which nodes of what was read could be removed.
func (c *planCommand) movesFor(ctx context.Context, read *planInput, source *offline.Source) (*madeMoves, error) {
	var err error
	start := c.now()
	elapsed := func() time.Duration { return c.now().Sub(start) }
	made := &madeMoves{read: read, source: source}
	made.input, err = read.store.Snapshot().Disruption(ctx, source, fleet.DisruptionOptions{
		Options:   fleet.Options{Now: start, Policy: c.policy(elapsed)},
		Terms:     c.terms.Terms(),
		Bound:     true,
		Unclaimed: !c.input.live(),
	})
	if err != nil {
		return nil, err
	}
	made.moves = consolidate.Plan(made.input.Disruption)
	made.took = elapsed()
	made.parts, err = partsOfPrices(ctx, read, source)
	return made, err
}

// partsOfPrices are the parts of the prices of nodes, by their names.
func partsOfPrices(ctx context.Context, read *planInput, source *offline.Source) (map[string]partsOfPrice, error) {
	views, err := read.store.Snapshot().Views(ctx, source)
	if err != nil {
		return nil, err
	}
	out := map[string]partsOfPrice{}
	for i := range views {
		out[views[i].Name] = partsOfPrice{views[i].Price, views[i].DiskPrice, views[i].NodePrice}
	}
	return out, nil
}

// runConsolidate is nap plan --consolidate.
func (c *planCommand) runConsolidate(ctx context.Context) error {
	made, err := c.makeMoves(ctx)
	if err != nil {
		return err
	}
	made.read.talk(c.streams.Err, made.input.Problem.LeftOut, made.source)
	if err := made.read.sayOffline(&c.streams, c.output); err != nil {
		return err
	}
	if err := made.write(c.streams.Out, c); err != nil {
		return err
	}
	switch {
	case len(made.read.problems)+len(made.read.overlays.refused) > 0:
		return &command.ExitError{Code: 1}
	case len(made.moves.Commands) > 0:
		return &command.ExitError{Code: 2}
	}
	return nil
}
