package azure

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/launch/aksmachine"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

// makePoolFirst is how long nap waits after AKS has refused to make the agent pool
// before it asks again; the pause doubles up to makePoolLast.
const (
	makePoolFirst = readPausedEvery
	makePoolLast  = 10 * time.Minute
)

// poolWatch looks after the agent pool that new machines are made in, and makes it
// where that is allowed.
type poolWatch struct {
	config *config.Config
	client *aksmachine.MachineClient
	log    *slog.Logger
	now    func() time.Time

	mu sync.Mutex
	// making is what nap does about a missing pool, for people; empty where it may do
	// nothing.
	making string
	// next is when the pool is asked for again, wait how long nap waits after the next
	// refusal.
	next time.Time
	wait time.Duration
}

// newPoolWatch returns nil where machines need no pool.
func newPoolWatch(c *config.Config, client *aksmachine.MachineClient, log *slog.Logger, now func() time.Time) *poolWatch {
	if !c.StartsAKSMachines() {
		return nil
	}
	w := &poolWatch{config: c, client: client, log: log, now: now, wait: makePoolFirst}
	if c.CreatePool {
		w.making = "nap is making it"
	}
	return w
}

// pause is why no machine can be made in the pool, as far as the cluster was asked.
func (w *poolWatch) pause(facts *managedcluster.Facts) *managedcluster.Pause {
	if w == nil || facts.ID == "" {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return facts.Pools.Pause(facts.ID, w.config.MachinesPool, w.making)
}

// missing reports whether the pool is to be made now.
func (w *poolWatch) missing(facts *managedcluster.Facts) bool {
	return w != nil && w.config.CreatePool && facts.ID != "" && facts.Pools.Find(w.config.MachinesPool) == nil
}

// look completes facts that were just read with the pool, where the cluster does not
// list it and its machines can be listed all the same, and asks for it where it is not
// there and nap may make it.
func (w *poolWatch) look(ctx context.Context, facts *managedcluster.Facts) {
	if w == nil || facts.Pools.Find(w.config.MachinesPool) != nil {
		return
	}
	if err := w.client.Ask(ctx); err == nil {
		facts.Pools = append(facts.Pools, managedcluster.AgentPool{Name: w.config.MachinesPool})
		return
	}
	if !w.missing(facts) || facts.Pause() != nil {
		return
	}
	w.mu.Lock()
	early := w.now().Before(w.next)
	w.mu.Unlock()
	if early {
		return
	}
	err := w.client.MakePool(ctx)
	if ctx.Err() == nil {
		w.answered(err)
	}
}

// answered takes what AKS says to the wish for a pool.
func (w *poolWatch) answered(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch status := launch.Status(err); {
	case err == nil:
		w.making, w.wait = "nap has asked AKS for it, and AKS is making it", makePoolFirst
		w.log.Info("AKS makes the agent pool", "pool", w.config.MachinesPool, "mode", managedcluster.ModeMachines)
	case status == http.StatusPreconditionFailed: // another client was faster
		w.making, w.wait = "AKS is making it", makePoolFirst
	case status == http.StatusConflict:
		w.making = "nap makes it as soon as AKS lets it: " + words(err)
		w.log.Info("AKS does not make the agent pool yet", "pool", w.config.MachinesPool, "because", words(err))
	default:
		w.next = w.now().Add(w.wait)
		w.making = fmt.Sprintf("nap asks for it again at %s, because AKS does not make it: %s", w.next.UTC().Format(time.TimeOnly), words(err))
		if status == http.StatusForbidden {
			w.making += "; permit " + config.ActionCreatePool + " on the cluster (nap controller role --create-machines-pool)"
		}
		w.making += "; without AKS machines, set PROVISION_MODE to " + config.ModeVMs
		w.log.Warn("AKS does not make the agent pool", "pool", w.config.MachinesPool, "because", words(err), "again", w.wait)
		w.wait = min(2*w.wait, makePoolLast)
	}
}

// words is an answer of Azure in one line, with what to do about it where that is
// known.
func words(err error) string {
	if f := unavailable.Classify(err); f != nil {
		return f.Error()
	}
	return err.Error()
}

// noMachineAPI asks for machines of an agent pool, and says why AKS makes none in this
// way here; empty where it does, and where it does not answer that.
func noMachineAPI(ctx context.Context, client *aksmachine.MachineClient) (why string, there bool) {
	err := client.Ask(ctx)
	f := unavailable.Classify(err)
	if f != nil && (f.Kind == unavailable.NoMachineAPI || f.Kind == unavailable.PreviewNotRegistered) {
		return f.Code + ": " + f.Message, false
	}
	return "", err == nil
}
