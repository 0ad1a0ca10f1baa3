package armsim

import (
	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/armsim/authorization"
	"github.com/nodeautoprovision/nap/internal/armsim/billing"
	"github.com/nodeautoprovision/nap/internal/armsim/compute"
	"github.com/nodeautoprovision/nap/internal/armsim/containerservice"
)

// The words in which users of the simulation speak to the [Server]. Each is defined
// where it is used.
type (
	// Fault is something that goes wrong on purpose.
	Fault = arm.Fault
	// FaultKind says what goes wrong.
	FaultKind = arm.FaultKind
	// AuditEntry is one line of the audit log.
	AuditEntry = arm.AuditEntry
	// Principal is an identity that may sign in.
	Principal = arm.Principal
	// RoleAssignment is a role that a principal has at a scope.
	RoleAssignment = authorization.Assignment
	// Billing is how the subscription is paid for.
	Billing = billing.Config
	// Reservation is machines that are bought in advance.
	Reservation = billing.Reservation
	// Distribution is one of durations.
	Distribution = arm.Distribution
	// Latencies are how long things take.
	Latencies = arm.Latencies
	// CapacityRule limits the machines that match it.
	CapacityRule = compute.CapacityRule
	// Restriction takes sizes away from the subscription.
	Restriction = compute.Restriction
	// Machine is what a simulated kubelet may know about its machine.
	Machine = compute.Machine
	// AKSMachine is the Kubernetes part of an agent pool machine.
	AKSMachine = compute.AKSMachine
	// MachineObserver is told about the machines of the subscription.
	MachineObserver = compute.MachineObserver
	// Provisioning is how the provisioning of a machine has ended.
	Provisioning = compute.Provisioning
	// PoolMachine describes a machine that an agent pool has from the start.
	PoolMachine = containerservice.PoolMachine
)

// The kinds of faults, see [arm.FaultKind].
const (
	FaultCapacity     = arm.FaultCapacity
	FaultPolicy       = arm.FaultPolicy
	FaultQuota        = arm.FaultQuota
	FaultThrottle     = arm.FaultThrottle
	FaultError        = arm.FaultError
	FaultSlow         = arm.FaultSlow
	FaultHang         = arm.FaultHang
	FaultFail         = arm.FaultFail
	FaultNoBoot       = arm.FaultNoBoot
	FaultProvisioning = arm.FaultProvisioning
	FaultEvict        = arm.FaultEvict
	FaultOutage       = arm.FaultOutage
)

// The agreements under which a subscription can be paid for.
const (
	PayAsYouGo          = billing.PayAsYouGo
	EnterpriseAgreement = billing.Enterprise
	CustomerAgreement   = billing.Customer
	PartnerAgreement    = billing.Partner
)

// The kinds of audit entries, see [arm.AuditKind].
const (
	AuditCall      = arm.AuditCall
	AuditOperation = arm.AuditOperation
	AuditLifecycle = arm.AuditLifecycle
)

// FaultKinds lists all kinds in the order of their definition.
func FaultKinds() []FaultKind { return arm.FaultKinds() }
