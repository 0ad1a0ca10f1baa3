package azure

import (
	"context"
	"log/slog"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/placementscore"
	"github.com/nodeautoprovision/nap/internal/model"
)

// spotRanking puts spot candidates in order by the placement scores of Azure.
type spotRanking struct {
	scorer   *placementscore.Scorer // nil where scores are not asked for
	location string
	log      *slog.Logger
}

// prefer has those spot candidates asked for first, of all that cost the
// same, that Azure holds likely to be placed. Without scores the order stays.
func (r *spotRanking) prefer(ctx context.Context, candidates []launch.Candidate) {
	if r.scorer == nil {
		return
	}
	var sizes []string
	seen := map[string]bool{}
	for _, c := range candidates {
		if c.Offering.CapacityType == model.Spot && !seen[c.Type.Name] && len(sizes) < placementscore.MostSizes {
			seen[c.Type.Name] = true
			sizes = append(sizes, c.Type.Name)
		}
	}
	if len(sizes) == 0 {
		return
	}
	if err := r.scorer.Refresh(ctx, sizes); err != nil && ctx.Err() == nil {
		r.log.Warn("placement scores are unknown; what costs the same is asked for in turn", "error", err)
	}
	launch.Prefer(candidates, func(c launch.Candidate) int {
		if c.Offering.CapacityType != model.Spot {
			return 0
		}
		return int(r.scorer.Of(c.Type.Name, instancetype.AzureZone(r.location, c.Offering.Zone)))
	})
}
