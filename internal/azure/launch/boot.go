package launch

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
)

// BootTrouble reads from a virtual machine's instance view what keeps it from
// becoming a node: what its agent says, extensions that failed, and boot
// diagnostics. It is empty when nothing is known to be wrong.
func BootTrouble(ctx context.Context, client *armcompute.VirtualMachinesClient, group, name string) (string, error) {
	view, err := client.InstanceView(ctx, group, name, nil)
	if Status(err) == http.StatusNotFound {
		return "", ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("read the state of virtual machine %s: %w", name, err)
	}
	parts := troubles("the machine", view.Statuses)
	for _, e := range view.Extensions {
		if e != nil {
			parts = append(parts, troubles("extension "+Value(e.Name), slices.Concat(e.Statuses, e.Substatuses))...)
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
		if s == nil || Value(s.Level) == armcompute.StatusLevelTypesInfo || Value(s.Level) == "" {
			continue
		}
		text := Value(s.Message)
		if text == "" {
			text = Value(s.DisplayStatus)
		}
		out = append(out, fmt.Sprintf("%s says %s: %s", who, Value(s.Code), strings.Join(strings.Fields(text), " ")))
	}
	return out
}
