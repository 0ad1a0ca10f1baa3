package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// labelPriority is AKS's label of nodes of an agent pool that are spot machines.
const labelPriority = "kubernetes.azure.com/scalesetpriority"

// labelMode is AKS's label for what an agent pool is for: nodes of mode system stay.
const labelMode = "kubernetes.azure.com/mode"

func newSavings(s command.Streams, now func() time.Time) *cobra.Command {
	c := &planCommand{streams: s, now: now}
	c.input.partial = true
	cmd := &cobra.Command{
		Use:   "savings (-f FILE | --context NAME)",
		Short: "Say what a cluster's nodes cost, and what its pods would cost on nodes that nap buys",
		Long: `Plan the pods of all nodes as if nap had to buy every node, and compare the
price with that of the nodes that there are, whatever made them: agent pools, the
cluster autoscaler, Karpenter. Nothing is touched. Prices are those of the same
table on both sides, managed disks included. Nodes of mode system stay, and so do
nodes of sizes without a price; neither is counted on either side. Where there is
no NodePool, the one that AKS creates by default is assumed.

The option nap+spot lets pods run on spot machines that look safe there: of a
ReplicaSet with at least two pods, with a PodDisruptionBudget, and not marked as not
to be disrupted. --compare karpenter adds what Karpenter's own scheduler would buy
for the same pods, which takes long for many. Kinds that may not be listed are named,
and the answer goes on without them; nodes and pods are needed.

Exit code 0: there is an answer. 1: an error.`,
		Example: `  nap savings --context prod
  kubectl get nodes,nodepools,pods,daemonsets,pdb -A -o yaml | nap savings -f - -o json`,
		Args: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runSavings(cmd.Context()) },
	}
	c.input.add(cmd)
	cmd.Flags().StringVarP(&c.output, "output", "o", "table", "table, json, yaml, csv or html")
	cmd.Flags().StringVar(&c.compare, "compare", "", "karpenter: say what Karpenter's scheduler would buy, too")
	c.policyFlags(cmd)
	return cmd
}

