package provisioning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
)

// FailedScheduling events per second, and at once. Thousands of pods may fail for
// one reason; each workload gets its event first and the other pods follow.
const (
	explainedPerSecond = 10
	explainedBurst     = 50
)

// reporter tells what rounds did: users by events, Karpenter's mirror, the logs and
// the metrics. One goroutine uses it.
type reporter struct {
	recorder events.Recorder
	cluster  Cluster
	metrics  *metrics.Provisioning
	// explained limits FailedScheduling events.
	explained flowcontrol.RateLimiter
	// leftOut is why a NodePool bought nothing in the last round, by its name: each
	// reason is logged once.
	leftOut map[string]string
	// notCreated is how many NodeClaims of the last round were not created, by why: each reason
	// is logged once while it lasts.
	notCreated map[notCreated]int
	// logged is the plan that was logged last.
	logged plannedLine
	// said is what the present round has said about pods; begin empties it.
	said verdicts
	// decided is told of each round; nil when it does not matter.
	decided func(snapshot.Decision)
	// tell is told of each plan; nil when it does not matter.
	tell    func(*model.Problem, *model.Plan)
	buffers buffers
}

// plannedLine is what the log says of a plan.
type plannedLine struct {
	pods, classes, newNodes, unschedulable int
	cost, bound                            string
}

// logPlanned logs a plan. While pods wait for what does not come, every round says the same:
// that is for those who debug.
func (r *reporter) logPlanned(logger logr.Logger, in *planInputs, plan *model.Plan) {
	now := plannedLine{
		in.input.Problem.PodCount(), len(in.input.Problem.Classes), len(plan.NewNodes), unschedulablePods(in, plan),
		plan.Cost.String(), plan.LowerBound.String(),
	}
	if now == r.logged {
		logger = logger.V(1)
	}
	r.logged = now
	logger.Info("planned", "pods", now.pods, "classes", now.classes, "newNodes", now.newNodes, "unschedulable", now.unschedulable,
		"cost", now.cost, "lowerBound", now.bound,
		"fewerNodes", plan.Fewer.Machines, "paidForFewerNodes", plan.Fewer.Paid.String())
}

// notCreated is why a planned NodeClaim of a NodePool is not created now.
type notCreated struct{ pool, reason string }

// logNotCreated logs the reasons that were not there in the last round.
func (r *reporter) logNotCreated(logger logr.Logger, now map[notCreated]int) {
	for _, why := range slices.SortedFunc(maps.Keys(now), func(a, b notCreated) int {
		return cmp.Or(cmp.Compare(a.pool, b.pool), cmp.Compare(a.reason, b.reason))
	}) {
		if r.notCreated[why] == 0 {
			logger.Info("planned nodeclaims are not created now", "NodePool", why.pool, "count", now[why], "reason", why.reason)
		}
	}
	r.notCreated = now
}

// planned passes on a plan.
func (r *reporter) planned(p *model.Problem, plan *model.Plan) {
	if r.tell != nil {
		r.tell(p, plan)
	}
}

// decide ends a round: it passes on what was decided.
func (r *reporter) decide(d snapshot.Decision) {
	if r.decided != nil {
		d.Verdicts, d.Limits = r.said.all, r.said.limits
		r.decided(d)
	}
}

// begin starts a round.
func (r *reporter) begin(in *planInputs) { r.said = verdicts{in: in.input} }

func newReporter(cfg *Config) *reporter {
	return &reporter{
		recorder: cfg.Recorder, cluster: cfg.Cluster, metrics: cfg.Metrics,
		explained: flowcontrol.NewTokenBucketRateLimiterWithClock(explainedPerSecond, explainedBurst, cfg.Clock),
		leftOut:   map[string]string{},
		decided:   cfg.Decided, tell: cfg.Planned,
		buffers: buffers{mirror: cfg.Mirror, told: cfg.Buffered},
	}
}

