package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
)

func newExplainPod(s command.Streams, now func() time.Time) *cobra.Command {
	c := &explainCommand{plan: planCommand{streams: s, now: now}}
	cmd := &cobra.Command{
		Use:   "pod NAMESPACE/NAME",
		Short: "Say where a pod would go, or why it stays pending and what would help",
		Long: `Plan as nap plan does and say about one pod where it would go and at what price,
or why it stays pending, what came nearest and what to change.

Exit code 0: the pod has a place, or has ended. 2: it stays pending, or waits
for something else than a node, such as scheduling gates. 1: an error.`,
		Example: `  nap explain pod default/web-0 -f app.yaml
  nap explain pod shop/cart-7d4b9 --context prod`,
		Args: one("the NAMESPACE/NAME of a pod", "default/web-0"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.explainPod(cmd.Context(), args[0]) },
	}
	c.add(cmd)
	return cmd
}

func (c *explainCommand) explainPod(ctx context.Context, name string) error {
	if err := c.check(); err != nil {
		return err
	}
	namespace, pod, _ := strings.Cut(c.qualified(name), "/")
	ref := model.PodRef{Namespace: namespace, Name: pod}
	made, err := c.plan.make(ctx)
	if err != nil {
		return err
	}
	made.talk(c.plan.streams.Err)
	if err := made.read.sayOffline(&c.plan.streams, c.output); err != nil {
		return err
	}
	s, pending, err := made.explainPod(ref)
	if err != nil {
		return err
	}
	if err := c.tell(s); err != nil {
		return err
	}
	return answered(made.read, pending)
}

// explainPod tells the story of one pod, and whether it stays pending.
func (m *madePlan) explainPod(ref model.PodRef) (s *story, pending bool, err error) {
	if record := m.input.Record(ref); record != nil && record.Nominated != "" && record.Node == "" && !record.Terminal {
		if s := m.promisedPod(record); s != nil {
			return s, false, nil
		}
	}
	if d := m.verdictOn(ref); d != nil && d.verdict.NodeClaim != "" {
		return &story{Verdict: fmt.Sprintf("%s waits for a machine that is on its way: %s.", ref,
			strings.TrimSuffix(snapshot.OnItsWay(&m.read.told.document.Status, d.verdict.NodeClaim, m.at), "."))}, false, nil
	} else if d != nil {
		s := pendingStory(ref, d.words(), nil)
		s.advise(m.decidedRemedies(ref, d))
		s.orLook(m.adviserOf(ref, &d.class), model.Reason(d.verdict.Reason), nil)
		return s, true, nil
	}
	for i := range m.plan.NewNodes {
		if n := &m.plan.NewNodes[i]; slices.Contains(m.input.Pods(n.Pods), ref) {
			return m.onNewNode(ref, n), false, nil
		}
	}
	for _, placed := range m.plan.Placements {
		if slices.Contains(m.input.Pods(placed.Pods), ref) {
			n := &m.input.Problem.Nodes[placed.Node]
			s := &story{Verdict: fmt.Sprintf("%s fits on %s, which exists (%s).", ref, n.Name, n.State)}
			s.say("it leaves %s free there", leftOn(m.input.Problem, n, placed.Pods).Format(m.input.Problem.Axes))
			if n.Vacating > 0 {
				s.say("%s there %s being deleted and %s room for it; otherwise it is planned again",
					plural(n.Vacating, "pod"), verbFor(n.Vacating, "is"), verbFor(n.Vacating, "makes"))
			}
			return s, false, nil
		}
	}
	for i := range m.plan.Unschedulable {
		if u := &m.plan.Unschedulable[i]; slices.Contains(m.input.Pods([]model.ClassPods{{Class: u.Class, Pods: u.Pods}}), ref) {
			return m.pendingPod(ref, u), true, nil
		}
	}
	for _, r := range m.input.Rejected {
		if r.Pod == ref {
			s := pendingStory(ref, explain.Refused(r.Reason, r.Message, r.Fix), nil)
			s.say("%s: %s", r.Reason, explain.Meaning(r.Reason))
			s.orLook(m.adviserOf(ref, m.classOf(ref)), r.Reason, nil)
			return s, true, nil
		}
	}
	return m.otherPod(ref)
}

