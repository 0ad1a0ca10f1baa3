// Package launch turns a decision to buy into a running machine, and back.
//
//	Order ── Buyer.Buy ──> NodeSpec ── Launcher ──> Azure
//	                          ^                       │ refused: unavailable.Offerings, next candidate
//	                          └───────────────────────┘
//
// A [NodeSpec] is everything that a machine needs, whichever way it is made. A
// [Launcher] makes it: package vm as virtual machines of nap's own, package
// aksmachine as machines of an agent pool that AKS makes; [Mixed] looks after both.
// The [Buyer] goes down a ranked list of candidates until Azure sells one, within
// one call. The [Watcher] follows machines until they run, and finds those again
// that an earlier process asked for: nothing about a purchase is kept but what Azure
// itself keeps, under names that follow from the NodeClaim's. Here, too, is what
// both ways share: names, tags, and what a kubelet registers its node with.
package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// ErrNotFound says that there is no machine of the claim.
var ErrNotFound = errors.New("no such machine")

// GoneError is [ErrNotFound] for a machine whose end Azure has told.
type GoneError struct {
	// At is when Azure had deleted it.
	At time.Time
}

// Error implements error.
func (e *GoneError) Error() string {
	return fmt.Sprintf("%v since %s", ErrNotFound, e.At.UTC().Format(time.RFC3339))
}

// Is makes it [ErrNotFound].
func (e *GoneError) Is(target error) bool { return target == ErrNotFound }

// ErrForeign says that the claim's name is taken by a machine that is not nap's.
var ErrForeign = errors.New("the name is taken by another machine")

// NodeSpec is everything that a machine needs, independent of how it is made.
type NodeSpec struct {
	// Claim is the NodeClaim's name; names in Azure follow from it.
	Claim string
	// Pool is the NodePool's name, empty for a claim on its own.
	Pool         string
	SKU          *instancetype.SKU
	Zone         string // Azure's: 1, 2, 3, or empty for regional placement
	CapacityType model.CapacityType
	Class        *nodeclass.NodeClass
	Image        nodeclass.Image
	// Labels and Taints that the node registers with; StartupTaints included.
	Labels map[string]string
	// JoinToken is the bootstrap token with which a plain machine joins. It must not be
	// printed.
	JoinToken jointoken.Token
	Taints    []model.Taint
	MaxPods   int
	// UltraSSD makes the machine able to attach ultra disks.
	UltraSSD bool
	// Again says that an earlier choice for the claim has just been refused, so that
	// this one has waited long enough.
	Again bool
}

// State is how far a machine has come, as Azure says.
type State string

// The states of a machine.
const (
	Creating  State = "Creating"
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
	Deleting  State = "Deleting"
)

// Machine is a machine that exists in Azure.
type Machine struct {
	Claim        string
	Pool         string
	ProviderID   string
	Size         string
	Zone         string // Azure's, empty for regional
	CapacityType model.CapacityType
	ImageID      string
	State        State
	Created      time.Time // zero when Azure does not say
	Tags         map[string]string
	// AKS tells a machine of an agent pool from a plain virtual machine.
	AKS bool
	// Drifted says that the cluster has been configured again since the machine was
	// made, in a way that takes a new machine. Of AKS machines alone, and as AKS
	// says it.
	Drifted bool
	// Missing names what is still to be put on the machine once it runs, see
	// Launcher.Finish.
	Missing []string
}

// Unfinished reports whether something is still to be done once the machine runs.
func (m *Machine) Unfinished() bool { return len(m.Missing) > 0 }

// Launcher makes and removes machines of one cluster. All methods may be called
// again with the same arguments, also by another process, and must not make a
// second machine.
type Launcher interface {
	// Start asks Azure for a machine and returns once Azure has accepted. A machine
	// of the claim that exists already is returned as it is, whatever the spec
	// says. The error is a *unavailable.Failure where Azure refused.
	Start(ctx context.Context, spec NodeSpec) (Machine, error)
	// Finish does what is left once the machine runs.
	Finish(ctx context.Context, m Machine) error
	// Get and List see machines of this cluster alone; Get gives ErrNotFound. With an
	// error, List gives the machines that it could read.
	Get(ctx context.Context, claim string) (Machine, error)
	// Find reads the machine behind a node's provider id; ErrForeign when the id is
	// not that of a machine of this launcher's.
	Find(ctx context.Context, providerID string) (Machine, error)
	List(ctx context.Context) ([]Machine, error)
	// Failure says why a machine in the state Failed failed; nil when it runs
	// nevertheless, because it is a later change of it that failed.
	Failure(ctx context.Context, claim string) (*unavailable.Failure, error)
	// Update gives a machine what may change while it runs, as a new machine of the
	// class would have it: tags, and identities where they are ours to give.
	Update(ctx context.Context, m Machine, class *nodeclass.NodeClass) error
	// BootFailure says why a machine that has been made does not become a node; empty
	// when nothing is known to be wrong. What this process has found out already is in
	// Boots; it is not asked of Azure again.
	BootFailure(ctx context.Context, m Machine) (BootFailure, error)
	// Console are the last lines that a machine has written to its serial console,
	// oldest first; none where Azure does not keep them.
	Console(ctx context.Context, m Machine) ([]string, error)
	// Joined ends looking after a claim's machine, which is a node now.
	Joined(claim string)
	// Restart reboots a machine in place, and returns once Azure has accepted; ErrNotFound
	// when there is none.
	Restart(ctx context.Context, claim string) error
	// Delete starts the removal of a machine with everything that belongs to it,
	// and gives ErrNotFound once there is no machine.
	Delete(ctx context.Context, claim string) error
	// Run does what Azure allows only later, until ctx ends.
	Run(ctx context.Context)
}
