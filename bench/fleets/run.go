package fleets

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Settings say how to measure.
type Settings struct {
	SkipUpstream    bool
	UpstreamTimeout time.Duration
}

// Row is the outcome of one fleet.
type Row struct {
	Fleet
	Pods int
	// Before is what the fleet costs as it is, Bound what no fleet for the same
	// pods can undercut, dollars per hour.
	Before, Bound float64
	// Nap has the figures for several prices of an eviction, the default one and
	// zero among them.
	Nap       []Priced
	Karpenter *Figures
}

// Priced are nap's figures when an eviction is held to cost so many dollars.
type Priced struct {
	EvictionPrice float64
	*Figures
}

// The first answer may search for firstBudget, every later one for laterBudget,
// and that again for every thousand nodes. All of them together stop after
// patience.
const (
	firstBudget = 30 * time.Millisecond
	laterBudget = 20 * time.Millisecond
	patience    = time.Minute
)

// prices of an eviction: for nothing, the default, and beyond.
func prices() []float64 {
	return []float64{0, model.DefaultConsolidationTerms().EvictionPrice.Dollars(), 0.02, 0.05, 0.1}
}

// Run measures one fleet.
func Run(ctx context.Context, f Fleet, s Settings) (*Row, error) {
	drawn, err := Draw(f)
	if err != nil {
		return nil, fmt.Errorf("fleet %s: %w", f.Name, err)
	}
	row := &Row{Fleet: f, Pods: drawn.Pods(), Before: drawn.Cost()}
	if row.Bound, err = newNap(drawn.Copy(), model.DefaultConsolidationTerms()).bound(ctx, time.Second); err != nil {
		return nil, fmt.Errorf("fleet %s: %w", f.Name, err)
	}
	for _, price := range prices() {
		terms := model.DefaultConsolidationTerms()
		terms.EvictionPrice = model.USD(price)
		engine := newNap(drawn.Copy(), terms)
		runtime.GC()
		figures, err := engine.converge(ctx)
		if err != nil {
			return nil, fmt.Errorf("fleet %s: nap: %w", f.Name, err)
		}
		row.Nap = append(row.Nap, Priced{price, figures})
	}
	if s.SkipUpstream {
		return row, nil
	}
	k, err := newKarpenter(ctx, drawn.Copy())
	if err != nil {
		return nil, fmt.Errorf("fleet %s: Karpenter: %w", f.Name, err)
	}
	runtime.GC()
	if row.Karpenter, err = k.converge(ctx, s.UpstreamTimeout); err != nil {
		return nil, fmt.Errorf("fleet %s: Karpenter: %w", f.Name, err)
	}
	return row, nil
}
