package azure

import (
	"context"
	"math"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Supply is what bounds purchases beside offerings: limits of the subscription, and what is paid
// in advance. It is safe for concurrent use.
type Supply struct {
	market *market
	list   *machineList
}

// Quotas are the subscription's limits less everything that exists or is on its way.
func (s *Supply) Quotas() []model.Quota { return s.market.quota.Quotas() }

// Advance is what is paid in advance, whatever machines there are; nil for nothing.
func (s *Supply) Advance() *model.Advance { return s.market.prices.Advance() }

// CountMachines makes it known which machines use up what is paid in advance, where anything is,
// and that is not known yet. The error is Azure's.
func (s *Supply) CountMachines(ctx context.Context) error {
	if !s.market.prices.Unlisted() {
		return nil
	}
	_, err := s.list.within(ctx, always)
	return err
}

// always is an age that nothing reaches.
const always time.Duration = math.MaxInt64

// PriceMemory is what keeps retail prices over a restart.
func (s *Supply) PriceMemory() price.Memory { return price.Memory{Book: s.market.prices} }

// PriceOf is what the machine of a claim costs per hour, which was bought as an offering: also
// where what is paid in advance pays for it, and the offering is for further machines.
func (s *Supply) PriceOf(claim string, o *model.Offering) model.Money {
	bare := o.WithoutCover()
	if machine, covered := s.market.prices.CoverOf(claim); covered {
		if with, cheaper := bare.WithCover(model.Cover{Price: machine}); cheaper {
			return with.Price
		}
	}
	return bare.Price
}
