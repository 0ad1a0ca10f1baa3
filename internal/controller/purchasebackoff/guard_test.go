package purchasebackoff

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// cloud counts what is launched, or refuses it.
type cloud struct {
	karpcloud.CloudProvider
	launched int
	refusal  error
}

func (c *cloud) Create(context.Context, *karpv1.NodeClaim) (*karpv1.NodeClaim, error) {
	if c.refusal != nil {
		return nil, c.refusal
	}
	c.launched++
	return &karpv1.NodeClaim{}, nil
}

// unplanned is a claim that no plan made.
func unplanned(name string) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Name: "default"}}}
	claim.Name, claim.Labels = name, map[string]string{karpv1.NodePoolLabelKey: "general"}
	return claim
}

// reason is that of the condition which an error leaves on a claim; empty for none.
func reason(err error) string {
	var e *karpcloud.CreateError
	if !errors.As(err, &e) {
		return ""
	}
	return e.ConditionReason
}

func TestGuardLetsOneUnplannedClaimProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, inner := newCluster(t), &cloud{}
		g := NewGuard(inner, c.kube, c.loop.Registrations, clock.RealClock{})
		create := func(claim *karpv1.NodeClaim, held bool) {
			t.Helper()
			before := inner.launched
			_, err := g.Create(t.Context(), claim)
			if (reason(err) == ReasonPaused) != held || (inner.launched == before) != held {
				t.Fatalf("%s: %d launched, error %v; want it held: %v", claim.Name, inner.launched-before, err, held)
			}
		}
		create(unplanned("first"), false)
		for range 3 {
			c.fail(c.launch("2204gen2/versions/202511.01.0"))
		}
		create(unplanned("second"), true)
		planned := unplanned("planned")
		planned.Annotations = map[string]string{v1beta1.AnnotationPlan: "id"}
		create(planned, false)
		create(unplanned("third"), true)
		time.Sleep(10*time.Minute + time.Second)
		c.look()
		create(unplanned("second"), false)
		create(unplanned("second"), false) // it is tried again
		create(unplanned("third"), true)
	})
}

// Karpenter makes another claim of a static NodePool as soon as one has ended.
func TestGuardSlowsStaticPoolThatIsRefused(t *testing.T) {
	for _, static := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, inner := newCluster(t), &cloud{refusal: karpcloud.NewInsufficientCapacityError(errors.New("sold out"))}
			pool := &karpv1.NodePool{}
			if err := c.kube.Get(t.Context(), client.ObjectKey{Name: "general"}, pool); err != nil {
				t.Fatal(err)
			}
			if static {
				pool.Spec.Replicas = new(int64(2))
			}
			if err := c.kube.Update(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			g := NewGuard(inner, c.kube, c.loop.Registrations, clock.RealClock{})
			refused, told, name := 0, "", 'a'
			for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(100 * time.Millisecond) {
				_, err := g.Create(t.Context(), unplanned(string(name)))
				if karpcloud.IsInsufficientCapacityError(err) {
					refused++
					name++ // Karpenter deletes it, and makes another one
				} else {
					told = err.Error()
				}
			}
			if static && (refused > 10 || !strings.Contains(told, "nothing is bought for static NodePool general before")) {
				t.Errorf("%d claims in a minute, told %q; want at most 10, and why", refused, told)
			}
			if !static && refused != 600 {
				t.Errorf("%d claims of a NodePool that is not static, want them as they come", refused)
			}
			inner.refusal = nil
			time.Sleep(5 * time.Minute)
			if _, err := g.Create(t.Context(), unplanned("last")); err != nil || inner.launched != 1 {
				t.Errorf("once it is sold again: launched %d, error %v", inner.launched, err)
			}
		})
	}
}
