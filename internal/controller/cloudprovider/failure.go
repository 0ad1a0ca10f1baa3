package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/azure/ratelimit"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/controller/bootstraptoken"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/mask"
)

// longestMessage is what a condition's message is cut to.
const longestMessage = 1200

// createError says what a failed launch means to the claim. When Azure has no
// capacity for it, or none at its price, the claim is given up, so that the planner,
// which knows of the refusals by then, plans again; with any other fault the claim
// stays and carries the reason.
func createError(err error) error {
	var dear *launch.TooDear
	if errors.Is(err, launch.ErrNoCandidate) || errors.As(err, &dear) {
		return karpcloud.NewInsufficientCapacityError(err)
	}
	var refused *launch.Refused
	if errors.As(err, &refused) && refused.Failure.Capacity() {
		return karpcloud.NewInsufficientCapacityError(fmt.Errorf("%s: %w", refused.Failure.Reason(), err))
	}
	reason, text := string(unavailable.Other), err.Error()
	var outage *ratelimit.Outage
	var pause *managedcluster.Pause
	var token *bootstraptoken.Unusable
	var limit *limitReached
	if failure := unavailable.Classify(err); failure != nil {
		reason = failure.Reason()
	} else {
		switch {
		case errors.As(err, &outage):
			reason, text = v1beta1.ReasonAzureUnavailable, outage.Error() // whichever call it was that met the outage
		case errors.As(err, &pause):
			reason = pause.Reason
		case errors.As(err, &token):
			reason = token.Reason
		case errors.As(err, &limit):
			reason = ReasonLimitReached
		}
	}
	message := mask.Text(text)
	if len(message) > longestMessage {
		message = strings.ToValidUTF8(message[:longestMessage], "") // no half of a character
	}
	return karpcloud.NewCreateError(err, reason, message)
}

// failedLate gives up the claim of a machine that failed after its launch had
// been accepted, and says what is to become of the machine. One that is a node already is
// kept. A claim that knows its machine takes it along itself, after it has drained the node.
func (p *Port) failedLate(ctx context.Context, name string, failure *unavailable.Failure) (launch.Fate, error) {
	claim := &karpv1.NodeClaim{}
	if err := p.kube.Get(ctx, types.NamespacedName{Name: name}, claim); err != nil {
		return launch.Remove, client.IgnoreNotFound(err)
	}
	if claim.StatusConditions().Get(karpv1.ConditionTypeRegistered).IsTrue() {
		return launch.Keep, nil
	}
	if failure.Kind == unavailable.HostEncryptionOff {
		class, err := p.classes.get(ctx, claim.Spec.NodeClassRef)
		if err == nil {
			err = p.Classes.hostEncryptionRefused(ctx, p.kube, class, failure)
		}
		if client.IgnoreNotFound(err) != nil {
			return launch.Leave, err
		}
	}
	p.recorder.Publish(event.GivenUpByAzure(claim, failure))
	if err := p.kube.Delete(ctx, claim); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return launch.Remove, nil
		}
		return launch.Leave, fmt.Errorf("delete NodeClaim %s, whose machine failed: %w", name, err)
	}
	metrics.AsyncProvisioningFailed(claim)
	if claim.Status.ProviderID == "" {
		return launch.Remove, nil // its finalizer does not know that there is a machine
	}
	return launch.Leave, nil
}
