package provisioning

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// FailedScheduling events per second, and at once. Thousands of pods may fail for
// one reason; each workload gets its event first and the other pods follow.
const (
	explainedPerSecond = 10
	explainedBurst     = 50
)

// report tells what a round did: to users by events, to Karpenter's mirror, to
// the logs and the metrics.
func (l *Loop) report(ctx context.Context, b *basis, plan *model.Plan, results []result) {
	failed := l.reportUnschedulable(b, plan)
	byPool, byClaim := l.reportPlacements(ctx, b, plan)
	logger := log.FromContext(ctx)
	created := map[string][]*corev1.Pod{}
	for i := range results {
		r := &results[i]
		switch {
		case r.rejected != nil:
			l.Metrics.Rejected(r.rejected.reason)
			logger.Info("planned nodeclaim no longer holds, planning again",
				"NodePool", r.draft.pool, "reason", r.rejected.reason, "detail", r.rejected.detail)
		case r.err != nil:
			logger.Error(r.err, "creating a nodeclaim failed, its pods are tried again", "NodePool", r.draft.pool)
		default:
			pods := present(b, r.draft.pods)
			created[r.draft.claim.Name] = pods
			l.hold(b, r.draft.pods, r.draft.claim.Name)
			byPool[r.draft.pool] = append(byPool[r.draft.pool], pods...)
			l.reportCreated(ctx, r.draft, pods)
		}
	}
	l.Cluster.MarkPodSchedulingDecisions(ctx, failed, byPool, byClaim)
	l.Cluster.UpdatePodToNodeClaimMapping(created)
}

// hold remembers that the pods have a place on a machine that is on its way.
func (l *Loop) hold(b *basis, refs []model.PodRef, claim string) {
	for _, ref := range refs {
		record := b.input.Record(ref)
		l.holds.put(record, claim)
		if l.nominations != nil && record != nil && record.Node == "" {
			l.nominations.put(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, types.UID(record.UID), claim)
		}
	}
}

func (l *Loop) reportCreated(ctx context.Context, d *draft, pods []*corev1.Pod) {
	l.Metrics.Created(d.pool)
	log.FromContext(ctx).Info("created nodeclaim",
		"NodeClaim", d.claim.Name, "NodePool", d.pool, "best", d.best, "price", d.price.String(),
		"alternatives", d.alternatives, "pods", len(d.pods), "requests", d.requests)
	for _, pod := range pods {
		l.Recorder.Publish(scheduling.NominatePodEvent(pod, nil, d.claim))
	}
}

// reportPlacements nominates the nodes that exist, so that nobody takes them away
// before their pods arrive.
func (l *Loop) reportPlacements(ctx context.Context, b *basis, plan *model.Plan) (byPool, byClaim map[string][]*corev1.Pod) {
	byPool, byClaim = map[string][]*corev1.Pod{}, map[string][]*corev1.Pod{}
	for _, placement := range plan.Placements {
		n := &b.input.Problem.Nodes[placement.Node]
		refs := b.input.Pods(placement.Pods)
		pods := present(b, refs)
		byPool[n.Pool] = append(byPool[n.Pool], pods...)
		var node *corev1.Node
		var claim *karpv1.NodeClaim
		provider := ""
		if n.Claim != "" {
			claim = &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: n.Claim}}
			byClaim[n.Claim] = append(byClaim[n.Claim], pods...)
			if n.State != model.NodeReady {
				l.hold(b, refs, n.Claim)
			}
			if record := b.snapshot.Claim(n.Claim); record != nil {
				provider = record.ProviderID
			}
		}
		if record := b.snapshot.Node(n.Name); record != nil {
			node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
			provider = record.ProviderID
		}
		if provider != "" {
			l.Cluster.NominateNodeForPod(ctx, provider)
		}
		for _, pod := range pods {
			l.Recorder.Publish(scheduling.NominatePodEvent(pod, node, claim))
		}
	}
	return byPool, byClaim
}

// reportUnschedulable explains to pods why they found no place. The first pods of
// all classes come before the second ones.
func (l *Loop) reportUnschedulable(b *basis, plan *model.Plan) map[*corev1.Pod]error {
	failed := map[*corev1.Pod]error{}
	var pods [][]*corev1.Pod
	longest := 0
	for i := range plan.Unschedulable {
		u := &plan.Unschedulable[i]
		why := errors.New(explanation(u))
		of := present(b, b.input.Pods([]model.ClassPods{{Class: u.Class, Pods: u.Pods}}))
		for _, pod := range of {
			failed[pod] = why
		}
		pods, longest = append(pods, of), max(longest, len(of))
	}
	for n := range longest {
		for _, of := range pods {
			if n < len(of) && l.explained.TryAccept() {
				l.Recorder.Publish(scheduling.PodFailedToScheduleEvent(of[n], failed[of[n]]))
			}
		}
	}
	return failed
}

// reportRejected tells pods that cannot even be planned what is wrong with them.
func (l *Loop) reportRejected(ctx context.Context, b *basis) {
	l.Metrics.Ignored(len(b.input.Rejected))
	failed := map[*corev1.Pod]error{}
	for _, r := range b.input.Rejected {
		pod := b.pods[r.Pod]
		if pod == nil {
			continue
		}
		failed[pod] = fmt.Errorf("ignoring pod, %s", r.Message)
		if !r.Quiet && l.explained.TryAccept() {
			l.Recorder.Publish(scheduling.PodFailedToScheduleEvent(pod, errors.New(r.Message)))
		}
	}
	if len(failed) > 0 {
		l.Cluster.MarkPodSchedulingDecisions(ctx, failed, nil, nil)
	}
}

// reportLeftOut logs the NodePools that buy nothing, once per reason.
func (l *Loop) reportLeftOut(ctx context.Context, leftOut []fleet.LeftOut) {
	now := map[string]string{}
	for _, o := range leftOut {
		now[o.Pool] = o.Message
		if l.leftOut[o.Pool] != o.Message {
			log.FromContext(ctx).Info("nodepool buys nothing", "NodePool", o.Pool, "reason", string(o.Reason), "message", o.Message)
		}
	}
	l.leftOut = now
}

// present are the objects of pods that still exist.
func present(b *basis, refs []model.PodRef) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(refs))
	for _, ref := range refs {
		if pod := b.pods[ref]; pod != nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// explanation is the event's text: the verdict, the nearest miss with what it has
// and what is wanted, and what to change.
func explanation(u *model.Unschedulable) string {
	var s strings.Builder
	s.WriteString(u.Message)
	if n := u.Nearest; n != nil {
		fmt.Fprintf(&s, "; nearest: %s", missed(n))
		if n.Have != "" || n.Want != "" {
			fmt.Fprintf(&s, " (%s: has %s, wants %s)", n.Reason, n.Have, n.Want)
		} else {
			fmt.Fprintf(&s, " (%s)", n.Reason)
		}
		if n.Fix != "" {
			fmt.Fprintf(&s, ". %s", n.Fix)
		}
	}
	return s.String()
}

func missed(n *model.NearestMiss) string {
	if n.Node != "" {
		return "node " + n.Node
	}
	var parts []string
	for _, p := range []string{n.InstanceType, n.Zone, string(n.CapacityType)} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return fmt.Sprintf("%s of NodePool %s", strings.Join(parts, " "), n.Pool)
}
