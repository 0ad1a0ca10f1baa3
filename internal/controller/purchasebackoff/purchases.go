package purchasebackoff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// landingPolicy is for machines that were there and that no pod of the workload came
// to. A new machine with the same fault costs money, so the third failure in a row
// ends it for a while. The first pauses let the scheduler and DaemonSets come to rest.
func landingPolicy() Policy {
	return Policy{
		Pauses: []time.Duration{5 * time.Second, 30 * time.Second, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour},
		Probes: 2,
	}
}

// launchPolicy is for NodeClaims that end without a machine. Nothing was bought then,
// and what Azure refused rests already, so that the next plan asks for something else:
// the pauses grow from nothing.
func launchPolicy() Policy {
	return Policy{
		Pauses: []time.Duration{0, time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second,
			30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute},
		Probes: 5,
	}
}

const (
	// settleWithin is how long a machine is given, once it is ready, until pods count
	// as not having come.
	settleWithin = 5 * time.Second
	// roomSettles is how long a machine is given until room on it for virtual pods counts. It
	// takes some seconds until the room is looked at again after a pod has come there.
	roomSettles = 15 * time.Second
	// decideWithin is how long after a machine became ready its purchase may still
	// fail. What happens later is no consequence of it.
	decideWithin = 10 * time.Minute
)

// Purchases follow what is bought for workloads. A purchase for a workload is what one plan
// buys for it, however many machines that are. It succeeds when a pod of the workload
// runs on one of the machines, and fails when the machines are there, or gone, and
// pods of the workload still wait, unless others have ended the machines. One goroutine
// calls Observe; the rest is safe for concurrent use.
type Purchases struct {
	clock clock.Clock
	// Landings counts machines that no pod came to, Launches NodeClaims that ended
	// without a machine; both by Workload.
	Landings, Launches *Breaker
	// Sizes learn from the nodes that Observe looks at.
	Sizes *Sizes

	mu sync.Mutex
	// open are the purchases whose outcome is not known, and those that are decided
	// and whose claims still exist.
	open map[purchaseKey]*purchase
	// unsold is when claims ended by refusals, by name; rounds counts the plans
	// that came to nothing thereby.
	unsold map[string]time.Time
	rounds *rounds
	// forgiven counts purchases in a row whose outcome says nothing about their workload.
	forgiven *forgiven
}

type purchaseKey struct {
	plan     string
	workload Workload
}

type purchase struct {
	pool string
	made time.Time
	// claims are the purchase's claims by name.
	claims map[string]*bought
	// again is whether a claim of it ended by refusals, so that its pods are planned again.
	again bool
	// decided purchases are kept only until their claims are gone, so that they are
	// not decided twice.
	decided bool
}

// bought is one machine of a purchase as it was last seen.
type bought struct {
	// launched is whether there has been a machine, gone whether the claim has ended or
	// its machine says that it cannot become a node.
	launched, gone bool
	// unbootable is whether the machine has said that it cannot become a node, troubled
	// whether the cloud has said why there is no machine.
	unbootable, troubled bool
	// orphaned is whether its NodePool is gone or about to go, disrupted whether a disruption
	// command has ended it.
	orphaned, disrupted bool
	// ready is since when the node can run pods, zero before.
	ready time.Time
	// looked is when the node was last seen with the claim and able to run pods, zero before.
	looked time.Time
	// open is whether the node was once seen so and not cordoned.
	open bool
	// holds is whether virtual pods of the workload had room on the node in the last round, held
	// whether they had in any.
	holds, held bool
	// missed claims are gone and were ready in between, at a time when they were not looked at:
	// pods may have run there.
	missed bool
}

// NewPurchases returns purchases without a past.
func NewPurchases(clk clock.Clock) *Purchases {
	return &Purchases{
		clock: clk, open: map[purchaseKey]*purchase{}, Sizes: NewSizes(clk),
		unsold: map[string]time.Time{}, rounds: newRounds(clk), forgiven: newForgiven(clk),
		Landings: NewBreaker(landingPolicy(), clk), Launches: NewBreaker(launchPolicy(), clk),
	}
}

