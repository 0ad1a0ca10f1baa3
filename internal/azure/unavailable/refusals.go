package unavailable

import (
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
)

// Kind says what a refusal of Azure means for the next attempt.
type Kind string

// The kinds of refusal. Each has one row in Refusals; a test sees to it.
const (
	SpotQuota            Kind = "SpotQuotaReached"
	FamilyQuota          Kind = "FamilyQuotaReached"
	RegionalQuota        Kind = "RegionalQuotaReached"
	OtherQuota           Kind = "OtherQuotaReached"
	SKUNotAvailable      Kind = "SKUNotAvailable"
	ZonalAllocation      Kind = "ZonalAllocationFailure"
	Allocation           Kind = "AllocationFailure"
	OverconstrainedZonal Kind = "OverconstrainedZonalAllocationFailure"
	Overconstrained      Kind = "OverconstrainedAllocationFailure"
	SKUUnsupported       Kind = "SKUNotSupported"
	SizeDisallowed       Kind = "SizeDisallowedByPolicy"
	Disallowed           Kind = "DisallowedByPolicy"
	NotAuthorized        Kind = "NotAuthorized"
	SubnetFull           Kind = "SubnetFull"
	Throttled            Kind = "RequestsThrottled"
	ClusterBusy          Kind = "ClusterOperationInProgress"
	Passing              Kind = "PassingFailure"
	OutboundPorts        Kind = "OutboundPortsExhausted"
	SubscriptionReadOnly Kind = "SubscriptionReadOnly"
	GroupGone            Kind = "NodeResourceGroupBeingDeleted"
	NotRegistered        Kind = "ProviderNotRegistered"
	Locked               Kind = "ResourceLocked"
	HostEncryptionOff    Kind = "EncryptionAtHostNotEnabled"
	KeyVaultForbidden    Kind = "KeyVaultAccessForbidden"
	ImageMissing         Kind = "ImageNotFound"
	OSProvisioning       Kind = "OSProvisioningFailed"
	NotMachinesPool      Kind = "AgentPoolNotForMachines"
	NoMachineAPI         Kind = "MachineAPINotAvailable"
	NoManagedGPU         Kind = "ManagedGPUNotRegistered"
	PreviewNotRegistered Kind = "PreviewFeatureNotRegistered"
	Other                Kind = "CreateInstanceFailed"
)

// quotaReached is the reason of all refusals for a quota that is used up, in the words that
// dashboards of AKS already know.
const quotaReached = "SubscriptionQuotaReached"

// How long refusals are believed.
const (
	// hourTTL is for capacity and spot quota, which change within the day.
	hourTTL = time.Hour
	// soldOutTTL is for sizes that the subscription is not offered: that changes
	// by a support request.
	soldOutTTL = 23 * time.Hour
	// lowQuotaTTL is for a quota that is merely used up: machines go all the time.
	lowQuotaTTL = 10 * time.Minute
	// passingTTL is for what Azure calls a failure of its own that passes.
	passingTTL = 2 * time.Minute
	// siblingTTL is for larger sizes of a family in which one size found no room.
	// They are likely to find none either, but Azure has not been asked.
	siblingTTL = 3 * time.Minute
)

// Answer is a form of Azure's answers: the code is one of Codes, and the message
// contains Contains, where that is not empty. Azure tells quotas apart by the text
// of the message alone.
type Answer struct {
	Codes    []string
	Contains string
}

// Repeats is how often in a row a refusal that rules nothing out may come for one
// size in one zone, before that size rests there for RestTTL: else nap would ask for
// the same for ever.
const (
	Repeats = 3
	RestTTL = 10 * time.Minute
)

// Sizes says which sizes are unavailable after a refusal.
type Sizes string

// The values of Sizes.
const (
	NoSize     Sizes = "none"
	ThisSize   Sizes = "the size"
	FamilyFrom Sizes = "the family from the size upwards"
	EverySize  Sizes = "every size"
	// PolicySizes are all sizes that a policy denies by what it compares them with, and the
	// size alone where Azure does not say that.
	PolicySizes Sizes = "all sizes that the policy denies"
)

// Place says where sizes are unavailable after a refusal.
type Place string

// The values of Place.
const (
	Nowhere Place = "nowhere"
	// InZone is the zone of the attempt alone.
	InZone Place = "in the zone"
	// SamePlacement is every zone after an attempt in a zone, and placement without
	// a zone after an attempt without one.
	SamePlacement Place = "in all zones; asked for without a zone, there alone"
	// Everywhere is every zone and placement without a zone.
	Everywhere Place = "everywhere"
)

