package launch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/quota"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

const (
	// maxAttempts bounds one call: after so many refusals the planner, which knows
	// of them by then, is the better judge.
	maxAttempts = 10
	// maxOfType bounds the refusals of one capacity type in a call: where spot is
	// sold out size after size, on-demand is tried while there is time.
	maxOfType = 5
	// maxDuration is when no further offering is tried. Karpenter gives a claim up
	// that has not launched within five minutes.
	maxDuration = 2 * time.Minute
	// cleanupTimeout is how long a call that gives up still tidies up.
	cleanupTimeout = 30 * time.Second
	// goneTimeout is how long a refused machine may take to disappear before the
	// next one of the same name is asked for.
	goneTimeout = 2 * time.Minute
	// firstGonePoll doubles up to lastGonePoll: how often the removal of one machine
	// is looked at. What nap sees later than it happens, the retry adds.
	firstGonePoll = 250 * time.Millisecond
	lastGonePoll  = 750 * time.Millisecond
	// Where many are removed at once their looks share gonePolls a second, up to
	// longestGonePoll each: Azure grants 25 reads a second for everything.
	gonePolls       = 12
	longestGonePoll = 8 * time.Second
)

// ErrNoCandidate says that nothing is left that could be bought.
var ErrNoCandidate = errors.New("there is nothing to buy")

// Refused is the end of a call in which Azure refused everything that was asked
// for. It wraps the last refusal.
type Refused struct {
	Claim    string
	Attempts int
	Failure  *unavailable.Failure
}

// Error names the claim, how often Azure was asked, and its last answer.
func (r *Refused) Error() string {
	return fmt.Sprintf("buy a machine for NodeClaim %s, %d offerings tried: %v", r.Claim, r.Attempts, r.Failure)
}

// Unwrap gives the last refusal.
func (r *Refused) Unwrap() error { return r.Failure }

// TooDear is the end of a call in which what is left to buy costs more than the machine
// may: a plan that knows of the refusals may find something better.
type TooDear struct {
	// Next is the cheapest that is left, Most what it may cost per hour.
	Next Candidate
	Most model.Money
	// Failure is the last refusal of the call; nil where there was none, because others had
	// been refused what was planned, or prices have changed.
	Failure *unavailable.Failure
}

// Error names what is left, and why what was planned is not to be had.
func (d *TooDear) Error() string {
	why := "what was planned cannot be bought any more"
	if d.Failure != nil {
		why = "Azure refused what was planned with " + d.Failure.Code
	}
	return fmt.Sprintf("planned again: %s, and %s %s at %s costs more than %s", why,
		d.Next.Type.Name, d.Next.Offering.CapacityType, d.Next.Offering.Price, d.Most)
}

// Buyer buys one machine per call.
type Buyer struct {
	launcher  Launcher
	watcher   *Watcher
	catalog   *instancetype.Catalog
	offerings *unavailable.Offerings
	quota     *quota.Tracker
	removing  atomic.Int64 // machines whose disappearance is waited for
}

// NewBuyer returns a buyer; watcher must run for early refusals to be seen.
func NewBuyer(launcher Launcher, watcher *Watcher, c *instancetype.Catalog, offerings *unavailable.Offerings, q *quota.Tracker) *Buyer {
	return &Buyer{launcher: launcher, watcher: watcher, catalog: c, offerings: offerings, quota: q}
}

// Watcher follows the machines that are bought.
func (b *Buyer) Watcher() *Watcher { return b.watcher }

// Purchase is what Buy is to buy.
type Purchase struct {
	// Claim is the NodeClaim's name.
	Claim string
	// Candidates are tried in their order, which is by price.
	Candidates []Candidate
	// Spec makes a candidate what a launcher needs.
	Spec func(Candidate) (NodeSpec, error)
	// MostPrice is the highest price of an offering that may be bought; nil for any.
	MostPrice *model.Money
	// Cover counts the machines that are paid in advance. Where it is nil none is.
	Cover Cover
	// Settle is for how long a purchase is watched once Azure has accepted it: a refusal
	// in that time counts like one at once.
	Settle time.Duration
}

