package v1beta1

// Annotations that nap writes. Those of NodeClaims survive a restart of the
// controller: what they say is the only record of what is under way.
const (
	// AnnotationHash is the hash of an AKSNodeClass's spec, see Hash. It is on the
	// AKSNodeClass itself and on each NodeClaim that was launched from it.
	AnnotationHash = Group + "/aksnodeclass-hash"
	// AnnotationHashVersion is the HashVersion by which AnnotationHash was
	// computed, on the same objects. Hashes of different versions say nothing
	// about each other.
	AnnotationHashVersion = Group + "/aksnodeclass-hash-version"
	// AnnotationInPlaceUpdateHash is the hash of the tags and identities that a
	// NodeClaim's virtual machine was last given.
	AnnotationInPlaceUpdateHash = Group + "/in-place-update-hash"
	// AnnotationSSHKeyHash is the hash of the user's name and SSH key that a NodeClaim's plain
	// machine was made with. AKS machines have none: AKS sees to theirs.
	AnnotationSSHKeyHash = Group + "/ssh-key-hash"
	// AnnotationAKSMachine is the resource id of a NodeClaim's AKS machine. Karpenter's Azure
	// provider, if the cluster goes on to it, takes a NodeClaim without it for that of a plain
	// machine. Plain machines have none.
	AnnotationAKSMachine = Group + "/aks-machine-resource-id"
	// AnnotationPlan is the id of the plan that a NodeClaim belongs to. The same
	// id is in the controller's log lines about that plan.
	AnnotationPlan = Group + "/plan"
	// AnnotationWhy says in one sentence why the offering of a NodeClaim was
	// chosen: the offering, its price, the number of pods, and the next best.
	AnnotationWhy = Group + "/why"
	// AnnotationPlannedPrice is what a NodeClaim's node costs per hour by the plan for which
	// it was created, in dollars: machine, disk and what the user adds.
	AnnotationPlannedPrice = Group + "/planned-price"
	// AnnotationMostPrice is the highest price, in the same unit, at which a machine is
	// bought for a NodeClaim; without it any is. Where what is left costs more, the
	// NodeClaim ends and its pods are planned again.
	AnnotationMostPrice = Group + "/most-price"
	// AnnotationPaidPrice is what it costs by the offering that was bought in the end, in
	// the same unit. It is written when the machine has been launched.
	AnnotationPaidPrice = Group + "/paid-price"
	// AnnotationDiskPrice is the part of AnnotationPaidPrice that the managed disk costs which
	// the machine was made with, "0" where its disk is ephemeral. A machine keeps its disk when
	// its AKSNodeClass asks for another one.
	AnnotationDiskPrice = Group + "/disk-price"
	// AnnotationBilledSince is when Azure accepted the machine of a NodeClaim, as in
	// RFC 3339 with fractions.
	AnnotationBilledSince = Group + "/billed-since"
	// AnnotationNodeCost is what every node of a NodePool costs per hour beside its
	// machine and its disk, in dollars, such as an agent's licence: "0.10". The user
	// writes it on the NodePool.
	AnnotationNodeCost = Group + "/node-cost"
	// AnnotationMaxHourlyCost is the most that the nodes of a NodePool may cost per hour
	// together, in dollars: "12.50". Machine, disk and node cost count, of every machine
	// until it is gone. The user writes it on the NodePool.
	AnnotationMaxHourlyCost = Group + "/max-hourly-cost"
	// AnnotationFrozen is on a NodePool whose nodes must not be removed voluntarily: no
	// consolidation, no drift. Its value is the reason, in words. The user writes it (nap
	// freeze).
	AnnotationFrozen = Group + "/frozen"
	// AnnotationFrozenUntil is when that ends, as in RFC 3339. Without it, or with what is
	// no time, it does not end. nap refuses the latter in files.
	AnnotationFrozenUntil = Group + "/frozen-until"
	// AnnotationBeforeDisable is on a NodePool that nap disable has closed, and holds as JSON
	// what nap enable restores: its limits, or its replicas.
	AnnotationBeforeDisable = Group + "/before-disable"
	// AnnotationRetire is on a NodeClaim whose machine is to be replaced, as one that has
	// drifted is: within the budgets of its NodePool and of its pods. Its value is when that
	// was asked for, as in RFC 3339. The user writes it (nap retire).
	AnnotationRetire = Group + "/retire"
	// AnnotationRepair is on a NodeClaim whose node is due for repair by a replacement,
	// while it is: as JSON the node's condition, since when it is due, and for how long
	// its pods are waited for.
	AnnotationRepair = Group + "/repair"
	// AnnotationRetry is on the Snapshot and names VM sizes and families, separated by
	// commas, or * for all: what Azure has refused of them is forgotten, the quota is read
	// again, and the annotation removed. The user writes it (nap retry).
	AnnotationRetry = Group + "/retry"
	// AnnotationBoughtFor names the workloads of the pods for which a NodeClaim was
	// created, separated by WorkloadSeparator, each as its kind, its namespace and
	// name, and a hash of its pods' template. By it a new controller knows which
	// purchases led to nothing.
	AnnotationBoughtFor = Group + "/bought-for"
	// AnnotationCommand holds a disruption command as JSON. It is on every
	// NodeClaim that the command removes, from before the first write of the
	// command until the claim is gone or the command is rolled back.
	AnnotationCommand = Group + "/move"
	// AnnotationReplaces is the id of the disruption command for which a NodeClaim
	// was created.
	AnnotationReplaces = Group + "/replaces"
	// AnnotationExpectedSaving is the part of a command's expected saving, in
	// dollars per hour, for which a replacement NodeClaim answers.
	AnnotationExpectedSaving = Group + "/saves-per-hour"
)

// WorkloadSeparator stands between the workloads of AnnotationBoughtFor.
const WorkloadSeparator = ", "

// TerminationFinalizer keeps an AKSNodeClass while NodeClaims use it.
const TerminationFinalizer = Group + "/termination"
