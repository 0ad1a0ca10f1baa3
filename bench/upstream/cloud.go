package upstream

import (
	"context"
	"slices"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// newClient is an API server that holds the objects whose kinds it knows, with
// the index that Karpenter's manager sets up.
func newClient(objects []client.Object) client.Client {
	stored := slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool {
		_, _, err := scheme.Scheme.ObjectKinds(o)
		return err != nil
	})
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(stored...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).Build()
}

// cloud is a provider that only says what can be bought: a scheduling pass asks
// for nothing else.
type cloud struct {
	cloudprovider.CloudProvider
	types []*cloudprovider.InstanceType
}

// GetInstanceTypes lists what can be bought.
func (c cloud) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return c.types, nil
}

// Name is how the provider shows up in metrics.
func (c cloud) Name() string { return "bench" }

// GetSupportedNodeClasses is empty: every NodePool counts as managed here.
func (c cloud) GetSupportedNodeClasses() []status.Object { return nil }