// Cover counts the machines that are paid in advance.
type Cover interface {
	// Take sets cover aside for the on-demand machine of a claim, instead of what the claim has;
	// false where nothing is left for the size.
	Take(claim, size string) bool
	// Gone says that the claim has no machine.
	Gone(claim string)
}

// covered is a candidate at the price at which it is bought: that of a machine that is paid in
// advance as long as there is cover for it, which is set aside.
func (p *Purchase) covered(c Candidate) Candidate {
	if c.Offering.Uncovered == 0 || p.Cover != nil && p.Cover.Take(p.Claim, c.SKU.Name) {
		return c
	}
	return c.withoutCover()
}

// Buy goes down the candidates until Azure sells one. A machine that the claim has
// already is returned instead. The error is *Refused, *TooDear where what is left costs
// more than it may, or ErrNoCandidate when there was nothing to ask for.
func (b *Buyer) Buy(ctx context.Context, p Purchase) (Machine, error) {
	defer b.watcher.Handle(p.Claim)()
	if m, err := b.existing(ctx, p.Claim); !errors.Is(err, ErrNotFound) {
		return m, err
	}
	t := tries{ofType: map[model.CapacityType]int{}, began: time.Now()}
	var dear *TooDear
	for rest := p.Candidates; len(rest) > 0; {
		c := rest[0]
		rest = rest[1:]
		if b.catalog.Unavailable(c.SKU, c.Offering) != "" || t.last != nil && t.last.RulesOut(c.Offering) {
			continue
		}
		if p.MostPrice != nil && c.Offering.Price > *p.MostPrice {
			dear = &TooDear{Next: c, Most: *p.MostPrice, Failure: t.last}
			break
		}
		if t.ofType[c.Offering.CapacityType] == maxOfType {
			continue
		}
		if t.made == maxAttempts || time.Since(t.began) > maxDuration {
			break
		}
		if at := p.covered(c); at.Offering != c.Offering {
			rest = inOrder(append([]Candidate{at}, rest...), p.Claim) // others have the cover: something else may be cheaper
			continue
		}
		m, bought, err := b.try(ctx, &p, c, &t)
		if err != nil || bought {
			return m, err
		}
		if t.last != nil && !t.last.Capacity() {
			break
		}
	}
	if t.made > 0 {
		b.tidy(ctx, p.Claim)
	}
	if p.Cover != nil {
		p.Cover.Gone(p.Claim)
	}
	switch {
	case dear != nil:
		return Machine{}, dear
	case t.last == nil:
		return Machine{}, ErrNoCandidate
	}
	return Machine{}, &Refused{Claim: p.Claim, Attempts: t.made, Failure: t.last}
}

// tries are what one call has asked Azure for.
type tries struct {
	made   int
	ofType map[model.CapacityType]int
	began  time.Time
	// last is the last refusal, nil before the first.
	last *unavailable.Failure
}

// try asks for one candidate, and remembers a refusal. It returns false without an error
// when Azure refused, or others were faster.
func (b *Buyer) try(ctx context.Context, p *Purchase, c Candidate, t *tries) (Machine, bool, error) {
	s, err := p.Spec(c)
	if err != nil {
		return Machine{}, false, err
	}
	if !b.quota.Take(ResourceName(p.Claim), c.Offering.Quotas) {
		return Machine{}, false, nil
	}
	s.Again = t.made > 0
	t.made++
	t.ofType[c.Offering.CapacityType]++
	m, failure, err := b.attemptAgain(ctx, s, c, p.Settle)
	if failure == nil {
		return m, err == nil, err
	}
	t.last = failure
	b.offerings.MarkUnavailable(failure, c.attempt())
	for _, use := range c.Offering.Quotas {
		if use.Quota == failure.Quota() {
			b.quota.Refused(use, figuresOf(failure))
		}
	}
	return Machine{}, false, nil
}

// figuresOf is what a refusal says of the quota that is used up, nil where it does not.
func figuresOf(failure *unavailable.Failure) *quota.Line {
	limit, used, told := failure.Usage()
	if !told {
		return nil
	}
	return &quota.Line{Name: failure.Quota(), Limit: limit, Used: used}
}

