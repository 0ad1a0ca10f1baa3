package azure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/launch/aksmachine"
	"github.com/nodeautoprovision/nap/internal/azure/launch/vm"
	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/model"
)

// orphanAge is how old a machine without a NodeClaim must be before it is
// removed: a claim may be younger in the caller's view than in the API server.
const orphanAge = 5 * time.Minute

// collector removes what belongs to no NodeClaim: machines, and network interfaces
// without a machine. What has lost its tags gets them back first.
type collector struct {
	config   *config.Config
	now      func() time.Time
	log      *slog.Logger
	vms      vm.Clients
	aks      *aksmachine.Launcher // nil where there are none to look after
	launcher launch.Launcher
	watcher  *launch.Watcher
	list     *machineList
	// remove starts the removal of a claim's machine, as Provider.Delete.
	remove func(ctx context.Context, claim, providerID string) error
	// remover removes machines that the launcher does not know.
	remover *aksmachine.Remover
	// untagged is when interfaces without tags were first seen.
	untagged firstSeen
	// ageless is when machines, and AKS machines without tags, were first seen of which Azure
	// does not say when they were made.
	ageless, agelessAKS firstSeen
	// adopted is when machines without tags were last looked for, zero for never. The
	// goroutine that collects machines uses it.
	adopted time.Time
}

// adoptEvery is how often machines that have lost their tags are looked for while each
// NodeClaim has its machine. It takes one more list of all machines.
const adoptEvery = 10 * time.Minute

// listFor is how old a list of all machines may be that says that there is nothing to do. A
// machine that it lacks is younger, and removed at orphanAge at the earliest.
const listFor = 2 * time.Minute

// machines implements Provider.CollectMachines. What Karpenter's collector of NodeClaims or the
// watch of drift has listed a moment ago serves as long as there is nothing to do by it.
func (c *collector) machines(ctx context.Context, live func(context.Context) (map[string]bool, error)) ([]string, error) {
	if all, known := c.list.recent(listFor); known {
		claims, err := live(ctx)
		if err != nil {
			return nil, fmt.Errorf("list NodeClaims: %w", err)
		}
		if !c.anything(claims, all.machines) {
			return nil, nil
		}
	}
	all, err := c.list.read(ctx)
	if err != nil {
		return nil, err
	}
	claims, err := live(ctx)
	if err != nil {
		return nil, fmt.Errorf("list NodeClaims: %w", err)
	}
	c.forgetAgeless(all.machines)
	var removed []string
	errs := []error{c.adopt(ctx, claims, all.machines)}
	for _, m := range all.machines {
		if !c.settled(m) {
			continue
		}
		if claims[m.Claim] {
			errs = append(errs, c.finish(ctx, m))
			continue
		}
		switch err := c.remove(ctx, m.Claim, m.ProviderID); {
		case err == nil:
			removed = append(removed, m.Claim)
		case errors.Is(err, launch.ErrNotFound):
			c.list.forget() // gone since it was listed, which the next list must confirm
		default:
			errs = append(errs, err)
		}
	}
	return removed, errors.Join(errs...)
}

// settled reports whether a machine is old enough to be finished or removed, and not on its way
// out already.
func (c *collector) settled(m launch.Machine) bool {
	return m.State != launch.Deleting && ageOf(m.Claim, m.Created, &c.ageless, c.now()) >= orphanAge
}

// ageOf is how old a machine is at least: one of which Azure does not say when it was made
// is as old as it has been seen.
func ageOf(name string, created time.Time, ageless *firstSeen, now time.Time) time.Duration {
	if created.IsZero() {
		return ageless.since(name, now)
	}
	return now.Sub(created)
}

// forgetAgeless drops machines that are not there any more.
func (c *collector) forgetAgeless(machines []launch.Machine) {
	present := map[string]bool{}
	for _, m := range machines {
		present[m.Claim] = true
	}
	c.ageless.keep(present)
}

// anything reports whether there may be something to do, by a list that is some time old.
func (c *collector) anything(claims map[string]bool, machines []launch.Machine) bool {
	if c.adoptionDue(claims, machines) {
		return true
	}
	return slices.ContainsFunc(machines, func(m launch.Machine) bool {
		return c.settled(m) && (!claims[m.Claim] || c.lacks(m))
	})
}

// adoptionDue reports whether machines that have lost their tags are to be looked for: a
// NodeClaim has no machine, or it was not done for adoptEvery.
func (c *collector) adoptionDue(claims map[string]bool, machines []launch.Machine) bool {
	missing := maps.Clone(claims)
	for _, m := range machines {
		delete(missing, m.Claim)
	}
	return len(missing) > 0 || c.now().Sub(c.adopted) >= adoptEvery
}

// adopt gives machines that have lost their tags those tags again. While machines is what
// NodeClaims have, nothing that is in use is missing, and it is seldom looked for.
func (c *collector) adopt(ctx context.Context, claims map[string]bool, machines []launch.Machine) error {
	if !c.adoptionDue(claims, machines) {
		return nil
	}
	err := errors.Join(c.adoptMachines(ctx, claims), c.adoptAKSMachines(ctx, claims))
	if err == nil {
		c.adopted = c.now()
	}
	return err
}

// finish does what a machine lacks that has run for a while.
func (c *collector) finish(ctx context.Context, m launch.Machine) error {
	if !c.lacks(m) {
		return nil
	}
	if m.State == launch.Failed {
		if failure, err := c.launcher.Failure(ctx, m.Claim); failure != nil || err != nil {
			return err // it does not run, which the watcher deals with
		}
	}
	return c.watcher.Finish(ctx, m)
}

// lacks reports whether a machine lacks something that nothing is about to do, and that is not
// forbidden.
func (c *collector) lacks(m launch.Machine) bool {
	return m.Unfinished() && m.State != launch.Creating && c.watcher.MayFinish(m.Claim)
}

// counting tells the prices which machines use up what is paid for in advance: it is called
// before Azure is asked for all, and what it returns with the answer.
func counting(prices *price.Book) func([]launch.Machine) {
	before := prices.Change()
	return func(machines []launch.Machine) {
		sizes := map[string]string{}
		for _, m := range machines {
			if m.CapacityType == model.OnDemand && m.State != launch.Deleting {
				sizes[m.Claim] = m.Size
			}
		}
		prices.SetMachines(sizes, before)
	}
}

// interfaces implements Provider.CollectNICs.
func (c *collector) interfaces(ctx context.Context, live func(context.Context) (map[string]bool, error)) ([]string, error) {
	loose, err := c.vms.Lists.LooseNICs(ctx)
	if err != nil {
		return nil, err
	}
	claims, err := live(ctx)
	if err != nil {
		return nil, fmt.Errorf("list NodeClaims: %w", err)
	}
	var removed []string
	errs := []error{c.adoptNICs(ctx, claims, loose)}
	for _, claim := range vm.OrphanClaims(loose, c.config.ClusterName) {
		if claims[claim] {
			continue
		}
		if err := c.remove(ctx, claim, ""); err != nil && !errors.Is(err, launch.ErrNotFound) {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, claim)
	}
	return removed, errors.Join(errs...)
}
