package fleet

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/model"
)

func TestSnapshotIsImmutable(t *testing.T) {
	s := NewStore()
	s.Put(&Node{Name: "a"})
	before := s.Snapshot()
	s.Put(&Node{Name: "b"})
	s.Remove(&Node{Name: "a"})
	after := s.Snapshot()
	if before.Node("a") == nil || before.Node("b") != nil {
		t.Error("a snapshot changed after it was taken")
	}
	if after.Node("a") != nil || after.Node("b") == nil {
		t.Error("a later snapshot misses changes")
	}
	if before.revision >= after.revision {
		t.Errorf("revisions %d and %d do not grow", before.revision, after.revision)
	}
}

func TestSnapshotsAreSharedWhileNothingChanges(t *testing.T) {
	s := NewStore()
	s.Put(&Node{Name: "a"})
	if first, second := s.Snapshot(), s.Snapshot(); first != second {
		t.Error("two snapshots of one revision")
	}
}

func TestResyncDoesNotChangeRevision(t *testing.T) {
	s := NewStore()
	pod := func(revision string) *Pod { return &Pod{Ref: model.PodRef{Name: "p"}, UID: "u", Revision: revision} }
	s.Put(pod("1"))
	at := s.Revision()
	s.Put(pod("1"))
	if s.Revision() != at {
		t.Error("the same pod again counted as a change")
	}
	s.Put(pod("2"))
	if s.Revision() == at {
		t.Error("another revision of the pod did not count as a change")
	}
}

func TestExpectedClaimCountsUntilObserved(t *testing.T) {
	s := NewStore()
	s.Expect(&Claim{Name: "c", Pool: "expected"})
	if c := s.Snapshot().Claim("c"); c == nil || c.Pool != "expected" {
		t.Fatalf("an expected claim is not there: %+v", c)
	}
	s.Put(&Claim{Name: "c", Pool: "observed"})
	s.Expect(&Claim{Name: "c", Pool: "late"})
	if c := s.Snapshot().Claim("c"); c.Pool != "observed" {
		t.Errorf("got the claim of pool %q, want the observed one", c.Pool)
	}
	s.Remove(&Claim{Name: "c"})
	if s.Snapshot().Claim("c") != nil {
		t.Error("a deleted claim is still there")
	}
}

func TestForgetRemovesExpectedClaim(t *testing.T) {
	s := NewStore()
	s.Expect(&Claim{Name: "c"})
	s.Forget("c")
	if s.Snapshot().Claim("c") != nil {
		t.Error("the claim is still expected")
	}
}

func TestAmountsKeepExtendedResourcesSorted(t *testing.T) {
	var a Amounts
	for _, name := range []string{"z/gpu", "cpu", "a/fpga", "m/nic"} {
		a.Set(name, 1)
	}
	a.Set("m/nic", 0)
	want := Amounts{CPU: 1, Extended: []Amount{{"a/fpga", 1}, {"z/gpu", 1}}}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("amounts differ (-want +got):\n%s", diff)
	}
	axes := model.NewAxes("z/gpu")
	if diff := cmp.Diff(model.Resources{1, 0, 0, 0, 1}, a.Vector(axes)); diff != "" {
		t.Errorf("vector differs (-want +got):\n%s", diff)
	}
}

func TestProblemEndsWithContext(t *testing.T) {
	s := NewStore()
	s.Put(&Pool{Name: "p", Ready: true, NodeLimit: -1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Snapshot().Problem(ctx, oneCatalog{}, Options{}); err == nil {
		t.Error("no error although the context had ended")
	}
}

type oneCatalog struct{ catalog *Catalog }

func (c oneCatalog) Catalog(context.Context, string) (*Catalog, error) { return c.catalog, nil }

func TestOnlySomeChangesMaySaveSomething(t *testing.T) {
	s := NewStore()
	spec := &PodSpec{}
	pod := func(change func(*Pod)) *Pod {
		p := &Pod{Ref: model.PodRef{Name: "p"}, UID: "u", Spec: spec}
		change(p)
		return p
	}
	claim := func(change func(*Claim)) *Claim {
		c := &Claim{Name: "c"}
		change(c)
		return c
	}
	now := time.Unix(1000, 0)
	for _, step := range []struct {
		name  string
		do    func()
		saves bool
	}{
		{"a workload", func() { s.Put(&Workload{UID: "w", Pods: 3}) }, false},
		{"it wants more", func() { s.Put(&Workload{UID: "w", Pods: 4}) }, false},
		{"a pod that waits", func() { s.Put(pod(func(*Pod) {})) }, false},
		{"it is promised a place", func() { s.Put(pod(func(p *Pod) { p.Nominated = "a" })) }, false},
		{"it is promised another", func() { s.Put(pod(func(p *Pod) { p.Nominated = "b" })) }, true},
		{"a claim that is expected", func() { s.Expect(claim(func(*Claim) {})) }, false},
		{"it is observed", func() { s.Put(claim(func(*Claim) {})) }, false},
		{"its machine is there", func() { s.Put(claim(func(c *Claim) { c.ProviderID = "x" })) }, false},
		{"its node", func() { s.Put(&Node{Name: "b"}) }, true},
		{"it is ready", func() { s.Put(claim(func(c *Claim) { c.Initialized = now })) }, true},
		{"it is ready still", func() { s.Put(claim(func(c *Claim) { c.Initialized, c.LastPodEvent = now, now })) }, true},
		{"the pod has another spec", func() { s.Put(pod(func(p *Pod) { p.Nominated, p.Spec = "b", &PodSpec{} })) }, true},
		{"the pod is bound", func() { s.Put(pod(func(p *Pod) { p.Node = "b" })) }, true},
		{"the workload wants fewer", func() { s.Put(&Workload{UID: "w", Pods: 1}) }, true},
		{"the pod is gone", func() { s.Remove(pod(func(*Pod) {})) }, true},
		{"a bound pod that is new", func() { s.Put(pod(func(p *Pod) { p.Node = "b" })) }, true},
		{"the claim leaves", func() { s.Put(claim(func(c *Claim) { c.Initialized, c.Leaving = now, true })) }, true},
		{"a second one is given up", func() { s.Put(&Claim{Name: "d", BootFailed: true}) }, true},
		{"a NodePool", func() { s.Put(&Pool{Name: "p"}) }, true},
		{"nothing", func() { s.PutAll(nil) }, false},
	} {
		before := s.DisruptionRevision()
		step.do()
		if saves := s.DisruptionRevision() != before; saves != step.saves {
			t.Errorf("%s: may save something: %v, want %v", step.name, saves, step.saves)
		}
	}
}
