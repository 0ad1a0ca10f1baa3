package vm

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"golang.org/x/sync/errgroup"

	"github.com/nodeautoprovision/nap/internal/azure/bootstrap"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

const (
	// provisioningPoll is how often the provisioning of one machine is looked at. A
	// failure is to be known within 30 s.
	provisioningPoll = 10 * time.Second
	// provisioningPolls is how many such looks are spent in a second on all machines:
	// Azure grants a subscription 25 reads a second for everything. From 100 machines
	// on that boot at the same time, each is looked at less often.
	provisioningPolls = 10
	// provisioningWorkers is how many looks are under way at once.
	provisioningWorkers = 8
	// provisioningTick is how often it is seen whose turn it is.
	provisioningTick = time.Second
)

// putPoller is the operation of an extension.
type putPoller = runtime.Poller[armcompute.VirtualMachineExtensionsClientCreateOrUpdateResponse]

// provisioning is one machine between its creation and the end of its provisioning.
type provisioning struct {
	// poller is the operation of the extension; nil when it is not known, and the
	// extension itself is looked at.
	poller *putPoller
	// next is when it is looked at again; zero while there is no extension yet, and
	// once provisioning has ended well.
	next time.Time
}

// provisionings are the machines whose provisioning is followed, by claim. They are a
// matter of this process: after a restart the extension itself is looked at.
type provisionings struct {
	mu      sync.Mutex
	byClaim map[string]*provisioning
}

func newProvisionings() *provisionings {
	return &provisionings{byClaim: map[string]*provisioning{}}
}

// expect makes the machine known without an extension to look after: it is yet to be
// put, or has ended.
func (p *provisionings) expect(claim string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byClaim[claim] = &provisioning{}
}

// follow looks after an extension from now on.
func (p *provisionings) follow(claim string, poller *putPoller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byClaim[claim] = &provisioning{poller: poller, next: time.Now().Add(provisioningPoll)}
}

// knows reports whether this process knows of the machine, and whether it looks after
// an extension on it.
func (p *provisionings) knows(claim string) (known, followed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.byClaim[claim]
	return x != nil, x != nil && !x.next.IsZero()
}

// forget drops a machine: it is a node, or gone.
func (p *provisionings) forget(claim string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byClaim, claim)
}

// due are the machines whose turn it is. Each gets its next turn, so that a look that
// takes long is not followed by another one meanwhile.
func (p *provisionings) due(now time.Time) map[string]*provisioning {
	p.mu.Lock()
	defer p.mu.Unlock()
	followed := 0
	for _, x := range p.byClaim {
		if !x.next.IsZero() {
			followed++
		}
	}
	pause := max(provisioningPoll, time.Duration(followed)*time.Second/provisioningPolls)
	out := map[string]*provisioning{}
	for claim, x := range p.byClaim {
		if !x.next.IsZero() && !x.next.After(now) {
			x.next = now.Add(pause)
			out[claim] = x
		}
	}
	return out
}

// run follows provisionings until ctx ends.
func (p *provisionings) run(ctx context.Context, look func(ctx context.Context, claim string, x *provisioning)) {
	ticker := time.NewTicker(provisioningTick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var group errgroup.Group
		group.SetLimit(provisioningWorkers)
		for claim, x := range p.due(time.Now()) {
			group.Go(func() error {
				look(ctx, claim, x)
				return nil
			})
		}
		_ = group.Wait() // looks give no error
	}
}

// provision puts the extension on a machine that waits there for the end of
// provisioning, and follows its operation.
func (v *Launcher) provision(ctx context.Context, m launch.Machine) error {
	if _, followed := v.provisionings.knows(m.Claim); followed {
		return nil // a list of machines can be behind
	}
	name, e := launch.ResourceName(m.Claim), bootstrap.ProvisioningExtension()
	poller, err := v.clients.Extensions.BeginCreateOrUpdate(ctx, v.config.NodeResourceGroup, name, e.Name,
		armcompute.VirtualMachineExtension{
			Location: &v.config.Location, Tags: pointers(m.Tags),
			Properties: &armcompute.VirtualMachineExtensionProperties{
				Publisher: &e.Publisher, Type: &e.Type, TypeHandlerVersion: &e.TypeHandlerVersion,
				AutoUpgradeMinorVersion: &e.AutoUpgradeMinorVersion, Settings: map[string]any{}, ProtectedSettings: e.ProtectedSettings,
			},
		}, nil)
	if err != nil {
		return fmt.Errorf("put extension %s on virtual machine %s: %w", e.Name, name, err)
	}
	v.provisionings.follow(m.Claim, poller)
	return nil
}

