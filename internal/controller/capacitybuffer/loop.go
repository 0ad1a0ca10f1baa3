// Package capacitybuffer brings the virtual pods of CapacityBuffers to nap's planner, and
// what the planner has for them to the status of the CapacityBuffers. Karpenter's own
// controller resolves what a buffer asks for and writes the rest of its status.
package capacitybuffer

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/internal/controller/provisioning"
	"github.com/nodeautoprovision/nap/internal/fleet"
)

// Source are the virtual pods of all buffers that are ready to be planned.
type Source interface {
	Pods(ctx context.Context) []*corev1.Pod
	// Changed has a value after buffers have been resolved again.
	Changed() <-chan struct{}
}

// Mirror is the fleet as the loop uses it.
type Mirror interface {
	Revision() uint64
	SetBuffers(buffers []*fleet.Buffer)
	HasBuffers() bool
}

// lookAgain is how often the cluster is looked at for changes that may have taken room
// from buffers, or given them some: the scheduler does not know virtual pods.
const lookAgain = 5 * time.Second

// retryAfter is how often buffers that lack room are planned again while nothing changes: as
// for pods that wait, what was planned for them may have failed, and pauses end.
const retryAfter = 10 * time.Second

// Loop keeps the mirror's buffers up to date, plans them again when something has
// changed, and writes the status of the CapacityBuffers. It implements the manager's
// Runnable and runs on the leader alone.
type Loop struct {
	source  Source
	mirror  Mirror
	convert func([]*corev1.Pod) []*fleet.Buffer
	plan    func()
	clock   clock.Clock
	status  *status
	// plans has the newest plan that is not written down yet.
	plans chan []provisioning.BufferPlan
}

// Config is what a Loop is made of.
type Config struct {
	Kube   client.Client
	Source Source
	Mirror Mirror
	// Convert makes records of virtual pods.
	Convert func([]*corev1.Pod) []*fleet.Buffer
	Clock   clock.Clock
}

// NewLoop returns a loop. Plan must be called before it is started.
func NewLoop(cfg Config) *Loop {
	return &Loop{
		source: cfg.Source, mirror: cfg.Mirror, convert: cfg.Convert, clock: cfg.Clock,
		status: &status{kube: cfg.Kube, clock: cfg.Clock},
		plans:  make(chan []provisioning.BufferPlan, 1),
	}
}

// Plan sets what plans the buffers again. It must return at once.
func (l *Loop) Plan(again func()) { l.plan = again }

// Planned takes what a plan has for the buffers. It returns at once; one goroutine calls
// it.
func (l *Loop) Planned(plans []provisioning.BufferPlan) {
	select {
	case <-l.plans: // the newer one replaces it
	default:
	}
	l.plans <- plans
}

// Read tells the mirror of the buffers that there are. It is called before anything is
// decided, too: without it a node that holds room would look empty.
func (l *Loop) Read(ctx context.Context) { l.mirror.SetBuffers(l.convert(l.source.Pods(ctx))) }

// NeedLeaderElection makes the manager run the loop on the leader alone.
func (l *Loop) NeedLeaderElection() bool { return true }

// Start works until ctx ends.
func (l *Loop) Start(ctx context.Context) error {
	planned, last, short := l.mirror.Revision(), l.clock.Now(), false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.source.Changed():
			l.Read(ctx)
			l.plan()
		case plans := <-l.plans:
			last, short = l.clock.Now(), slices.ContainsFunc(plans, func(p provisioning.BufferPlan) bool { return p.Ready < p.Wanted })
			if err := l.status.write(ctx, plans); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "writing the status of CapacityBuffers failed, the next plan writes it again")
			}
		case <-l.clock.After(lookAgain):
			now, due := l.mirror.Revision(), short && l.clock.Since(last) >= retryAfter
			if (now != planned || due) && l.mirror.HasBuffers() {
				planned = now
				l.plan()
			}
		}
	}
}