// report tells what one round did.
func (r *reporter) report(ctx context.Context, in *planInputs, plan *model.Plan, results []result) {
	failed := r.reportUnschedulable(in, plan)
	byPool, byClaim := r.reportPlacements(ctx, in, plan)
	logger := log.FromContext(ctx)
	created, held := map[string][]*corev1.Pod{}, map[notCreated]int{}
	for i := range results {
		done := &results[i]
		switch {
		case done.rejected != nil:
			r.metrics.Rejected(done.rejected.reason)
			logger.Info("planned nodeclaim no longer holds, planning again",
				"NodePool", done.draft.pool, "reason", done.rejected.reason, "detail", done.rejected.detail)
		case done.err != nil:
			logger.Error(done.err, "creating a nodeclaim failed, its pods are tried again", "NodePool", done.draft.pool)
		case done.refused != "":
			held[notCreated{done.draft.pool, done.refused}]++
			r.said.wait(done.draft.pods, explain.Pending{Why: done.refused}, done.refused)
			for _, pod := range in.present(done.draft.pods) {
				failed[pod] = errors.New(done.refused)
				if r.explained.TryAccept() {
					r.recorder.Publish(event.Waiting(pod, "", failed[pod].Error()))
				}
			}
		default:
			pods := in.present(done.draft.pods)
			created[done.draft.claim.Name] = pods
			r.said.bound(done.draft.pods, done.draft.claim.Name)
			byPool[done.draft.pool] = append(byPool[done.draft.pool], pods...)
			r.reportCreated(ctx, done.draft, pods)
		}
	}
	r.logNotCreated(logger, held)
	r.cluster.MarkPodSchedulingDecisions(ctx, failed, byPool, byClaim)
	r.cluster.UpdatePodToNodeClaimMapping(created)
}

func (r *reporter) reportCreated(ctx context.Context, d *draft, pods []*corev1.Pod) {
	r.metrics.Created(d.claim)
	log.FromContext(ctx).Info("created nodeclaim",
		"NodeClaim", d.claim.Name, "NodePool", d.pool, "best", d.best, "price", d.price.String(),
		"alternatives", d.alternatives, "pods", len(d.pods), "requests", d.requests)
	for _, pod := range pods {
		r.recorder.Publish(event.Nominated(pod, nil, d.claim))
	}
}

// reportPlacements nominates the nodes that exist, so that Karpenter does not take
// them away before their pods arrive.
func (r *reporter) reportPlacements(ctx context.Context, in *planInputs, plan *model.Plan) (byPool, byClaim map[string][]*corev1.Pod) {
	byPool, byClaim = map[string][]*corev1.Pod{}, map[string][]*corev1.Pod{}
	for _, placement := range plan.Placements {
		n := &in.input.Problem.Nodes[placement.Node]
		pods := in.present(in.input.Pods(placement.Pods))
		if n.Claim != "" && n.State != model.NodeReady {
			r.said.bound(in.input.Pods(placement.Pods), n.Claim)
		}
		byPool[n.Pool] = append(byPool[n.Pool], pods...)
		var node *corev1.Node
		var claim *karpv1.NodeClaim
		var waited *fleet.Claim
		provider := ""
		if n.Claim != "" {
			claim = &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: n.Claim}}
			byClaim[n.Claim] = append(byClaim[n.Claim], pods...)
			if record := in.snapshot.Claim(n.Claim); record != nil {
				waited, provider = record, record.ProviderID
			}
		}
		if record := in.snapshot.Node(n.Name); record != nil {
			node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
			provider = record.ProviderID
		}
		if provider != "" {
			r.cluster.NominateNodeForPod(ctx, provider)
		}
		if troubled(waited) {
			r.tellTrouble(pods, waited)
			continue
		}
		for _, pod := range pods {
			r.recorder.Publish(event.Nominated(pod, node, claim))
		}
	}
	return byPool, byClaim
}

// reportUnschedulable explains to pods why they found no place. The first pods of
// all classes come before the second ones.
func (r *reporter) reportUnschedulable(in *planInputs, plan *model.Plan) map[*corev1.Pod]error {
	failed := map[*corev1.Pod]error{}
	var pods [][]*corev1.Pod
	var reasons []model.Reason // of each list of pods
	longest := 0
	r.said.limits = reachedLimits(in, plan)
	for i := range plan.Unschedulable {
		u := &plan.Unschedulable[i]
		words, refs := explain.Describe(in.input.Problem, u), in.input.Pods([]model.ClassPods{{Class: u.Class, Pods: u.Pods}})
		paused := pausedText(in.input.Problem, u)
		why := errors.New(eventText(paused, words))
		words.Why = behind(paused, words.Why)
		r.said.wait(refs, words, why.Error())
		// The others are told when the scheduler has said the same.
		of := slices.DeleteFunc(in.present(refs), kube.Unjudged)
		for _, pod := range of {
			failed[pod] = why
		}
		pods, reasons, longest = append(pods, of), append(reasons, words.Reason), max(longest, len(of))
	}
	for n := range longest {
		for i, of := range pods {
			if n < len(of) && r.explained.TryAccept() {
				r.recorder.Publish(event.Waiting(of[n], reasons[i], failed[of[n]].Error()))
			}
		}
	}
	return failed
}

// eventText says in an event why pods have no place, after the NodePools which are paused.
func eventText(paused string, words explain.Pending) string {
	paused = model.Sentence(paused, event.MostWaiting/2)
	return behind(paused, words.Short(event.MostWaiting-utf8.RuneCountInString(behind(paused, ""))))
}

