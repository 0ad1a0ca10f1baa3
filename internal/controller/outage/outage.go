// Package outage tells people when Azure is out: while nothing is launched, every
// AKSNodeClass says so in its condition AzureAvailable, and events mark the
// beginning and the end.
//
// Whether Azure is out, the cloud decides from the answers to its own requests.
// The condition is no part of Ready: pods are still planned for and NodeClaims
// kept, so that everything goes on where it was once Azure answers again. Start
// with [Loop].
package outage

import (
	"context"
	"fmt"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// every is how often the loop looks. It reads memory alone.
const every = time.Second

// The reasons of the events.
const (
	ReasonPaused  = "LaunchesPaused"
	ReasonResumed = "LaunchesResumed"
)

// Loop keeps the condition of all classes. It is a manager's runnable.
type Loop struct {
	Kube     client.Client
	Recorder events.Recorder
	Clock    clock.Clock
	// Outage says in one sentence what of Azure is out, or "".
	Outage func() string
}

// NeedLeaderElection makes the manager run the loop on the leader alone.
func (l *Loop) NeedLeaderElection() bool { return true }

// Start keeps the conditions until the context ends.
func (l *Loop) Start(ctx context.Context) error {
	for {
		if err := l.look(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "writing whether Azure is available failed, trying again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.Clock.After(every):
		}
	}
}

// look brings every class up to date.
func (l *Loop) look(ctx context.Context) error {
	var list v1beta1.AKSNodeClassList
	if err := l.Kube.List(ctx, &list); err != nil {
		return fmt.Errorf("listing AKSNodeClasses: %w", err)
	}
	outage := l.Outage()
	for i := range list.Items {
		if err := l.write(ctx, &list.Items[i], outage); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loop) write(ctx context.Context, class *v1beta1.AKSNodeClass, outage string) error {
	stored := class.DeepCopy()
	conditions := class.StatusConditions(status.WithClock(l.Clock))
	before := conditions.Get(v1beta1.ConditionAzureAvailable)
	switch {
	case outage != "" && before.IsFalse(): // what fails may change while it lasts; the first finding stays
		return nil
	case outage != "":
		conditions.SetFalse(v1beta1.ConditionAzureAvailable, v1beta1.ReasonAzureUnavailable, outage)
	case before.IsTrue():
		return nil
	default:
		conditions.SetTrue(v1beta1.ConditionAzureAvailable)
	}
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	if err := l.Kube.Status().Patch(ctx, class, patch); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil // the next look sees it as it is then
		}
		return fmt.Errorf("writing the status of AKSNodeClass %s: %w", class.Name, err)
	}
	switch {
	case outage != "":
		l.publish(class, corev1.EventTypeWarning, ReasonPaused, outage)
	case before.IsFalse():
		l.publish(class, corev1.EventTypeNormal, ReasonResumed, "Azure answers again; machines are launched")
	}
	return nil
}

func (l *Loop) publish(class *v1beta1.AKSNodeClass, kind, reason, message string) {
	l.Recorder.Publish(events.Event{
		InvolvedObject: class, Type: kind, Reason: reason, Message: message,
		DedupeValues: []string{string(class.UID), class.ResourceVersion},
	})
}