// lookAtProvisioning sees whether the operation of a machine's extension has ended,
// and what with. Where the operation is not known, is lost, or was superseded by
// another one on the same machine, the extension itself says how far it is.
func (v *Launcher) lookAtProvisioning(ctx context.Context, claim string, x *provisioning) {
	if x.poller != nil {
		ended, err := pollOnce(ctx, x.poller)
		if !ended {
			return // it runs, or Azure did not answer: its turn comes again
		}
		if err == nil {
			v.provisionings.expect(claim)
			return
		}
		if failure := unavailable.Classify(err); failure != nil {
			if f, _ := launch.BootFailureIn(failure.Code, failure.Message); f.ExitCode != 0 {
				v.provisioningFailed(claim, f)
				return
			}
		}
		x.poller = nil
	}
	f, ended, err := v.readExtension(ctx, claim)
	switch {
	case err != nil || !ended: // its turn comes again
	case f.Text != "":
		v.provisioningFailed(claim, f)
	default:
		v.provisionings.expect(claim)
	}
}

// pollOnce looks at an operation. Once it has ended, or Azure does not know it any more,
// the error says what it has ended with.
func pollOnce(ctx context.Context, poller *putPoller) (ended bool, err error) {
	if _, err := poller.Poll(ctx); err != nil {
		s := launch.Status(err)
		return s >= http.StatusBadRequest && s < http.StatusInternalServerError && s != http.StatusTooManyRequests, err
	}
	if !poller.Done() {
		return false, nil
	}
	_, err = poller.Result(ctx)
	return true, err
}

// readExtension reads how far the extension of a machine is. When it has failed, its
// instance view is read, once, and says why. A machine without the extension has none
// that could fail.
func (v *Launcher) readExtension(ctx context.Context, claim string) (f launch.BootFailure, ended bool, err error) {
	name, group, extension := launch.ResourceName(claim), v.config.NodeResourceGroup, bootstrap.ProvisioningExtension().Name
	e, err := v.clients.Extensions.Get(ctx, group, name, extension, nil)
	if launch.Status(err) == http.StatusNotFound {
		return launch.BootFailure{}, true, nil
	}
	if err != nil {
		return launch.BootFailure{}, false, fmt.Errorf("read extension %s of virtual machine %s: %w", extension, name, err)
	}
	if e.Properties == nil || launch.StateOf(launch.Value(e.Properties.ProvisioningState)) != launch.Failed {
		return launch.BootFailure{}, e.Properties != nil && launch.Value(e.Properties.ProvisioningState) == string(launch.Succeeded), nil
	}
	view, err := v.clients.Extensions.Get(ctx, group, name, extension,
		&armcompute.VirtualMachineExtensionsClientGetOptions{Expand: to.Ptr("instanceView")})
	if err != nil {
		return launch.BootFailure{}, false, fmt.Errorf("read why extension %s of virtual machine %s failed: %w", extension, name, err)
	}
	return failureInView(&view.VirtualMachineExtension), true, nil
}

// failureInView is why an extension that has failed did so.
func failureInView(e *armcompute.VirtualMachineExtension) launch.BootFailure {
	out := launch.BootFailure{Text: "extension " + launch.Value(e.Name) + " failed, and Azure says no more than that"}
	if e.Properties == nil || e.Properties.InstanceView == nil {
		return out
	}
	for _, s := range e.Properties.InstanceView.Statuses {
		if s == nil || launch.Value(s.Level) != armcompute.StatusLevelTypesError {
			continue
		}
		if f, ok := launch.BootFailureIn("VMExtensionFailed", launch.Value(s.Message)); ok {
			return f
		}
	}
	return out
}

// provisioningFailed remembers that a machine's provisioning has failed.
func (v *Launcher) provisioningFailed(claim string, f launch.BootFailure) {
	v.provisionings.expect(claim)
	v.boots.Failed(claim, f)
}

// BootFailure says why the machine does not become a node. It asks Azure only of a
// machine that this process knows nothing of, because an earlier one has made it.
func (v *Launcher) BootFailure(ctx context.Context, m launch.Machine) (launch.BootFailure, error) {
	if known, _ := v.provisionings.knows(m.Claim); known {
		return launch.BootFailure{}, nil
	}
	f, ended, err := v.readExtension(ctx, m.Claim)
	switch {
	case err != nil:
		return launch.BootFailure{}, err
	case !ended:
		v.provisionings.follow(m.Claim, nil)
	case f.Text != "":
		v.provisioningFailed(m.Claim, f)
	default:
		v.provisionings.expect(m.Claim)
	}
	return f, nil
}

// Joined ends looking after the machine's provisioning: it is a node.
func (v *Launcher) Joined(claim string) { v.provisionings.forget(claim) }