// behind is a text after what is said of paused NodePools, if anything.
func behind(paused, text string) string {
	if paused == "" {
		return text
	}
	return paused + "; " + text
}

// pausedText names the NodePools that would take pods and buy nothing since their machines
// did not register, for the events of pods that find no place elsewhere either. It is
// empty without any, and where they are the reason itself.
func pausedText(p *model.Problem, u *model.Unschedulable) string {
	var out []string
	for _, i := range u.LeftOut {
		if pool := &p.LeftOut[i]; pool.Reason == model.ReasonPoolPaused && u.Reason != model.ReasonPoolPaused {
			out = append(out, fmt.Sprintf("NodePool %s: %s", pool.Pool, pool.Message))
		}
	}
	return strings.Join(out, "; ")
}

// reportRejected tells pods that cannot even be planned what is wrong with them.
func (r *reporter) reportRejected(ctx context.Context, in *planInputs) {
	r.metrics.Ignored(len(in.input.Rejected))
	failed := map[*corev1.Pod]error{}
	for _, no := range in.input.Rejected {
		pod := in.pods[no.Pod]
		if pod == nil {
			continue
		}
		failed[pod] = fmt.Errorf("ignoring pod, %s", no.Message)
		words := explain.Refused(no.Reason, no.Message, no.Fix)
		text := words.Short(event.MostWaiting)
		if !no.Quiet {
			r.said.wait([]model.PodRef{no.Pod}, words, text)
		}
		if !no.Quiet && r.explained.TryAccept() {
			r.recorder.Publish(event.Waiting(pod, words.Reason, text))
		}
	}
	if len(failed) > 0 {
		r.cluster.MarkPodSchedulingDecisions(ctx, failed, nil, nil)
	}
}

// reportClosed tells all pods that they wait while nothing is bought, and why.
func (r *reporter) reportClosed(in *planInputs, why string) {
	words := explain.Pending{Why: "nothing is bought now: " + why}
	for i := range in.input.Problem.Classes {
		refs := in.input.Problem.Classes[i].Pods
		r.said.wait(refs, words, words.Short(event.MostWaiting))
		r.tellWaiting(slices.DeleteFunc(in.present(refs), kube.Unjudged), words)
	}
}

// tellWaiting tells pods why nothing is bought for them, as far as events may be sent.
func (r *reporter) tellWaiting(pods []*corev1.Pod, words explain.Pending) {
	for _, pod := range pods {
		if r.explained.TryAccept() {
			r.recorder.Publish(event.Waiting(pod, words.Reason, words.Short(event.MostWaiting)))
		}
	}
}

// reportHeld tells pods that nothing is bought for them because that came to nothing
// before.
func (r *reporter) reportHeld(ctx context.Context, in *planInputs) {
	failed := map[*corev1.Pod]error{}
	for i := range in.held {
		held := &in.held[i]
		words := explain.Pending{Why: held.text()}
		r.said.wait(held.pods, words, words.Short(event.MostWaiting))
		for _, pod := range in.present(held.pods) {
			failed[pod] = errors.New(words.Why)
		}
		r.tellWaiting(in.present(held.pods), words)
	}
	if len(failed) > 0 {
		r.cluster.MarkPodSchedulingDecisions(ctx, failed, nil, nil)
	}
}

// reportFailed tells of purchases that came to nothing: the pods for which they were
// made, the log and the metrics.
func (r *reporter) reportFailed(ctx context.Context, in *planInputs, failed []purchasebackoff.Outcome) {
	for i := range failed {
		o := &failed[i]
		r.metrics.PurchaseFailed(o.Pool, o.Launched)
		log.FromContext(ctx).Info("a purchase led to no running pod",
			"workload", o.Workload.Name(), "NodePool", o.Pool, "why", o.Why, "inARow", o.Record.Count,
			"nextAfter", o.Record.Until.UTC().Format(time.RFC3339))
		for _, pod := range o.Pods {
			object := in.pods[pod.Ref]
			if object == nil || !r.explained.TryAccept() {
				continue
			}
			r.recorder.Publish(event.PurchaseFailed(object, o.Why))
		}
	}
}

// reportLeftOut logs the NodePools that buy nothing, once per reason.
func (r *reporter) reportLeftOut(ctx context.Context, leftOut []model.LeftOut) {
	now := map[string]string{}
	for _, o := range leftOut {
		now[o.Pool] = o.Message
		if r.leftOut[o.Pool] != o.Message {
			log.FromContext(ctx).Info("nodepool buys nothing", "NodePool", o.Pool, "reason", string(o.Reason), "message", o.Message)
		}
	}
	r.leftOut = now
}
