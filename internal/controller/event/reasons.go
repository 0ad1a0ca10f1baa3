package event

import (
	"slices"
	"strings"

	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/poollint"
)

// Reason is what people find an event by.
type Reason struct {
	Name string
	// On are the kinds of object that it is on.
	On []string
	// Type is Normal or Warning.
	Type string
	// Says is what it says, Do what helps.
	Says, Do string
}

// Named is a reason by its name, in any case, and whether nap sends events with it.
func Named(name string) (Reason, bool) {
	all := Reasons()
	at := slices.IndexFunc(all, func(r Reason) bool { return strings.EqualFold(r.Name, name) })
	if at < 0 {
		return Reason{}, false
	}
	return all[at], true
}

// Reasons are those of all events that nap sends itself, sorted by name. docs/events.md has them.
func Reasons() []Reason {
	out := slices.Concat(ofPods(), ofMachines(), ofNodes(), ofPools(), ofClasses(), ofCluster(), ofAzure())
	slices.SortFunc(out, func(a, b Reason) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Types of events, and kinds of objects that they are on.
const (
	usual = "Normal"
	alarm = "Warning"

	pod   = "Pod"
	node  = "Node"
	claim = "NodeClaim"
	pool  = "NodePool"
	class = "AKSNodeClass"
	whole = "NodeAutoProvisioning"
)

func ofPods() []Reason {
	return []Reason{
		{events.FailedScheduling, []string{pod}, alarm,
			"why the pod has no place, with the code of [reasons.md](reasons.md), and the nearest miss; " +
				"again after five minutes, or when the reason is another one",
			"What the event says; `nap explain pod` has all of it."},
		{events.Nominated, []string{pod}, usual, "on which node, or NodeClaim on its way, the pod is expected",
			"Nothing. Where it takes long, `nap explain pod` says how long that is usual."},
		{ReasonPurchaseFailed, []string{pod}, alarm, "what was bought for the pod led to no running pod, and why",
			"Mend what it names; the [pauses](backoff.md) grow until then."},
		{ReasonWaitingForMachine, []string{pod}, alarm,
			"why the machine on its way for the pod is not there, in Azure's words, and when it is given up",
			"Nothing while Azure is out: it is tried again. Else what [Azure's refusals](azure-refusals.md) say."},
		{ReasonWaitingForNode, []string{pod}, alarm, "what its node waits for before it takes pods: kubelet, startup taints, device plugins",
			"See why that does not come on the node; nothing else is bought meanwhile."},
	}
}

func ofMachines() []Reason {
	return []Reason{
		{ReasonProvisioned, []string{claim}, usual, "which machine was bought, where, and what it costs per hour", "Nothing."},
		{ReasonPriceDiffers, []string{claim}, alarm, "another offering was bought than planned, or its price has changed, and by how much",
			"`nap get offers` says what Azure refuses; allow more sizes, zones or capacity types."},
		{ReasonClassMissing, []string{claim}, alarm, "the AKSNodeClass of its NodePool does not exist, or is being deleted",
			"Make the AKSNodeClass, or correct `nodeClassRef` of the NodePool."},
		{ReasonGivenUpByAzure, []string{claim}, alarm, "Azure accepted the machine and then gave it up, with Azure's words",
			"Nothing for capacity: other offerings are tried. Else what [Azure's refusals](azure-refusals.md) say."},
		{ReasonBootFailed, []string{claim}, alarm, "why the machine does not become a node; it is given back",
			"Look up the exit code ([boot errors](boot-errors.md)); the condition `Booted` has all of it."},
		{ReasonSpotEviction, []string{claim, node}, alarm, "Azure takes the spot machine back within seconds",
			"Nothing: its pods get other places. Where that is too often, allow more sizes or on-demand."},
	}
}

func ofNodes() []Reason {
	both := []string{node, claim}
	return []Reason{
		{events.DisruptionBlocked, []string{node, claim, pool}, usual,
			"why the node may not be removed now, or not be replaced although it has drifted, expired or is unhealthy; or that a command " +
				"for it was rolled back; of a NodePool, that its budgets allow no disruption for a reason",
			"Nothing, unless the node is to go: `nap explain node` says what helps."},
		{events.NodeRepairBlocked, []string{node}, alarm, "the node is unhealthy and stays, since too many of its NodePool are",
			"Look for what they have in common."},
		{events.Unconsolidatable, both, usual, "why a node that may go is worth keeping ([reasons](reasons.md#why-a-node-stays))",
			"Nothing, unless it should go: `nap explain node` says what helps."},
		{events.DisruptionLaunching, []string{claim}, usual, "the machine replaces nodes, and why these go", "Nothing."},
		{events.DisruptionWaitingReadiness, []string{claim}, usual, "nodes wait to be removed until this machine is ready",
			"Where it takes long, see `nap get claims`."},
		{events.DisruptionTerminating, both, usual, "the node is removed, and why", "Nothing."},
		{events.ConsolidationCandidate, both, usual, "consolidation removes the node, alone or with others, and what that saves per hour",
			"Nothing. `nap freeze` stops it for a while."},
		{events.ConsolidationRejected, both, usual, "the node stays after all, since a second look spoke against it", "Nothing."},
		{events.ConsolidationApproved, []string{node, claim, pool}, usual,
			"policy `Balanced` approves of a command: what it saves, and what it disrupts", "Nothing."},
	}
}

func ofPools() []Reason {
	on := []string{pool}
	return []Reason{
		{ReasonLimitReached, []string{pool, claim}, alarm, "a limit of the NodePool keeps a machine from being bought that pods wait for",
			"Raise `spec.limits`, or the annotation `karpenter.azure.com/max-hourly-cost`."},
		{ReasonLimitInvalid, on, alarm, "the limit in dollars cannot be read, so the NodePool buys nothing",
			"Correct the annotation `karpenter.azure.com/max-hourly-cost`."},
		{ReasonLimitLeavesRoom, on, usual, "no limit keeps a machine from being bought any more that pods wait for", "Nothing."},
		{ReasonFrozen, on, usual, "no node is removed voluntarily, until when, and why",
			"Nothing. `nap thaw` ends it ([how](disruption.md#stop-it-for-a-while-or-ask-for-it))."},
		{ReasonThawed, on, usual, "nodes may be removed voluntarily again", "Nothing."},
		{events.NoCompatibleInstanceTypes, on, alarm, "the NodePool can buy nothing, and what it asks for (`NothingToBuy` of `nap lint`)",
			"Widen its requirements."},
		{string(poollint.SizeCannotBeBought), on, alarm, "a size that the NodePool names cannot be bought", "Remove it from the requirement."},
		{string(poollint.OneSize), on, alarm, "the NodePool can buy one size alone", "Name a family in place of the size."},
		{string(poollint.SpotWithoutFallback), on, alarm, "spot machines alone can be bought", "Allow on-demand, or add a NodePool that does."},
		{string(poollint.NoLimit), on, alarm, "nothing but quota keeps the NodePool from growing",
			"Set `spec.limits.cpu`, or a limit in dollars."},
		{string(poollint.LimitAboveQuota), on, alarm, "the NodePool may buy more than the quota has", "Lower the limit, or ask for more quota."},
		{string(poollint.LimitBelowMachine), on, alarm, "a limit is less than the cheapest or the smallest machine takes",
			"Raise the limit, or allow cheaper sizes or spot."},
		{string(poollint.UnknownLimit), on, alarm, "a limit names a resource which no machine has, and holds nothing back", "Correct its name."},
		{string(poollint.Overlap), on, alarm, "another NodePool of equal weight buys the same machines for the same pods",
			"Give them different weights, taints or labels."},
		{string(poollint.PinnedForEver), on, alarm, "nodes never expire and boot from one image version for ever",
			"Remove `spec.imageVersion` of the AKSNodeClass, or set `expireAfter`."},
		{string(poollint.UnreadableBudget), on, alarm, "a disruption budget cannot be read, so no node of the NodePool is disrupted",
			"Correct its schedule."},
		{string(poollint.ManagedGPUNotRegistered), []string{pool, claim}, alarm,
			"the preview feature of managed GPUs is not registered, so that AKS refuses the GPU machines of the NodePool, or to delete or " +
				"to restart the machine",
			sentence(adviceOf(unavailable.NoManagedGPU))},
		{ReasonSound, on, usual, "nothing about the NodePool is [unwise](convert.md#nodepools-that-are-taken-and-unwise) any more", "Nothing."},
	}
}

func ofClasses() []Reason {
	on := []string{class}
	return []Reason{
		{ReasonPurchasesPaused, on, alarm,
			"nothing, or one machine at a time, is bought with the class, because its machines do not become nodes",
			"Mend the class; a change is tried at once ([backoff](backoff.md))."},
		{ReasonPurchasesResumed, on, usual, "machines are bought with the class as before", "Nothing."},
		{ReasonLaunchesPaused, []string{class, pool}, alarm,
			"nothing is launched: Azure is out, the cluster does not let nap buy, or machines could not join",
			"What the event says ([outages](azure.md#throttling-and-outages), [settings](settings.md#while-it-runs))."},
		{ReasonLaunchesResumed, []string{class, pool}, usual, "machines are launched again", "Nothing."},
		{ReasonWaitingOnClaims, on, usual, "which NodeClaims keep a class that is being deleted", "Delete them, or the NodePool, or wait."},
		{ReasonLocalDNSUnknown, on, alarm, "`localDNS.mode: Preferred` counts as disabled, since nap may not see what decides on it",
			"Grant the right that it names, or state `Required` or `Disabled`."},
		{ReasonWindowUnknown, on, alarm, "machines are not replaced for newer images or versions, since the maintenance window cannot be read",
			"Grant the right that it names, or wait until Azure answers."},
	}
}

func ofCluster() []Reason {
	on := []string{whole}
	return []Reason{
		{ReasonSwitchedOn, on, usual, "the mode is Auto: nodes are provisioned ([the switch](enable.md#the-switch))", "Nothing."},
		{ReasonSwitchedOff, on, usual, "the mode is Manual: nothing is bought, and nothing is removed voluntarily",
			"`nap enable` switches it on."},
		{ReasonPrerequisiteNotMet, on, alarm, "a [prerequisite](prerequisites.md#while-nap-runs) is not met, and what was found",
			"What the event says, or `nap doctor`."},
		{ReasonPrerequisiteMet, on, usual, "a prerequisite is met again", "Nothing."},
	}
}

// ofAzure are the reasons of refusals to delete or restart a machine on which a person has to act,
// but for the one that is a finding on NodePools, too, which ofPools has.
func ofAzure() []Reason {
	var out []Reason
	for _, refusal := range unavailable.Refusals() {
		if refusal.Advice != "" && refusal.Kind != unavailable.NoManagedGPU {
			out = append(out, Reason{refusal.Reason, []string{claim}, alarm,
				"Azure refuses to delete or to restart the machine", sentence(refusal.Advice)})
		}
	}
	return out
}

// adviceOf is what helps against a kind of refusal.
func adviceOf(kind unavailable.Kind) string {
	all := unavailable.Refusals()
	return all[slices.IndexFunc(all, func(r unavailable.Refusal) bool { return r.Kind == kind })].Advice
}

// sentence writes advice as a sentence.
func sentence(advice string) string { return strings.ToUpper(advice[:1]) + advice[1:] + "." }
