package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
)

// planReport is the output of nap plan -o json. Its fields are a promise:
// docs/plan-json.md documents them.
type planReport struct {
	Summary       planSummary      `json:"summary"`
	Nodes         []reportNode     `json:"nodes"`
	Existing      []reportExisting `json:"existing"`
	Unschedulable []reportPending  `json:"unschedulable"`
	// HeldBack are pods that ResourceQuotas, LimitRanges or the node selector of their namespace keep
	// from being created.
	HeldBack []kube.HeldBack `json:"heldBack,omitempty"`
	// Moves and Stays are those of nap plan --consolidate; absent with --pending-only and
	// without nodes of NodePools.
	Moves []reportMove `json:"moves,omitempty"`
	Stays []reportStay `json:"stays,omitempty"`
	// StaticNodePools are those whose number of nodes changes beside the plan; absent with
	// --pending-only.
	StaticNodePools []reportStatic `json:"staticNodePools,omitempty"`
	owners          podOwners
	// scope says of which pods is told, where that is not of all; then there are no moves.
	scope string
}

type planSummary struct {
	Pods          int     `json:"pods"`
	Scheduled     int     `json:"scheduled"`
	Unschedulable int     `json:"unschedulable"`
	NewNodes      int     `json:"newNodes"`
	HourlyCost    float64 `json:"hourlyCost"`
	// DiskCost and NodeCost are the parts of HourlyCost for managed operating system
	// disks and for what the user adds to every node.
	DiskCost   float64 `json:"hourlyDiskCost,omitempty"`
	NodeCost   float64 `json:"hourlyNodeCost,omitempty"`
	LowerBound float64 `json:"lowerBound"`
	GapPercent float64 `json:"gapPercent"`
	// FewerNodes is how many nodes the plan does without, and FewerCost how much more it
	// costs per hour for that.
	FewerNodes int     `json:"fewerNodes,omitempty"`
	FewerCost  float64 `json:"hourlyFewerNodesCost,omitempty"`
	// SharesCost is how much more the plan costs per hour because of --workload-share-per-node
	// and --fleet-share-per-node.
	SharesCost float64 `json:"hourlyNodeSharesCost,omitempty"`
	// Removed and Replacements are nodes of the moves, Evictions their pods.
	Removed      int `json:"removed,omitempty"`
	Replacements int `json:"replacements,omitempty"`
	Evictions    int `json:"evictions,omitempty"`
	// HourlyBefore is what the nodes of NodePools cost, HourlyAfter with what is bought and
	// all moves made; nil where moves are absent.
	HourlyBefore *float64 `json:"hourlyBefore,omitempty"`
	HourlyAfter  *float64 `json:"hourlyAfter,omitempty"`
	PlanMillis   int64    `json:"planMillis"`
	Engine       string   `json:"engine"`
	Seed         uint64   `json:"seed"`
	// CutByTime says that time ended the search for a better plan.
	CutByTime bool `json:"cutByTime,omitempty"`
	// Replay makes the same plan again; see --replay. Nil if no clock had a say.
	Replay *model.Replay `json:"replay,omitempty"`
}

type reportOffering struct {
	InstanceType string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	HourlyPrice  float64 `json:"hourlyPrice"`
	// DiskPrice and NodePrice are the parts of HourlyPrice for the managed operating
	// system disk and for what the user adds to every node.
	DiskPrice float64 `json:"hourlyDiskPrice,omitempty"`
	NodePrice float64 `json:"hourlyNodePrice,omitempty"`
}

type reportNode struct {
	NodePool string `json:"nodePool"`
	reportOffering
	Alternatives []reportOffering  `json:"alternatives"`
	Requests     map[string]string `json:"requests"`
	Allocatable  map[string]string `json:"allocatable"`
	Pods         []string          `json:"pods"`

	requests, room model.Resources
	// fallbacks are all other offerings that would do, of types. Alternatives are the first
	// of them, which limitAlternatives lists: there may be thousands for a node.
	fallbacks []model.OfferingRef
	types     []model.InstanceType
}

type reportExisting struct {
	Node string   `json:"node"`
	Pods []string `json:"pods"`
}

type reportPending struct {
	Pod     string         `json:"pod"`
	Reason  string         `json:"reason"`
	Message string         `json:"message"`
	Nearest *reportNearest `json:"nearest,omitempty"`

	// words are the explanation from which Message is made.
	words explain.Pending
}

