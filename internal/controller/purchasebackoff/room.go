package purchasebackoff

import "time"

// lookForRoom takes in where virtual pods have room now. holds is nil where that was not looked at.
func (p *Purchases) lookForRoom(holds func(w Workload, claim string) bool) {
	for key, of := range p.open {
		if !key.workload.virtual() || of.decided {
			continue
		}
		for name, b := range of.claims {
			b.holds = holds != nil && !b.gone && !b.ready.IsZero() && holds(key.workload, name)
			b.held = b.held || b.holds
		}
	}
}

// settles is until when nothing more is bought for a buffer, one of whose machines has just become
// ready and has had no room for it yet: its outcome is not known yet. It is zero without such a machine.
// Pods that exist have reservations for that time, see package provisioning.
func (p *Purchases) settles(w Workload) (until time.Time) {
	if !w.virtual() {
		return until
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, of := range p.open {
		if key.workload != w || of.decided {
			continue
		}
		for _, b := range of.claims {
			if b.held {
				return time.Time{}
			}
			if end := b.ready.Add(settleWithin); !b.gone && !b.ready.IsZero() && end.After(until) {
				until = end
			}
		}
	}
	return until
}
