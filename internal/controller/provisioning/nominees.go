package provisioning

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// nominees are the pods that are promised to machines which have been bought. They say which
// nominations are to be written next. They are safe for concurrent use.
type nominees struct {
	clock clock.Clock

	mu sync.Mutex
	// groups are the promised pods of each claim.
	groups map[string]*group
	// claims finds a pod's group.
	claims map[types.UID]string
	// written is what was last written and is not known to be withdrawn, by pod: a
	// nomination of any other origin is left alone.
	written map[types.UID]string
	// withdrawn are the pods whose promise has ended without a place; withdrawals are the
	// requests that say so to the scheduler and are still to be made.
	withdrawn   []types.UID
	withdrawals []request
}

// group are the pods that are promised to one claim's machine.
type group struct {
	// node is empty until the machine has registered, ready zero until it is
	// initialized. allocatable is the node's.
	node        string
	allocatable corev1.ResourceList
	ready       time.Time
	pods        map[types.UID]*nominee
}

type nominee struct {
	key      types.NamespacedName
	requests fleet.Amounts
	// share is the part of its node that it takes, once that has registered.
	share float64
	// zones is how many zones the pod can go to, or anyZone, see zonesOpen.
	zones int
	// kind is equal for pods that are alike in everything that the scheduler looks at.
	kind string
	// rules bound how many pods may be nominated for one node at once.
	rules []spreadRule
	// wanted says that a nomination is to be written: none has been, or the scheduler has
	// taken it back.
	wanted bool
	// tries counts the nominations so far, the last at that time. The scheduler
	// takes one back when it looks at the pod before the node is ready.
	tries int
	last  time.Time
	// offered says that a nomination was written once the node was ready: if the
	// scheduler takes that back, the pod does not pass there. Of pods with rules it says
	// nothing: they pass when it is the turn of their zone.
	offered bool
}

// A nomination that the scheduler has taken back is repeated, until there have
// been this many and with at least this pause: each costs a request.
const (
	nominateTries = 3
	nominatePause = time.Second
)

func newNominees(clk clock.Clock) *nominees {
	return &nominees{
		clock: clk, groups: map[string]*group{}, claims: map[types.UID]string{}, written: map[types.UID]string{},
	}
}

// put promises a claim's machine to a pod.
func (n *nominees) put(uid types.UID, pod *nominee, claim string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(uid)
	g := n.groups[claim]
	if g == nil {
		g = &group{pods: map[types.UID]*nominee{}}
		n.groups[claim] = g
	}
	pod.wanted = true
	pod.share = shareOfNode(&pod.requests, g.allocatable)
	g.pods[uid] = pod
	n.claims[uid] = claim
}

// drop ends a promise; mu is held.
func (n *nominees) drop(uid types.UID) {
	claim, known := n.claims[uid]
	if !known {
		return
	}
	delete(n.claims, uid)
	delete(n.groups[claim].pods, uid)
	if len(n.groups[claim].pods) == 0 {
		delete(n.groups, claim)
	}
}

// arrived takes in that a claim's machine has registered, and reports whether pods are
// promised to it.
func (n *nominees) arrived(claim string, node *corev1.Node, initialized bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	g := n.groups[claim]
	if g == nil {
		return false
	}
	if g.node != node.Name || !maps.EqualFunc(g.allocatable, node.Status.Allocatable, resource.Quantity.Equal) {
		g.node, g.allocatable = node.Name, node.Status.Allocatable
		for _, p := range g.pods {
			p.share = shareOfNode(&p.requests, g.allocatable)
		}
	}
	if g.ready.IsZero() && initialized {
		g.ready = n.clock.Now()
	}
	return true
}

// seen takes in the state of a pod: one that has found its place is forgotten, and one whose
// nomination is not there gets it once more.
func (n *nominees) seen(pod *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	claim, known := n.claims[pod.UID]
	switch {
	case !known:
	case pod.Spec.NodeName != "", pod.DeletionTimestamp != nil:
		n.drop(pod.UID)
		delete(n.written, pod.UID)
	case pod.Status.NominatedNodeName == "":
		n.groups[claim].pods[pod.UID].wanted = true
	}
}

