package karpenterengine

import (
	"context"

	"github.com/awslabs/operatorpkg/status"
	"github.com/go-logr/logr"
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
func (c Cloud) Name() string { return "in-memory" }

// GetSupportedNodeClasses are the Classes.
func (c Cloud) GetSupportedNodeClasses() []status.Object { return c.Classes }

// Context carries the options that Karpenter's controller of that name reads from
// it, and silences it.
func Context(ctx context.Context, controller string) context.Context {
	ctx = options.ToContext(injection.WithControllerName(ctx, controller), &options.Options{
		CPURequests: 1000, PreferencePolicy: options.PreferencePolicyRespect,
		MinValuesPolicy: options.MinValuesPolicyStrict, IgnoreDRARequests: true,
		FeatureGates: options.FeatureGates{ReservedCapacity: true},
	})
	return log.IntoContext(ctx, logr.Discard())
}
