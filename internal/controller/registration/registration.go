// Package registration says on a NodeClaim why its machine does not become a node.
//
// A machine that Azure has made and that does not join is given up after a
// quarter of an hour, and with it whatever knew the reason. So a few minutes
// after a launch the cloud is asked what the machine itself says (its agent, its
// extensions, boot diagnostics, the AKS machine's error); the answer becomes the
// claim's condition Booted=False and an event. Nothing is given up here. Start
// with [Controller].
package registration

import (
	"context"
	"fmt"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

const (
	// Condition is False on a claim whose machine has said what is wrong.
	Condition = v1beta1.ConditionBooted
	// Reason is the condition's reason, and that of the events.
	Reason = "BootFailed"

	// patience is how long a machine usually takes from launch to node, generously;
	// every is the pause between questions after that. Azure grants a dozen reads
	// of one machine a minute.
	patience = 3 * time.Minute
	every    = 2 * time.Minute
	// longestMessage is what a condition's message is cut to.
	longestMessage = 1200
)

// Trouble says what keeps the machine of a claim from becoming a node, empty when
// nothing is known.
type Trouble func(ctx context.Context, claim string) (string, error)

// Controller watches claims from launch to registration.
type Controller struct {
	kube     client.Client
	recorder events.Recorder
	clock    clock.Clock
	trouble  Trouble
}

// New returns the controller.
func New(kube client.Client, recorder events.Recorder, clk clock.Clock, trouble Trouble) *Controller {
	return &Controller{kube: kube, recorder: recorder, clock: clk, trouble: trouble}
}

// Register adds the controller to a manager.
func (c *Controller) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodeclaim.boot").
		For(&karpv1.NodeClaim{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 10}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

// Reconcile asks about one claim, or says when to ask.
func (c *Controller) Reconcile(ctx context.Context, claim *karpv1.NodeClaim) (reconcile.Result, error) {
	conditions := claim.StatusConditions(status.WithClock(c.clock))
	launched := conditions.Get(karpv1.ConditionTypeLaunched)
	if !claim.DeletionTimestamp.IsZero() || !launched.IsTrue() {
		return reconcile.Result{}, nil
	}
	stored := claim.DeepCopy()
	if conditions.IsTrue(karpv1.ConditionTypeRegistered) {
		// It came after all.
		if conditions.Get(Condition) == nil {
			return reconcile.Result{}, nil
		}
		if err := conditions.Clear(Condition); err != nil {
			return reconcile.Result{}, fmt.Errorf("clearing condition %s of NodeClaim %s: %w", Condition, claim.Name, err)
		}
		return reconcile.Result{}, c.write(ctx, stored, claim)
	}
	if left := patience - c.clock.Since(launched.LastTransitionTime.Time); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	text, err := c.trouble(ctx, claim.Name)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("asking why the machine of NodeClaim %s is no node yet: %w", claim.Name, err)
	}
	if text != "" {
		text = "the machine runs and is no node: " + text
		if len(text) > longestMessage {
			text = text[:longestMessage]
		}
		conditions.SetFalse(Condition, Reason, text)
		if err := c.write(ctx, stored, claim); err != nil {
			return reconcile.Result{}, err
		}
		c.recorder.Publish(events.Event{
			InvolvedObject: claim, Type: corev1.EventTypeWarning, Reason: Reason, Message: text,
			DedupeValues: []string{string(claim.UID), text},
		})
	}
	return reconcile.Result{RequeueAfter: every}, nil
}

func (c *Controller) write(ctx context.Context, stored, claim *karpv1.NodeClaim) error {
	if equality.Semantic.DeepEqual(stored.Status, claim.Status) {
		return nil
	}
	// Conditions are one list, which Karpenter's controllers write too.
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	if err := c.kube.Status().Patch(ctx, claim, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing why NodeClaim %s is no node: %w", claim.Name, err))
	}
	return nil
}