// request is one nomination to write; an empty node withdraws it.
type request struct {
	key  types.NamespacedName
	uid  types.UID
	node string
}

// anyZone is more than there are zones.
const anyZone = math.MaxInt

// few are so many pods that their nominations cost nothing.
const few = 16

// next are at most limit nominations that are to be written now. What is withdrawn comes
// first, then pods with the fewest zones to go to: where pods are spread over zones, one that
// can go anywhere would take the place of one whose volume is in a zone, and bind its own there
// for ever. Of these the ones come first that take most of their node: the scheduler fills the
// rest with small ones in any order. Where many pods wait for machines that are all alike, none
// is nominated: it does not matter which of them comes to which node.
func (n *nominees) next(limit int) []request {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := slices.Clone(n.withdrawals[:min(limit, len(n.withdrawals))])
	n.withdrawals = n.withdrawals[len(out):]
	if len(n.claims) > few && n.alike() {
		return out
	}
	var first []dueNominee
	for _, g := range n.groups {
		for _, d := range g.due(n.clock, n.written) {
			first = keepFirst(first, d, limit-len(out))
		}
	}
	for _, l := range first {
		out = append(out, l.request)
	}
	return out
}

// dueNominee is a nomination that is to be written.
type dueNominee struct {
	request
	zones int
	share float64
	rules []spreadRule
}

// due are the nominations of a group that are to be written, as far as rules of spreading
// let their pods pass together, in no order; written are those that were last written, by pod.
func (g *group) due(clk clock.Clock, written map[types.UID]string) []dueNominee {
	if g.node == "" {
		return nil
	}
	var due, ruled []dueNominee
	for uid, p := range g.pods {
		if !p.wanted || !p.due(clk) {
			continue
		}
		d := dueNominee{request{p.key, uid, g.node}, p.zones, p.share, p.rules}
		if len(p.rules) == 0 {
			due = append(due, d)
		} else {
			ruled = append(ruled, d)
		}
	}
	if len(ruled) == 0 {
		return due
	}
	slices.SortFunc(ruled, compareDue)
	room := g.spreadRoom(written)
	for _, d := range ruled {
		if room.take(d.rules) {
			due = append(due, d)
		}
	}
	return due
}

// compareDue puts the fewest zones first, then the largest share, and then orders by name.
func compareDue(a, b dueNominee) int {
	return cmp.Or(cmp.Compare(a.zones, b.zones), cmp.Compare(b.share, a.share),
		cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
}

// keepFirst adds one to at most limit nominations, which are sorted.
func keepFirst(sorted []dueNominee, one dueNominee, limit int) []dueNominee {
	i, _ := slices.BinarySearchFunc(sorted, one, compareDue)
	if i >= limit {
		return sorted
	}
	return slices.Insert(sorted, i, one)[:min(len(sorted)+1, limit)]
}

// alike reports whether all promised pods are of one kind; mu is held.
func (n *nominees) alike() bool {
	first := ""
	for _, g := range n.groups {
		for _, p := range g.pods {
			if first == "" {
				first = p.kind
			}
			if p.kind != first {
				return false
			}
		}
	}
	return true
}

// due reports whether a pod may be nominated once more.
func (p *nominee) due(clk clock.Clock) bool {
	return p.tries < nominateTries && !p.offered && clk.Since(p.last) >= nominatePause
}

// shareOfNode is the part of a node that a pod takes of the resource of which it takes most.
func shareOfNode(requests *fleet.Amounts, allocatable corev1.ResourceList) float64 {
	most := 0.0
	of := func(name corev1.ResourceName, amount int64, value func(*resource.Quantity) int64) {
		q := allocatable[name]
		if all := value(&q); all > 0 {
			most = max(most, float64(amount)/float64(all))
		}
	}
	of(corev1.ResourceCPU, requests.CPU, (*resource.Quantity).MilliValue)
	of(corev1.ResourceMemory, requests.Memory, (*resource.Quantity).Value)
	for _, e := range requests.Extended {
		of(corev1.ResourceName(e.Name), e.Value, (*resource.Quantity).Value)
	}
	return most
}

// begin books a request before it is made, and reports whether it should be: the promise may
// have ended meanwhile, or be one of another machine.
func (n *nominees) begin(r request) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.node == "" {
		return true // it counts as written until it has been withdrawn
	}
	claim, known := n.claims[r.uid]
	if !known {
		return false
	}
	g := n.groups[claim]
	if g.node != r.node {
		return false
	}
	p := g.pods[r.uid]
	p.wanted, p.tries, p.last, p.offered = false, p.tries+1, n.clock.Now(), !g.ready.IsZero() && len(p.rules) == 0
	n.written[r.uid] = r.node
	return true
}

