package fleet

import (
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// PodSpec is what planning sees of a pod apart from its name, namespace, labels
// and volume claims. Pods with equal specs share one PodSpec as far as possible;
// two specs are equal exactly when their Keys are.
type PodSpec struct {
	// Key is equal for equal specs ([PodSpec.SetKey]).
	Key      string
	Requests Amounts
	model.PodRules
	Spread       []model.SpreadConstraint
	Affinity     []Term
	AntiAffinity []Term
	Preferences  []PreferredTerm
	// AvoidsPools marks pods that ask for a node outside every NodePool: they are
	// not planned.
	AvoidsPools bool
	// Invalid says what no scheduler could grant; empty for a sound pod.
	Invalid string
	// TooMuch says of what the pod states more than is planned; empty for most pods. Such
	// a spec has only Requests, without extended resources, and AntiAffinity.
	TooMuch string
	// DeviceClaims are the pod's resource claims, nil for most pods.
	DeviceClaims []DeviceClaimRef
	// Features are what the kubelet of its node must declare, sorted; nil for most pods.
	Features []string
}

// SetKey sets the key from all other fields.
func (s *PodSpec) SetKey() {
	s.Key = ""
	s.Key = string(model.CompactKey(model.AppendKey(nil, s)))
}

// Term is a pod affinity term before its namespaces are resolved. With neither
// Namespaces nor NamespaceSelector it speaks of the pod's own namespace.
type Term struct {
	TopologyKey       string
	Selector          *model.Selector
	Namespaces        []string
	NamespaceSelector *model.Selector
}

func (t *Term) ownNamespace() bool { return len(t.Namespaces) == 0 && t.NamespaceSelector == nil }

// PreferredTerm is a preferred pod affinity (or anti-affinity) term.
type PreferredTerm struct {
	Weight int32
	Anti   bool
	Term   Term
}

// Labels is an immutable set of labels that many pods share.
type Labels struct {
	Key    string
	Values map[string]string
}

// Owner is the workload that made a pod, as a person names it: the Deployment
// rather than its ReplicaSet.
type Owner struct {
	Kind, Name string
}

// Pod is the record of one pod. There may be hundreds of thousands: what few have is behind a
// pointer, and what is small stands together.
type Pod struct {
	Ref model.PodRef
	// UID and Revision (the resourceVersion) tell one state of one pod from
	// another.
	UID      string
	Revision string
	Spec     *PodSpec
	Labels   *Labels
	Owner    Owner
	// OwnerUID is that of the object that created it, which for a pod of a Deployment is
	// a ReplicaSet.
	OwnerUID string
	// Node is where it is bound, empty while it waits.
	Node string
	// Nominated is the node that a pod which waits is promised to
	// (status.nominatedNodeName), by the scheduler's preemption or by nap. While
	// that node is there, the pod counts on it and is not planned again.
	Nominated string
	// Buffer names the CapacityBuffer, in the pod's namespace, which the pod holds room
	// for; empty for all other pods. Such a virtual pod has its number in Announced, never
	// exists, and makes way for pods that do.
	Buffer string
	// Announced is the number, from 1, of a pod that does not exist: its owner is about
	// to create it. It is 0 for pods that exist.
	Announced int
	// Leaving is set of Terminating pods.
	Leaving *Leaving
	// KeepUntil is until when the pod must not be moved (the do-not-disrupt
	// annotation): zero for pods that may be, [Forever] without an end.
	KeepUntil time.Time
	// EvictionCost is what moving it costs in Karpenter's unit, where a plain pod
	// is 1 (see model.MovableClass).
	EvictionCost float64
	// Claims are the names of its persistent volume claims.
	Claims []string
	// OwnDeviceClaims are the ResourceClaims that were made for the pod from templates, by
	// the pod's words for them; nil until there are any.
	OwnDeviceClaims map[string]string
	// Created orders the pods of a class.
	Created time.Time
	// ReadyAfter is how many seconds after Created a pod that is not Unready became ready, 0 where
	// it does not say.
	ReadyAfter int32
	// Unready pods do not report that they work.
	Unready bool
	// Pattern marks a pod after which those are planned that its owner still has to create: its
	// scheduler is the default one, and it has neither volume claims nor a place by birth. Gated
	// pods wait for a scheduling gate.
	Pattern, Gated bool
	// Wanted marks a pod that waits for a node and that planning should find one
	// for, unless the node of its nomination is there.
	Wanted bool
	// Unjudged marks a wanted pod about which the scheduler has said nothing yet.
	Unjudged bool
	// Terminal pods (succeeded, failed) take nothing; Terminating ones still do.
	Terminal    bool
	Terminating bool
	// Uncounted pods have succeeded, and their Job does not say so yet.
	Uncounted bool
	// Daemon pods belong to a DaemonSet; Static ones to their node.
	Daemon bool
	Static bool
}

// Leaving is when a pod was asked to go, and when the kubelet will have killed it.
type Leaving struct {
	Since, GoneBy time.Time
}

// Forever is a KeepUntil without an end.
var Forever = time.Unix(1<<40, 0)

// Bound reports whether the pod takes room on a node.
func (p *Pod) Bound() bool { return p.Node != "" && !p.Terminal }

// counts reports whether topology rules see the pod where it is, or will be.
func (p *Pod) counts() bool {
	return (p.Node != "" || p.Nominated != "") && !p.Terminal && !p.Terminating
}

// vacatesWithin is the time within which pods that go make room for others: the grace period that
// pods have by default. Hardly any machine that is bought now is there sooner. overdue is how long
// after its time a pod may still be listed; one that stays longer is stuck.
const vacatesWithin, overdue = 30 * time.Second, 5 * time.Second

// vacates reports whether a pod will be gone before a machine that is bought now can take pods.
func vacates(p *Pod, now time.Time) bool {
	if p.Leaving == nil || p.Daemon || p.Static {
		return false
	}
	return p.Leaving.GoneBy.After(now.Add(-overdue)) && !p.Leaving.GoneBy.After(now.Add(vacatesWithin))
}

// stuckInEnding is how long after its time consolidation still counts on the end of a pod.
const stuckInEnding = 30 * time.Second

// endingUntil is until when consolidation waits for the end of a pod: it is decided about its
// node with less on it then. It is zero for a pod that stays, ends later than those with the
// default grace period, should have been gone for long, or whose like comes again.
func endingUntil(p *Pod, now time.Time) time.Time {
	if p.Leaving == nil || p.Terminal || p.Daemon || p.Static || p.Leaving.GoneBy.After(now.Add(vacatesWithin)) {
		return time.Time{}
	}
	if p.Leaving.GoneBy.After(now) {
		return p.Leaving.GoneBy
	}
	if end := p.Leaving.GoneBy.Add(stuckInEnding); end.After(now) {
		return end
	}
	return time.Time{}
}

// Movable reports whether a pod of a node that leaves needs a place elsewhere
// now: it is active (or a StatefulSet's pod on its way out, whose successor
// comes), belongs to neither a DaemonSet nor the node, and nothing forbids to
// evict it.
func (p *Pod) Movable(now time.Time) bool {
	if p.Terminal || p.Daemon || p.Static {
		return false
	}
	if p.Terminating {
		return p.Owner.Kind == "StatefulSet"
	}
	return !p.KeepUntil.After(now)
}

// Daemon is a DaemonSet.
type Daemon struct {
	Namespace, Name string
	Spec            *PodSpec
}

// Budget is a PodDisruptionBudget.
type Budget struct {
	Namespace, Name string
	Selector        *model.Selector
	// Allowed is how many of its pods may be disrupted now.
	Allowed int32
	// Blocking budgets (no disruption ever) keep their pods where they are, so
	// that no place is bought for them. BlockingFrom is from when on a budget counts as one of
	// them, zero for never.
	Blocking     bool
	BlockingFrom time.Time
	// FreesUnready budgets let pods that are not ready go in any case
	// (unhealthyPodEvictionPolicy AlwaysAllow).
	FreesUnready bool
}
