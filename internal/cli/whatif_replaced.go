package cli

import (
	"context"
	"fmt"
	"maps"

	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/model"
)

// replaced is what a fleet costs once the nodes that a change takes are replaced without the change; nil
// where it takes none. A fleet that is loosely packed gets cheaper by that alone, which is no merit of
// the change.
func (c *planCommand) replaced(ctx context.Context, read *planInput, source *offline.Source, lost map[string]bool) (*outcome, error) {
	if len(lost) == 0 {
		return nil, nil
	}
	f := &fleetChange{lost: maps.Clone(lost)}
	evictions := f.evictions(read)
	if err := c.settle(ctx, read, source, f); err != nil {
		return nil, err
	}
	out, err := c.outcome(ctx, read, source, f)
	if err != nil {
		return nil, err
	}
	out.Evictions = evictions
	return out, nil
}

// itself says how much of the difference comes without the change, and how much of it is the change
// itself; "" where all of it is.
func (p *comparison) itself() string {
	if p.Replaced == nil {
		return ""
	}
	var text string
	switch delta := p.Replaced.HourlyCost - p.Before.HourlyCost; {
	case delta < -samePrice:
		text = fmt.Sprintf("To replace the same nodes saves %s/month without the change, too", cents(-delta*model.HoursPerMonth))
	case delta > samePrice:
		text = fmt.Sprintf("To replace the same nodes costs %s/month more without the change, too", cents(delta*model.HoursPerMonth))
	default:
		return ""
	}
	if p.Replaced.Pending != p.After.Pending {
		return text + "."
	}
	switch delta := p.After.HourlyCost - p.Replaced.HourlyCost; {
	case delta < -samePrice:
		return fmt.Sprintf("%s; the change itself saves %s/month.", text, cents(-delta*model.HoursPerMonth))
	case delta > samePrice:
		return fmt.Sprintf("%s; the change itself costs %s/month more.", text, cents(delta*model.HoursPerMonth))
	}
	return text + "; the change itself makes no difference to the price."
}
