package karpenterengine

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// Input is a cluster with pods that wait, in the form that both engines read.
type Input struct {
	// Objects are pods, NodePools, nodes and all else that planning looks at.
	Objects []client.Object
	// InstanceTypes can be bought by every NodePool.
	InstanceTypes []*cloudprovider.InstanceType
}

// Pods counts the pods that wait for a place.
func (in *Input) Pods() int {
	n := 0
	for _, o := range in.Objects {
		if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName == "" {
			n++
		}
	}
	return n
}
