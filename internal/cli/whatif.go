package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// suppositions are what is supposed to be different.
type suppositions struct {
	// lost are nodes, by name, that are gone; zones are those that are down.
	lost, zones []string
	noSpot      bool
	// prices are changes such as +20%, Standard_D4s_v5=+20% or Standard_D4s_v5=0.25, scales
	// are WORKLOAD=NUMBER.
	prices, scales []string
}

// any reports whether anything is different.
func (s *suppositions) any() bool {
	return len(s.lost)+len(s.zones)+len(s.prices)+len(s.scales) > 0 || s.noSpot
}

func newWhatIf(s command.Streams, now func() time.Time) *cobra.Command {
	c := &planCommand{streams: s, now: now, engine: engineNap}
	what := &suppositions{}
	cmd := &cobra.Command{
		Use:   "what-if (-f FILE | --context NAME)",
		Short: "Show what would change without a node, a zone or spot, at other prices, or with more pods",
		Long: `Plan twice, for things as they are and as they are supposed to be, and show
both: nodes, price, machines to buy, pods without a place. Pods of nodes that
are gone wait for another place. Nothing is touched.

  --without-node NODE      the node is gone (repeatable)
  --zone-down ZONE         nodes of the zone are gone, nothing is sold there;
                           a number is a zone of any region (repeatable)
  --no-spot                spot machines are gone, none is sold
  --price CHANGE           +20%, -10%, SIZE=+20% or SIZE=DOLLARS an hour
                           (repeatable)
  --scale WORKLOAD=NUMBER  the workload has so many pods: shop/web=30, or
                           'StatefulSet shop/web=30' where another kind has
                           the same name (repeatable)

Exit code 0: every pod has a place then. 2: some do not. 1: an error.`,
		Example: `  nap what-if --zone-down 1
  nap what-if -f docs/examples/fleet.yaml --without-node general-a
  nap what-if -f docs/examples/fleet.yaml --price +20% -o json`,
		Args: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runWhatIf(cmd.Context(), what) },
	}
	c.input.add(cmd)
	flags := cmd.Flags()
	addOutput(cmd, &c.output, documentForms())
	flags.StringArrayVar(&what.lost, "without-node", nil, "this node is gone (repeatable)")
	flags.StringArrayVar(&what.zones, "zone-down", nil, "nodes of this zone are gone, nothing is sold there (repeatable)")
	flags.BoolVar(&what.noSpot, "no-spot", false, "spot machines are gone, none is sold")
	flags.StringArrayVar(&what.prices, "price", nil, "other prices: +20%, SIZE=+20% or SIZE=DOLLARS (repeatable)")
	flags.StringArrayVar(&what.scales, "scale", nil, "another number of pods: WORKLOAD=NUMBER (repeatable)")
	c.policyFlags(cmd)
	return cmd
}

func (c *planCommand) runWhatIf(ctx context.Context, what *suppositions) error {
	if err := checkOutput(c.output, documentForms()); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	if !what.any() {
		return errors.New("nothing is supposed: give --without-node, --zone-down, --no-spot, --price or --scale")
	}
	read, err := c.input.read(ctx, c.streams.In)
	if err != nil {
		return err
	}
	source, err := read.source(ctx, c.input.catalogFlags)
	if err != nil {
		return err
	}
	changed, err := what.change(read, source)
	if err != nil {
		return err
	}
	now, err := c.outcome(ctx, read, source, &fleetChange{})
	if err != nil {
		return err
	}
	then, err := c.outcome(ctx, read, changed.source, changed)
	if err != nil {
		return err
	}
	read.talk(c.streams.Err, nil, source)
	if err := read.sayOffline(&c.streams, c.output); err != nil {
		return err
	}
	then.Evictions = changed.evictions(read)
	compared := &comparison{Before: now, After: then, Suppose: changed.words}
	if len(what.zones) > 0 || what.noSpot { // else it is the change that nodes are gone
		if compared.Replaced, err = c.replaced(ctx, read, source, changed.lost); err != nil {
			return err
		}
	}
	if err := compared.write(c.streams.Out, c.output); err != nil {
		return err
	}
	return answered(read, then.Pending > 0)
}

