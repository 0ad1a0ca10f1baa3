// Package registration says on a NodeClaim why its machine does not become a node, and
// gives the machine back.
//
// Azure reports how the provisioning of a machine ended; the cloud follows that and
// knows of a failure within seconds. It becomes the claim's condition Booted=False,
// with exit code, meaning and the last lines of the machine's log, an event, and a
// count. Such a claim is no place for pods any more, and it is deleted at once instead
// of when Karpenter's time for registration is over. Start with [Controller].
package registration

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
)

const (
	// every is the pause between questions about a claim whose machine is not a node.
	// The cloud answers from memory.
	every = 5 * time.Second
	// lastLook is how long a machine may say nothing until its console is looked at:
	// before Karpenter gives it up, which is after 15 minutes.
	lastLook = 14*time.Minute + 30*time.Second
	// longestMessage is what a condition's message is cut to.
	longestMessage = 1200
)

// Failure is why a machine does not become a node; without a text nothing is known to
// be wrong.
type Failure struct {
	// ExitCode is that of the node's provisioning, 0 where it is not known.
	ExitCode int
	Text     string
}

// Boots is what the cloud knows of machines that are not nodes yet.
type Boots struct {
	// Failure says why the machine of a claim does not become a node. It may be asked
	// often.
	Failure func(ctx context.Context, claim, providerID string) (Failure, error)
	// Console are the last lines that the machine of a claim has written to its serial
	// console; none where they are not to be had. It asks the cloud.
	Console func(ctx context.Context, claim, providerID string) ([]string, error)
	// Joined is told of a claim whose machine has become a node.
	Joined func(claim string)
}

// Controller watches claims from launch to registration.
type Controller struct {
	kube     client.Client
	recorder events.Recorder
	clock    clock.Clock
	boots    Boots
	metrics  *metrics.Boots
	// failed counts a failed registration against the claim's NodePool.
	failed func(ctx context.Context, claim *karpv1.NodeClaim) error
}

// Reporting is where failures are told beside the claim.
type Reporting struct {
	Recorder events.Recorder
	Metrics  *metrics.Boots
	// Failed counts a failed registration against the claim's NodePool.
	Failed func(ctx context.Context, claim *karpv1.NodeClaim) error
}

// New returns the controller.
func New(kube client.Client, clk clock.Clock, boots Boots, r Reporting) *Controller {
	return &Controller{kube: kube, recorder: r.Recorder, clock: clk, boots: boots, metrics: r.Metrics, failed: r.Failed}
}

// Register adds the controller to a manager.
func (c *Controller) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodeclaim.boot").
		For(&karpv1.NodeClaim{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 10}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

// Reconcile asks about one claim. A claim whose condition is written is given up, also
// by a process that did not write it.
func (c *Controller) Reconcile(ctx context.Context, claim *karpv1.NodeClaim) (reconcile.Result, error) {
	conditions := claim.StatusConditions(status.WithClock(c.clock))
	if !claim.DeletionTimestamp.IsZero() || !conditions.IsTrue(karpv1.ConditionTypeLaunched) {
		return reconcile.Result{}, nil
	}
	if conditions.IsTrue(karpv1.ConditionTypeRegistered) {
		c.boots.Joined(claim.Name)
		return reconcile.Result{}, c.clear(ctx, claim)
	}
	if !conditions.Get(v1beta1.ConditionBooted).IsFalse() {
		failure, err := c.boots.Failure(ctx, claim.Name, claim.Status.ProviderID)
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("asking why the machine of NodeClaim %s is no node yet: %w", claim.Name, err)
		}
		if failure = c.withConsole(ctx, claim, failure); failure.Text == "" {
			return reconcile.Result{RequeueAfter: every}, nil
		}
		if err := c.report(ctx, claim, failure); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	return c.giveUp(ctx, claim)
}

// withConsole adds what the machine's serial console says, where nothing better is
// known: to a failure without an exit code, and of a machine that has said nothing for
// so long that it is about to be given up. Without a console the failure stays as it is.
func (c *Controller) withConsole(ctx context.Context, claim *karpv1.NodeClaim, failure Failure) Failure {
	registered := claim.StatusConditions(status.WithClock(c.clock)).Get(karpv1.ConditionTypeRegistered)
	late := registered != nil && c.clock.Since(registered.LastTransitionTime.Time) >= lastLook
	if failure.ExitCode != 0 || failure.Text == "" && !late {
		return failure
	}
	lines, err := c.boots.Console(ctx, claim.Name, claim.Status.ProviderID)
	if err != nil {
		log.FromContext(ctx).Error(err, "reading the console of a machine that does not become a node failed", "NodeClaim", claim.Name)
	}
	if len(lines) == 0 {
		return failure
	}
	if failure.Text == "" {
		failure.Text = fmt.Sprintf("it has not joined within %s and does not say why", lastLook)
	}
	failure.Text += "; the last lines of its console: " + strings.Join(lines, " | ")
	return failure
}

// report writes the condition, and tells of the failure once it is written.
func (c *Controller) report(ctx context.Context, claim *karpv1.NodeClaim, failure Failure) error {
	text := "the machine does not become a node: " + failure.Text
	if len(text) > longestMessage {
		text = strings.ToValidUTF8(text[:longestMessage], "") // no half of a character
	}
	stored := claim.DeepCopy()
	claim.StatusConditions(status.WithClock(c.clock)).SetFalse(v1beta1.ConditionBooted, v1beta1.ReasonBootFailed, text)
	if err := c.write(ctx, stored, claim); err != nil {
		return err
	}
	c.metrics.Failed(claim.Labels[karpv1.NodePoolLabelKey], failure.ExitCode)
	c.recorder.Publish(event.BootFailed(claim, failure.Text))
	return nil
}

// giveUp deletes the claim, and its machine with it, and then counts the failure
// against the claim's NodePool, as Karpenter does with one that is late. The claim must
// be as it was read, so that what has been given up is not counted again.
func (c *Controller) giveUp(ctx context.Context, claim *karpv1.NodeClaim) (reconcile.Result, error) {
	err := c.kube.Delete(ctx, claim, client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion})
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: time.Second}, nil // it is read again
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("deleting NodeClaim %s, whose machine does not become a node: %w", claim.Name, err)
	}
	c.metrics.GaveUp(claim)
	if err := c.failed(ctx, claim); err != nil {
		return reconcile.Result{}, fmt.Errorf("counting the failed boot of NodeClaim %s against its NodePool: %w", claim.Name, err)
	}
	return reconcile.Result{}, nil
}

// clear removes the condition of a machine that became a node after all.
func (c *Controller) clear(ctx context.Context, claim *karpv1.NodeClaim) error {
	conditions := claim.StatusConditions(status.WithClock(c.clock))
	if conditions.Get(v1beta1.ConditionBooted) == nil {
		return nil
	}
	stored := claim.DeepCopy()
	if err := conditions.Clear(v1beta1.ConditionBooted); err != nil {
		return fmt.Errorf("clearing condition %s of NodeClaim %s: %w", v1beta1.ConditionBooted, claim.Name, err)
	}
	return client.IgnoreNotFound(c.write(ctx, stored, claim))
}

func (c *Controller) write(ctx context.Context, stored, claim *karpv1.NodeClaim) error {
	if equality.Semantic.DeepEqual(stored.Status, claim.Status) {
		return nil
	}
	// Conditions are one list, which Karpenter's controllers write too.
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	if err := c.kube.Status().Patch(ctx, claim, patch); err != nil {
		return fmt.Errorf("writing why NodeClaim %s is no node: %w", claim.Name, err)
	}
	return nil
}
