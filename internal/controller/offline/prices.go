package offline

import (
	"fmt"
	"strings"

	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// Prices are the prices of a region for a command that asks no cloud.
type Prices struct {
	// Table are the sizes and list prices that are built in.
	Table *skutable.Table
	// nearest is the region of the built-in table that stands for the one asked for.
	nearest string
	Book    *price.Book
	Disks   price.Disks
	// Note says where the prices come from.
	Note string
}

// OpenPrices lays the user's file, unless that is "", over the retail prices that a controller
// has written down ([price.Memory]), and these, unless they are "" or of another region, over
// the built-in prices of the region, or of the nearest region that has any.
func OpenPrices(region, file, retail string) (*Prices, error) {
	table, err := skutable.Load()
	if err != nil {
		return nil, err
	}
	disks, err := price.LoadDisks()
	if err != nil {
		return nil, err
	}
	p := &Prices{
		Table: table, nearest: price.Nearest(region, table.Regions()),
		Book: price.NewBook(table, region), Disks: disks.In(region),
	}
	if retail != "" {
		if err := (price.Memory{Book: p.Book}).Unmarshal([]byte(retail)); err != nil {
			return nil, fmt.Errorf("the snapshot of nap's controller: %w", err)
		}
	}
	if file != "" {
		if _, err := price.OpenFile(file, p.Book); err != nil {
			return nil, err
		}
	}
	p.Note = p.origin(region, file)
	if terms := p.Book.Terms(); terms != nil {
		p.Note += p.unmatchedNote(terms)
	}
	return p, nil
}

// mostUnmatched is how many entries that match no size are named.
const mostUnmatched = 5

// unmatchedNote names entries of terms that match no size, or is "" where there are none.
func (p *Prices) unmatchedNote(terms *price.Terms) string {
	var sizes []string
	for _, s := range p.Table.Sizes() {
		sizes = append(sizes, s.Name)
	}
	unmatched := terms.Unmatched(sizes)
	more := ""
	if n := len(unmatched) - mostUnmatched; n > 0 {
		unmatched, more = unmatched[:mostUnmatched], fmt.Sprintf(" and %d more", n)
	}
	if len(unmatched) == 0 {
		return ""
	}
	return "; no effect, since nap's built-in table has no such size: " + strings.Join(unmatched, ", ") + more
}

// origin says in one sentence where the prices come from.
func (p *Prices) origin(region, file string) string {
	var parts []string
	if file != "" {
		parts = append(parts, "prices of "+file)
	}
	what := fmt.Sprintf("prices of %s, %s", region, p.Table.Date())
	switch {
	case !p.Book.SpotEstimated():
		what = p.Book.Source()
	case p.nearest != region:
		what = fmt.Sprintf("no prices of %s are built in: those of %s, %s, the nearest region, are an estimate%s",
			region, p.nearest, p.Table.Date(), realPrices(region, file))
	}
	if file != "" {
		what = "for what it leaves out " + what
	}
	parts = append(parts, what)
	return strings.Join(parts, "; ") + ", managed disks of " + price.DisksDate + " included"
}

// realPrices says where the prices of a region come from that is not built in, to follow on a
// sentence. Of another cloud than the public one they have to be in the user's file.
func realPrices(region, file string) string {
	switch {
	case price.InPublicCloud(region):
		return fmt.Sprintf(" (nap prices fetch --region %s gets the real ones)", region)
	case file != "":
		return ""
	}
	return " (--prices-file takes the real ones)"
}
