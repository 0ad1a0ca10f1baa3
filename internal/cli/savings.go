package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/controller/savings"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

func newSavings(s command.Streams, now func() time.Time) *cobra.Command {
	c := &planCommand{streams: s, now: now}
	c.input.partial = true
	cmd := &cobra.Command{
		Use:   "savings (-f FILE | --context NAME)",
		Short: "Say what a cluster's nodes cost, and what its pods would cost on nodes that nap buys",
		Long: `Plan the pods of all nodes as if nap had to buy every node, and compare the
price with that of the nodes that there are, whatever made them: agent pools,
the cluster autoscaler, Karpenter. Nothing is touched. Prices are those of the
same table on both sides, managed disks included. Nodes of mode system stay, and
so do nodes of sizes without a price; neither is counted on either side. Where
there is no NodePool, the one that AKS creates by default is assumed. Claims of
running pods that the input lacks count as bound in the zone of the node. Nodes
whose pods find no other place stay, and count on both sides.

The option nap+spot lets pods run on spot machines that look safe there: of a
ReplicaSet with at least two pods, with a PodDisruptionBudget, and not marked as
not to be disrupted. --compare karpenter adds what Karpenter's own scheduler
would buy for the same pods, which takes long for many. Kinds that may not be
listed are named, and the answer goes on without them; nodes and pods are
needed.

Exit code 0: there is an answer. 1: an error.`,
		Example: `  nap savings --context prod
  kubectl get nodes,nodepools,pods,daemonsets,pdb,pvc,pv -A -o yaml | nap savings -f - -o json`,
		Args: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runSavings(cmd.Context()) },
	}
	c.input.add(cmd)
	addOutput(cmd, &c.output, documentForms("csv", "html"))
	cmd.Flags().StringVar(&c.compare, "compare", "", "karpenter: say what Karpenter's scheduler would buy, too")
	c.policyFlags(cmd)
	return cmd
}

func (c *planCommand) runSavings(ctx context.Context) error {
	c.engine = engineNap
	if err := checkOutput(c.output, documentForms("csv", "html")); err != nil {
		return err
	}
	if c.compare != "" {
		if err := oneOf("compare", c.compare, optionKarpenter); err != nil {
			return err
		}
	}
	form := c.output
	c.output = "table"
	if err := c.check(); err != nil {
		return err
	}
	read, err := c.input.read(ctx, c.streams.In)
	if err != nil {
		return err
	}
	if read.refusedNodePool() && len(read.pools) == 0 {
		return fmt.Errorf("%w; nothing is planned with another NodePool in its place", errors.Join(read.problems...))
	}
	if len(read.store.Snapshot().Pools()) == 0 {
		read.addDefaultPool()
	}
	flags := c.input.catalogFlags
	flags.listed = true // agent pools use them up, too, and no one sees how much
	source, err := read.source(ctx, flags)
	if err != nil {
		return err
	}
	made, err := c.save(ctx, read, source)
	if err != nil {
		return err
	}
	read.talk(c.streams.Err, nil, source)
	for _, note := range read.notes {
		if strings.HasPrefix(note, "partial answer: ") {
			made.Notes = append(made.Notes, note)
		}
	}
	if err := made.writeAs(&c.streams, form); err != nil {
		return err
	}
	return answered(read, false)
}

// writeAs writes the report in a form.
func (s *savingsReport) writeAs(to *command.Streams, form string) error {
	switch form {
	case "csv":
		return s.writeCSV(to.Out)
	case "html":
		return savingsPage.Execute(to.Out, s)
	case "table":
		return s.write(to)
	}
	return writeDocument(to.Out, form, s)
}

// savingsReport is the output of nap savings -o json. Its fields are a promise:
// docs/plan-json.md documents them.
type savingsReport struct {
	Region string `json:"region"`
	// Nodes and Pods are those that are counted; Stay are nodes that are not.
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
	Stay  int `json:"stay"`
	// Now is what the nodes cost, in dollars per hour.
	Now     float64         `json:"now"`
	Options []savingsOption `json:"options"`
	// LowerBound is below what any nodes for the pods can cost per hour.
	LowerBound float64 `json:"lowerBound"`
	// SpotSafe is how many of the pods look safe on spot machines, BlockedByBudget how many
	// have a PodDisruptionBudget that allows no eviction now, WithoutRequests how many
	// request neither cpu nor memory.
	SpotSafe        int `json:"spotSafe"`
	BlockedByBudget int `json:"blockedByBudget"`
	WithoutRequests int `json:"withoutRequests"`
	// Notes are what the answer lacks for want of rights or input.
	Notes []string `json:"notes,omitempty"`
}