// existing finds the machine that an earlier call bought.
func (b *Buyer) existing(ctx context.Context, claim string) (Machine, error) {
	m, err := b.launcher.Get(ctx, claim)
	if err != nil {
		return Machine{}, err
	}
	switch m.State {
	case Succeeded:
		if m.Unfinished() {
			b.watcher.Follow(m) // an earlier process did not get to it
		}
		return m, nil
	case Creating:
		b.watcher.Follow(m)
		return m, nil
	case Failed:
		failure, err := b.launcher.Failure(ctx, claim)
		if err != nil {
			return Machine{}, err
		}
		if failure == nil || b.watcher.bootFailed(m, failure) {
			return m, nil // it runs, and a later change of it failed; or its boot did
		}
		b.watcher.remember(m, failure)
	default: // Deleting: it is removed, and another one made, below
	}
	b.watcher.Forget(claim)
	if err := b.remove(ctx, claim); err != nil {
		return Machine{}, err
	}
	return Machine{}, ErrNotFound
}

// attempt asks for one machine, whose quota is taken, and watches it for a while. A
// refusal is returned apart from errors that say nothing about the offering.
func (b *Buyer) attempt(ctx context.Context, s NodeSpec, settle time.Duration) (Machine, *unavailable.Failure, error) {
	name := ResourceName(s.Claim)
	b.watcher.metrics.start(s)
	m, err := b.launcher.Start(ctx, s)
	if err != nil {
		// A cancelled call leaves open whether Azure has accepted; then the
		// reservation stays until the watcher or the next call knows.
		failure := unavailable.Classify(err)
		b.watcher.metrics.refused(s, failure)
		if failure != nil || ctx.Err() == nil {
			b.quota.Release(name)
		}
		if failure == nil {
			return Machine{}, nil, err
		}
		return Machine{}, failure, nil
	}
	if m.Created.IsZero() {
		m.Created = time.Now() // Azure has just accepted it, and bills it from now on
	}
	if m.Size != s.SKU.Name {
		b.watcher.reserve(m) // another process was faster, and chose differently
	}
	outcome := b.watcher.Await(ctx, m, settle)
	if outcome.Failure != nil {
		if err := b.remove(ctx, s.Claim); err != nil {
			return Machine{}, nil, err
		}
		return Machine{}, outcome.Failure, nil
	}
	if outcome.Done {
		m.State = Succeeded
	}
	return m, nil, nil
}

// attemptAgain is attempt, and once more where the refusal passes.
func (b *Buyer) attemptAgain(ctx context.Context, s NodeSpec, c Candidate, settle time.Duration) (Machine, *unavailable.Failure, error) {
	m, failure, err := b.attempt(ctx, s, settle)
	if failure != nil && failure.AskAgain() && b.quota.Take(ResourceName(s.Claim), c.Offering.Quotas) {
		s.Again = true
		return b.attempt(ctx, s, settle)
	}
	return m, failure, err
}

// remove deletes a claim's machine and waits until its name is free again.
func (b *Buyer) remove(ctx context.Context, claim string) error {
	ctx, cancel := context.WithTimeout(ctx, goneTimeout)
	defer cancel()
	b.removing.Add(1)
	defer b.removing.Add(-1)
	for wait := firstGonePoll; ; wait = min(2*wait, lastGonePoll) {
		err := b.launcher.Delete(ctx, claim)
		if errors.Is(err, ErrNotFound) {
			b.quota.Release(ResourceName(claim))
			return nil
		}
		if err != nil {
			return fmt.Errorf("remove the refused machine of NodeClaim %s: %w", claim, err)
		}
		share := time.Duration(b.removing.Load()) * time.Second / gonePolls
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the refused machine of NodeClaim %s to disappear: %w", claim, ctx.Err())
		case <-time.After(min(max(wait, share), longestGonePoll)):
		}
	}
}

// tidy removes what refused attempts left behind. What it cannot remove, the
// garbage collection finds later. A machine that lives was made by another process.
func (b *Buyer) tidy(ctx context.Context, claim string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if m, err := b.launcher.Get(ctx, claim); err == nil && (m.State == Creating || m.State == Succeeded) {
		b.watcher.Follow(m)
		return
	}
	if err := b.launcher.Delete(ctx, claim); err != nil && !errors.Is(err, ErrNotFound) {
		b.watcher.log.Warn("cleanup after refused launch failed; garbage collection will do it", "nodeClaim", claim, "error", err)
	}
}
