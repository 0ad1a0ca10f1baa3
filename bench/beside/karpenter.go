package beside

import (
	"context"
	"slices"

	"github.com/awslabs/operatorpkg/status"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// Cloud is a provider for Karpenter that only says what can be bought: deciding
// asks for nothing else.
type Cloud struct {
	cloudprovider.CloudProvider
	Types []*cloudprovider.InstanceType
	// Classes are the kinds of node classes whose NodePools count as managed;
	// without any, all do.
	Classes []status.Object
}

// GetInstanceTypes lists what can be bought.
func (c Cloud) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return c.Types, nil
}

// Name is how the provider shows up in metrics.
func (c Cloud) Name() string { return "bench" }

// GetSupportedNodeClasses are the Classes.
func (c Cloud) GetSupportedNodeClasses() []status.Object { return c.Classes }

// Client is an API server that holds the objects whose kinds it knows, with the
// index that Karpenter's manager sets up. It writes versions into the objects.
func Client(objects []client.Object) client.Client {
	stored := slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool {
		_, _, err := scheme.Scheme.ObjectKinds(o)
		return err != nil
	})
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(stored...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).Build()
}

// Context carries the options that Karpenter's controller of that name reads from
// it, and silences it.
func Context(ctx context.Context, controller string) context.Context {
	ctx = options.ToContext(injection.WithControllerName(ctx, controller), &options.Options{
		CPURequests: 1000, PreferencePolicy: options.PreferencePolicyRespect, MinValuesPolicy: options.MinValuesPolicyStrict, IgnoreDRARequests: true,
		FeatureGates: options.FeatureGates{ReservedCapacity: true},
	})
	return log.IntoContext(ctx, logr.Discard())
}