type savingsOption struct {
	Name         string  `json:"name"`
	Nodes        int     `json:"nodes"`
	HourlyCost   float64 `json:"hourlyCost"`
	SavedPercent float64 `json:"savedPercent"`
	// Evictions is how many pods would move, Pending how many others would find no place.
	Evictions int `json:"evictions"`
	Pending   int `json:"pending"`
	// KeptNodes is how many of Nodes are nodes of today, on which pods without a place stay, and
	// KeptCost the part of HourlyCost for them.
	KeptNodes int     `json:"keptNodes,omitempty"`
	KeptCost  float64 `json:"hourlyKeptCost,omitempty"`
}

// save plans the pods of all nodes again and compares the prices.
func (c *planCommand) save(ctx context.Context, read *planInput, source *offline.Source) (*savingsReport, error) {
	out := &savingsReport{Region: source.Region}
	there := read.objects.List()
	there = append(there, boundClaims(read, there)...)
	fleetNow := savings.Now(there, source)
	out.Stay, out.Nodes = fleetNow.Stay, len(fleetNow.Goes)
	objects := savings.Unplaced(there, fleetNow.Goes)
	safe := spotSafe(objects)
	out.SpotSafe = len(safe)
	out.BlockedByBudget, out.WithoutRequests = inTheWay(objects)
	made, err := c.replan(ctx, read, source, objects)
	if err != nil {
		return nil, err
	}
	out.Now, out.LowerBound = fleetNow.Price.Dollars(), made.plan.LowerBound.Dollars()
	add := func(name string, of *madePlan, plan *planReport) {
		pods := withoutPlace(of, plan)
		nodes, price := fleetNow.Held(there, pods)
		out.add(name, plan, savingsOption{Pending: len(pods), KeptNodes: nodes, KeptCost: price.Dollars()})
	}
	add(optionNap, made, made.report)
	out.Pods = out.Options[0].Evictions + out.Options[0].Pending
	if len(safe) > 0 {
		spot, err := c.replan(ctx, read, source, withSpot(objects, safe))
		if err != nil {
			return nil, err
		}
		add(optionSpot, spot, spot.report)
	}
	if c.compare == optionKarpenter {
		report, err := c.solveWithKarpenter(ctx, made)
		if err != nil {
			return nil, err
		}
		add(optionKarpenter, made, report)
	}
	return out, nil
}

// boundClaims are the claims that running pods of the input must have. A note says that it lacks them.
func boundClaims(p *planInput, objects []client.Object) []client.Object {
	made := savings.BoundClaims(objects)
	if len(made) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("partial answer: the input lacks %s of running pods, the first is %s/%s: "+
			"each counts as bound to a volume in the zone of the pod's node; give them, too: kubectl get pvc,pv -A -o yaml",
			plural(len(made)/2, "volume claim"), made[0].GetNamespace(), made[0].GetName()))
	}
	return made
}

// withoutPlace are the pods that a plan has no place for, those included which are not planned
// for: they run on nodes of today.
func withoutPlace(made *madePlan, plan *planReport) map[string]bool {
	out := map[string]bool{}
	for i := range plan.Unschedulable {
		out[plan.Unschedulable[i].Pod] = true
	}
	for i := range made.input.Rejected {
		out[made.input.Rejected[i].Pod.String()] = true
	}
	return out
}

// add adds an option, as a plan reports it, with the nodes of today that are kept for pods
// without a place.
func (s *savingsReport) add(name string, plan *planReport, o savingsOption) {
	o.Name, o.Evictions = name, plan.Summary.Scheduled
	o.Nodes, o.HourlyCost = plan.Summary.NewNodes+o.KeptNodes, plan.Summary.HourlyCost+o.KeptCost
	if s.Now > 0 {
		o.SavedPercent = max(0, math.Round(1e4*(1-o.HourlyCost/s.Now))/100)
	}
	s.Options = append(s.Options, o)
}

// replan plans for objects without nodes.
func (c *planCommand) replan(ctx context.Context, read *planInput, source *offline.Source, objects []client.Object) (*madePlan, error) {
	start := c.now()
	elapsed := func() time.Duration { return c.now().Sub(start) }
	o := fleet.Options{Now: start, Policy: c.policy(elapsed)}
	planned, err := savings.Replan(ctx, read.spreadByDefault(objects), read.added.assumed, source, o)
	if err != nil {
		return nil, err
	}
	changed := *read
	changed.store, changed.objects = planned.Store, kube.ObjectsOf(objects)
	made := &madePlan{read: &changed, source: source, input: planned.Input, plan: planned.Plan, at: start}
	made.report = newPlanReport(made)
	return made, nil
}

