package fleet

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// claimStore has a ResourceClaim that so many pods share, the oldest with the lowest number.
func claimStore(pods int) *Store {
	store := NewStore()
	store.PlanDevices(func(*model.GPU) Device { return Device{} })
	store.Put(&DeviceClaim{Namespace: "ml", Name: "shared"})
	spec := &PodSpec{Requests: Amounts{CPU: 10, Pods: 1}, DeviceClaims: []DeviceClaimRef{{Name: "gpu", Claim: "shared"}}}
	spec.SetKey()
	for i := range pods {
		store.Put(&Pod{
			Ref: model.PodRef{Namespace: "ml", Name: fmt.Sprintf("s-%05d", i)}, Spec: spec, Labels: &Labels{}, Wanted: true,
			Created: time.Unix(int64(i), 0),
		})
	}
	return store
}

// Whatever number of pods share a claim, one of them is kept: to look for it among all for each
// took the square of their number.
func TestClaimKeepsItsFirstPodAlone(t *testing.T) {
	s := claimStore(2000).Snapshot()
	a, err := newAssembly(context.Background(), s, noCatalogs{}, &DisruptionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	users := a.claims.users
	if len(users.firsts) != 1 || len(users.holders) != 0 {
		t.Fatalf("%d pods that wait and %d that have a node are kept, want the first alone", len(users.firsts), len(users.holders))
	}
	if first := users.first(objectKey{"ml", "shared"}); first == nil || first.Ref.Name != "s-00000" {
		t.Errorf("the first pod is %v, want the oldest", first)
	}
	a.pending.classes(a.volumes, a.claims)
	if got := len(a.pending.rejected); got != 1999 {
		t.Fatalf("%d pods follow the first, want 1999", got)
	}
	if r := a.pending.rejected[0]; r.Fix == "" {
		t.Error("a pod that follows another is told nothing of its own that helps")
	}
}

func BenchmarkPodsThatShareAClaim(b *testing.B) {
	s := claimStore(20000).Snapshot()
	for b.Loop() {
		if _, err := s.Problem(b.Context(), noCatalogs{}, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
