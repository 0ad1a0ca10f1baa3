package launch

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

// Mixed launches machines in one way and looks after those that were launched in
// the other too, so that a cluster can go from one to the other while it runs.
type Mixed struct {
	vms, aks  Launcher
	preferred Launcher
}

// NewMixed returns a launcher that looks after both kinds. New machines are AKS
// machines when startAKS is set, else plain virtual machines.
func NewMixed(vms, aks Launcher, startAKS bool) *Mixed {
	m := &Mixed{vms: vms, aks: aks, preferred: vms}
	if startAKS {
		m.preferred = aks
	}
	return m
}

var _ Launcher = (*Mixed)(nil)

func (x *Mixed) other() Launcher {
	if x.preferred == x.vms {
		return x.aks
	}
	return x.vms
}

func (x *Mixed) of(m Machine) Launcher {
	if m.AKS {
		return x.aks
	}
	return x.vms
}

// Start makes a machine of the preferred kind.
func (x *Mixed) Start(ctx context.Context, spec NodeSpec) (Machine, error) {
	return x.preferred.Start(ctx, spec)
}

// Finish does what the machine's own kind needs.
func (x *Mixed) Finish(ctx context.Context, m Machine) error { return x.of(m).Finish(ctx, m) }

// Get reads the machine of either kind. Where one kind may not be read, the other may have it.
func (x *Mixed) Get(ctx context.Context, claim string) (Machine, error) {
	m, err := x.preferred.Get(ctx, claim)
	if err == nil || !errors.Is(err, ErrNotFound) && Status(err) != http.StatusForbidden {
		return m, err
	}
	if other, otherErr := x.other().Get(ctx, claim); otherErr == nil || errors.Is(err, ErrNotFound) {
		return other, otherErr
	}
	return m, err
}

// Find tells the kinds apart by how their virtual machines are named.
func (x *Mixed) Find(ctx context.Context, providerID string) (Machine, error) {
	m, err := x.aks.Find(ctx, providerID)
	if errors.Is(err, ErrForeign) {
		return x.vms.Find(ctx, providerID)
	}
	return m, err
}

// List reads the machines of both kinds, and gives those of one where the other fails.
func (x *Mixed) List(ctx context.Context) ([]Machine, error) {
	vms, err := x.vms.List(ctx)
	aks, aksErr := x.aks.List(ctx)
	return append(vms, aks...), errors.Join(err, aksErr)
}

// Failure says why the machine failed, whichever kind it is.
func (x *Mixed) Failure(ctx context.Context, claim string) (*unavailable.Failure, error) {
	m, err := x.Get(ctx, claim)
	if errors.Is(err, ErrNotFound) {
		return GoneFailure(err), nil
	}
	if err != nil {
		return nil, err
	}
	return x.of(m).Failure(ctx, claim)
}

// Delete removes the machine of either kind.
func (x *Mixed) Delete(ctx context.Context, claim string) error {
	err := x.preferred.Delete(ctx, claim)
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	if other := x.other().Delete(ctx, claim); !errors.Is(other, ErrNotFound) || !errors.As(err, new(*GoneError)) {
		return other
	}
	return err
}

// Restart reboots the machine of either kind.
func (x *Mixed) Restart(ctx context.Context, claim string) error {
	m, err := x.Get(ctx, claim)
	if err != nil {
		return err
	}
	return x.of(m).Restart(ctx, claim)
}

// Run runs both.
func (x *Mixed) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { x.vms.Run(ctx) })
	wg.Go(func() { x.aks.Run(ctx) })
	wg.Wait()
}

// Update updates the machine of either kind.
func (x *Mixed) Update(ctx context.Context, m Machine, class *nodeclass.NodeClass) error {
	return x.of(m).Update(ctx, m, class)
}

// BootFailure asks the machine's own kind.
func (x *Mixed) BootFailure(ctx context.Context, m Machine) (BootFailure, error) {
	return x.of(m).BootFailure(ctx, m)
}

// Console asks the machine's own kind.
func (x *Mixed) Console(ctx context.Context, m Machine) ([]string, error) {
	return x.of(m).Console(ctx, m)
}

// Joined tells both kinds.
func (x *Mixed) Joined(claim string) {
	x.vms.Joined(claim)
	x.aks.Joined(claim)
}
