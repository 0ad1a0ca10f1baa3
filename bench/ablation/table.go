package ablation

import (
	"fmt"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/portfolio"
)

// Row is what leaving out one part does.
type Row struct {
	Kind, Name          string
	Clusters, Workloads Effect
}

// Effect adds up the differences over some problems.
type Effect struct {
	Problems int
	// Worse and Better are problems whose plans are worse or better without the part.
	Worse, Better int
	// Unschedulable is how many pods more have no place without the part, GivenUp how
	// many preferences more are given up.
	Unschedulable, GivenUp int
	// Cost and Bound are sums over the problems whose plans leave as many pods out with
	// and without the part.
	Cost, Bound Change
}

// Change is a sum by the whole portfolio and without a part.
type Change struct{ Before, After model.Money }

func (e *Effect) add(whole, without outcome) {
	e.Problems++
	switch {
	case whole.betterThan(without):
		e.Worse++
	case without.betterThan(whole):
		e.Better++
	}
	e.Unschedulable += without.unschedulable - whole.unschedulable
	e.GivenUp += without.givenUp - whole.givenUp
	if whole.unschedulable == without.unschedulable {
		e.Cost = Change{e.Cost.Before + whole.cost, e.Cost.After + without.cost}
		e.Bound = Change{e.Bound.Before + whole.bound, e.Bound.After + without.bound}
	}
}

func rows(parts []portfolio.Part, results []*measured) []Row {
	out := make([]Row, len(parts))
	for i, p := range parts {
		out[i].Kind, out[i].Name = p.Kind, p.Name
		for _, m := range results {
			e := &out[i].Clusters
			if m.problem.Workload {
				e = &out[i].Workloads
			}
			e.add(m.whole, m.without[i])
		}
	}
	return out
}

// percent is the rise in percent.
func (c Change) percent() string {
	if c.Before == 0 {
		return "0"
	}
	return fmt.Sprintf("%+.3f", 100*(c.After.Dollars()/c.Before.Dollars()-1))
}

func (e *Effect) cells() string {
	return fmt.Sprintf("%d | %d | %+d | %+d | %s | %s", e.Worse, e.Better, e.Unschedulable, e.GivenUp, e.Cost.percent(), e.Bound.percent())
}

// Table prints the rows as a Markdown table.
func Table(rows []Row) string {
	var b strings.Builder
	if len(rows) > 0 {
		fmt.Fprintf(&b, "%d generated clusters with a budget of %s, %d workloads with %s, both counted in steps.\n\n",
			rows[0].Clusters.Problems, ClusterBudget, rows[0].Workloads.Problems, WorkloadBudget)
	}
	b.WriteString("| kind | without | clusters worse | better | pods left out | preferences given up | cost % | bound % " +
		"| workloads worse | better | pods left out | preferences given up | cost % | bound % |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Kind, r.Name, r.Clusters.cells(), r.Workloads.cells())
	}
	return b.String()
}
