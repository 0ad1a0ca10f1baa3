package mode

import (
	"context"
	"errors"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/internal/controller/outage"
)

// Guard is a cloud that launches nothing while the mode does not let nap buy, for no
// NodeClaim: Karpenter's own provisioner, static NodePools and people make some, too.
type Guard struct {
	karpcloud.CloudProvider
	// Finding is why nothing may be launched; the zero value while it may.
	Finding func() outage.Finding
}

// Create launches the machine of a claim, or refuses to with the reason of the finding.
func (g Guard) Create(ctx context.Context, claim *karpv1.NodeClaim) (*karpv1.NodeClaim, error) {
	if f := g.Finding(); f != (outage.Finding{}) {
		return nil, karpcloud.NewCreateError(errors.New(f.Message), f.Reason, f.Message)
	}
	return g.CloudProvider.Create(ctx, claim)
}
