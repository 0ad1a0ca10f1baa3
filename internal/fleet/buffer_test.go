package fleet

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// bufferStore has a buffer of two pods, whose pods have room on one node each, and a
// budget that would block the eviction of real pods like them.
func bufferStore() *Store {
	store := NewStore()
	store.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
	for _, i := range []string{"1", "2"} {
		store.Put(&Claim{Name: "general-" + i, Pool: "general", ProviderID: i, NodeName: "node-" + i})
		store.Put(bufferNode(i))
	}
	store.Put(&Budget{Namespace: "default", Name: "none", Selector: &model.Selector{}, Blocking: true})
	store.SetBuffers([]*Buffer{roomFor(2)})
	store.PlaceBuffers(map[model.PodRef]string{virtual(1): "general-1", virtual(2): "node-2"}, store.Snapshot())
	return store
}

func bufferNode(i string) *Node {
	return &Node{
		Name: "node-" + i, ProviderID: i, Registered: true, Initialized: true, Ready: true,
		Allocatable: Amounts{CPU: 1900, Memory: 4 << 30, Pods: 110},
	}
}

func roomFor(pods int) *Buffer {
	spec := &PodSpec{Key: "web", Requests: Amounts{CPU: 1000, Pods: 1}}
	return &Buffer{UID: "buffer", Namespace: "default", Name: "web", Pods: pods, Pattern: &Pod{Spec: spec, Labels: &Labels{}, EvictionCost: 1}}
}

func virtual(i int) model.PodRef { return roomFor(i).pod(i).Ref }

// A plan looks at all virtual pods again, so that pods which exist take their room.
func TestVirtualPodsAreAlwaysPlanned(t *testing.T) {
	in, err := bufferStore().Snapshot().Problem(t.Context(), noCatalogs{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if in.Problem.PodCount() != 2 || in.Problem.Nodes[0].Used.Get(model.CPU) != 0 {
		t.Errorf("%d pods to plan and %v taken of a node, want 2 and nothing", in.Problem.PodCount(), in.Problem.Nodes[0].Used)
	}
	if p := in.Record(virtual(1)); p == nil || p.Buffer != "web" || p.OwnerName() != "CapacityBuffer default/web" {
		t.Errorf("the record of a virtual pod: %+v", p)
	}
}

// However much room buffers ask for, so many virtual pods are planned.
func TestVirtualPodsAreBounded(t *testing.T) {
	store := bufferStore()
	second := roomFor(2)
	second.UID, second.Name = "second", "zz"
	store.SetBuffers([]*Buffer{roomFor(mostVirtual - 1), second})
	pods := store.Snapshot().virtualPods()
	if last := pods[len(pods)-1]; len(pods) != mostVirtual || last.Buffer != "zz" || last.Announced != 1 {
		t.Errorf("%d virtual pods, the last is %s of %s", len(pods), last.Ref, last.Buffer)
	}
}

// What a buffer holds room on is not empty, and nothing keeps its pods there.
func TestVirtualPodsHoldTheirRoom(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Store)
		want   [2]int64
	}{
		"by node and claim": {func(*Store) {}, [2]int64{1000, 1000}},
		"a node that leaves": {func(s *Store) {
			n := bufferNode("2")
			n.Disrupted = true
			s.Put(n)
		}, [2]int64{1000, 0}},
		"a pod that took the room": {func(s *Store) {
			s.Put(&Pod{Ref: model.PodRef{Namespace: "default", Name: "real"}, Node: "node-1", Labels: &Labels{},
				Spec: &PodSpec{Key: "real", Requests: Amounts{CPU: 1500, Pods: 1}}})
		}, [2]int64{1500, 1000}},
		"one pod less": {func(s *Store) { s.SetBuffers([]*Buffer{roomFor(1)}) }, [2]int64{1000, 0}},
		"no buffer":    {func(s *Store) { s.SetBuffers(nil) }, [2]int64{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			store := bufferStore()
			c.change(store)
			in, err := store.Snapshot().Disruption(t.Context(), noCatalogs{}, DisruptionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.want {
				if got := in.Problem.Nodes[i].Used.Get(model.CPU); got != want {
					t.Errorf("node %s has %d milli-cores taken, want %d", in.Problem.Nodes[i].Name, got, want)
				}
			}
			for _, m := range in.Disruption.Movable {
				if m.EvictionCost != 0 && m.Requests.Get(model.CPU) == 1000 {
					t.Errorf("moving a virtual pod costs %v", m.EvictionCost)
				}
				if len(m.Budgets) > 0 && m.Requests.Get(model.CPU) == 1000 {
					t.Error("a budget counts virtual pods")
				}
			}
		})
	}
}

// Nodes are not given back while a buffer that has come or changed is not planned.
func TestBuffersCountAsPlannedWhenAPlanHasSeenThem(t *testing.T) {
	store := bufferStore()
	if !store.BuffersPlanned() {
		t.Error("a plan has seen the buffers")
	}
	before := store.Snapshot()
	store.SetBuffers([]*Buffer{roomFor(3)})
	store.PlaceBuffers(nil, before)
	if store.BuffersPlanned() {
		t.Error("the buffer has grown since the plan")
	}
	if store.Wants("buffer") != 3 {
		t.Errorf("the buffer wants room for %d pods", store.Wants("buffer"))
	}
	store.PlaceBuffers(nil, store.Snapshot())
	if !store.BuffersPlanned() {
		t.Error("a plan has seen that the buffer has grown")
	}
	revision := store.Revision()
	store.SetBuffers([]*Buffer{roomFor(3)})
	if store.Revision() != revision || !store.BuffersPlanned() {
		t.Error("the same buffers again are a change")
	}
}

// A buffer lacks room while any of its pods has none on a node that can run pods.
func TestBuffersInNeedAreThoseThatLackRoom(t *testing.T) {
	store := bufferStore()
	if got := store.Snapshot().BuffersInNeed(); len(got) != 0 {
		t.Errorf("%s lacks room, although there is some for both pods", got[0].Ref)
	}
	coming := bufferNode("2")
	coming.Initialized = false
	store.Put(coming)
	got := store.Snapshot().BuffersInNeed()
	if len(got) != 1 || got[0].Ref != virtual(2) {
		t.Errorf("in need are %v, want the pod whose node cannot run pods", got)
	}
	if node := store.Snapshot().BufferNode(virtual(1)); node == nil || node.Name != "node-1" {
		t.Errorf("the first pod has room on %v, want the node of its claim", node)
	}
}