type reportNearest struct {
	NodePool     string `json:"nodePool,omitempty"`
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	Node         string `json:"node,omitempty"`
	Reason       string `json:"reason"`
	Have         string `json:"have,omitempty"`
	Want         string `json:"want,omitempty"`
	Fix          string `json:"fix,omitempty"`
}

// newReport is one of no pods, whose lists are empty in JSON.
func newReport(p *model.Problem) *planReport {
	return &planReport{Nodes: []reportNode{}, Existing: []reportExisting{}, Unschedulable: []reportPending{}, owners: newPodOwners(p)}
}

func newPlanReport(m *madePlan) *planReport {
	r := newReport(m.input.Problem)
	p := m.input.Problem
	for i := range m.plan.NewNodes {
		n := &m.plan.NewNodes[i]
		r.Nodes = append(r.Nodes, newReportNode(p, n, r.pods(m, n.Pods)))
	}
	for _, placed := range m.plan.Placements {
		r.Existing = append(r.Existing, reportExisting{Node: p.Nodes[placed.Node].Name, Pods: r.pods(m, placed.Pods)})
	}
	for i := range m.plan.Unschedulable {
		r.addPending(m, &m.plan.Unschedulable[i])
	}
	r.addDecided(m)
	r.addRejected(m)
	r.summarize(m, m.plan.Cost, m.plan.LowerBound, cmp.Or(m.plan.Stats.Engine, engineNap))
	return r
}

// addDecided adds the pods on which a live cluster's controller has decided.
func (r *planReport) addDecided(m *madePlan) {
	for i := range m.decided {
		d := &m.decided[i]
		names := r.owners.note(m.input, d.refs)
		if claim := d.verdict.NodeClaim; claim != "" {
			r.Existing = append(r.Existing, reportExisting{Node: claim, Pods: names})
			continue
		}
		pending := newReportPending(model.Reason(d.verdict.Reason), d.words(), nil)
		for _, name := range names {
			pending.Pod = name
			r.Unschedulable = append(r.Unschedulable, pending)
		}
	}
}

// verdictOn is what the controller has decided on a pod, or nil.
func (m *madePlan) verdictOn(ref model.PodRef) *decided {
	for i := range m.decided {
		if slices.Contains(m.decided[i].refs, ref) {
			return &m.decided[i]
		}
	}
	return nil
}

// addRejected adds the pods that no engine gets to see.
func (r *planReport) addRejected(m *madePlan) {
	for _, x := range m.input.Rejected {
		if !x.Quiet && m.verdictOn(x.Pod) == nil {
			r.owners[x.Pod.String()] = x.Owner
			r.Unschedulable = append(r.Unschedulable, newReportPending(x.Reason, explain.Refused(x.Reason, x.Message, x.Fix), nil))
			r.Unschedulable[len(r.Unschedulable)-1].Pod = x.Pod.String()
		}
	}
}

func (r *planReport) summarize(m *madePlan, cost, bound model.Money, engine string) {
	s := &r.Summary
	for _, n := range r.Nodes {
		s.Scheduled += len(n.Pods)
		s.DiskCost += n.DiskPrice
		s.NodeCost += n.NodePrice
	}
	for _, n := range r.Existing {
		s.Scheduled += len(n.Pods)
	}
	s.Unschedulable, s.NewNodes = len(r.Unschedulable), len(r.Nodes)
	s.Pods = s.Scheduled + s.Unschedulable
	s.HourlyCost, s.LowerBound = cost.Dollars(), bound.Dollars()
	if bound > 0 {
		s.GapPercent = math.Round(1e4*(s.HourlyCost/s.LowerBound-1)) / 100
	}
	s.PlanMillis = m.took.Round(time.Millisecond).Milliseconds()
	s.Engine, s.Seed = engine, m.seed
	if engine == engineNap {
		s.SharesCost = m.sharesCost.Dollars()
		s.FewerNodes, s.FewerCost = m.plan.Fewer.Machines, m.plan.Fewer.Paid.Dollars()
		s.Replay = m.plan.Stats.Replay
		s.CutByTime = s.Replay.Cut()
	}
}

func (r *planReport) pods(m *madePlan, entries []model.ClassPods) []string {
	return r.owners.note(m.input, m.input.Pods(entries))
}

