package model

// Reason says why something was refused. The set is closed: every Reason has
// one entry in Reasons with what it means and what to do about it, and a test
// keeps the two in step.
type Reason string

// Reasons for which an offering, a node or a pool cannot take a pod, in the
// order in which the checks run.
const (
	ReasonNoPool            Reason = "NoNodePool"
	ReasonPoolInvalid       Reason = "NodePoolInvalid"
	ReasonPoolPaused        Reason = "NodePoolPaused"
	ReasonPodInvalid        Reason = "PodInvalid"
	ReasonAsksTooMuch       Reason = "AsksTooMuch"
	ReasonPlanningFailed    Reason = "PlanningFailed"
	ReasonTaint             Reason = "TaintNotTolerated"
	ReasonPoolRequirement   Reason = "NodePoolRequirement"
	ReasonPodRequirement    Reason = "PodRequirement"
	ReasonResourceClaims    Reason = "ResourceClaims"
	ReasonVolumeTopology    Reason = "VolumeTopology"
	ReasonResources         Reason = "InsufficientResources"
	ReasonDaemonOverhead    Reason = "DaemonOverhead"
	ReasonMaxPods           Reason = "MaxPods"
	ReasonVolumeSlots       Reason = "VolumeSlots"
	ReasonHostPort          Reason = "HostPortConflict"
	ReasonMaxPrice          Reason = "MaxPrice"
	ReasonUnavailable       Reason = "OfferingUnavailable"
	ReasonQuota             Reason = "QuotaExceeded"
	ReasonReservation       Reason = "ReservationExhausted"
	ReasonLimit             Reason = "NodePoolLimit"
	ReasonNodeLimit         Reason = "NodePoolNodeLimit"
	ReasonCostLimit         Reason = "NodePoolCostLimit"
	ReasonMinValues         Reason = "MinValues"
	ReasonSpread            Reason = "TopologySpread"
	ReasonAffinity          Reason = "PodAffinity"
	ReasonAntiAffinity      Reason = "PodAntiAffinity"
	ReasonNodeLeaving       Reason = "NodeLeaving"
	ReasonNothingCompatible Reason = "NoCompatibleOffering"
)

// Reasons for which a node is not removed, in the order in which they are
// looked at.
const (
	ReasonBeingDisrupted   Reason = "BeingDisrupted"
	ReasonNotInitialized   Reason = "NotInitialized"
	ReasonMoveFailed       Reason = "MoveFailed"
	ReasonNominated        Reason = "Nominated"
	ReasonNodeHeld         Reason = "NodeDoNotDisrupt"
	ReasonPodHeld          Reason = "PodDoNotDisrupt"
	ReasonPodBudget        Reason = "PodDisruptionBudget"
	ReasonPodBudgets       Reason = "SeveralPodDisruptionBudgets"
	ReasonStaticPool       Reason = "StaticNodePool"
	ReasonFrozen           Reason = "NodePoolFrozen"
	ReasonWindow           Reason = "MaintenanceWindow"
	ReasonNeverConsolidate Reason = "ConsolidateAfterNever"
	ReasonNotQuiet         Reason = "ConsolidateAfter"
	ReasonPodsEnding       Reason = "PodsEnding"
	ReasonPolicy           Reason = "ConsolidationPolicy"
	ReasonExpiresLater     Reason = "ExpiresLater"
	ReasonKeptForWaiting   Reason = "RoomForPendingPods"
	ReasonReceivesPods     Reason = "ReceivesPods"
	ReasonPoolBudget       Reason = "NodePoolBudget"
	ReasonNoPlace          Reason = "NoPlaceForPods"
	ReasonNoCheaper        Reason = "NoCheaperSet"
	ReasonKeepsPreferences Reason = "KeepsPreferences"
	ReasonPoolWeight       Reason = "NodePoolWeight"
	ReasonSpotToSpot       Reason = "SpotToSpotDisabled"
	ReasonSpotTypes        Reason = "SpotToSpotTypes"
	ReasonPriceUnknown     Reason = "PriceUnknown"
	ReasonDoesNotPay       Reason = "DoesNotPay"
	ReasonSmallSaving      Reason = "SavingTooSmall"
	ReasonUnbalanced       Reason = "Unbalanced"
)

// ReasonInfo documents a Reason for users.
type ReasonInfo struct {
	Reason  Reason
	Meaning string
	Fix     string
}