// write prints savings for people.
func (s *savingsReport) write(to *command.Streams) error {
	o := &s.Options[0]
	var out strings.Builder
	k := inkFor(to.Out)
	switch {
	case s.Nodes == 0:
		out.WriteString(k.bold("No node with a price is in the input.") + "\n")
	case o.HourlyCost < s.Now:
		out.WriteString(k.bold(fmt.Sprintf("%s for %s cost %s/month; with nap %s/month: %.0f%% less.",
			plural(s.Nodes, "node"), plural(s.Pods, "pod"), cents(s.Now*model.HoursPerMonth), cents(o.HourlyCost*model.HoursPerMonth),
			o.SavedPercent)) + "\n")
	default:
		out.WriteString(k.bold(fmt.Sprintf("%s for %s cost %s/month; nap's plan for the same pods costs no less.",
			plural(s.Nodes, "node"), plural(s.Pods, "pod"), cents(s.Now*model.HoursPerMonth))) + "\n")
	}
	if s.Nodes > 0 {
		fmt.Fprintf(&out, "now: %s, %s/h; with nap: %s, %s/h\nproof: no nodes for these requests cost less than %s/h\n",
			plural(s.Nodes, "node"), dollars(s.Now), plural(o.Nodes, "node"), dollars(o.HourlyCost), dollars(s.LowerBound))
		fmt.Fprintf(&out, "what it takes: %s", plural(o.Evictions, "eviction"))
		if o.Pending > 0 {
			fmt.Fprintf(&out, "; %s would find no place and must stay on %s of today, which %s", plural(o.Pending, "pod"),
				plural(o.KeptNodes, "node"), o.counted())
		}
		out.WriteString("\n")
		if s.BlockedByBudget > 0 {
			fmt.Fprintf(&out, "in the way: %s a PodDisruptionBudget that allows no eviction now\n", have(s.BlockedByBudget))
		}
		if s.WithoutRequests > 0 {
			fmt.Fprintf(&out, "packed as if free: %s without requests for cpu and memory\n", plural(s.WithoutRequests, "pod"))
		}
	}
	for i := range s.Options[1:] {
		s.writeOption(&out, &s.Options[1+i])
	}
	if s.Nodes > 0 && s.SpotSafe == 0 {
		fmt.Fprintf(&out, "safe on spot machines, as it looks: 0 of %s (%d or more of a ReplicaSet, with a PodDisruptionBudget, would be)\n",
			plural(s.Pods, "pod"), leastReplicas)
	}
	for _, note := range s.Notes {
		out.WriteString(note + "\n")
	}
	if s.Stay > 0 {
		fmt.Fprintf(&out, "not counted: %s of mode system, or without a price in the built-in table\n", plural(s.Stay, "node"))
	}
	out.WriteString("not counted: network traffic, data disks, the fee of AKS\nnap plan shows what waits now\n")
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, wrap(offeredIn(to, strings.TrimSuffix(line, "\n")), screenColumns)...)
	}
	_, err := io.WriteString(to.Out, strings.Join(lines, "\n")+"\n")
	return err
}

// writeOption prints another option.
func (s *savingsReport) writeOption(out *strings.Builder, o *savingsOption) {
	fmt.Fprintf(out, "with %s: %s, %s/h, %s/month: %.0f%% less", o.Name, plural(o.Nodes, "node"), dollars(o.HourlyCost),
		cents(o.HourlyCost*model.HoursPerMonth), o.SavedPercent)
	if o.Pending > 0 {
		fmt.Fprintf(out, "; %s without a place on %s of today, which %s", plural(o.Pending, "pod"), plural(o.KeptNodes, "node"), o.counted())
	}
	out.WriteString("\n")
	if o.Name == optionSpot {
		fmt.Fprintf(out, "safe on spot machines, as it looks: %d of %s\n", s.SpotSafe, plural(s.Pods, "pod"))
	}
}

// counted says that kept nodes are among the nodes and the cost of an option.
func (o *savingsOption) counted() string {
	if o.KeptNodes == 1 {
		return fmt.Sprintf("counts here, too (%s/h)", dollars(o.KeptCost))
	}
	return fmt.Sprintf("count here, too (%s/h)", dollars(o.KeptCost))
}

func have(n int) string {
	if n == 1 {
		return "1 pod has"
	}
	return fmt.Sprintf("%d pods have", n)
}