// CapacityTypes says for which capacity types sizes are unavailable after a refusal.
type CapacityTypes string

// The values of CapacityTypes.
const (
	NoType   CapacityTypes = "none"
	SameType CapacityTypes = "that of the attempt"
	BothType CapacityTypes = "on-demand and spot"
	SpotOnly CapacityTypes = "spot"
)

// Reaction says what a launch does after a refusal.
type Reaction string

// The values of Reaction.
const (
	// TryNext asks for the next offering that is still available.
	TryNext Reaction = "try the next offering"
	// TryOtherQuota asks for the next offering that does not draw on the quota which
	// is used up. Nothing is remembered beyond the launch.
	TryOtherQuota Reaction = "try the next offering that does not draw on the quota"
	// TryAgain asks for the same offering once more, and then for the next one.
	TryAgain Reaction = "ask once more, then try the next offering"
	// GiveUp ends the launch: no other offering would help.
	GiveUp Reaction = "give up"
)

// TTL is for how long a refusal is believed, by what is known of it. A field that is
// zero defers to Usual.
type TTL struct {
	Usual time.Duration
	// Spot holds for attempts at spot machines, ZeroLimit for quotas of which the
	// subscription has none at all.
	Spot, ZeroLimit time.Duration
}

// Refusal is one row of the table: how Azure says no, and what follows.
type Refusal struct {
	Kind    Kind
	Answers []Answer
	// Reason is that of the NodeClaim's Launched condition, in the words that
	// dashboards of AKS already know.
	Reason string
	// Sizes, Place and CapacityTypes are together the offerings that are unavailable
	// afterwards, for the time of TTL.
	Sizes         Sizes
	Place         Place
	CapacityTypes CapacityTypes
	TTL           TTL
	// LargerSizes is for how long larger sizes of the family are unavailable as well,
	// in the same place and for the same capacity types; zero means not at all.
	LargerSizes time.Duration
	// Quota is the limit that is used up, for the reaction TryOtherQuota.
	Quota    string
	Reaction Reaction
	// Advice is what a person can do about it; empty where nap does it.
	Advice string
}

// quota reports whether a quota of the subscription is used up.
func (r *Refusal) quota() bool { return r.Reason == quotaReached }