// Reasons returns every reason with its meaning and its remedy, in the order of
// the checks.
func Reasons() []ReasonInfo {
	return []ReasonInfo{
		{ReasonNoPool, "There is no NodePool that may buy machines.", "Create a NodePool, or look at why the existing ones are not Ready."},
		{ReasonPoolPaused, "Machines of the NodePool's node class did not register as nodes, so nothing is bought from it for now.",
			"Look at the condition NodeRegistrationHealthy of the NodePool and its AKSNodeClass; a correction there is tried at once."},
		{ReasonPoolInvalid, "The NodePool contradicts itself or the catalogue, or the API server would refuse it, and buys nothing.",
			"Correct the field that the message names."},
		{ReasonPodInvalid, "The pod asks for something that no scheduler can grant.", "Correct the field that the message names."},
		{ReasonAsksTooMuch, "The pod states more rules than nap plans for one pod, so it is not planned.",
			"Use fewer of what the message names; the limits stand in docs/differences.md."},
		{ReasonPlanningFailed, "Planning the pod failed, which is a mistake in nap; all other pods are planned without it.",
			"Report the error in the controller's log. The pod is tried again at growing intervals, and at once when it changes."},
		{ReasonTaint, "The NodePool or node has a taint that the pod does not tolerate.",
			"Add the toleration to the pod, or remove the taint from the NodePool."},
		{ReasonPoolRequirement, "The NodePool's own requirements exclude the offering.", "Widen the NodePool's requirements."},
		{ReasonPodRequirement, "The pod's node selector or node affinity excludes the offering.",
			"Change the pod's nodeSelector or nodeAffinity, or widen the NodePool."},
		{ReasonResourceClaims, "The pod's resource claims ask for devices that the machine does not have, or that nap does not know.",
			"Correct what the message names, allow sizes with such devices in the NodePool, or request an extended resource " +
				"such as nvidia.com/gpu."},
		{ReasonVolumeTopology, "The pod's volumes are in zones where the offering is not sold, on one node, or disks that it cannot attach.",
			"Allow the volume's zone in the NodePool, or use zone-redundant storage; make room on the node that a volume is bound to; " +
				"for premium disks, allow sizes with premium storage."},
		{ReasonResources, "One pod asks for more than a node of this type has.", "Lower the request, or allow larger instance types."},
		{ReasonDaemonOverhead, "The pod would fit, but not next to the DaemonSet pods that run on every node.",
			"Lower the DaemonSets' requests, or allow larger instance types."},
		{ReasonMaxPods, "The node would exceed its maximum number of pods.", "Raise maxPods in the AKSNodeClass."},
		{ReasonVolumeSlots, "The node cannot attach that many disks.", "Use fewer volumes per pod, or allow larger instance types."},
		{ReasonHostPort, "Another pod on the node already takes the host port.", "Use a Service instead of a host port, or allow another node."},
		{ReasonMaxPrice, "The offering costs more than the pod's annotation karpenter.azure.com/max-price allows.",
			"Raise the price in the annotation, or allow cheaper sizes, zones or capacity types."},
		{ReasonUnavailable, "The cloud is known not to sell the offering at the moment.",
			"Wait until the time that nap explain offer names, or allow other sizes, zones or capacity types."},
		{ReasonQuota, "The subscription's quota leaves no room for the machine.",
			"Ask for more quota, or allow machines that draw on another one, as other VM families do."},
		{ReasonReservation, "The capacity reservation is used up.", "Enlarge the reservation, or allow on-demand capacity."},
		{ReasonLimit, "The NodePool's limit leaves no room for the machine.", "Raise spec.limits of the NodePool."},
		{ReasonNodeLimit, "The NodePool already has as many nodes as its limit allows.", "Raise spec.limits.nodes of the NodePool."},
		{ReasonCostLimit, "The NodePool's limit in dollars per hour leaves no room for the machine.",
			"Raise the annotation karpenter.azure.com/max-hourly-cost of the NodePool, or allow cheaper sizes, zones or capacity types."},
		{ReasonMinValues, "Too few different values remain to satisfy minValues.",
			"Lower minValues, widen the requirement, or set the minimum values policy to BestEffort."},
		{ReasonSpread, "No domain can take the pod without exceeding maxSkew.", "Raise maxSkew, allow more zones, or use ScheduleAnyway."},
		{ReasonAffinity, "No domain holds the pods that this pod must be near.",
			"Check that the pods selected by the affinity exist and where they run."},
		{ReasonAntiAffinity, "Every domain holds pods that this pod must not be near.",
			"Allow more zones or nodes, or make the anti-affinity preferred."},
		{ReasonNodeLeaving, "The node is being drained or deleted.", "Nothing: another node takes the pod."},
		{ReasonNothingCompatible, "Every offering is excluded, each by a different check.", "Start with the nearest miss."},
		{ReasonBeingDisrupted, "The node is already being given up.", "Nothing: its pods get other places."},
		{ReasonNotInitialized,
			"The node, or one that has room for its pods, is not initialized or not ready, or still takes in pods of other nodes; " +
				"while it has pods it is not consolidated, and nothing is counted on it.",
			"Wait until it is ready, or see why its kubelet does not report."},
		{ReasonMoveFailed, "A command for the node failed a short time ago and was rolled back.",
			"See the events of the node for what failed; it is tried again by itself."},
		{ReasonNominated, "The node is promised to pods that are not bound yet.", "Wait until they are bound."},
		{ReasonNodeHeld, "The node carries the annotation karpenter.sh/do-not-disrupt.", "Remove the annotation from the node."},
		{ReasonPodHeld, "A pod on the node carries the annotation karpenter.sh/do-not-disrupt.",
			"Remove the annotation from the pod, give it a duration, or set terminationGracePeriod on the NodePool."},
		{ReasonPodBudget, "A PodDisruptionBudget allows no further eviction of a pod on the node.",
			"Raise maxUnavailable, add replicas, or see why pods of the budget are not healthy."},
		{ReasonPodBudgets, "More than one PodDisruptionBudget speaks of a pod on the node, which the eviction API refuses.",
			"Let only one PodDisruptionBudget select each pod."},
		{ReasonStaticPool, "The node belongs to a NodePool with a fixed number of nodes.", "Lower spec.replicas of the NodePool."},
		{ReasonFrozen, "The NodePool is frozen: none of its nodes is removed voluntarily.", "Wait, or let its nodes move again with nap thaw."},
		{ReasonWindow, "Consolidation waits for the maintenance window (--consolidate-in-maintenance-window).",
			"Wait for the window, or change the maintenance configuration."},
		{ReasonNeverConsolidate, "The NodePool's consolidateAfter is Never.", "Set spec.disruption.consolidateAfter to a duration."},
		{ReasonNotQuiet, "Pods came or went on the node too recently.", "Wait, or lower spec.disruption.consolidateAfter."},
		{ReasonPodsEnding, "Pods of the node are ending, or a Job is about to create some again.",
			"Nothing: it is decided again once they are gone, or have come."},
		{ReasonPolicy, "The NodePool lets only empty nodes go, and this one is not empty.",
			"Set spec.disruption.consolidationPolicy to WhenEmptyOrUnderutilized or Balanced."},
		{ReasonExpiresLater, "The node expires soon, and goes then: its pods need no new node, one of them cannot be evicted then, or enough " +
			"other nodes of its NodePool that expire have their replacement already.", "Nothing: expireAfter of the NodePool has not ended yet."},
		{ReasonKeptForWaiting, "The node has the room that waiting pods need.", "Nothing: it is needed."},
		{ReasonReceivesPods, "The node takes in pods of a node that is removed.", "Nothing: it is needed."},
		{ReasonPoolBudget, "The NodePool's disruption budgets allow no further node for this reason now.",
			"Raise spec.disruption.budgets, or wait for running disruptions to end."},
		{ReasonNoPlace, "A pod of the node has no place elsewhere, neither on other nodes nor on a machine that can be bought.",
			"See what binds the pod: its requests, node rules, spread or affinity."},
		{ReasonNoCheaper, "No set of other nodes and machines that holds the node's pods is cheaper.", "Nothing: the node is needed."},
		{ReasonKeepsPreferences, "The node could go only if its pods gave up preferences that hold where they are.",
			"Let no preference count (--preference-policy Ignore), or take it off the pods."},
		{ReasonPoolWeight, "The node could go only if its pods went to a NodePool of less weight than they have to.",
			"Change spec.weight of the NodePools, if the price should decide."},
		{ReasonSpotToSpot, "A spot node could only be replaced by a cheaper spot node, which is switched off.",
			"Enable the feature gate SpotToSpotConsolidation."},
		{ReasonSpotTypes, "Fewer than 15 cheaper spot instance types are left to choose from.", "Allow more instance types in the NodePool."},
		{ReasonPriceUnknown, "What the node costs is not known, so that giving it back would save nothing.",
			"Give the node back the labels of its instance type, capacity type and zone; if it has them, plan with the prices of its region, " +
				"or state the price with a NodeOverlay."},
		{ReasonDoesNotPay, "The saving does not earn the evictions that it costs.",
			"Lower the price of an eviction or lengthen the payback time, if the saving is worth it to you."},
		{ReasonSmallSaving, "A replacement would save less than the minimum saving.", "Lower the minimum saving."},
		{ReasonUnbalanced, "The saving is too small for the disruption, by the NodePool's policy Balanced.",
			"Set spec.disruption.consolidationPolicy to WhenEmptyOrUnderutilized."},
	}
}
