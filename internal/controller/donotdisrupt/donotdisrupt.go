// Package donotdisrupt warns of pods whose annotation karpenter.sh/do-not-disrupt protects
// nothing, because its value is neither "true" nor a duration. The event comes when the
// annotation is written, not when the pod is about to be evicted; it is Karpenter's. Pods
// that are protected for a time are told until when, and when that is over.
// Start with [Controller].
package donotdisrupt

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"
)

// Controller publishes the warnings.
type Controller struct {
	kube     client.Client
	clock    clock.Clock
	recorder events.Recorder
}

// New returns the controller.
func New(kube client.Client, clk clock.Clock, recorder events.Recorder) *Controller {
	return &Controller{kube: kube, clock: clk, recorder: recorder}
}

// Register adds the controller to a manager. It looks at pods that have the annotation,
// when they are created and when its value changes.
func (c *Controller) Register(_ context.Context, mgr manager.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("pod.donotdisrupt").
		For(&corev1.Pod{}, builder.WithPredicates(written())).
		Complete(reconcile.AsReconciler(c.kube, c))
	if err != nil {
		return fmt.Errorf("registering controller pod.donotdisrupt: %w", err)
	}
	return nil
}

// written is true of events with which an annotation has come or changed.
func written() predicate.Predicate {
	value := func(o client.Object) string { return o.GetAnnotations()[karpv1.DoNotDisruptAnnotationKey] }
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return value(e.Object) != "" },
		UpdateFunc:  func(e event.UpdateEvent) bool { return value(e.ObjectNew) != value(e.ObjectOld) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// startWithin is how often a pod is looked at again that has not started yet.
const startWithin = time.Minute

// Reconcile warns of one pod, where it has to. A pod that is protected for a time is
// looked at again when that is over.
func (c *Controller) Reconcile(_ context.Context, pod *corev1.Pod) (reconcile.Result, error) {
	if !podutils.IsActive(pod) || !podutils.IsDoNotDisruptActive(pod, c.clock, c.recorder) {
		return reconcile.Result{}, nil
	}
	value := pod.Annotations[karpv1.DoNotDisruptAnnotationKey]
	if value == "true" {
		return reconcile.Result{}, nil
	}
	if pod.Status.StartTime == nil {
		return reconcile.Result{RequeueAfter: startWithin}, nil
	}
	protected, err := time.ParseDuration(value)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("annotation %s of pod %s/%s: %w", karpv1.DoNotDisruptAnnotationKey, pod.Namespace, pod.Name, err)
	}
	return reconcile.Result{RequeueAfter: pod.Status.StartTime.Add(protected).Sub(c.clock.Now())}, nil
}