// Refusals is the table of refusals. Of several rows that an answer matches the
// first counts; the last row matches every answer.
func Refusals() []Refusal {
	quota := func(part string) []Answer {
		return []Answer{{Codes: []string{"OperationNotAllowed", "QuotaExceeded"}, Contains: part}}
	}
	code := func(codes ...string) []Answer { return []Answer{{Codes: codes}} }
	return []Refusal{
		{Kind: SpotQuota, Answers: quota("LowPriorityCores"), Reason: quotaReached,
			Sizes: EverySize, Place: Everywhere, CapacityTypes: SpotOnly, TTL: TTL{Usual: hourTTL}, Reaction: TryNext},
		{Kind: RegionalQuota, Answers: quota("exceeding approved Total Regional Cores quota"), Reason: quotaReached,
			Sizes: NoSize, Place: Nowhere, CapacityTypes: NoType, Quota: instancetype.QuotaRegional, Reaction: TryOtherQuota},
		{Kind: FamilyQuota, Answers: quota("Family Cores quota"), Reason: quotaReached,
			Sizes: FamilyFrom, Place: Everywhere, CapacityTypes: SameType, TTL: TTL{Usual: lowQuotaTTL, ZeroLimit: hourTTL}, Reaction: TryNext},
		{Kind: OtherQuota, Answers: quota("Submit a request for Quota increase"), Reason: quotaReached,
			Sizes: ThisSize, Place: Everywhere, CapacityTypes: SameType, TTL: TTL{Usual: lowQuotaTTL}, Reaction: TryNext},
		{Kind: SKUNotAvailable, Answers: code("SkuNotAvailable"), Reason: string(SKUNotAvailable),
			Sizes: ThisSize, Place: SamePlacement, CapacityTypes: SameType, TTL: TTL{Usual: soldOutTTL, Spot: hourTTL}, Reaction: TryNext},
		{Kind: ZonalAllocation, Answers: code("ZonalAllocationFailed"), Reason: string(ZonalAllocation),
			Sizes: ThisSize, Place: InZone, CapacityTypes: BothType, TTL: TTL{Usual: hourTTL}, LargerSizes: siblingTTL, Reaction: TryNext},
		{Kind: Allocation, Answers: code("AllocationFailed"), Reason: string(Allocation),
			Sizes: ThisSize, Place: SamePlacement, CapacityTypes: BothType, TTL: TTL{Usual: hourTTL}, LargerSizes: siblingTTL, Reaction: TryNext},
		{Kind: OverconstrainedZonal, Answers: code("OverconstrainedZonalAllocationRequest"), Reason: string(OverconstrainedZonal),
			Sizes: ThisSize, Place: InZone, CapacityTypes: SameType, TTL: TTL{Usual: hourTTL}, LargerSizes: siblingTTL, Reaction: TryNext},
		{Kind: Overconstrained, Answers: code("OverconstrainedAllocationRequest"), Reason: string(Overconstrained),
			Sizes: ThisSize, Place: SamePlacement, CapacityTypes: SameType, TTL: TTL{Usual: hourTTL}, LargerSizes: siblingTTL, Reaction: TryNext},
		{Kind: SKUUnsupported, Answers: append(code("VMSizeNotSupported"), Answer{[]string{"BadRequest"}, "is not supported for subscription"}),
			Reason: string(SKUNotAvailable),
			Sizes:  ThisSize, Place: Everywhere, CapacityTypes: BothType, TTL: TTL{Usual: soldOutTTL}, Reaction: TryNext},
		{Kind: SizeDisallowed, Answers: []Answer{{[]string{policyCode}, sizeAlias}, {[]string{policyCode}, allowedSizes}},
			Reason: string(SizeDisallowed),
			Sizes:  PolicySizes, Place: Everywhere, CapacityTypes: BothType, TTL: TTL{Usual: hourTTL}, Reaction: TryNext},
		named(Disallowed, "give the machines what the policy asks for, such as spec.tags of the AKSNodeClass, or exempt the node resource "+
			"group: az policy exemption create", Answer{Codes: []string{policyCode}}),
		named(NotAuthorized, "assign nap's roles to its identity, which takes Azure some minutes: nap doctor says which right is missing",
			Answer{Codes: []string{"AuthorizationFailed", "LinkedAuthorizationFailed"}}),
		{Kind: SubnetFull, Answers: code("SubnetIsFull", "InsufficientSubnetSize"), Reason: string(SubnetFull),
			Sizes: NoSize, Place: Nowhere, CapacityTypes: NoType, Reaction: GiveUp},
		{Kind: Throttled, Answers: code("TooManyRequests", "SubscriptionRequestsThrottled", "ResourceRequestsThrottled"),
			Reason: string(Throttled),
			Sizes:  NoSize, Place: Nowhere, CapacityTypes: NoType, Reaction: GiveUp},
		{Kind: ClusterBusy, Answers: append(code("AnotherOperationInProgress"), Answer{[]string{"OperationNotAllowed"}, "in progress"}),
			Reason: string(ClusterBusy),
			Sizes:  NoSize, Place: Nowhere, CapacityTypes: NoType, Reaction: GiveUp},
		{Kind: Passing, Answers: code("NetworkingInternalOperationError", "RetryableError", "VMStartTimedOut",
			"CanceledAndSupersededDueToAnotherOperation"), Reason: string(Passing),
			Sizes: ThisSize, Place: InZone, CapacityTypes: SameType, TTL: TTL{Usual: passingTTL}, Reaction: TryAgain},
		everything(OutboundPorts, "give the cluster's load balancer fewer outbound ports per node or more outbound IPs: az aks update "+
			"--load-balancer-outbound-ports 0, or --load-balancer-managed-outbound-ip-count",
			"SpecifiedAllocatedOutboundPortsForOutboundRuleExceedsTotalNumberOfAvailablePorts"),
		everything(SubscriptionReadOnly, "enable the subscription again; until then Azure makes nothing in it", "ReadOnlyDisabledSubscription"),
		everything(GroupGone, "the node resource group is being deleted, and the cluster with it; stop nap", "ResourceGroupBeingDeleted"),
		everything(NotRegistered, "register the resource providers of the subscription: az provider register --namespace Microsoft.Compute, "+
			"and the same for Microsoft.Network", "MissingSubscriptionRegistration"),
		everything(Locked, "remove the lock of the node resource group, or narrow it: az lock list --resource-group NODE_RESOURCE_GROUP",
			"ScopeLocked"),
		named(HostEncryptionOff, "register the feature, az feature register --namespace Microsoft.Compute --name EncryptionAtHost, "+
			"or set security.encryptionAtHost of the AKSNodeClass to false",
			Answer{[]string{"InvalidParameter"}, "securityProfile.encryptionAtHost"},
			Answer{[]string{"InvalidParameter"}, "Microsoft.Compute/EncryptionAtHost"}),
		named(KeyVaultForbidden, "give the disk encryption set of DISK_ENCRYPTION_SET_ID access to its key: get, wrapKey and unwrapKey",
			Answer{Codes: []string{"KeyVaultAccessForbidden"}}),
		named(ImageMissing, "the image is gone from its gallery; nap looks for the newest one that is there, and an AKSNodeClass with an "+
			"imageVersion has to name one that exists",
			Answer{Codes: []string{"ImageVersionNotFound", "PlatformImageNotFound"}}),
		named(OSProvisioning, "the image's own agent gave up: look at the boot diagnostics of the machine and at the image",
			Answer{Codes: []string{"OSProvisioningClientError"}}),
		forAllOf(NotMachinesPool, "name a pool of mode Machines in AKS_MACHINES_POOL_NAME, or make one: az rest --method PUT --url "+
			"CLUSTER_ID/agentPools/NAME?api-version=2026-04-02-preview --body '{\"properties\": {\"mode\": \"Machines\"}}'",
			Answer{[]string{"BadRequest"}, "is not in 'Machines' mode"}),
		forAllOf(NoMachineAPI, "AKS machines are in preview and not to be had in this region or cloud: set PROVISION_MODE to aksscriptless",
			Answer{Codes: []string{"NoRegisteredProviderFound", "InvalidApiVersionParameter"}}),
		named(NoManagedGPU, "register the feature, az feature register --namespace Microsoft.ContainerService "+
			"--name ManagedGPUExperiencePreview, and then az provider register --namespace Microsoft.ContainerService; "+
			"or set gpu.nvidia.managementMode of the AKSNodeClass to Unmanaged",
			Answer{[]string{"PreviewFeatureNotRegistered"}, "ManagedGPUExperiencePreview"}),
		forAllOf(PreviewNotRegistered, "register the feature that Azure names, az feature register --namespace Microsoft.ContainerService "+
			"--name NAME, and then az provider register --namespace Microsoft.ContainerService; or set PROVISION_MODE to aksscriptless",
			Answer{Codes: []string{"PreviewFeatureNotRegistered"}}),
		{Kind: Other, Answers: []Answer{{}}, Reason: string(Other),
			Sizes: NoSize, Place: Nowhere, CapacityTypes: NoType, Reaction: GiveUp},
	}
}

