package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

func newExplainNode(s command.Streams, now func() time.Time) *cobra.Command {
	c := &explainCommand{plan: planCommand{streams: s, now: now, consolidate: true}}
	cmd := &cobra.Command{
		Use:   "node NAME",
		Short: "Say why a node stays, or why it would be removed and where its pods would go",
		Long: `Decide as nap plan --consolidate does and say about one node whether it would be
removed or replaced, at what saving and with how many evictions, or why it
stays: the pod, the PodDisruptionBudget or the price that holds it, and what to
change. The name is the Node's or the NodeClaim's.

Exit code 0: it stays. 2: it goes. 1: an error.`,
		Example: `  nap explain node aks-general-7xk2p --context prod
  nap explain node general-a -f docs/examples/fleet.yaml`,
		Args: one("the name of a node", "aks-nodepool1-12345678-vmss000000"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.explainNode(cmd.Context(), args[0]) },
	}
	c.add(cmd)
	c.plan.terms.AddWithGate(cmd.Flags())
	return cmd
}

func (c *explainCommand) explainNode(ctx context.Context, name string) error {
	if err := c.check(); err != nil {
		return err
	}
	made, err := c.plan.makeMoves(ctx)
	if err != nil {
		return err
	}
	made.read.talk(c.plan.streams.Err, made.input.Problem.LeftOut, made.source)
	n, err := made.find(name)
	if err != nil {
		return err
	}
	told := &toldNode{madeMoves: made, report: newMovesReport(made), node: n, story: &story{}}
	goes := told.tell()
	if err := c.tell(told.story); err != nil {
		return err
	}
	return answered(made.read, goes)
}

// find returns the index of a node by its name or its claim's.
func (m *madeMoves) find(name string) (int, error) {
	nodes := m.input.Problem.Nodes
	if i := slices.IndexFunc(nodes, func(n model.Node) bool { return n.Name == name || n.Claim == name }); i >= 0 {
		return i, nil
	}
	var near, all []string
	for i := range nodes {
		all = append(all, nodes[i].Name)
		if strings.Contains(nodes[i].Name, name) || strings.HasPrefix(name, nodes[i].Name) {
			near = append(near, nodes[i].Name)
		}
	}
	if len(near) == 0 {
		near = all
	}
	if len(near) == 0 {
		return 0, fmt.Errorf("no node %s: the input has no nodes", name)
	}
	slices.Sort(near)
	return 0, fmt.Errorf("no node %s in the input; there are %s", name, strings.Join(near[:min(3, len(near))], ", "))
}

// toldNode is the story of one node.
type toldNode struct {
	*madeMoves
	report *movesReport
	node   int
	story  *story
	// evicting are the pods that the drain of a node which leaves has still to evict, ending those
	// whose end it waits for.
	evicting, ending []model.PodRef
	// remaining are the pods of a node which a command under way removes, that still run there.
	remaining []model.PodRef
}

// tell writes the story, and reports whether the node goes.
func (t *toldNode) tell() bool {
	moves := t.moves.Commands
	at := slices.IndexFunc(moves, func(m model.Command) bool { return slices.Contains(m.Nodes, t.node) })
	if at >= 0 {
		t.goes(at)
	} else {
		t.stays()
	}
	t.unreadable()
	t.describe()
	return at >= 0
}

// goes tells of the move that gives the node back.
func (t *toldNode) goes(at int) {
	mv := &t.report.Moves[at]
	name := t.input.Problem.Nodes[t.node].Name
	var others []string
	for i := range mv.Remove {
		if mv.Remove[i].Node != name {
			others = append(others, mv.Remove[i].Node)
		}
	}
	verdict := name + " goes"
	if len(others) > 0 {
		verdict += " together with " + strings.Join(others, ", ")
	}
	verdict += fmt.Sprintf(" (%s)", mv.Reason)
	switch {
	case mv.FromTemplate:
		verdict += ": a new machine from its NodePool's template comes first"
	case len(mv.Add) > 0:
		verdict += ": " + bought(mv.Add) + " comes first"
	}
	t.story.Verdict = verdict + "."
	verb, saving := "saves", mv.HourlySaving
	if saving < 0 {
		verb, saving = "costs", -saving
	}
	t.story.say("it %s %s/h, %s/month, and evicts %s; it is move %d of %d", verb, dollars(saving),
		cents(saving*model.HoursPerMonth), plural(mv.Evictions, "pod"), at+1, len(t.report.Moves))
	owned := &planTable{planReport: &planReport{owners: t.report.owners}}
	for _, p := range mv.Placements {
		t.story.say("to %s: %s", p.Node, owned.owned(p.Pods))
	}
	for i := range mv.Add {
		t.story.say("to the new %s: %s", mv.Add[i].InstanceType, owned.owned(mv.Add[i].Pods))
	}
	if pods := mv.forcedOut(); pods > 0 {
		t.story.say("%s", notBefore(pods))
	}
}

