package karpenter

import (
	"context"
	"errors"

	opmetrics "github.com/awslabs/operatorpkg/metrics"
	"github.com/awslabs/operatorpkg/object"
	"github.com/awslabs/operatorpkg/status"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	autoscalingv1beta1 "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	metricsnodepool "sigs.k8s.io/karpenter/pkg/controllers/metrics/nodepool"
	metricspod "sigs.k8s.io/karpenter/pkg/controllers/metrics/pod"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/state/cost"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"

	"github.com/nodeautoprovision/nap/internal/controller/objectmetrics"
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
	// detailed is whether metrics of single objects are served.
	detailed bool
}

func (o *observability) controllers() ([]named, error) {
	recorder := recorderOf(o.mgr)
	buckets := status.WithHistogramBuckets(prometheus.ExponentialBuckets(0.5, 2, 15))
	if _, err := objectmetrics.NewNodes(ctrlmetrics.Registry, o.cluster, o.detailed); err != nil {
		return nil, err
	}
	if err := o.replaceShared(); err != nil {
		return nil, err
	}
	claims := status.NewController[*v1.NodeClaim](o.kube, recorder, status.EmitDeprecatedMetrics, buckets,
		status.WithLabels(append(o.nodeClassLabels(), v1.NodePoolLabelKey)...))
	pools := status.NewController[*v1.NodePool](o.kube, recorder, status.EmitDeprecatedMetrics, buckets)
	nodes := status.NewGenericObjectController[*corev1.Node](o.kube, recorder, buckets,
		status.WithLabels(append(o.nodeClassLabels(), v1.NodePoolLabelKey, v1.NodeInitializedLabelKey)...))
	err := errors.Join(replace(claims, o.detailed), replace(pools, true), replace(nodes.Controller, o.detailed))
	out := []named{
		{"metrics.pod", onChange{"metrics.pod", &corev1.Pod{}, 1, o.pods(), []predicate.Predicate{measuredPods(o.detailed)}}},
		{"metrics.nodepool", metricsnodepool.NewController(o.kube, o.cloud, o.cost)},
		{"status.nodeclaim", onChange{"operatorpkg.nodeclaim.status", &v1.NodeClaim{}, statusWorkers, noRounds(claims), nil}},
		{"status.nodepool", onChange{"operatorpkg.nodepool.status", &v1.NodePool{}, statusWorkers, noRounds(pools), nil}},
		{"status.node", onChange{"operatorpkg.node.status", &corev1.Node{}, statusWorkers, noRounds(nodes), nil}},
	}
	if o.capacityBuffers {
		buffers := status.NewGenericObjectController[*autoscalingv1beta1.CapacityBuffer](o.kube, recorder, status.EmitDeprecatedMetrics, buckets)
		err = errors.Join(err, replace(buffers.Controller, o.detailed))
		out = append(out, named{"status.capacitybuffer",
			onChange{"operatorpkg.capacitybuffer.status", &autoscalingv1beta1.CapacityBuffer{}, statusWorkers, noRounds(buffers), nil}})
	}
	return out, err
}

// reading is how gauges that are served only with details are read.
func reading(detailed bool, as objectmetrics.Reading) objectmetrics.Reading {
	if detailed {
		return as
	}
	return objectmetrics.Left
}

// swap puts another gauge in the place of one of Karpenter's.
type swap struct {
	gauge *opmetrics.GaugeMetric
	as    objectmetrics.Reading
}

func swapAll(all []swap, detailed bool) error {
	for _, s := range all {
		replaced, err := objectmetrics.Replace(ctrlmetrics.Registry, *s.gauge, reading(detailed, s.as))
		if err != nil {
			return err
		}
		*s.gauge = replaced
	}
	return nil
}

// replace replaces the gauges of a controller of conditions.
func replace[T status.Object](c *status.Controller[T], detailed bool) error {
	return swapAll([]swap{
		{&c.ConditionCount, objectmetrics.AsSet},
		{&c.ConditionCurrentStatusSeconds, objectmetrics.Aging},
		{&c.TerminationCurrentTimeSeconds, objectmetrics.Aging},
	}, detailed)
}

// replaceShared replaces the gauges that Karpenter's controllers share: variables of their
// packages, which are read when the controllers run.
func (o *observability) replaceShared() error {
	all := []swap{
		{&status.ConditionCount, objectmetrics.AsSet},
		{&status.ConditionCurrentStatusSeconds, objectmetrics.Aging},
		{&status.TerminationCurrentTimeSeconds, objectmetrics.Aging},
	}
	if !o.detailed {
		all = append(all, swap{&metricspod.PodState, objectmetrics.Left})
	}
	return swapAll(all, o.detailed)
}

// pods is Karpenter's controller of the metrics of pods. It looks at a pod again and again
// for how long it has been waiting. One that waits for nothing is looked at when it changes,
// and where the state of each pod is served, seldom beside: labels of its node are in it.
func (o *observability) pods() reconcile.Reconciler {
	pods := metricspod.NewController(uncopied{o.kube}, o.cluster)
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		result, err := pods.Reconcile(ctx, req)
		if err != nil || result.RequeueAfter == 0 {
			return result, err
		}
		var pod corev1.Pod
		if err := o.kube.Get(ctx, req.NamespacedName, &pod, client.UnsafeDisableDeepCopy); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		switch {
		case settled(&pod) && o.detailed:
			result.RequeueAfter = seldom(ctx, req, result.RequeueAfter)
		case settled(&pod):
			result.RequeueAfter = 0
		}
		return result, nil
	})
}

// settled reports whether a pod waits for nothing: it is ready, or has ended.
func settled(pod *corev1.Pod) bool {
	return podutils.IsTerminal(pod) || pod.Spec.NodeName != "" && holds(pod, corev1.PodReady)
}

// nodeClassLabels are the label keys under which nodes name their node class.
func (o *observability) nodeClassLabels() []string {
	var keys []string
	for _, class := range o.cloud.GetSupportedNodeClasses() {
		keys = append(keys, v1.NodeClassLabelKey(object.GVK(class).GroupKind()))
	}
	return keys
}
