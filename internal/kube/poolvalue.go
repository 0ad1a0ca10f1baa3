package kube

import (
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// Pool is a NodePool in the words of planning, as the fleet keeps it.
func Pool(p *v1.NodePool) *fleet.Pool { return pool(p) }
