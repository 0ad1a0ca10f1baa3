package outage

import (
	"context"
	"fmt"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/periodic"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// lateFor is for how long after the end of a reason NodeClaims are looked for that wait for it:
// a launch that met it at the last moment is written down only then.
const lateFor = 10 * time.Second

// ending is the end of a reason for which nothing was launched.
type ending struct {
	at time.Time
	// resumed is what people are told.
	resumed string
}

// releaseClaims writes into the NodeClaims whose launch met what has ended that it has. With
// that their launch is tried again at once: Karpenter's lifecycle controller would wait for up
// to a minute after so many failures. And they do not say any more what is not true.
func (l *Loop) releaseClaims(ctx context.Context) error {
	for reason, e := range l.ended {
		if l.Clock.Since(e.at) > lateFor {
			delete(l.ended, reason)
		}
	}
	if len(l.ended) == 0 {
		return nil
	}
	var claims karpv1.NodeClaimList
	if err := l.Kube.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing NodeClaims: %w", err)
	}
	for i := range claims.Items {
		stored := &claims.Items[i]
		e, ended := l.ended[whyNotLaunched(stored)]
		if !ended || !stored.DeletionTimestamp.IsZero() {
			continue
		}
		claim := stored.DeepCopy()
		conditions := claim.StatusConditions(status.WithClock(l.Clock))
		conditions.SetUnknownWithReason(karpv1.ConditionTypeLaunched, event.ReasonLaunchesResumed, e.resumed)
		if _, err := periodic.WriteStatus(ctx, l.Kube, stored, claim); err != nil {
			return err
		}
	}
	return nil
}

// whyNotLaunched is the reason for which a NodeClaim has no machine yet, empty where it has one.
func whyNotLaunched(claim *karpv1.NodeClaim) string {
	if c := kube.Condition(claim, karpv1.ConditionTypeLaunched); c != nil && c.IsUnknown() {
		return c.Reason
	}
	return ""
}
