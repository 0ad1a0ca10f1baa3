package azure

import (
	"context"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// Boots knows of machines that are not nodes yet, or boot again. It is safe for concurrent
// use.
type Boots struct {
	launcher launch.Launcher
	failures *launch.Boots
	// isAKS tells by a provider id which machines AKS has made.
	isAKS func(providerID string) bool
}

// Boots are the machines that are not nodes yet.
func (p *Provider) Boots() *Boots {
	return &Boots{launcher: p.launcher, failures: p.boots, isAKS: func(providerID string) bool {
		_, is := AKSMachineID(&p.config, providerID)
		return is
	}}
}

// Failure says why the machine of a claim, made under this provider id, does not
// become a node; empty when nothing is known to be wrong or there is no machine. It
// may be asked often: of a machine that is looked after Azure is not asked.
func (b *Boots) Failure(ctx context.Context, claim, providerID string) (launch.BootFailure, error) {
	if f, known := b.failures.Of(claim); known {
		return f, nil
	}
	return b.launcher.BootFailure(ctx, launch.Machine{Claim: claim, ProviderID: providerID, AKS: b.isAKS(providerID)})
}

// Console are the last lines that the machine of a claim has written to its serial
// console, oldest first; none where Azure does not keep them.
func (b *Boots) Console(ctx context.Context, claim, providerID string) ([]string, error) {
	return b.launcher.Console(ctx, launch.Machine{Claim: claim, ProviderID: providerID, AKS: b.isAKS(providerID)})
}

// Joined says that the machine of a claim is a node, so that its boot is not looked
// after any more.
func (b *Boots) Joined(claim string) {
	b.launcher.Joined(claim)
	b.failures.Forget(claim)
}

// Restart reboots a claim's machine in place, and returns once Azure has accepted;
// launch.ErrNotFound when there is none.
func (b *Boots) Restart(ctx context.Context, claim string) error {
	return b.launcher.Restart(ctx, claim)
}
