package karpenter

import (
	"github.com/awslabs/operatorpkg/object"
	"github.com/awslabs/operatorpkg/status"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	autoscalingv1beta1 "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	metricsnode "sigs.k8s.io/karpenter/pkg/controllers/metrics/node"
	metricsnodepool "sigs.k8s.io/karpenter/pkg/controllers/metrics/nodepool"
	metricspod "sigs.k8s.io/karpenter/pkg/controllers/metrics/pod"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/state/cost"
)

// observability makes the controllers that only turn objects into metrics.
type observability struct {
	mgr     manager.Manager
	kube    client.Client
	cluster *state.Cluster
	cloud   cloudprovider.CloudProvider
	cost    *cost.ClusterCost
	// capacityBuffers is whether that feature gate is on.
	capacityBuffers bool
}

func (o *observability) controllers() []named {
	recorder := recorderOf(o.mgr)
	buckets := status.WithHistogramBuckets(prometheus.ExponentialBuckets(0.5, 2, 15))
	out := []named{
		{"metrics.pod", metricspod.NewController(o.kube, o.cluster)},
		{"metrics.nodepool", metricsnodepool.NewController(o.kube, o.cloud, o.cost)},
		{"metrics.node", metricsnode.NewController(o.cluster)},
		{"status.nodeclaim", status.NewController[*v1.NodeClaim](o.kube, recorder, status.EmitDeprecatedMetrics, buckets,
			status.WithLabels(append(o.nodeClassLabels(), v1.NodePoolLabelKey)...))},
		{"status.nodepool", status.NewController[*v1.NodePool](o.kube, recorder, status.EmitDeprecatedMetrics, buckets)},
		{"status.node", status.NewGenericObjectController[*corev1.Node](o.kube, recorder, buckets,
			status.WithLabels(append(o.nodeClassLabels(), v1.NodePoolLabelKey, v1.NodeInitializedLabelKey)...))},
	}
	if o.capacityBuffers {
		out = append(out, named{"status.capacitybuffer", status.NewGenericObjectController[*autoscalingv1beta1.CapacityBuffer](
			o.kube, recorder, status.EmitDeprecatedMetrics, buckets)})
	}
	return out
}

// nodeClassLabels are the label keys under which nodes name their node class.
func (o *observability) nodeClassLabels() []string {
	var keys []string
	for _, class := range o.cloud.GetSupportedNodeClasses() {
		keys = append(keys, v1.NodeClassLabelKey(object.GVK(class).GroupKind()))
	}
	return keys
}