func newReportNode(p *model.Problem, n *model.NewNode, pods []string) reportNode {
	pool := &p.Pools[n.Pool]
	types := p.Catalogs[pool.Catalog].InstanceTypes
	kind := &types[n.Best().InstanceType]
	out := reportNode{
		NodePool:       pool.Name,
		reportOffering: offeringOf(types, n.Best()),
		Alternatives:   []reportOffering{},
		Pods:           pods,
		requests:       n.Requests.Add(n.Daemons),
		room:           kind.Allocatable(),
		fallbacks:      n.Offerings[1:],
		types:          types,
	}
	out.Requests, out.Allocatable = kube.WriteAmounts(out.requests, p.Axes), kube.WriteAmounts(out.room, p.Axes)
	return out
}

// fallsBackOn reports whether another offering that would do is of a size.
func (n *reportNode) fallsBackOn(size string) bool {
	return slices.ContainsFunc(n.fallbacks, func(ref model.OfferingRef) bool { return n.types[ref.InstanceType].Name == size })
}

func offeringOf(types []model.InstanceType, ref model.OfferingRef) reportOffering {
	kind := &types[ref.InstanceType]
	o := &kind.Offerings[ref.Offering]
	return reportOffering{
		InstanceType: kind.Name, Zone: o.Zone, CapacityType: string(o.CapacityType),
		HourlyPrice: ref.Price.Dollars(), DiskPrice: o.DiskPrice.Dollars(), NodePrice: o.NodePrice.Dollars(),
	}
}

func (r *planReport) addPending(m *madePlan, u *model.Unschedulable) {
	pending := newReportPending(u.Reason, explain.Describe(m.input.Problem, u), u.Nearest)
	for _, i := range u.Pods {
		ref := m.input.Problem.Classes[u.Class].Pods[i]
		pending.Pod = ref.String()
		r.owners[pending.Pod] = shownName(m.input, ref)
		r.Unschedulable = append(r.Unschedulable, pending)
	}
}

// newReportPending reports a pod, which is still to be named.
func newReportPending(reason model.Reason, words explain.Pending, nearest *model.NearestMiss) reportPending {
	return reportPending{Reason: string(reason), Message: words.Short(math.MaxInt), Nearest: nearestOf(nearest), words: words}
}

func nearestOf(n *model.NearestMiss) *reportNearest {
	if n == nil {
		return nil
	}
	return &reportNearest{
		NodePool: n.Pool, InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: string(n.CapacityType),
		Node: n.Node, Reason: string(n.Reason), Have: n.Have, Want: n.Want, Fix: n.Fix,
	}
}

// write prints the report in the asked for form, with at most so many
// alternatives per node.
func (m *madePlan) write(w io.Writer, c *planCommand) error {
	form := c.output
	if isDocument(form) {
		limitAlternatives(m.report.Nodes, c.shown.alternatives)
		for i := range m.report.Moves {
			limitAlternatives(m.report.Moves[i].Add, c.shown.alternatives)
		}
		return writeDocument(w, form, m.report)
	}
	t := &planTable{
		planReport: m.report, moves: m.moves, refused: len(m.read.problems) > 0,
		style: tableStyle{form == "wide", c.shown.noHeaders, inkFor(w)},
	}
	_, err := io.WriteString(w, offered(&c.streams, t.String()))
	return err
}

// limitAlternatives lists of each node as many other offerings as there may be.
func limitAlternatives(nodes []reportNode, most int) {
	for i := range nodes {
		n := &nodes[i]
		for _, ref := range n.fallbacks[:min(len(n.fallbacks), max(0, most))] {
			n.Alternatives = append(n.Alternatives, offeringOf(n.types, ref))
		}
	}
}

// writeDocument prints a value as indented JSON, as YAML, or what a JSONPath finds in it.
func writeDocument(w io.Writer, form string, v any) error {
	if template, is := strings.CutPrefix(form, "jsonpath="); is {
		text, err := evaluate(strings.Trim(template, "'"), v)
		if err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		_, err = fmt.Fprintln(w, text)
		return err
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil && form == "yaml" {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("write the %s: %w", form, err)
	}
	if form == "json" {
		text = append(text, '\n')
	}
	_, err = w.Write(text)
	return err
}
