package scenario

import "context"

// Azure is what a scenario asks of the simulated cloud. Its answers come from
// the cloud's own books, so that they witness for or against nap.
type Azure interface {
	// Machines lists the virtual machines that exist and that nap bought.
	Machines(ctx context.Context) ([]Machine, error)
	// Purchases lists every machine bought since the lab began, oldest first,
	// those included that are gone.
	Purchases(ctx context.Context) ([]Purchase, error)
	// Accepted counts the machines that nap asked for and that exist, in whatever
	// state; Machines are those of them that run.
	Accepted(ctx context.Context) (int, error)
	// Leaks lists what exists because nap made it and nothing needs: machines, in
	// whatever state, of none of these claims, and network interfaces and disks
	// without a machine.
	Leaks(ctx context.Context, claims []string) ([]string, error)
	// FailedBoots lists the machines whose provisioning failed since the lab began.
	FailedBoots(ctx context.Context) ([]FailedBoot, error)
	// AddFault breaks something and returns the fault's id.
	AddFault(ctx context.Context, kind string, params map[string]string) (string, error)
	// ClearFaults mends everything.
	ClearFaults(ctx context.Context) error
}

// Machine is a virtual machine.
type Machine struct {
	Name, Size, Zone string
	// Priority is "spot" or "regular".
	Priority string
	// DollarsPerHour is what it costs, its managed disk included.
	DollarsPerHour float64
	// Trouble is how the provisioning of the machine has failed; empty when it has not.
	Trouble string
}

// Purchase is one accepted order for a machine.
type Purchase struct {
	Machine  Machine
	Returned bool
}

// Lab is what a scenario does to the lab's own parts.
type Lab interface {
	// Kill ends a part with SIGKILL; the supervisor starts it again.
	Kill(ctx context.Context, component string) error
	// PublishImages adds a version of every node image, as a release of AKS does.
	PublishImages(ctx context.Context, version string) error
	// SetWindow sets a maintenance window of the cluster, one of Windows, to one of
	// WindowStates.
	SetWindow(ctx context.Context, window, state string) error
	// UpgradeKubernetes raises the control plane by one minor version, to the one that is
	// named, and returns what it is then.
	UpgradeKubernetes(ctx context.Context, version string) (string, error)
	// UpgradeNap rolls the release of nap out with settings of the controller changed,
	// each as NAME=VALUE by its variable; RollbackNap goes back to what it was before.
	UpgradeNap(ctx context.Context, settings []string) error
	RollbackNap(ctx context.Context) error
}

// Windows are the maintenance windows: when nodes may be replaced for a newer image, and
// when for a newer Kubernetes version.
func Windows() []string { return []string{WindowNodeImages, WindowKubernetes} }

// The maintenance windows.
const (
	WindowNodeImages = "node-images"
	WindowKubernetes = "kubernetes"
)

// WindowStates are what a window can be set to: open from now on, closed, or without one,
// when nodes may be replaced at any time.
func WindowStates() []string { return []string{WindowOpen, WindowClosed, WindowNone} }

// The states of a window.
const (
	WindowOpen   = "open"
	WindowClosed = "closed"
	WindowNone   = "none"
)