// leftOn is the room that a node has when pods of the plan are on it.
func leftOn(p *model.Problem, n *model.Node, pods []model.ClassPods) model.Resources {
	free := n.Free()
	for _, held := range pods {
		for range held.Pods {
			free = free.Sub(p.Classes[held.Class].Requests)
		}
	}
	return free
}

func (m *madePlan) onNewNode(ref model.PodRef, n *model.NewNode) *story {
	p := m.input.Problem
	pool := &p.Pools[n.Pool]
	types := p.Catalogs[pool.Catalog].InstanceTypes
	best := offeringOf(types, n.Best())
	s := &story{Verdict: fmt.Sprintf("%s gets a place on a new %s %s, %s, %s/h, of NodePool %s.",
		ref, best.InstanceType, inZone(best.Zone), best.CapacityType, dollars(best.HourlyPrice), pool.Name)}
	class := m.classOf(ref)
	s.say("it asks for %s", class.Requests.Format(p.Axes))
	table := &planTable{planReport: m.report}
	var names []string
	for _, other := range m.input.Pods(n.Pods) {
		names = append(names, other.String())
	}
	s.say("the node takes %s: %s", plural(len(names), "pod"), table.owned(names))
	room := types[n.Best().InstanceType].Allocatable().Sub(n.Requests).Sub(n.Daemons)
	s.say("that leaves %s free", room.Format(p.Axes))
	if others := n.Offerings[1:]; len(others) > 0 {
		next := offeringOf(types, others[0])
		s.say("%s would do too; the next is %s %s, %s, %s/h", plural(len(others), "other offering"),
			next.InstanceType, inZone(next.Zone), next.CapacityType, dollars(next.HourlyPrice))
	}
	for _, relaxed := range m.plan.Relaxed {
		if slices.Contains(p.Classes[relaxed.Class].Pods, ref) {
			s.say("preference given up for %s of its kind: %s", plural(relaxed.Pods, "pod"), relaxed.Preference)
		}
	}
	return s
}

func (m *madePlan) classOf(ref model.PodRef) *model.PodClass {
	for i := range m.input.Problem.Classes {
		if c := &m.input.Problem.Classes[i]; slices.Contains(c.Pods, ref) {
			return c
		}
	}
	return &model.PodClass{}
}

func (m *madePlan) pendingPod(ref model.PodRef, u *model.Unschedulable) *story {
	p := m.input.Problem
	s := pendingStory(ref, explain.Describe(p, u), u.Nearest)
	a := m.adviserOf(ref, &p.Classes[u.Class])
	if fix := a.namespaceFix(u.Nearest); fix != "" {
		s.Fix, s.Nearest.Fix = fix, fix
	}
	s.advise(m.remedies(ref, u))
	s.orLook(a, u.Reason, u.Nearest)
	if len(p.Pools) == 0 {
		for _, l := range m.input.Problem.LeftOut {
			if slices.ContainsFunc(u.LeftOut, func(i int) bool { return p.LeftOut[i].Pool == l.Pool }) {
				continue // said already
			}
			s.say("NodePool %s buys nothing: %s", l.Pool, l.Message)
		}
	}
	return s
}

func pendingStory(ref model.PodRef, words explain.Pending, nearest *model.NearestMiss) *story {
	return &story{
		Verdict: fmt.Sprintf("%s stays pending: %s.", ref, words.Why),
		Nearest: nearestOf(nearest), Fix: words.Fix, Lines: words.Details, words: words,
	}
}

// otherPod is about a pod for which nothing is planned, and whether it waits, or says that there
// is none of that name.
func (m *madePlan) otherPod(ref model.PodRef) (s *story, pending bool, err error) {
	record := m.input.Record(ref)
	switch {
	case record == nil:
		return nil, false, fmt.Errorf("no pod %s in the input%s", ref, m.suggest(ref))
	case record.Terminal:
		return &story{Verdict: fmt.Sprintf("%s has ended and needs no place.", ref)}, false, nil
	case record.Node != "":
		return m.runningPod(record), false, nil
	}
	return unplannedPod(record, podNamed(m.read.objects, record.Ref)), true, nil
}

