package disruption

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// preparedWithin is replaceWithin for commands that prepare for an expiry, which begin
// a quarter of an hour before it.
const preparedWithin = 15*time.Minute + replaceWithin

// passWithin is how long objections may take to pass where nothing was bought.
const passWithin = 15 * time.Second

// rechecker asks the fleet of this moment whether commands still stand. It has no
// state of its own but changes the commands that it is asked about: those to which
// there are objections wait, go on with fewer nodes, or fail.
type rechecker struct {
	reader   *fleetReader
	mirror   Mirror
	commands *commands
	batch    *batch
	clock    clock.Clock
	metrics  *metrics.Disruption
	reporter *reporter
}

// recheck returns the commands that still stand. All of one reason are asked about
// together first, which is as good as one by one and much faster when nothing
// has changed. Those that stand draw on PodDisruptionBudgets for the ones asked after them.
func (r *rechecker) recheck(ctx context.Context, asked []*command) []*command {
	byReason := map[model.DisruptionReason][]*command{}
	var reasons []model.DisruptionReason
	for _, c := range asked {
		if byReason[c.Reason] == nil {
			reasons = append(reasons, c.Reason)
		}
		byReason[c.Reason] = append(byReason[c.Reason], c)
	}
	var standing []*command
	for _, reason := range reasons {
		group := byReason[reason]
		if len(group) > 1 {
			if found, _ := r.objections(ctx, group, standing); len(found) == 0 {
				standing = append(standing, group...)
				continue
			}
		}
		for _, c := range group {
			found, _ := r.objections(ctx, []*command{c}, standing)
			switch {
			case len(found) == 0:
				standing = append(standing, c)
			case passing(found, r.clock.Now(), c.Begun.Add(patience(&c.Record))):
				reportWait(ctx, c, found[0].Message)
			default:
				was := c.Record
				whole := !r.reduce(ctx, c, found, standing)
				if whole {
					c.fail(found[0].Reason, "%s", found[0].Message)
				}
				r.refused(ctx, c, &was, found[0].Message, whole)
			}
		}
	}
	return standing
}

// refused tells of the nodes of a command, as it was, to which there are objections: all
// of them, or those that it goes on without.
func (r *rechecker) refused(ctx context.Context, c *command, was *Record, why string, whole bool) {
	nodes := c.released
	if whole {
		nodes = was.Remove
	}
	r.metrics.FailedValidation(was.measured(), len(nodes))
	if consolidates(was) {
		r.reporter.reportRefused(ctx, was, nodes, why)
	}
}

// passing reports whether all objections may end by themselves before a command is waited for no
// longer.
func passing(found []consolidate.Objection, now, patient time.Time) bool {
	return !now.After(patient) &&
		!slices.ContainsFunc(found, func(o consolidate.Objection) bool { return !o.Passing || o.Until.After(patient) })
}

// patience is how long a command waits for objections to pass: not long where
// nothing was bought for it, since its nodes could take pods.
func patience(r *Record) time.Duration {
	switch {
	case len(r.Replace) == 0:
		return passWithin
	case r.Reason == model.DisruptExpired:
		return preparedWithin // it has waited for the expiry itself
	}
	return replaceWithin
}

// objections asks the fleet of this moment what speaks against commands of one
// reason, beside others that stand, and returns that fleet, too, if it could be stated.
func (r *rechecker) objections(ctx context.Context, asked, standing []*command) ([]consolidate.Objection, *fleet.DisruptionInput) {
	own, intent := map[string]bool{}, consolidate.Intent{Reason: asked[0].Reason, Homes: map[model.PodRef]string{}}
	for _, c := range asked {
		in := c.intent(gone(&c.Record, r.mirror.Snapshot()))
		intent.Draining = intent.Draining || c.drain != nil
		intent.Nodes = append(intent.Nodes, in.Nodes...)
		maps.Copy(intent.Homes, c.placements)
		intent.Replacements = append(intent.Replacements, in.Replacements...)
		intent.FromTemplate = intent.FromTemplate || in.FromTemplate
		for _, n := range in.Nodes {
			own[n] = true
		}
		for _, n := range c.released {
			own[n.Node] = true
		}
	}
	others := r.commands.nodes()
	for n := range own {
		delete(others, n)
	}
	input, err := r.reader.read(ctx, r.clock.Now(), fleet.DisruptionOptions{
		Own: own, Disrupting: others, Reserved: r.commands.withheld(asked), Placements: r.commands.placements(asked),
		KeepDisplaced: true,
		// Of two that wait for each other's evictions neither would go.
		Untouched: r.commands.untouched(func(c *command) bool { return !slices.Contains(standing, c) }),
	})
	if err != nil {
		return []consolidate.Objection{{Reason: model.ReasonNotInitialized, Message: err.Error()}}, nil
	}
	found, err := careful(func() []consolidate.Objection { return consolidate.Recheck(input.Disruption, intent) })
	if err != nil {
		return []consolidate.Objection{{Reason: model.ReasonMoveFailed, Message: err.Error()}}, nil
	}
	return found, input
}

// reportWait logs, once for every cause, what a command waits for whose
// replacements are there.
func reportWait(ctx context.Context, c *command, cause string) {
	if c.waits != cause {
		c.waits = cause
		log.FromContext(ctx).Info("a command waits", "command", c.ID, "reason", string(c.Reason), "because", cause)
	}
}
