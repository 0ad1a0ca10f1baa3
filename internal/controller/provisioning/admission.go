package provisioning

import (
	"fmt"

	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
)

// admission decides whether anything may be bought now, for which pods, and which of a
// plan's new machines.
type admission struct {
	notBuying     func() string // nil: never
	backoff       *backoff
	registrations *purchasebackoff.Registrations
	ceiling       *purchasebackoff.Ceiling
}

// closed is why nothing may be bought now; empty while machines may be.
func (a *admission) closed() string {
	if a.notBuying == nil {
		return ""
	}
	return a.notBuying()
}

// look reads of every NodePool whether its AKSNodeClass may be bought from: paused
// ones are left out of the plan, of those that probe a single machine is bought.
func (a *admission) look(in *planInputs) (paused map[string]string) {
	paused, in.probing = map[string]string{}, map[string]purchasebackoff.Record{}
	for name, pool := range in.pools {
		switch verdict, record := a.registrations.AskPool(pool); verdict {
		case purchasebackoff.Open:
			paused[name] = purchasebackoff.Text(&record)
		case purchasebackoff.Probe:
			in.probing[name] = record
		case purchasebackoff.Closed:
		}
	}
	return paused
}

// admit parts drafts into those that may be bought and those that may not, with the
// reason of each. The order stays.
func (a *admission) admit(in *planInputs, drafts []*draft) (admitted []*draft, refused []result) {
	if len(drafts) == 0 {
		return nil, nil
	}
	room, why := a.ceiling.Room(in.snapshot)
	probed := map[string]bool{}
	for _, d := range drafts {
		record, probing := in.probing[d.pool]
		switch {
		case len(admitted) >= room:
			refused = append(refused, result{draft: d, refused: fmt.Sprintf("no machine is bought for it now: %s", why)})
		case probing && probed[record.Key]:
			text := fmt.Sprintf("NodePool %s buys one machine at a time: %s", d.pool, purchasebackoff.Text(&record))
			refused = append(refused, result{draft: d, refused: text})
		default:
			if probing {
				probed[record.Key] = true
			}
			admitted = append(admitted, d)
		}
	}
	a.ceiling.Bought(len(admitted))
	return admitted, refused
}
