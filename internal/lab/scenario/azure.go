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
}