// made books that a request has been made. What was written is forgotten with its
// withdrawal, unless the pod is promised to another machine by now.
func (n *nominees) made(r request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, promised := n.claims[r.uid]; r.node == "" && !promised {
		delete(n.written, r.uid)
	}
}

// again books that a request has failed.
func (n *nominees) again(r request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	claim, known := n.claims[r.uid]
	switch {
	case r.node == "":
		n.withdrawals = append(n.withdrawals, r)
	case known:
		p := n.groups[claim].pods[r.uid]
		p.wanted, p.offered = true, false
	}
}

// satisfied books that a pod needs no nomination by nap, since it has one.
func (n *nominees) satisfied(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if claim, known := n.claims[uid]; known {
		n.groups[claim].pods[uid].wanted = false
	}
}

// forget ends a promise that needs no withdrawing.
func (n *nominees) forget(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(uid)
	delete(n.written, uid)
}

// found remembers a nomination that an earlier process wrote.
func (n *nominees) found(pod *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written[pod.UID] = pod.Status.NominatedNodeName
}

// ours is the node to which nap has nominated a pod, empty for none.
func (n *nominees) ours(uid types.UID) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.written[uid]
}

// promised is the node of the machine that a pod is promised to, empty where there is none.
func (n *nominees) promised(uid types.UID) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	claim, known := n.claims[uid]
	if !known {
		return ""
	}
	return n.groups[claim].node
}

// end takes back the promises of some groups: their nominations are withdrawn.
func (n *nominees) end(which func(claim string, g *group) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ended []request
	for claim, g := range n.groups {
		if !which(claim, g) {
			continue
		}
		for uid, p := range g.pods {
			ended = append(ended, request{p.key, uid, ""})
		}
	}
	for _, r := range ended {
		n.drop(r.uid)
		n.withdrawn = append(n.withdrawn, r.uid)
	}
	slices.SortFunc(ended, func(a, b request) int { return strings.Compare(a.key.String(), b.key.String()) })
	n.withdrawals = append(n.withdrawals, ended...)
}

// anyReady reports whether pods are promised to a machine that has been ready for so long.
func (n *nominees) anyReady(d time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range n.groups {
		if g.readyFor(n.clock, d) {
			return true
		}
	}
	return false
}

// readyFor reports whether the machine of a group has been ready for so long.
func (g *group) readyFor(clk clock.Clock, d time.Duration) bool {
	return !g.ready.IsZero() && clk.Since(g.ready) >= d
}

// endPods takes back the promises of these pods on machines that have been ready for so
// long; 0 is all machines.
func (n *nominees) endPods(uids []types.UID, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, uid := range uids {
		claim, known := n.claims[uid]
		if !known || d > 0 && !n.groups[claim].readyFor(n.clock, d) {
			continue
		}
		n.withdrawals = append(n.withdrawals, request{n.groups[claim].pods[uid].key, uid, ""})
		n.withdrawn = append(n.withdrawn, uid)
		n.drop(uid)
	}
}

// takeWithdrawn returns, once, the pods whose promise has ended.
func (n *nominees) takeWithdrawn() []types.UID {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.withdrawn
	n.withdrawn = nil
	return out
}
