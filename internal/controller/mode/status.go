package mode

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/controller/outage"
)

// named is how many nodes and NodePools a message names; the rest is counted.
const named = 5

// Blockers names the nodes and NodePools for which mode Manual is refused; empty when
// nothing blocks it.
func Blockers(claims []karpv1.NodeClaim, pools []karpv1.NodePool) string {
	var nodes, open []string
	for i := range claims {
		nodes = append(nodes, cmp.Or(claims[i].Status.NodeName, claims[i].Name))
	}
	for i := range pools {
		if MayBuy(&pools[i]) {
			open = append(open, pools[i].Name)
		}
	}
	var out []string
	if len(nodes) > 0 {
		out = append(out, fmt.Sprintf("%s %s", plural(len(nodes), "node"), some(nodes)))
	}
	if len(open) > 0 {
		out = append(out, fmt.Sprintf("%s %s may buy (spec.limits.cpu is not 0)", plural(len(open), "NodePool"), some(open)))
	}
	return strings.Join(out, ", ")
}

// MayBuy reports whether a NodePool may buy machines: its limit of CPU is not zero, or it
// is static and wants nodes.
func MayBuy(pool *karpv1.NodePool) bool {
	if pool.DeletionTimestamp != nil {
		return false
	}
	if pool.Spec.Replicas != nil {
		return *pool.Spec.Replicas > 0
	}
	limit, limited := pool.Spec.Limits["cpu"]
	return !limited || !limit.IsZero()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// some lists the first names in order, and counts the rest.
func some(names []string) string {
	slices.Sort(names)
	if len(names) <= named {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:named], ", "), len(names)-named)
}

// conditions brings the conditions up to date.
func (k *Keeper) conditions(object *v1alpha1.NodeAutoProvisioning) {
	prerequisites, token := k.Prerequisites(), k.Token()
	k.prerequisites(object, prerequisites)
	k.set(object, v1alpha1.ConditionBootstrapToken, token, v1alpha1.ReasonValid, "Machines can join")
	why := outage.Finding{}
	for _, f := range []outage.Finding{k.Finding(), prerequisites, token} {
		if why == (outage.Finding{}) {
			why = f
		}
	}
	k.set(object, v1alpha1.ConditionProvisioning, why, v1alpha1.ReasonAuto, "Nodes are bought for pending pods")
	blocked := metav1.Condition{
		Type: v1alpha1.ConditionDisableBlocked, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNothingBlocks,
		Message: "Mode Manual leaves no machine behind",
	}
	if by := object.Status.DisableBlockedBy; by != "" {
		blocked.Status, blocked.Reason = metav1.ConditionTrue, v1alpha1.ReasonNodesOrLimits
		blocked.Message = "Mode Manual would leave machines behind: " + by
	}
	k.write(object, blocked)
}

// prerequisites writes what keeps nap from buying, or else which checks are not met. A look
// that has not been made yet leaves the names of the rows that an earlier one has found.
func (k *Keeper) prerequisites(object *v1alpha1.NodeAutoProvisioning, refusal outage.Finding) {
	report := k.Checks()
	c := metav1.Condition{
		Type: v1alpha1.ConditionPrerequisites, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMet, Message: "The cluster lets nap buy",
	}
	told := report.Message()
	switch {
	case refusal != (outage.Finding{}):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, refusal.Reason, refusal.Message
	case !report.Ran():
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonNotChecked
		c.Message += "; its prerequisites have not been checked yet"
	case report.Fails():
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNotMet, "nap buys, and not all is well: "+told
	case told != "":
		c.Message += "; " + told
	}
	if report.Ran() {
		object.Status.UnmetPrerequisites = report.Names()
	}
	k.write(object, c)
}

// outbound is what is noted of the outbound type: a change, until no machine is left that
// was made before it. oldest is when the first machine was made, nil where there is none.
func (k *Keeper) outbound(noted *v1alpha1.Outbound, oldest *metav1.Time) *v1alpha1.Outbound {
	if k.OutboundType == "" {
		return noted
	}
	if noted == nil {
		return &v1alpha1.Outbound{Type: k.OutboundType}
	}
	out := noted.DeepCopy()
	if !strings.EqualFold(out.Type, k.OutboundType) {
		now := metav1.NewTime(k.Clock.Now().Truncate(time.Second))
		out = &v1alpha1.Outbound{Type: k.OutboundType, Before: noted.Type, Changed: &now}
	}
	olderThan := func(at *metav1.Time) bool { return oldest != nil && (at == nil || oldest.Before(at)) }
	if out.Before != "" && !olderThan(out.Changed) {
		out.Before, out.Changed = "", nil
	}
	return out
}

// set writes a condition that is False while there is a finding.
func (k *Keeper) set(object *v1alpha1.NodeAutoProvisioning, condition string, f outage.Finding, reason, message string) {
	c := metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: reason, Message: message}
	if f != (outage.Finding{}) {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, f.Reason, f.Message
	}
	k.write(object, c)
}

func (k *Keeper) write(object *v1alpha1.NodeAutoProvisioning, c metav1.Condition) {
	c.ObservedGeneration = object.Generation
	c.LastTransitionTime = metav1.NewTime(k.Clock.Now())
	meta.SetStatusCondition(&object.Status.Conditions, c)
}
