package launch

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
)

// bootTrouble reads from a virtual machine's instance view what keeps it from
// becoming a node: what its agent says, extensions that failed, and boot
// diagnostics. It is empty when nothing is known to be wrong.
func bootTrouble(ctx context.Context, client *armcompute.VirtualMachinesClient, group, name string) (string, error) {
	view, err := client.InstanceView(ctx, group, name, nil)
	if status(err) == http.StatusNotFound {
		return "", ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("read the state of virtual machine %s: %w", name, err)
	}
	parts := troubles("the machine", view.Statuses)
	for _, e := range view.Extensions {
		if e != nil {
			parts = append(parts, troubles("extension "+deref(e.Name), slices.Concat(e.Statuses, e.Substatuses))...)
		}
	}
	if view.VMAgent != nil {
		parts = append(parts, troubles("the machine's agent", view.VMAgent.Statuses)...)
	}
	if d := view.BootDiagnostics; d != nil && d.Status != nil {
		parts = append(parts, troubles("boot diagnostics", []*armcompute.InstanceViewStatus{d.Status})...)
	}
	return strings.Join(parts, "; "), nil
}

// troubles are the statuses that say more than that all is well.
func troubles(who string, statuses []*armcompute.InstanceViewStatus) []string {
	var out []string
	for _, s := range statuses {
		if s == nil || deref(s.Level) == armcompute.StatusLevelTypesInfo || deref(s.Level) == "" {
			continue
		}
		text := deref(s.Message)
		if text == "" {
			text = deref(s.DisplayStatus)
		}
		out = append(out, fmt.Sprintf("%s says %s: %s", who, deref(s.Code), strings.Join(strings.Fields(text), " ")))
	}
	return out
}

// Trouble says what keeps the machine from becoming a node.
func (v *VMs) Trouble(ctx context.Context, m Machine) (string, error) {
	return bootTrouble(ctx, v.clients.Machines, v.config.NodeResourceGroup, ResourceName(m.Claim))
}

// Trouble says what keeps the machine from becoming a node: AKS's own error, or
// what the virtual machine behind it says.
func (a *AKSMachines) Trouble(ctx context.Context, m Machine) (string, error) {
	raw, err := a.read(ctx, m.Claim)
	if err != nil {
		return "", err
	}
	if s := raw.Properties.Status; s != nil && s.ProvisioningError != nil {
		return fmt.Sprintf("AKS says %s: %s", s.ProvisioningError.Code, s.ProvisioningError.Message), nil
	}
	id := raw.Properties.ResourceID
	return bootTrouble(ctx, a.clients.VMs, a.config.NodeResourceGroup, id[strings.LastIndexByte(id, '/')+1:])
}

// Trouble asks the machine's own kind.
func (x *Mixed) Trouble(ctx context.Context, m Machine) (string, error) {
	return x.of(m).Trouble(ctx, m)
}