// bought counts machines by size: "2 x Standard_D2s_v5 and 1 x Standard_D4s_v5".
func bought(nodes []reportNode) string {
	counts := map[string]int{}
	for i := range nodes {
		counts[nodes[i].InstanceType]++
	}
	var parts []string
	for _, size := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d x %s", counts[size], size))
	}
	return strings.Join(parts, " and ")
}

// stays tells why the node is kept.
func (t *toldNode) stays() {
	n := &t.input.Problem.Nodes[t.node]
	at := slices.IndexFunc(t.moves.Kept, func(st model.KeptNode) bool { return st.Node == t.node })
	if at < 0 {
		t.story.Verdict = fmt.Sprintf("%s stays: it belongs to no NodePool, so nap never removes it.", n.Name)
		if pool := t.read.pools[n.Pool]; pool != nil {
			if err := kube.CheckManaged(pool); err != nil {
				t.story.Verdict = fmt.Sprintf("%s stays: %s.", n.Name, notManaged(n.Pool, err.Error()))
			}
		}
		return
	}
	st := &t.moves.Kept[at]
	if st.Reason == model.ReasonBeingDisrupted && (t.leaves(n) || t.emptied(n)) {
		return
	}
	t.story.Verdict = fmt.Sprintf("%s stays: %s", n.Name, st.Message)
	for _, info := range model.Reasons() {
		if info.Reason == st.Reason {
			t.story.Fix = info.Fix
			t.story.say("%s: %s", st.Reason, info.Meaning)
			if command := t.keptCommand(st); command != "" {
				t.story.Commands = append(t.story.Commands, command)
			}
		}
	}
	if !st.Until.IsZero() {
		t.story.say("it is looked at again at %s, in %s", st.Until.UTC().Format(time.RFC3339),
			model.FormatDuration(st.Until.Sub(t.input.Disruption.Now)))
	}
}

// unreadable tells of budgets of the NodePool that cannot be read. Where the budgets keep the node,
// that is what has to be mended.
func (t *toldNode) unreadable() {
	name := t.input.Problem.Nodes[t.node].Pool
	fix := t.story.sayUnreadable("NodePool "+name, t.read.pools[name])
	if fix == "" || !slices.ContainsFunc(t.moves.Kept, func(st model.KeptNode) bool {
		return st.Node == t.node && st.Reason == model.ReasonPoolBudget
	}) {
		return
	}
	t.story.Fix, t.story.Commands = fix, []string{"kubectl edit nodepool " + name}
}

// leaves tells of a node whose deletion has been asked for, and what blocks that.
func (t *toldNode) leaves(n *model.Node) bool {
	now := t.input.Disruption.Now
	leaving := t.read.store.Snapshot().LeavingNodes(now)
	at := slices.IndexFunc(leaving, func(l fleet.LeavingNode) bool { return n.Claim != "" && l.Claim == n.Claim })
	if at < 0 {
		return false
	}
	l := &leaving[at]
	since := fmt.Sprintf("its deletion was asked for at %s, %s ago; it is billed until its machine is gone",
		l.Since.UTC().Format(time.RFC3339), model.FormatDuration(max(0, now.Sub(l.Since)).Truncate(time.Second)))
	t.evicting, t.ending = l.Evicting, l.Ending
	if l.Blocks == "" {
		t.story.Verdict = n.Name + " leaves: " + fleet.NothingInTheWay + "."
		if l.Waits != "" {
			t.story.Verdict = fmt.Sprintf("%s leaves: %s, which may pass.", n.Name, l.Waits)
		}
		t.story.Fix = "Nothing: its pods get other places."
		if len(l.Evicting) == 0 && len(l.Ending) > 0 {
			t.story.Fix = "Nothing: it goes when its pods have ended."
		}
		t.story.say("%s", since)
		return true
	}
	t.story.Verdict = fmt.Sprintf("%s leaves and cannot go: %s.", n.Name, l.Blocks)
	t.story.Fix = l.Fix
	t.story.Commands = append(t.story.Commands, leavingCommand(l))
	t.story.say("%s", since)
	return true
}

