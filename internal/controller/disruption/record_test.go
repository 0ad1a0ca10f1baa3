package disruption

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
)

// The ledger knows commands by the records of the fleet, which kube reads from the same
// annotation as a restarted loop does.
func TestFleetReadsCommandAsItIsWritten(t *testing.T) {
	r := &Record{
		ID: "k3v9x2", Reason: model.DisruptUnderutilized, Begun: time.Date(2026, 11, 22, 10, 30, 0, 0, time.UTC),
		Remove:  []Removed{{Claim: "old", Node: "node-old", Pool: "general", Pods: 3}},
		Replace: []Replacement{{Claim: "new-1", Pool: "general"}, {Claim: "new-2", Pool: "general"}},
		Saving:  0.125, Evictions: 3,
	}
	claim := &karpv1.NodeClaim{}
	claim.Name, claim.Annotations = "old", map[string]string{v1beta1.AnnotationCommand: r.text()}
	store := fleet.NewStore()
	kube.NewMirror(store, kube.Settings{}).Apply(claim)
	want := &fleet.Command{
		ID: r.ID, Reason: string(r.Reason), Begun: r.Begun, Saving: model.USD(r.Saving), Evictions: r.Evictions,
		Replacements: []string{"new-1", "new-2"},
	}
	if got := store.Snapshot().Claim("old"); got == nil || !reflect.DeepEqual(got.Command, want) {
		t.Errorf("got %+v, want command %+v", got, want)
	}
}

// What is gone or going is not asked about again when a command is looked at once more.
func TestGoneClaimsOfACommand(t *testing.T) {
	store := fleet.NewStore()
	mirror := kube.NewMirror(store, kube.Settings{})
	for _, name := range []string{"stays", "goes"} {
		claim := &karpv1.NodeClaim{}
		claim.Name = name
		if name == "goes" {
			claim.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		mirror.Apply(claim)
	}
	r := &Record{Remove: []Removed{{Claim: "stays"}, {Claim: "goes"}, {Claim: "went"}}}
	if got, want := gone(r, store.Snapshot()), map[string]bool{"goes": true, "went": true}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMeasuredCommandSaysAllOfTheRecord(t *testing.T) {
	r := &Record{
		Reason: model.DisruptDrifted, FromTemplate: true, TerminateFirst: true, Saving: 0.5, Evictions: 4,
		Remove: []Removed{{Pool: "a"}, {Pool: "b"}}, Replace: []Replacement{{Claim: "new"}},
	}
	want := &metrics.Command{
		Reason: model.DisruptDrifted, NodePools: []string{"a", "b"}, Replacements: 1, TerminateFirst: true, Saving: 0.5, Evictions: 4,
	}
	if got := r.measured(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Only nodes of static NodePools count as going before their replacement is made, and not
// those that go before it.
func TestCommandAddsNodeToStaticPool(t *testing.T) {
	for _, c := range []struct{ static, first, adds bool }{{true, false, true}, {true, true, false}, {false, false, false}} {
		if got := addsNode(&Record{FromTemplate: c.static, TerminateFirst: c.first}); got != c.adds {
			t.Errorf("static %t, terminated first %t: %t", c.static, c.first, got)
		}
	}
}
