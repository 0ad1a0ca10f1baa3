// Package garbagecollection deletes what no NodeClaim has: machines without a NodeClaim and
// network interfaces without a machine. They are what a crash between two calls
// to Azure leaves behind, so this is what makes every such crash harmless.
//
// What is garbage, the cloud decides; this package only asks it, regularly, on
// the leader alone. Start with [Loop].
package garbagecollection

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/internal/controller/periodic"
)

// Collector deletes one kind of garbage and returns the names of what it deleted.
// It may be called again after an error and finds the rest.
type Collector func(ctx context.Context) (deleted []string, err error)

// Loop runs one collector at a fixed pace. It is a manager's runnable.
type Loop struct {
	// Kind names what is collected, in the plural: "virtual machines".
	Kind    string
	Every   time.Duration
	Collect Collector
	Clock   clock.Clock
}

// The paces: a forgotten machine costs more than a forgotten interface.
const (
	EveryInstance  = 2 * time.Minute
	EveryInterface = 5 * time.Minute
)

// NeedLeaderElection makes the manager run the loop on the leader alone.
func (l *Loop) NeedLeaderElection() bool { return true }

// Start collects until the context ends. The first round comes at once: a crash
// is the likeliest reason for garbage, and a start follows a crash.
func (l *Loop) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("kind", l.Kind))
	return periodic.Run(ctx, l.Clock, l.Every, "collecting garbage", func(ctx context.Context) error {
		deleted, err := l.Collect(ctx)
		if len(deleted) > 0 {
			log.FromContext(ctx).Info("deleted what no nodeclaim has", "count", len(deleted), "names", deleted)
		}
		return err
	})
}