// View is the cluster as a plan is about to see it.
type View struct {
	Snapshot *fleet.Snapshot
	// Waiting are the pods that are planned again: they wait, and have no place on a
	// machine that is on its way. Of virtual pods those that have no room without a purchase.
	Waiting []*fleet.Pod
	// Holds reports whether virtual pods of a workload have room on the node of a claim,
	// which can run pods.
	Holds func(w Workload, claim string) bool
	// Explain says in words why the node of a claim does not take a pod, or "" when
	// nothing is known to speak against it.
	Explain func(claim string, pod *fleet.Pod) string
	// Explained reports whether it is known why a machine did not become a node, so
	// that it says nothing about the pods that it was bought for.
	Explained func(claim string) bool
	// Counted reports whether a machine that cannot become a node is counted for its
	// AKSNodeClass.
	Counted func(claim string) bool
	// Pending reports whether places on the machine of a claim are still kept for
	// pods: until the scheduler has come to rest nothing is decided.
	Pending func(claim string) bool
	// Circumstances change when something is changed that may remove the cause.
	Circumstances string
}

// Outcome is a purchase that came to nothing.
type Outcome struct {
	Workload Workload
	Pool     string
	Why      string
	// Launched is whether there was a machine.
	Launched bool
	// Pods are those of the workload that wait, the oldest first.
	Pods []*fleet.Pod
	// Record is what is known of the workload now.
	Record Record
}

// Observe looks at what has become of purchases and returns those that failed since
// the last look.
func (p *Purchases) Observe(v View) []Outcome {
	p.Sizes.Learn(v.Snapshot)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow(v.Snapshot)
	if len(p.open) == 0 {
		return nil
	}
	p.countRounds()
	workloads := Workloads{}
	waiting := map[Workload][]*fleet.Pod{}
	for _, pod := range v.Waiting {
		w := workloads.Of(pod)
		waiting[w] = append(waiting[w], pod)
	}
	p.lookForRoom(v.Holds)
	landed := p.landed(v.Snapshot, workloads)
	var out []Outcome
	for key, of := range p.open {
		if !of.decided {
			if landed[key] {
				p.succeeded(key, of)
			} else if o := p.decide(key, of, v, waiting[key.workload]); o != nil {
				out = append(out, *o)
			}
		}
		if of.allGone() && !of.seen(v.Snapshot) && (of.decided || len(waiting[key.workload]) == 0) {
			delete(p.open, key)
		}
	}
	slices.SortFunc(out, func(x, y Outcome) int { return cmp.Compare(x.Workload, y.Workload) })
	return out
}

// Bought says that a plan has created a claim of a NodePool for workloads. What is
// created may be gone again before the next look.
func (p *Purchases) Bought(plan, pool, claim string, workloads []Workload) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range workloads {
		p.add(purchaseKey{plan, w}, pool, claim, p.clock.Now())
	}
}

// add returns what is known of a claim of a purchase, which it adds where needed.
func (p *Purchases) add(key purchaseKey, pool, claim string, created time.Time) *bought {
	of := p.open[key]
	if of == nil {
		of = &purchase{pool: pool, made: created, claims: map[string]*bought{}}
		p.open[key] = of
	}
	b := of.claims[claim]
	if b == nil {
		b = &bought{}
		of.claims[claim] = b
	}
	return b
}

// landed are the purchases with a pod of their workload on one of their machines, or with room
// for its virtual pods that has lasted.
func (p *Purchases) landed(s *fleet.Snapshot, workloads Workloads) map[purchaseKey]bool {
	plans := map[string]string{} // plan by node
	out := map[purchaseKey]bool{}
	for key, of := range p.open {
		if of.decided {
			continue
		}
		for name, b := range of.claims {
			if b.holds && !b.gone && p.clock.Since(b.ready) >= roomSettles {
				out[key] = true
			}
			if c := s.Claim(name); c != nil && c.NodeName != "" {
				plans[c.NodeName] = key.plan
			}
		}
	}
	if len(plans) == 0 {
		return out
	}
	for pod := range s.Pods() {
		if plan, on := plans[pod.Node]; on && !pod.Daemon && !pod.Static {
			out[purchaseKey{plan, workloads.Of(pod)}] = true
		}
	}
	return out
}

