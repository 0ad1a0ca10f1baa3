package purchasebackoff

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Land looks which purchases have led to a running pod, and ends those of which nothing is to
// come. Observe does so, too, but a cluster in which all pods run has no rounds of
// provisioning: pods and machines may come and go between two of them.
func (p *Purchases) Land(snapshot func() *fleet.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := snapshot() // after the lock: it has the claims of all that Bought has told
	p.follow(s)
	for key := range p.landed(s, Workloads{}) {
		if of := p.open[key]; of != nil && !of.decided {
			p.succeeded(key, of)
		}
	}
	wanted := sync.OnceValue(func() map[Workload]bool { return wanting(s) })
	for key, of := range p.open {
		for _, b := range of.claims {
			of.decided = of.decided || p.longReady(b)
		}
		if of.allGone() && !of.seen(s) && (of.decided || !wanted()[key.workload]) {
			delete(p.open, key)
		}
	}
}

// awaits reports whether the outcome of any purchase is awaited.
func (p *Purchases) awaits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.open {
		if !of.decided {
			return true
		}
	}
	return false
}

// succeeded ends a purchase, a pod of which runs.
func (p *Purchases) succeeded(key purchaseKey, of *purchase) {
	of.decided = true
	p.Landings.Succeeded(string(key.workload))
	p.Launches.Succeeded(string(key.workload))
	p.rounds.end(key.workload)
	p.forgiven.end(key.workload)
}

// longReady reports whether a machine became ready so long ago that its purchase cannot fail
// any more.
func (p *Purchases) longReady(b *bought) bool {
	return !b.ready.IsZero() && p.clock.Since(b.ready) > decideWithin
}

// wanting are the workloads of which pods wait, and those of buffers that lack room.
func wanting(s *fleet.Snapshot) map[Workload]bool {
	out, workloads := map[Workload]bool{}, Workloads{}
	for pod := range s.Pods() {
		if pod.Wanted {
			out[workloads.Of(pod)] = true
		}
	}
	for _, pod := range s.BuffersInNeed() {
		out[workloads.Of(pod)] = true
	}
	return out
}

// lookedWithin is how long after the last look at a machine no pod can have run there unseen.
// The loop looks every two seconds while an outcome is awaited.
const lookedWithin = 2 * every

// follow takes in the claims of a snapshot.
func (p *Purchases) follow(s *fleet.Snapshot) {
	here, stays := map[string]bool{}, map[string]bool{}
	for _, pool := range s.Pools() {
		stays[pool.Name] = !pool.Deleting
	}
	for c := range s.AllClaims() {
		if len(c.BoughtFor) == 0 || c.Plan == "" {
			continue
		}
		here[c.Name] = true
		node := s.Node(c.NodeName)
		for _, w := range c.BoughtFor {
			b := p.add(purchaseKey{c.Plan, Workload(w)}, c.Pool, c.Name, c.Created)
			b.observe(c, node, p.clock.Now())
		}
	}
	for _, of := range p.open {
		for name, b := range of.claims {
			b.orphaned = b.orphaned || !stays[of.pool] && (here[name] || !b.gone)
			if !here[name] {
				b.end(p.clock.Now())
			}
		}
	}
}

// observe takes in a claim and its node, nil for none.
func (b *bought) observe(c *fleet.Claim, node *fleet.Node, now time.Time) {
	b.launched = b.launched || c.ProviderID != ""
	b.unbootable = b.unbootable || c.BootFailed
	b.troubled = b.troubled || c.Trouble != ""
	leaves := c.Leaving || c.BootFailed
	initialized := node != nil && node.Initialized
	if b.ready.IsZero() && (initialized || leaves && !c.Initialized.IsZero()) {
		b.ready = now
		if c.Initialized.Before(b.ready) && !c.Initialized.IsZero() {
			b.ready = c.Initialized
		}
	}
	if leaves {
		b.disrupted = b.disrupted || c.Command != nil
		b.end(now)
		return
	}
	b.gone, b.missed = false, false
	if initialized {
		b.looked = now
		b.open = b.open || !cordoned(node)
	}
}

// end notes that the claim has ended, as far as the workload is concerned.
func (b *bought) end(now time.Time) {
	if b.gone {
		return
	}
	b.gone = true
	b.missed = !b.ready.IsZero() && now.Sub(b.looked) > lookedWithin
}

// cordoned reports whether a node was made unschedulable.
func cordoned(n *fleet.Node) bool {
	for _, t := range n.Taints {
		if t.Key == corev1.TaintNodeUnschedulable && t.Effect == model.NoSchedule {
			return true
		}
	}
	return false
}
