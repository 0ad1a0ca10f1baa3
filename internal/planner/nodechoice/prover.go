package nodechoice

import (
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/concurrent"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
)

// Prover proves bounds in another goroutine while plans are made, one at a time.
type Prover struct {
	in *instance.Instance
	// clock is that of the plan; each proof has a child of it.
	clock meter.Clock
	// last is the proof that was started last, or nil.
	last *Proof
}

// Proof is a bound that is known once the running goroutine has ended.
type Proof struct {
	target  Target
	floor   model.Money
	running concurrent.Group
}

// NewProver proves nothing yet.
func NewProver(in *instance.Instance, clock meter.Clock) *Prover {
	return &Prover{in: in, clock: clock}
}

// Start begins a proof. It runs when the one before is done.
func (p *Prover) Start(t Target, policy *model.Policy) *Proof {
	proof, before, clock := &Proof{target: t}, p.last, p.clock.Child("proof")
	p.last = proof
	proof.running.Go(func() {
		if before != nil {
			before.running.Wait()
		}
		proof.floor = Bound(p.in, t, policy, clock)
	})
	return proof
}

// Wait returns when nothing is being proven any more.
func (p *Prover) Wait() {
	if p.last != nil {
		p.last.running.Wait()
	}
}

// Bound is the target's bound: that of the proof, which may be nil, if it speaks of the
// same target, or else one that is proven now.
func (p *Prover) Bound(proof *Proof, t Target, policy *model.Policy) model.Money {
	if proof != nil && proof.target.same(&t) {
		proof.running.Wait()
		return proof.floor
	}
	return Bound(p.in, t, policy, p.clock.Child("proof"))
}