// decide says how a purchase ended for pods that still wait, or nil when it has not
// ended or not failed.
func (p *Purchases) decide(key purchaseKey, of *purchase, v View, waiting []*fleet.Pod) *Outcome {
	launched := false
	for name, b := range of.claims {
		switch {
		case p.longReady(b):
			of.decided = true
			return nil
		case b.gone:
		case b.holds: // it is yet to be seen whether the room lasts
			return nil
		case b.ready.IsZero() || v.Pending(name) || p.clock.Since(b.ready) < settleWithin:
			return nil
		}
		if v.Explained(name) {
			of.decided = true
			return nil
		}
		launched = launched || b.launched
	}
	if len(waiting) == 0 {
		return nil
	}
	of.decided = true
	if of.again && !launched || (!p.speaks(of, v.Snapshot) || of.premature(waiting)) && p.forgiven.forgive(key.workload, of.made) {
		return nil
	}
	why, used := p.why(of, v, waiting[0])
	if used {
		return nil
	}
	out := &Outcome{Workload: key.workload, Pool: of.pool, Launched: launched, Pods: waiting, Why: why}
	if of.unbootable(v.Counted) {
		// The class answers for it: nothing speaks against another machine of another one.
		out.Record = Record{Key: string(key.workload), Until: p.clock.Now()}
		return out
	}
	breaker := p.Launches
	if launched {
		breaker = p.Landings
	}
	f := Failure{Purchase: key.plan, Pool: of.pool, Why: out.Why}
	if !breaker.Failed(string(key.workload), f, of.made, v.Circumstances) {
		return nil
	}
	_, out.Record = breaker.Ask(string(key.workload), v.Circumstances)
	return out
}

// why tells what became of the machines of a failed purchase: of the first one that
// is there, or that it is gone. It is used when a machine is as it was promised and
// pods of others have taken the room: then the purchase was not in vain.
func (p *Purchases) why(of *purchase, v View, pod *fleet.Pod) (text string, used bool) {
	speaks := p.speaks(of, v.Snapshot)
	for _, name := range slices.Sorted(maps.Keys(of.claims)) {
		b, claim := of.claims[name], v.Snapshot.Claim(name)
		switch {
		case speaks && !p.machineSpeaks(name, b, v.Snapshot):
		case !b.gone && claim != nil && v.Snapshot.Node(claim.NodeName) != nil:
			found := compareWithPromise(v.Snapshot, claim)
			if found.others > 0 && len(found.differences) == 0 {
				return "", true
			}
			return found.text(claim.NodeName, v.Explain(name, pod)), false
		case b.unbootable:
			text = fmt.Sprintf("the machine of NodeClaim %s does not become a node, as its condition Booted says", name)
		case !b.ready.IsZero():
			text = fmt.Sprintf("NodeClaim %s ended before a pod ran on its machine", name)
		case b.launched:
			text = fmt.Sprintf("NodeClaim %s ended before its machine could run pods", name)
		case text == "":
			text = fmt.Sprintf("NodeClaim %s ended without a machine", name)
		}
	}
	return text, false
}

// unbootable reports whether the purchase failed because of machines alone that cannot
// become nodes and are counted as such.
func (of *purchase) unbootable(counted func(claim string) bool) bool {
	any := false
	for name, b := range of.claims {
		switch {
		case b.unbootable && counted(name):
			any = true
		case !b.gone || b.launched:
			return false
		}
	}
	return any
}

// seen reports whether a claim of the purchase still exists: follow would take it for a
// new purchase.
func (of *purchase) seen(s *fleet.Snapshot) bool {
	for name := range of.claims {
		if s.Claim(name) != nil {
			return true
		}
	}
	return false
}

func (of *purchase) allGone() bool {
	for _, b := range of.claims {
		if !b.gone {
			return false
		}
	}
	return true
}

// Ask says whether something may be bought for a workload, with the record that says
// so.
func (p *Purchases) Ask(w Workload, circumstances string) (Verdict, Record) {
	verdict, record := p.Landings.Ask(string(w), circumstances)
	if v, r := p.Launches.Ask(string(w), circumstances); v > verdict {
		verdict, record = v, r
	}
	if verdict == Probe && p.underWay(w) {
		return Open, record
	}
	if until := p.settles(w); verdict != Open && until.After(p.clock.Now()) {
		return Open, Record{Key: string(w), Until: until}
	}
	return verdict, record
}

// Follows reports whether anything is known of purchases for a workload: their outcome is
// awaited, or some have failed.
func (p *Purchases) Follows(w Workload) bool {
	return p.underWay(w) || p.Landings.knows(string(w)) || p.Launches.knows(string(w))
}

// underWay reports whether the outcome of a purchase is awaited.
func (p *Purchases) underWay(w Workload) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, of := range p.open {
		if key.workload == w && !of.decided {
			return true
		}
	}
	return false
}

// Quiet reports whether nothing is known that speaks against any purchase.
func (p *Purchases) Quiet() bool { return p.Landings.empty() && p.Launches.empty() }
