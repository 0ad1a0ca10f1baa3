package disruption

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/internal/controller/liveness"
	"github.com/nodeautoprovision/nap/internal/controller/periodic"
)

// commandsAtOnce bounds the commands that are carried on in parallel. Hundreds may be decided on
// at once, and an API server that is busy takes half a second for a request.
const commandsAtOnce = 32

// Loop removes and replaces nodes. It implements the manager's Runnable and runs on
// the leader alone; all its work is done by one goroutine, which waits for nothing
// longer than a request to the API server takes.
type Loop struct {
	mirror Mirror
	clock  clock.Clock

	// What is remembered between passes. All of it but the commands is lost in a
	// restart.
	commands *commands
	restored bool        // whether commands has those of an earlier process
	mayBuy   func() bool // nil: always
	pacing   *pacing
	activity liveness.Activity

	// What the steps of a pass are done by.
	recovery  *recovery
	executor  *executor
	rechecker *rechecker
	drainer   *drainer
	strays    *strayTaints
	decider   *decider
	outcomes  *outcomes
}

// NewLoop returns a loop.
func NewLoop(cfg Config) *Loop {
	under, rests, last := &commands{}, &backoff{nodes: map[string]pause{}}, &batch{}
	kube := cfg.Clients.Cached
	mark := &marker{kube: kube, live: cfg.Clients.Live, clock: cfg.Clock}
	reader := &fleetReader{mirror: cfg.Mirror, catalogs: cfg.Catalogs, settings: cfg.Settings, window: cfg.Window}
	reports := &reporter{kube: kube, recorder: cfg.Recorder, clock: cfg.Clock, lastReported: map[string]report{}}
	rechecks := &rechecker{
		reader: reader, mirror: cfg.Mirror, commands: under, batch: last, clock: cfg.Clock, metrics: cfg.Metrics, reporter: reports,
	}
	l := &Loop{
		mirror: cfg.Mirror, clock: cfg.Clock, commands: under, mayBuy: cfg.MayBuy, pacing: &pacing{},
		outcomes: &outcomes{
			metrics: cfg.Metrics, teller: teller{moves: cfg.Moves, clock: cfg.Clock}, backoff: rests, batch: last, clock: cfg.Clock,
		},
		rechecker: rechecks,
		recovery:  &recovery{clients: cfg.Clients, mirror: cfg.Mirror, marker: mark, clock: cfg.Clock},
		executor: &executor{
			marker: mark, mirror: cfg.Mirror, cluster: cfg.Cluster, recorder: cfg.Recorder, metrics: cfg.Metrics, clock: cfg.Clock,
			replacements: &replacements{
				clients: cfg.Clients, mirror: cfg.Mirror, cluster: cfg.Cluster, recorder: cfg.Recorder, metrics: cfg.Metrics, clock: cfg.Clock,
			},
		},
		drainer: &drainer{
			kube: kube, mirror: cfg.Mirror, evictor: cfg.Evictor, recorder: cfg.Recorder, metrics: cfg.Metrics, clock: cfg.Clock,
			marker: mark, commands: under, rechecker: rechecks,
		},
		strays: &strayTaints{mirror: cfg.Mirror, marker: mark, clock: cfg.Clock, since: map[string]time.Time{}},
	}
	l.decider = &decider{
		kube: kube, mirror: cfg.Mirror, clock: cfg.Clock, newID: cfg.NewID, plan: cfg.Plan, paused: cfg.Paused,
		metrics: cfg.Metrics, reader: reader, commands: under, backoff: rests, batch: last, pacing: l.pacing,
		reporter: reports,
	}
	return l
}

// Start works until ctx ends.
func (l *Loop) Start(ctx context.Context) error {
	for {
		l.Restore(ctx)
		if l.restored {
			l.pass(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-periodic.After(l.clock, look):
		}
	}
}

// MarketChanged lets the loop decide soon, though no object has changed: other prices may
// make other moves worth it. It may be called from any goroutine.
func (l *Loop) MarketChanged() { l.pacing.marketChanged() }

// Activity is what the loop is doing, for the health probe.
func (l *Loop) Activity() *liveness.Activity { return &l.activity }

// Restore takes up the commands that an earlier process has begun, unless that is done. Start
// does it, too; a caller that wants them taken up earlier calls it before.
func (l *Loop) Restore(ctx context.Context) {
	if l.restored {
		return
	}
	l.activity.Begin(l.clock.Now())
	defer l.activity.End()
	found, err := l.recovery.restore(ctx)
	if err != nil {
		if ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "reading the commands under way failed, trying again")
		}
		return
	}
	l.commands.active, l.restored = found, true
}

// pass carries every command on and decides again when it is time.
func (l *Loop) pass(ctx context.Context) {
	l.activity.Begin(l.clock.Now())
	defer l.activity.End()
	l.proceed(ctx)
	l.strays.release(ctx, l.commands.nodes())
	if l.mayBuy != nil && !l.mayBuy() {
		return
	}
	observed := func() bool { return l.commands.observed(l.mirror.Snapshot()) }
	if !l.pacing.due(l.clock.Now(), l.mirror.DisruptionRevision(), observed) {
		return
	}
	begun, err := l.decider.decide(ctx)
	if err != nil {
		if ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "deciding which nodes to remove failed, trying again")
		}
		return
	}
	l.commands.active = append(l.commands.active, begun...)
	l.proceed(ctx)
}

// proceed carries every command on as far as it goes now.
func (l *Loop) proceed(ctx context.Context) {
	active := l.commands.active
	state := make([]progress, len(active))
	var group errgroup.Group
	group.SetLimit(commandsAtOnce)
	for i, c := range active {
		group.Go(func() error {
			var err error
			// What another writer has just changed is tried again at once.
			if state[i], err = l.executor.step(ctx, c); err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "carrying a command on failed, trying again", "command", c.ID)
			}
			return nil
		})
	}
	_ = group.Wait() // errors are logged
	var toAct []*command
	for i, c := range active {
		if state[i] == ready {
			toAct = append(toAct, c)
		}
	}
	if len(toAct) > 0 && l.commands.observed(l.mirror.Snapshot()) {
		if standing := l.rechecker.recheck(ctx, toAct); len(standing) > 0 {
			newDrain(l.mirror.Snapshot(), standing, l.clock.Now())
		}
	}
	for _, d := range l.commands.drains() {
		for _, c := range l.drainer.carry(ctx, d) {
			state[slices.Index(active, c)] = over
		}
	}
	var left []*command
	for i, c := range active {
		if state[i] != over {
			left = append(left, c)
			continue
		}
		l.outcomes.finish(ctx, c)
		if c.failure == nil {
			l.commands.settling = append(l.commands.settling, c)
		}
	}
	l.commands.active = left
	l.outcomes.teller.underWay(l.commands.active)
}
