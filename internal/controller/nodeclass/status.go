package nodeclass

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/mask"
)

// Finder finds out what a class means on Azure. Its methods may be called at any
// time and in parallel for different classes; they do not change the class. An
// error that is a [*Failure] is the class's own fault and makes the condition
// False; any other error means that the answer is not known.
type Finder interface {
	// KubernetesVersion is the version that new machines of the class run.
	KubernetesVersion(ctx context.Context, class *v1beta1.AKSNodeClass) (string, error)
	// Images are the node images for the class, in order of preference. The
	// class's status already holds the version.
	Images(ctx context.Context, class *v1beta1.AKSNodeClass) ([]v1beta1.NodeImage, error)
	// Subnet checks that machines of the class can be put into its subnet.
	Subnet(ctx context.Context, class *v1beta1.AKSNodeClass) error
	// LocalDNS decides whether new machines run a DNS cache.
	LocalDNS(ctx context.Context, class *v1beta1.AKSNodeClass) (v1beta1.LocalDNSState, error)
	// Validate checks what the other methods do not, such as permissions.
	Validate(ctx context.Context, class *v1beta1.AKSNodeClass) error
	// LookAgain is how often classes in order are looked at for a newer version or image.
	LookAgain() time.Duration
}

// Failure is something wrong with a class that its author, or the owner of the
// subscription, must mend.
type Failure struct {
	// Reason is the condition's reason, in CamelCase.
	Reason string
	// Message says what is wrong and what to do.
	Message string
}

func (f *Failure) Error() string { return f.Message }

// How often a class is looked at again although nothing about it changed: a
// class in order at least, one that its author must mend, and one whose answer is unknown.
const (
	recheckReady   = 5 * time.Minute
	recheckFailed  = time.Minute
	recheckUnknown = 15 * time.Second
)

// reasonUnknown is the reason where there is no better one, see unknownReason.
const reasonUnknown = "Unknown"

// unknownReason is the reason of a condition whose answer could not be had.
func unknownReason(condition string) string {
	if condition == v1beta1.ConditionSubnetsReady {
		return v1beta1.ReasonSubnetUnknownError
	}
	return reasonUnknown
}

// Status writes the conditions, images, version and DNS state of AKSNodeClasses.
type Status struct {
	kube   client.Client
	clock  clock.Clock
	finder Finder
}

// NewStatus returns the status controller.
func NewStatus(kube client.Client, clk clock.Clock, finder Finder) *Status {
	return &Status{kube: kube, clock: clk, finder: finder}
}

// Register adds the controller to a manager.
func (s *Status) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodeclass.status").
		For(&v1beta1.AKSNodeClass{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 10}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), s))
}

// Reconcile asks everything about one class and writes the answers.
func (s *Status) Reconcile(ctx context.Context, class *v1beta1.AKSNodeClass) (reconcile.Result, error) {
	if !class.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	stored := class.DeepCopy()
	recheck := s.fill(ctx, class)
	if !equality.Semantic.DeepEqual(stored.Status, class.Status) {
		// The lock keeps a slow answer about an old spec from overwriting a new one.
		patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
		if err := s.kube.Status().Patch(ctx, class, patch); err != nil {
			return afterConflict(fmt.Errorf("writing the status of AKSNodeClass %s: %w", class.Name, err))
		}
	}
	return reconcile.Result{RequeueAfter: recheck}, nil
}

// afterConflict comes back soon when another client has written the class in the
// meantime, which is no error, and gives up a class that is gone.
func afterConflict(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// fill asks every question and returns when to ask again.
func (s *Status) fill(ctx context.Context, class *v1beta1.AKSNodeClass) time.Duration {
	conditions := class.StatusConditions(status.WithClock(s.clock))
	questions := []struct {
		condition string
		ask       func() error
	}{
		{v1beta1.ConditionKubernetesVersionReady, func() error {
			version, err := s.finder.KubernetesVersion(ctx, class)
			if err != nil {
				return err
			}
			if old := class.Status.KubernetesVersion; old != nil && *old != version {
				conditions.SetFalse(v1beta1.ConditionImagesReady, v1beta1.ReasonKubernetesUpgrade,
					fmt.Sprintf("the control plane runs %s now, the images are for %s", version, *old))
			}
			class.Status.KubernetesVersion = &version
			return nil
		}},
		{v1beta1.ConditionImagesReady, func() error {
			images, err := s.finder.Images(ctx, class)
			if err == nil {
				class.Status.Images = images
			}
			return err
		}},
		{v1beta1.ConditionSubnetsReady, func() error { return s.finder.Subnet(ctx, class) }},
		{v1beta1.ConditionLocalDNSReady, func() error {
			state, err := s.finder.LocalDNS(ctx, class)
			if err == nil {
				class.Status.LocalDNSState = &state
			}
			return err
		}},
		{v1beta1.ConditionValidationSucceeded, func() error { return s.finder.Validate(ctx, class) }},
	}
	recheck := min(recheckReady, s.finder.LookAgain())
	for _, q := range questions {
		err := q.ask()
		var failure *Failure
		switch {
		case err == nil:
			conditions.SetTrue(q.condition)
		case errors.As(err, &failure):
			conditions.SetFalse(q.condition, failure.Reason, mask.Text(failure.Message))
			recheck = min(recheck, recheckFailed)
		case conditions.IsTrue(q.condition) && conditions.Get(q.condition).ObservedGeneration == class.Generation:
			// One call that went wrong does not unsay what was true of this very spec:
			// a hiccup of Azure must not stop all purchases.
			recheck = min(recheck, recheckUnknown)
		case conditions.Get(q.condition).Reason == v1beta1.ReasonKubernetesUpgrade:
			// The images that there are belong to the version before, until others are
			// found: that is known, and the reason.
			recheck = min(recheck, recheckUnknown)
		default:
			conditions.SetUnknownWithReason(q.condition, unknownReason(q.condition), mask.Text(err.Error()))
			recheck = min(recheck, recheckUnknown)
		}
	}
	return recheck
}
