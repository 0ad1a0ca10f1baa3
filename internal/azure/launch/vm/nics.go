package vm

import (
	"context"
	"fmt"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/resourcelist"
)

// LooseNIC is a network interface that no machine has.
type LooseNIC struct {
	Name string
	Tags map[string]*string
}

// LooseNICs lists the network interfaces of the resource group that have no machine. Some of
// them belong to machines that are about to be made.
func (l *Lists) LooseNICs(ctx context.Context) ([]LooseNIC, error) {
	type nic struct {
		Name       *string            `json:"name"`
		Tags       map[string]*string `json:"tags"`
		Properties *struct {
			VirtualMachine *struct{} `json:"virtualMachine"`
		} `json:"properties"`
	}
	listed, err := resourcelist.Read[*nic](ctx, l.arm, l.path("Microsoft.Network/networkInterfaces"), nicsVersion)
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces of resource group %s: %w", l.resourceGroup, err)
	}
	var loose []LooseNIC
	for _, n := range listed {
		if n != nil && n.Name != nil && n.Properties != nil && n.Properties.VirtualMachine == nil {
			loose = append(loose, LooseNIC{*n.Name, n.Tags})
		}
	}
	return loose, nil
}

// OrphanClaims are the claims of those of the loose interfaces that are the cluster's.
func OrphanClaims(loose []LooseNIC, cluster string) []string {
	var claims []string
	for _, nic := range loose {
		tags := launch.Values(nic.Tags)
		if claim, ok := launch.ClaimOf(nic.Name); ok && tags[launch.TagCluster] == cluster && tags[launch.TagClaim] == "" {
			claims = append(claims, claim)
		}
	}
	return claims
}