// fleetChange is what is different about a fleet.
type fleetChange struct {
	// words say what is supposed, one sentence each.
	words []string
	// lost are the nodes that are gone, by name.
	lost map[string]bool
	// scaled are the pods of workloads that have another number of pods.
	scaled map[model.PodRef]bool
	// pods and nodes are added, pools and classes replace those of the same name.
	pods  []*corev1.Pod
	nodes []newNode
	pools map[string]client.Object
	// settled leaves out the pods and the NodeClaims that have no node now.
	settled bool
	// source sells what is sold then.
	source *offline.Source
}

// evictions is how many pods lose their node, those of DaemonSets aside.
func (f *fleetChange) evictions(read *planInput) int {
	n := 0
	for p := range read.store.Snapshot().Pods() {
		if p.Bound() && !p.Daemon && !p.Static && f.lost[p.Node] {
			n++
		}
	}
	return n
}

// change reads what is supposed.
func (s *suppositions) change(read *planInput, source *offline.Source) (*fleetChange, error) {
	f := &fleetChange{lost: map[string]bool{}, scaled: map[model.PodRef]bool{}}
	if err := s.loseNodes(read, f); err != nil {
		return nil, err
	}
	if err := s.loseZones(read, source, f); err != nil {
		return nil, err
	}
	edit, err := s.editPrices(f)
	if err != nil {
		return nil, err
	}
	f.source = source.Edited(func(t *model.InstanceType, o *model.Offering) {
		if s.noSpot && o.CapacityType == model.Spot || s.down(o.Zone) {
			o.Available, o.Unavailable = false, "it is supposed not to be sold"
		}
		edit(t, o)
	})
	for _, scale := range s.scales {
		if err := f.scale(read, scale); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// down reports whether a zone, such as eastus-1, is supposed to be down.
func (s *suppositions) down(zone string) bool {
	return slices.ContainsFunc(s.zones, func(z string) bool { return zone == z || strings.HasSuffix(zone, "-"+z) })
}

// loseNodes finds the nodes that are gone.
func (s *suppositions) loseNodes(read *planInput, f *fleetChange) error {
	var names []string
	for _, o := range read.objects.Distinct() {
		node, is := o.(*corev1.Node)
		if !is {
			continue
		}
		zone := node.Labels[corev1.LabelTopologyZone]
		names = append(names, node.Name)
		spot := node.Labels[v1.CapacityTypeLabelKey] == v1.CapacityTypeSpot || node.Labels[offline.LabelPriority] == "spot"
		if slices.Contains(s.lost, node.Name) || s.down(zone) || s.noSpot && spot {
			f.lost[node.Name] = true
		}
	}
	slices.Sort(names)
	for _, name := range s.lost {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--without-node: no node %s; there are %s", name, cmp.Or(strings.Join(names[:min(3, len(names))], ", "), "none"))
		}
		f.words = append(f.words, "node "+name+" is gone")
	}
	if s.noSpot {
		f.words = append(f.words, "there is no spot machine")
	}
	return nil
}

// loseZones names the zones that are down. One in which no node is and nothing is sold is
// mistyped: that all stays as it is would be no answer.
func (s *suppositions) loseZones(read *planInput, source *offline.Source, f *fleetChange) error {
	if len(s.zones) == 0 {
		return nil
	}
	zones := map[string]bool{}
	for _, o := range read.objects.Distinct() {
		if node, is := o.(*corev1.Node); is {
			zones[node.Labels[corev1.LabelTopologyZone]] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(read.pools)) {
		catalog := source.ForPool(name)
		if catalog == nil {
			continue
		}
		for i := range catalog.InstanceTypes {
			for j := range catalog.InstanceTypes[i].Offerings {
				zones[catalog.InstanceTypes[i].Offerings[j].Zone] = true
			}
		}
	}
	delete(zones, "")
	delete(zones, model.NoZone)
	known := slices.Sorted(maps.Keys(zones))
	for _, zone := range s.zones {
		if !slices.ContainsFunc(known, func(k string) bool { return k == zone || strings.HasSuffix(k, "-"+zone) }) {
			return fmt.Errorf("--zone-down: got %q, must be a zone such as 1 or eastus-1; there are %s", zone,
				cmp.Or(strings.Join(known, ", "), "none"))
		}
		f.words = append(f.words, "zone "+zone+" is down")
	}
	return nil
}

// editPrices reads the changes of prices.
func (s *suppositions) editPrices(f *fleetChange) (func(*model.InstanceType, *model.Offering), error) {
	type change struct {
		size   string // empty for all
		factor float64
		fixed  float64 // instead of the factor, where it is not negative
	}
	var changes []change
	for _, text := range s.prices {
		wrong := fmt.Errorf("--price: got %q, must be such as +20%%, Standard_D4s_v5=-10%% or Standard_D4s_v5=0.25", text)
		c := change{fixed: -1}
		value := text
		if size, price, of := strings.Cut(text, "="); of {
			full, _, err := offline.SizeAndFamily(size)
			if err != nil {
				return nil, fmt.Errorf("--price: %w", err)
			}
			c.size, value = full, price
		}
		number, percent := strings.CutSuffix(value, "%")
		v, err := strconv.ParseFloat(number, 64)
		switch {
		case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
			return nil, wrong
		case percent && v >= -100 && v <= 1000:
			c.factor = 1 + v/100
		case !percent && c.size != "" && v >= 0 && v <= 1000:
			c.fixed = v
		default:
			return nil, wrong
		}
		changes = append(changes, c)
		f.words = append(f.words, "prices: "+text)
	}
	return func(t *model.InstanceType, o *model.Offering) {
		for _, c := range changes {
			switch {
			case c.size != "" && c.size != t.Name:
			case c.fixed >= 0:
				o.Price = model.USD(c.fixed) + o.DiskPrice + o.NodePrice
			default:
				o.Price = model.USD(o.MachinePrice().Dollars()*c.factor) + o.DiskPrice + o.NodePrice
			}
		}
	}, nil
}

// mostScaled bounds the pods of one --scale.
const mostScaled = 100_000

// scale adds pods of a workload, like one of those that there are.
func (f *fleetChange) scale(read *planInput, text string) error {
	name, number, found := strings.Cut(text, "=")
	want, err := strconv.Atoi(number)
	if !found || err != nil || want < 0 || want > mostScaled {
		return fmt.Errorf("--scale: got %q, must be WORKLOAD=NUMBER with up to %d pods, such as shop/web=30", text, mostScaled)
	}
	of, err := podsNamed(read, name)
	if err != nil {
		return fmt.Errorf("--scale: %w", err)
	}
	if want < len(of) {
		return fmt.Errorf("--scale: %s has %s already, must be more than that", name, plural(len(of), "pod"))
	}
	for ref := range of {
		if f.scaled[ref] {
			return fmt.Errorf("--scale: got %s, but another --scale has given %s a number already; give one", text, name)
		}
		f.scaled[ref] = true
	}
	for o := range read.objects.All() {
		pod, is := o.(*corev1.Pod)
		if is && of[model.PodRef{Namespace: pod.Namespace, Name: pod.Name}] {
			f.addLike(read, pod, name, want, want-len(of))
			break
		}
	}
	return nil
}

// addLike adds as many of n pods like one as ResourceQuotas of files let in, and says how many
// the workload has then of those that are wanted.
func (f *fleetChange) addLike(read *planInput, pod *corev1.Pod, workload string, want, n int) {
	like := pod.DeepCopy()
	like.UID, like.CreationTimestamp = "", metav1.Time{}
	like.Spec.NodeName, like.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	admitted, held := read.quotas.Take(ownerOf(read, pod), like, n)
	for i := range admitted {
		more := like.DeepCopy()
		more.Name = fmt.Sprintf("%s-more-%d", pod.Name, i)
		f.pods = append(f.pods, more)
	}
	if held == nil {
		f.words = append(f.words, fmt.Sprintf("%s has %s", workload, plural(want, "pod")))
		return
	}
	read.notes = append(read.notes, held.String())
	f.words = append(f.words, fmt.Sprintf("%s has %d of %s (ResourceQuota %s holds back %d)", workload, want-held.Pods, plural(want, "pod"),
		held.Quota, held.Pods))
}

// ownerOf is the kind, the namespace and the name of a pod's workload.
func ownerOf(read *planInput, pod *corev1.Pod) string {
	for p := range read.store.Snapshot().Pods() {
		if p.Ref.Namespace == pod.Namespace && p.Ref.Name == pod.Name {
			return p.OwnerName()
		}
	}
	return pod.Namespace + "/" + pod.Name
}

// podsNamed are the pods of the one workload with a name, with or without its kind before it,
// and without the namespace where that is default.
func podsNamed(read *planInput, name string) (map[model.PodRef]bool, error) {
	owners, meant := map[string]bool{}, map[string]bool{}
	of := map[model.PodRef]bool{}
	for p := range read.store.Snapshot().Pods() {
		owner := p.OwnerName()
		owners[owner] = true
		if _, short, _ := strings.Cut(owner, " "); (owner == name || short == name || short == "default/"+name) && !p.Terminal {
			of[p.Ref], meant[owner] = true, true
		}
	}
	names := slices.Sorted(maps.Keys(meant))
	switch len(names) {
	case 0:
		names = slices.Sorted(maps.Keys(owners))
		return nil, fmt.Errorf("no workload %s; there are %s", name, cmp.Or(strings.Join(names[:min(3, len(names))], ", "), "none"))
	case 1:
		return of, nil
	}
	return nil, fmt.Errorf("%s may be %s; give the kind, too: --scale '%s=NUMBER'", name, strings.Join(names, " or "), names[0])
}

// apply is the fleet with the change.
func (f *fleetChange) apply(p *planInput) *fleet.Store {
	store := fleet.NewStore()
	mirror := p.mirror(store)
	var all kube.Objects
	all.Append(p.objects)
	all.Append(kube.ObjectsOf(p.added.assumed))
	for o := range all.All() {
		switch o := o.(type) {
		case *corev1.Node:
			if !f.lost[o.Name] {
				mirror.Apply(o)
			}
		case *v1.NodeClaim:
			if !f.lost[o.Status.NodeName] && (!f.settled || o.Status.NodeName != "") {
				mirror.Apply(o)
			}
		case *corev1.Pod:
			if f.settled && o.Spec.NodeName == "" {
				continue
			}
			if f.lost[o.Spec.NodeName] {
				o = o.DeepCopy()
				o.Spec.NodeName, o.Status.NominatedNodeName = "", ""
				o.Status.Phase = corev1.PodPending
			}
			mirror.Apply(o)
		case *v1.NodePool:
			if f.pools[o.Name] == nil {
				mirror.Apply(o)
			}
		default:
			mirror.Apply(o)
		}
	}
	for _, pool := range f.pools {
		mirror.Apply(pool)
	}
	for _, pod := range f.pods {
		mirror.Apply(pod)
	}
	for i := range f.nodes {
		mirror.Apply(f.nodes[i].node)
	}
	return store
}

// outcome is what a fleet costs with what is bought for its pods.
type outcome struct {
	// Nodes are those that there are and those that are bought.
	Nodes  int `json:"nodes"`
	Bought int `json:"bought"`
	// HourlyCost is of the nodes of a known price, dollars per hour.
	HourlyCost float64 `json:"hourlyCost"`
	// Pending is how many pods find no place, Evictions how many lose theirs.
	Pending   int `json:"pending"`
	Evictions int `json:"evictions"`
	// Buys are the machines by size, zone and capacity type, and how many.
	Buys map[string]int `json:"buys,omitempty"`
}

// outcome plans for a changed fleet.
func (c *planCommand) outcome(ctx context.Context, read *planInput, source *offline.Source, f *fleetChange) (*outcome, error) {
	start := c.now()
	elapsed := func() time.Duration { return c.now().Sub(start) }
	now := f.apply(read).Snapshot()
	input, err := now.Problem(ctx, source, fleet.Options{Now: start, Policy: c.policy(elapsed)})
	if err != nil {
		return nil, err
	}
	plan := planner.Solve(input.Problem)
	out := &outcome{Bought: len(plan.NewNodes) + len(f.nodes), Pending: len(input.Rejected), Buys: map[string]int{}}
	cost := plan.Cost
	for i := range f.nodes {
		cost += f.nodes[i].price
		out.Buys[f.nodes[i].key]++
	}
	for _, o := range read.objects.Distinct() {
		node, is := o.(*corev1.Node)
		if !is || f.lost[node.Name] {
			continue
		}
		out.Nodes++
		if price, known := source.PriceOf(node); known {
			cost += price
		}
	}
	out.Nodes += out.Bought
	out.HourlyCost = cost.Dollars()
	for i := range plan.Unschedulable {
		out.Pending += len(plan.Unschedulable[i].Pods)
	}
	for i := range plan.NewNodes {
		n := &plan.NewNodes[i]
		o := offeringOf(input.Problem.Catalogs[input.Problem.Pools[n.Pool].Catalog].InstanceTypes, n.Best())
		out.Buys[strings.Join([]string{o.InstanceType, model.ZoneName(o.Zone), o.CapacityType}, " ")]++
	}
	return out, nil
}

// samePrice is a difference, in dollars per hour, that is not told.
const samePrice = 0.0005

// comparison is the output of nap what-if -o json and nap diff -o json. Its fields are a
// promise: docs/plan-json.md documents them.
type comparison struct {
	// Suppose says what is different, one sentence each.
	Suppose []string `json:"suppose"`
	Before  *outcome `json:"before"`
	After   *outcome `json:"after"`
	// Replaced is what it would cost to replace the nodes that the change takes, without the change;
	// nil where it takes none.
	Replaced *outcome `json:"replaced,omitempty"`
	// Drifted are the nodes that would be replaced, with the reason.
	Drifted []driftedNode `json:"drifted,omitempty"`
}

// write prints before and after.
func (p *comparison) write(w io.Writer, form string) error {
	if form != "table" {
		return writeDocument(w, form, p)
	}
	var out strings.Builder
	k := inkFor(w)
	delta := p.After.HourlyCost - p.Before.HourlyCost
	verdict := "the price stays"
	switch {
	case delta > samePrice:
		verdict = fmt.Sprintf("%s/month more", cents(delta*model.HoursPerMonth))
	case delta < -samePrice:
		verdict = fmt.Sprintf("%s/month less", cents(-delta*model.HoursPerMonth))
	}
	if p.After.Pending > 0 {
		verdict += ", and " + plural(p.After.Pending, "pod") + " without a place"
	}
	for _, line := range wrap(fmt.Sprintf("If %s: %s.", strings.Join(p.Suppose, ", "), verdict), screenColumns) {
		out.WriteString(k.bold(line) + "\n")
	}
	if itself := p.itself(); itself != "" {
		out.WriteString(strings.Join(wrap(itself, screenColumns), "\n") + "\n")
	}
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tBEFORE\tAFTER")
	fmt.Fprintf(t, "nodes\t%d\t%d\n", p.Before.Nodes, p.After.Nodes)
	fmt.Fprintf(t, "  of them bought\t%d\t%d\n", p.Before.Bought, p.After.Bought)
	fmt.Fprintf(t, "$/h\t%.3f\t%.3f\n", p.Before.HourlyCost, p.After.HourlyCost)
	fmt.Fprintf(t, "pods without a place\t%d\t%d\n", p.Before.Pending, p.After.Pending)
	fmt.Fprintf(t, "evictions\t-\t%d\n", p.After.Evictions)
	t.Flush()
	const most = 8
	for i, d := range p.Drifted {
		if i == most {
			fmt.Fprintf(&out, "~ ... and %s\n", plural(len(p.Drifted)-most, "more node"))
			break
		}
		d.write(&out)
	}
	for i, buy := range slices.Sorted(maps.Keys(p.After.Buys)) {
		if i == most {
			fmt.Fprintf(&out, "+ ... and %s\n", plural(len(p.After.Buys)-most, "more kind"))
			break
		}
		fmt.Fprintf(&out, "+ %d x %s\n", p.After.Buys[buy], buy)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