// leavingCommand is a command that lets a node go which leaves, or shows what keeps it.
func leavingCommand(l *fleet.LeavingNode) string {
	switch {
	case l.Detaching:
		return "kubectl get volumeattachments"
	case l.Overdue:
		return fmt.Sprintf("kubectl get pod %s -n %s -o jsonpath='{.metadata.finalizers}'", l.Pod.Name, l.Pod.Namespace)
	case l.ByBudget:
		return "kubectl get pdb -n " + l.Pod.Namespace
	default:
		return fmt.Sprintf("kubectl annotate pod %s -n %s karpenter.sh/do-not-disrupt-", l.Pod.Name, l.Pod.Namespace)
	}
}

// drains says which pods the drain of a node that leaves waits for, and reports whether there are any.
// Those to evict count as pods that need another place, and not on this node.
func (t *toldNode) drains() bool {
	owned := &planTable{planReport: &planReport{owners: t.report.owners}, style: tableStyle{wide: true}}
	for _, of := range []struct {
		pods []model.PodRef
		say  string
	}{{t.evicting, "it has still to evict %s: %s"}, {t.ending, "it waits for %s to end: %s"}, {t.remaining, "it has still %s: %s"}} {
		names := make([]string, len(of.pods))
		for i, ref := range of.pods {
			names[i] = ref.String()
		}
		if len(names) > 0 {
			t.story.say(of.say, plural(len(names), "pod"), owned.owned(names))
		}
	}
	return len(t.evicting)+len(t.ending)+len(t.remaining) > 0
}

// price says what the node costs: for one of a NodePool as planning knows it or, where it does
// not, at what price the machine was bought. It is empty where neither is known.
func (t *toldNode) price(n *model.Node) string {
	if n.Price > 0 {
		return dollars(n.Price.Dollars()) + "/h"
	}
	if claim := t.read.store.Snapshot().Claim(n.Claim); claim != nil && claim.Bought() > 0 {
		return "bought at " + dollars(claim.Bought().Dollars()) + "/h"
	}
	for _, o := range t.read.objects.Distinct() {
		if node, is := o.(*corev1.Node); is && node.Name == n.Name && outsidePools(t.read.pools, node) {
			if price, known := t.source.PriceOf(node); known {
				return dollars(price.Dollars()) + "/h"
			}
		}
	}
	return ""
}

// describe says what the node is and what lives there.
func (t *toldNode) describe() {
	p := t.input.Problem
	n := &p.Nodes[t.node]
	r := t.machine(t.node)
	var what []string
	for _, part := range []string{r.InstanceType, model.ZoneName(r.Zone), r.CapacityType} {
		if part != "" {
			what = append(what, part)
		}
	}
	if price := t.price(n); price != "" {
		what = append(what, price)
	}
	if n.Pool != "" {
		what = append(what, "NodePool "+n.Pool)
	}
	if len(what) > 0 {
		t.story.say("it is %s", strings.Join(what, ", "))
	}
	if u := &t.input.Disruption.Usages[t.node]; u.Drift != "" {
		line := "it has drifted"
		if !u.DriftSince.IsZero() {
			line += " since " + u.DriftSince.UTC().Format(time.RFC3339)
		}
		t.story.say("%s: %s", line, driftText(u.Drift))
	}
	if t.drains() {
		return
	}
	t.story.say("its pods take %s of %s cpu and %s of %s memory",
		cores(n.Used.Get(model.CPU)), cores(n.Allocatable.Get(model.CPU)),
		model.FormatAmount(model.Memory, n.Used.Get(model.Memory)), model.FormatAmount(model.Memory, n.Allocatable.Get(model.Memory)))
	tenancy := &t.input.Disruption.Usages[t.node]
	names := t.report.pods(t.madeMoves, tenancy.Pods)
	if len(names) == 0 {
		t.story.say("no pod there would need another place")
	} else {
		owned := &planTable{planReport: &planReport{owners: t.report.owners}, style: tableStyle{wide: true}}
		t.story.say("it has %s that would need another place: %s", plural(len(names), "pod"), owned.owned(names))
	}
	for _, h := range tenancy.DoNotDisruptPods {
		line := fmt.Sprintf("pod %s must not be disrupted", h.Pod)
		if h.Why != "" {
			line = fmt.Sprintf("pod %s would find no other place", h.Pod)
		}
		if !h.Until.IsZero() {
			line += " until " + h.Until.UTC().Format(time.RFC3339)
		}
		t.story.say("%s", line)
	}
}
