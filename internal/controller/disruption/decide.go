package disruption

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// decider asks the planner about the whole fleet and makes commands of the answer.
// What it remembers between decisions is in the batch, the pacing and the reporter.
type decider struct {
	kube    client.Reader
	mirror  Mirror
	clock   clock.Clock
	newID   func(n int) string
	plan    func(*model.DisruptionProblem) *model.Commands
	paused  func(map[string]*karpv1.NodePool) map[string]string
	metrics *metrics.Disruption

	reader   *fleetReader
	commands *commands
	backoff  *backoff
	batch    *batch
	pacing   *pacing
	reporter *reporter
	ending   endingNodes
}

// decide looks at the whole fleet once and returns the commands that are worth
// carrying out; the caller takes them up. The NodePools are read before the snapshot
// is taken: a change in between is then seen by the next decision.
func (d *decider) decide(ctx context.Context) ([]*command, error) {
	pools, err := d.pools(ctx)
	if err != nil {
		return nil, err
	}
	started := d.clock.Now()
	revision := d.mirror.DisruptionRevision()
	input, err := d.reader.read(ctx, started, fleet.DisruptionOptions{
		Options: fleet.Options{
			Policy: d.reader.search(func() time.Duration { return d.clock.Since(started) }),
			Paused: d.paused(pools),
		},
		Disrupting: d.commands.nodes(),
		Untouched:  d.commands.untouched(func(c *command) bool { return c.Reason == model.DisruptExpired }), // goes later
		Reserved:   d.commands.replacements(),
		Placements: d.commands.placements(nil),
		RetryAfter: d.backoff.until(started),
	})
	if err != nil {
		return nil, fmt.Errorf("stating the fleet: %w", err)
	}
	settled := func() bool { return len(d.commands.active) == 0 && !draining(d.mirror.Snapshot(), started) }
	if d.batch.judge(ctx, input.Disruption, settled) {
		d.metrics.SavedTooLittle()
	}
	limitNodes(input.Disruption)
	d.ending.limit(input.Disruption)
	planned, err := careful(func() *model.Commands { return d.plan(input.Disruption) })
	if err != nil {
		d.pacing.failed(d.clock.Now())
		return nil, err
	}
	took := d.clock.Since(started)
	d.pacing.decided(decision{
		at: d.clock.Now(), took: took, revision: revision, found: len(planned.Commands) > 0,
		due: earliest(planned.Kept, input.Disruption.Usages, started),
	})
	d.metrics.Decided(input.Disruption, planned, countUnconsolidatable(input.Disruption, planned), took)
	d.reporter.reportKept(ctx, input, planned)
	d.reporter.reportPools(input.Disruption, pools)
	d.reporter.reportScores(ctx, input.Disruption, planned.Scores, pools)
	chosen := planned.Commands
	if d.postpones(planned, started) {
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(c model.Command) bool { return c.Reason == model.DisruptUnderutilized })
	}
	begun := newDrafter(input, chosen, pools, d.newID).commands(chosen, d.clock.Now)
	d.batch.start(input.Disruption, begun, started)
	d.reporter.reportChosen(ctx, begun)
	reportDecision(ctx, input, planned, begun, took)
	return begun, nil
}

// postpones reports whether commands of consolidation are better decided later.
// Those of one decision suit each other: their pods fit together. A decision that is
// made while such pods are on their way, or while much of the fleet has just
// changed, sees a fleet that will not last. It does not wait for what takes long.
func (d *decider) postpones(planned *model.Commands, now time.Time) bool {
	if d.batch.pausedUntil.After(now) {
		return true
	}
	if now.Sub(d.batch.began) < batchAtMost && (len(d.commands.active) > 0 || draining(d.mirror.Snapshot(), now)) {
		return true
	}
	return d.pacing.waitsForQuiet(planned, now)
}

// nodesAtMost bounds the nodes of one NodePool that one decision consolidates. What
// a command is made of is written on each of its NodeClaims, and Kubernetes keeps no
// more than 256 KiB there.
const nodesAtMost = 300

func limitNodes(p *model.DisruptionProblem) {
	for i := range p.Policies {
		if allowed, limited := p.Policies[i].Allowed[model.DisruptUnderutilized]; limited {
			p.Policies[i].Allowed[model.DisruptUnderutilized] = min(allowed, nodesAtMost)
		}
	}
}

// pools are the NodePools by name. They are shared with the cache, and must not be changed.
func (d *decider) pools(ctx context.Context) (map[string]*karpv1.NodePool, error) {
	var list karpv1.NodePoolList
	if err := d.kube.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing NodePools: %w", err)
	}
	pools := map[string]*karpv1.NodePool{}
	for i := range list.Items {
		pools[list.Items[i].Name] = &list.Items[i]
	}
	return pools, nil
}

// earliest is the next moment at which a node that is kept may be looked at again, or at which
// the replacement of one that expires is bought, zero when there is none.
func earliest(kept []model.KeptNode, usages []model.NodeUsage, now time.Time) time.Time {
	var due time.Time
	consider := func(at time.Time) {
		if at.After(now) && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	for i := range kept {
		consider(kept[i].Until)
	}
	for i := range usages {
		consider(usages[i].PrepareAt())
	}
	return due
}

func reportDecision(ctx context.Context, input *fleet.DisruptionInput, planned *model.Commands, begun []*command, took time.Duration) {
	if len(begun) == 0 {
		return
	}
	logger := log.FromContext(ctx)
	logger.Info("decided which nodes to remove", "nodes", len(input.Problem.Nodes), "commands", len(begun), "evictions", planned.Evictions,
		"before", planned.Before.String(), "after", planned.After.String(), "took", took.String())
	for _, c := range begun {
		logger.Info("removing nodes", "command", c.ID, "reason", string(c.Reason), "nodes", names(c.Remove),
			"replacements", replacementNames(c.Replace), "savingPerHour", c.Saving, "evictions", c.Evictions)
	}
}