// unplannedPod is about a pod that waits, but not for a node that nap would buy; pod is nil where
// there is only the record.
func unplannedPod(record *fleet.Pod, pod *corev1.Pod) *story {
	switch {
	case pod != nil && len(pod.Spec.SchedulingGates) > 0:
		var gates []string
		for _, g := range pod.Spec.SchedulingGates {
			gates = append(gates, g.Name)
		}
		s := waitingPod(record.Ref, "waits for its scheduling gates to be removed: "+strings.Join(gates, ", "))
		s.say("until then the scheduler does not look at it, and nothing is bought for it")
		return s
	case pod != nil && record.Daemon:
		return daemonPod(pod)
	case pod != nil && !kube.OfDefaultScheduler(pod):
		s := waitingPod(record.Ref, fmt.Sprintf("waits for its scheduler %s, which has not found it unschedulable", pod.Spec.SchedulerName))
		s.say("see that %s runs; something is bought once it has written the condition PodScheduled with reason Unschedulable",
			pod.Spec.SchedulerName)
		return s
	}
	return waitingPod(record.Ref, "waits, but not for a node: the scheduler has not found it unschedulable")
}

// waitingPod says of a pod what it waits for; why begins with the verb.
func waitingPod(ref model.PodRef, why string) *story {
	return &story{Verdict: fmt.Sprintf("%s %s.", ref, why), words: explain.Pending{Why: "the first " + why}}
}

// runningPod is about a pod that has a node, which may be on its way out.
func (m *madePlan) runningPod(record *fleet.Pod) *story {
	s := &story{Verdict: fmt.Sprintf("%s already runs on %s.", record.Ref, record.Node)}
	for _, l := range m.read.store.Snapshot().LeavingNodes(m.at) {
		switch {
		case l.Node != record.Node:
		case l.Blocks != "" && l.Pod == record.Ref:
			s.Verdict = fmt.Sprintf("%s runs on %s, which leaves and cannot go: %s.", record.Ref, record.Node, l.Blocks)
			s.Fix, s.Commands = l.Fix, []string{leavingCommand(&l)}
		default:
			s.Verdict = fmt.Sprintf("%s runs on %s, which leaves.", record.Ref, record.Node)
			s.Commands = []string{"nap explain node " + record.Node}
		}
	}
	return s
}

// promisedPod is about a pod that is nominated for a node (status.nominatedNodeName), nil for
// others.
func (m *madePlan) promisedPod(record *fleet.Pod) *story {
	now := m.read.store.Snapshot()
	node := now.Node(record.Nominated)
	if node == nil {
		return nil
	}
	for claim := range now.Claims() {
		if claim.NodeName != node.Name || node.Initialized {
			continue
		}
		return &story{
			Verdict: fmt.Sprintf("%s waits for node %s of NodeClaim %s, which is not initialized: %s.",
				record.Ref, node.Name, claim.Name, strings.Join(fleet.Awaited(claim, node), "; ")),
			Fix:      "Nothing else is bought meanwhile: see on the node why that does not come.",
			Commands: []string{"kubectl describe node " + node.Name},
		}
	}
	return &story{Verdict: fmt.Sprintf("%s is promised to node %s (status.nominatedNodeName), and the scheduler has not bound it yet.",
		record.Ref, node.Name)}
}

// suggest names pods whose names begin like the one that was asked for.
func (m *madePlan) suggest(ref model.PodRef) string {
	var near []string
	for p := range m.read.store.Snapshot().Pods() {
		if resembles(p, ref) {
			near = append(near, p.Ref.String())
		}
	}
	if len(near) == 0 {
		return "; nap plan -o wide lists them all"
	}
	slices.Sort(near)
	return "; there are " + strings.Join(near[:min(3, len(near))], ", ")
}

func resembles(p *fleet.Pod, ref model.PodRef) bool {
	return p.Ref.Name == ref.Name || p.Ref.Namespace == ref.Namespace && strings.HasPrefix(p.Ref.Name, ref.Name)
}
