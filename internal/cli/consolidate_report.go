package cli

import (
	"fmt"
	"io"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/model"
)

// movesReport is the output of nap plan --consolidate -o json. Its fields are a
// promise: docs/plan-json.md documents them.
type movesReport struct {
	Summary movesSummary `json:"summary"`
	Moves   []reportMove `json:"moves"`
	Stays   []reportStay `json:"stays"`
	owners  podOwners
}

type movesSummary struct {
	Nodes        int     `json:"nodes"`
	Removed      int     `json:"removed"`
	Added        int     `json:"added"`
	Evictions    int     `json:"evictions"`
	HourlyBefore float64 `json:"hourlyBefore"`
	HourlyAfter  float64 `json:"hourlyAfter"`
	HourlySaving float64 `json:"hourlySaving"`
	LowerBound   float64 `json:"lowerBound"`
	GapPercent   float64 `json:"gapPercent"`
	// Others are nodes of no NodePool, which are never removed, and OthersHourly what
	// those of a known size cost.
	Others       int     `json:"others,omitempty"`
	OthersHourly float64 `json:"othersHourly,omitempty"`
	PlanMillis   int64   `json:"planMillis"`
}

// reportMachine is a node that exists.
type reportMachine struct {
	Node     string `json:"node"`
	NodePool string `json:"nodePool"`
	reportOffering
}

type reportMove struct {
	Reason         string           `json:"reason"`
	Remove         []reportMachine  `json:"remove"`
	Add            []reportNode     `json:"add"`
	Placements     []reportExisting `json:"placements"`
	HourlySaving   float64          `json:"hourlySaving"`
	Evictions      int              `json:"evictions"`
	DisruptionCost float64          `json:"disruptionCost"`
	// FromTemplate moves replace a node of a static pool.
	FromTemplate bool `json:"fromTemplate,omitempty"`
}

// forcedOut is how many of the evicted pods no place is planned for: nothing may evict them before the
// terminationGracePeriod of their node ends.
func (mv *reportMove) forcedOut() int {
	if mv.FromTemplate {
		return 0
	}
	pods := mv.Evictions
	for i := range mv.Placements {
		pods -= len(mv.Placements[i].Pods)
	}
	for i := range mv.Add {
		pods -= len(mv.Add[i].Pods)
	}
	return pods
}

// notBefore says of such pods what they wait for.
func notBefore(pods int) string {
	return fmt.Sprintf("nothing is bought for %s which cannot be evicted before terminationGracePeriod ends", plural(pods, "pod"))
}

type reportStay struct {
	reportMachine
	Reason  string     `json:"reason"`
	Message string     `json:"message"`
	Pod     string     `json:"pod,omitempty"`
	Budget  string     `json:"budget,omitempty"`
	Until   *time.Time `json:"until,omitempty"`
}

func newMovesReport(m *madeMoves) *movesReport {
	r := &movesReport{Moves: []reportMove{}, Stays: []reportStay{}, owners: podOwners{}}
	for i := range m.moves.Commands {
		r.Moves = append(r.Moves, r.move(m, &m.moves.Commands[i]))
	}
	for i := range m.moves.Kept {
		st := &m.moves.Kept[i]
		out := reportStay{reportMachine: m.machine(st.Node), Reason: string(st.Reason), Message: st.Message, Budget: st.Budget}
		if st.Pod != (model.PodRef{}) {
			out.Pod = st.Pod.String()
		}
		if !st.Until.IsZero() {
			until := st.Until.UTC()
			out.Until = &until
		}
		r.Stays = append(r.Stays, out)
	}
	r.summarize(m)
	return r
}

func (r *movesReport) move(m *madeMoves, mv *model.Command) reportMove {
	p := m.input.Problem
	out := reportMove{
		Reason: string(mv.Reason), HourlySaving: mv.Saving.Dollars(), Evictions: mv.Evictions,
		DisruptionCost: mv.DisruptionCost, FromTemplate: mv.FromTemplate,
		Remove: []reportMachine{}, Add: []reportNode{}, Placements: []reportExisting{},
	}
	for _, n := range mv.Nodes {
		out.Remove = append(out.Remove, m.machine(n))
	}
	for i := range mv.New {
		out.Add = append(out.Add, newReportNode(p, &mv.New[i], r.pods(m, mv.New[i].Pods)))
	}
	for _, placed := range mv.Placements {
		out.Placements = append(out.Placements, reportExisting{Node: p.Nodes[placed.Node].Name, Pods: r.pods(m, placed.Pods)})
	}
	return out
}

func (r *movesReport) pods(m *madeMoves, entries []model.ClassPods) []string {
	return r.owners.note(m.input.Input, m.input.Movable(entries))
}

// machine describes a node that exists.
func (m *madeMoves) machine(n int) reportMachine {
	node := &m.input.Problem.Nodes[n]
	parts := m.parts[node.Name]
	if parts.whole != node.Price { // what it cost when it was bought, which moves do not count with
		parts = partsOfPrice{}
	}
	return reportMachine{Node: node.Name, NodePool: node.Pool, reportOffering: reportOffering{
		InstanceType: node.Labels[model.LabelInstanceType], Zone: node.Labels[model.LabelZone],
		CapacityType: node.Labels[model.LabelCapacityType], HourlyPrice: node.Price.Dollars(),
		DiskPrice: parts.disk.Dollars(), NodePrice: parts.node.Dollars(),
	}}
}

func (r *movesReport) summarize(m *madeMoves) {
	s := &r.Summary
	s.Nodes = len(m.input.Problem.Nodes)
	for _, o := range m.read.objects.Distinct() {
		if node, is := o.(*corev1.Node); is && outsidePools(m.read.pools, node) {
			price, _ := m.source.PriceOf(node)
			s.Nodes--
			s.Others++
			s.OthersHourly += price.Dollars()
		}
	}
	for i := range r.Moves {
		s.Removed += len(r.Moves[i].Remove)
		s.Added += len(r.Moves[i].Add)
		if r.Moves[i].FromTemplate {
			s.Added++
		}
	}
	s.Evictions = m.moves.Evictions
	s.HourlyBefore, s.HourlyAfter = m.moves.Before.Dollars(), m.moves.After.Dollars()
	s.HourlySaving = (m.moves.Before - m.moves.After).Dollars()
	s.LowerBound = m.moves.LowerBound.Dollars()
	if s.LowerBound > 0 {
		s.GapPercent = math.Round(1e4*(s.HourlyAfter/s.LowerBound-1)) / 100
	}
	s.PlanMillis = m.took.Round(time.Millisecond).Milliseconds()
}

// write prints the moves in the asked for form.
func (m *madeMoves) write(w io.Writer, c *planCommand) error {
	form := c.output
	report := newMovesReport(m)
	if isDocument(form) {
		for i := range report.Moves {
			limitAlternatives(report.Moves[i].Add, c.shown.alternatives)
		}
		return writeDocument(w, form, report)
	}
	t := &movesTable{movesReport: report, style: tableStyle{form == "wide", c.shown.noHeaders, inkFor(w)}}
	_, err := io.WriteString(w, t.String())
	return err
}