func (c *planCommand) runSavings(ctx context.Context) error {
	c.engine = engineNap
	if err := oneOf("output", c.output, "table", "json", "yaml", "csv", "html"); err != nil {
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
	if len(read.pools) == 0 {
		read.addDefaultPool()
	}
	source, err := read.source(ctx, c.input.catalogFlags)
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
	switch form {
	case "csv":
		return made.writeCSV(c.streams.Out)
	case "html":
		return savingsPage.Execute(c.streams.Out, made)
	case "table":
		return made.write(c.streams.Out)
	}
	return writeDocument(c.streams.Out, form, made)
}

// savings is the output of nap savings -o json. Its fields are a promise:
// docs/plan-json.md documents them.
type savings struct {
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
	// Notes are what the answer lacks for want of rights.
	Notes []string `json:"notes,omitempty"`
}

type savingsOption struct {
	Name         string  `json:"name"`
	Nodes        int     `json:"nodes"`
	HourlyCost   float64 `json:"hourlyCost"`
	SavedPercent float64 `json:"savedPercent"`
	// Evictions is how many pods would move, Pending how many of them would find no place.
	Evictions int `json:"evictions"`
	Pending   int `json:"pending"`
}

// priceOf is what a node costs per hour by its size, zone and capacity type, and whether
// the catalogue has a price for it. Nodes of agent pools say of spot in a label of AKS's.
func (s *source) priceOf(n *corev1.Node) (model.Money, bool) {
	catalog := s.forClass(s.classOf(n.Labels[v1.NodePoolLabelKey]))
	wanted := model.OnDemand
	if n.Labels[v1.CapacityTypeLabelKey] == v1.CapacityTypeSpot || n.Labels[labelPriority] == "spot" {
		wanted = model.Spot
	}
	for i := range catalog.InstanceTypes {
		t := &catalog.InstanceTypes[i]
		if !strings.EqualFold(t.Name, n.Labels[corev1.LabelInstanceTypeStable]) {
			continue
		}
		found, price := false, model.Money(0)
		for j := range t.Offerings {
			o := &t.Offerings[j]
			if o.CapacityType != wanted {
				continue
			}
			if o.Zone == n.Labels[corev1.LabelTopologyZone] {
				return o.Price, true
			}
			found, price = true, o.Price
		}
		return price, found
	}
	return 0, false
}

// save plans the pods of all nodes again and compares the prices.
func (c *planCommand) save(ctx context.Context, read *planInput, source *source) (*savings, error) {
	out := &savings{Region: source.region}
	now, goes := model.Money(0), map[string]bool{}
	for _, o := range read.objects {
		node, is := o.(*corev1.Node)
		if !is {
			continue
		}
		price, known := source.priceOf(node)
		if !known || node.Labels[labelMode] == "system" {
			out.Stay++
			continue
		}
		now += price
		goes[node.Name] = true
	}
	out.Nodes = len(goes)
	objects := read.unplaced(goes)
	safe := spotSafe(objects)
	out.SpotSafe = len(safe)
	out.BlockedByBudget, out.WithoutRequests = inTheWay(objects)
	made, err := c.replan(ctx, read, source, objects)
	if err != nil {
		return nil, err
	}
	out.Pods = made.input.Problem.PodCount()
	out.Now, out.LowerBound = now.Dollars(), made.plan.LowerBound.Dollars()
	out.add(optionNap, made.report)
	if len(safe) > 0 {
		spot, err := c.replan(ctx, read, source, withSpot(objects, safe))
		if err != nil {
			return nil, err
		}
		out.add(optionSpot, spot.report)
	}
	if c.compare == optionKarpenter {
		report, err := c.solveWithKarpenter(ctx, made)
		if err != nil {
			return nil, err
		}
		out.add(optionKarpenter, report)
	}
	return out, nil
}

// add adds an option, as a plan reports it.
func (s *savings) add(name string, plan *planReport) {
	o := savingsOption{
		Name: name, Nodes: plan.Summary.NewNodes, HourlyCost: plan.Summary.HourlyCost, Evictions: s.Pods, Pending: plan.Summary.Unschedulable,
	}
	if s.Now > 0 {
		o.SavedPercent = max(0, math.Round(1e4*(1-o.HourlyCost/s.Now))/100)
	}
	s.Options = append(s.Options, o)
}

// replan plans for objects without nodes.
func (c *planCommand) replan(ctx context.Context, read *planInput, source *source, objects []client.Object) (*madePlan, error) {
	changed := *read
	changed.store, changed.objects = fleet.NewStore(), objects
	mirror := kube.NewMirror(changed.store, kube.Settings{EveryPod: true})
	for _, o := range slices.Concat(objects, read.assumed) {
		mirror.Apply(o)
	}
	start := c.now()
	elapsed := func() time.Duration { return c.now().Sub(start) }
	input, err := changed.store.Snapshot().Problem(ctx, source, fleet.Options{Now: start, Policy: c.policy(elapsed)})
	if err != nil {
		return nil, err
	}
	made := &madePlan{read: &changed, source: source, input: input, plan: planner.Solve(input.Problem), at: start}
	made.report = newPlanReport(made)
	return made, nil
}

// unplaced are the objects without any node, in which the pods of some nodes, by name,
// wait. Pods of other nodes and those that wait now are left out.
func (p *planInput) unplaced(goes map[string]bool) []client.Object {
	var out []client.Object
	for _, o := range p.objects {
		switch o := o.(type) {
		case *corev1.Node, *v1.NodeClaim:
		case *corev1.Pod:
			if !goes[o.Spec.NodeName] {
				continue
			}
			pod := o.DeepCopy()
			pod.Spec.NodeName, pod.Status.NominatedNodeName = "", ""
			out = append(out, pod)
		default:
			out = append(out, o)
		}
	}
	return out
}

// write prints savings for people.
func (s *savings) write(w io.Writer) error {
	o := &s.Options[0]
	var out strings.Builder
	k := inkFor(w)
	switch {
	case s.Nodes == 0:
		out.WriteString(k.bold("No node with a price is in the input.") + "\n")
	case o.HourlyCost < s.Now:
		out.WriteString(k.bold(fmt.Sprintf("%s for %s cost %s/month; with nap the same pods cost %s/month: %.0f%% less.",
			plural(s.Nodes, "node"), plural(s.Pods, "pod"), cents(s.Now*model.HoursPerMonth), cents(o.HourlyCost*model.HoursPerMonth),
			o.SavedPercent)) + "\n")
	default:
		out.WriteString(k.bold(fmt.Sprintf("%s for %s cost %s/month; nap's plan for the same pods costs no less.",
			plural(s.Nodes, "node"), plural(s.Pods, "pod"), cents(s.Now*model.HoursPerMonth))) + "\n")
	}
	if s.Nodes > 0 {
		fmt.Fprintf(&out, "now: %s, %s/h; with nap: %s, %s/h; proof: no nodes for these requests cost less than %s/h\n",
			plural(s.Nodes, "node"), dollars(s.Now), plural(o.Nodes, "node"), dollars(o.HourlyCost), dollars(s.LowerBound))
		fmt.Fprintf(&out, "what it takes: %s", plural(o.Evictions, "eviction"))
		if o.Pending > 0 {
			fmt.Fprintf(&out, "; %s would find no place and must stay on nodes of today", plural(o.Pending, "pod"))
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
	for _, note := range s.Notes {
		out.WriteString(note + "\n")
	}
	if s.Stay > 0 {
		fmt.Fprintf(&out, "not counted: %s of mode system or without a price\n", plural(s.Stay, "node"))
	}
	out.WriteString("not counted: network traffic, data disks, the fee of AKS; nap plan shows what waits now\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// writeOption prints another option.
func (s *savings) writeOption(out *strings.Builder, o *savingsOption) {
	fmt.Fprintf(out, "with %s: %s, %s/h, %s/month: %.0f%% less", o.Name, plural(o.Nodes, "node"), dollars(o.HourlyCost),
		cents(o.HourlyCost*model.HoursPerMonth), o.SavedPercent)
	if o.Name == optionSpot {
		fmt.Fprintf(out, "; %d of %s look safe on spot machines", s.SpotSafe, plural(s.Pods, "pod"))
	}
	if o.Pending > 0 {
		fmt.Fprintf(out, "; %s without a place", plural(o.Pending, "pod"))
	}
	out.WriteString("\n")
}

func have(n int) string {
	if n == 1 {
		return "1 pod has"
	}
	return fmt.Sprintf("%d pods have", n)
}