// everything is the row of a refusal that holds for the whole cluster: nothing is
// bought for minutes, and a person has to act.
func everything(kind Kind, advice string, codes ...string) Refusal {
	return forAllOf(kind, advice, Answer{Codes: codes})
}

// forAllOf is everything for answers that are known by more than their code.
func forAllOf(kind Kind, advice string, answers ...Answer) Refusal {
	return Refusal{Kind: kind, Answers: answers, Reason: string(kind), Sizes: EverySize, Place: Everywhere,
		CapacityTypes: BothType, TTL: TTL{Usual: RestTTL}, Reaction: TryNext, Advice: advice}
}

// named is the row of a refusal that says nothing about other sizes and places, and
// that a person has to act on.
func named(kind Kind, advice string, answers ...Answer) Refusal {
	return Refusal{Kind: kind, Answers: answers, Reason: string(kind), Sizes: NoSize, Place: Nowhere, CapacityTypes: NoType,
		Reaction: GiveUp, Advice: advice}
}

// matches reports whether the answer with this code and message is of the form. The
// form without codes is that of every answer.
func (a Answer) matches(code, message string) bool {
	if !strings.Contains(message, a.Contains) {
		return false
	}
	for _, c := range a.Codes {
		if c == code {
			return true
		}
	}
	return len(a.Codes) == 0
}

// refusalFor is the row of the table for an answer of Azure.
func refusalFor(code, message string) Refusal {
	rows := Refusals()
	for _, r := range rows {
		for _, a := range r.Answers {
			if a.matches(code, message) {
				return r
			}
		}
	}
	return rows[len(rows)-1]
}

// rowOf is the row of a kind.
func rowOf(kind Kind) Refusal {
	rows := Refusals()
	return rows[slices.IndexFunc(rows, func(r Refusal) bool { return r.Kind == kind })]
}
