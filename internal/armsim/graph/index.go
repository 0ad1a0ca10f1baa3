package graph

import (
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// index is what Resource Graph knows: the truth of some time ago.
type index struct {
	lag     time.Duration
	row     func(key string, d arm.Document) arm.Document // how a arm.Document looks as a row; nil when it is none
	shown   map[string]arm.Document                       // rows by resource key
	pending []change
}

type change struct {
	at  time.Time
	key string
	doc arm.Document // nil: gone
}

// note tells the index that a resource has a new arm.Document, or none.
func (g *index) note(now time.Time, k string, d arm.Document) {
	g.pending = append(g.pending, change{at: now, key: k, doc: d})
}

// settle makes a resource visible at once.
func (g *index) settle(k string, d arm.Document) {
	if row := g.row(k, d); row != nil {
		g.shown[k] = row
	}
}

// visible is what a query sees.
func (g *index) visible(now time.Time) map[string]arm.Document {
	i := 0
	for ; i < len(g.pending) && now.Sub(g.pending[i].at) >= g.lag; i++ {
		if c := g.pending[i]; c.doc == nil {
			delete(g.shown, c.key)
		} else {
			g.settle(c.key, c.doc)
		}
	}
	g.pending = slices.Delete(g.pending, 0, i)
	return g.shown
}
