package cloudprovider

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/azure"
)

// Collector deletes machines and network interfaces without a NodeClaim. It has no
// state of its own.
type Collector struct {
	kube  client.Reader
	azure *azure.Provider
}

// live are the names of all claims, for the garbage collection.
func (c *Collector) live(ctx context.Context) (map[string]bool, error) {
	var list karpv1.NodeClaimList
	if err := c.kube.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	out := make(map[string]bool, len(list.Items))
	for i := range list.Items {
		out[list.Items[i].Name] = true
	}
	return out, nil
}

// CollectMachines removes machines whose NodeClaim does not exist and returns the
// claims' names, see azure.Provider.CollectMachines.
func (c *Collector) CollectMachines(ctx context.Context) ([]string, error) {
	return c.azure.CollectMachines(ctx, c.live)
}

// CollectNICs removes network interfaces whose machine and NodeClaim do not
// exist, see azure.Provider.CollectNICs.
func (c *Collector) CollectNICs(ctx context.Context) ([]string, error) {
	return c.azure.CollectNICs(ctx, c.live)
}
