package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// BufferKind is the kind that owns virtual pods.
const BufferKind = "CapacityBuffer"

// Buffer is the room that a CapacityBuffer asks for: so many pods of one kind, which do
// not exist (virtual pods).
type Buffer struct {
	UID, Namespace, Name string
	// Pods is how many of them are to have room.
	Pods int
	// Pattern is what each of them is like. Its Ref, UID and place mean nothing.
	Pattern *Pod
}

func (b *Buffer) key() objectKey { return objectKey{b.Namespace, b.Name} }

func (b *Buffer) put(t *tables) bool {
	old := t.buffers.rows[b.key()]
	if old != nil && old.UID == b.UID && old.Pods == b.Pods && old.Pattern.Spec.Key == b.Pattern.Spec.Key &&
		old.Pattern.Labels.Key == b.Pattern.Labels.Key {
		return false
	}
	t.buffers.put(b.key(), b)
	t.unplanned = true
	return true
}

func (b *Buffer) drop(t *tables) bool {
	if !t.buffers.remove(b.key()) {
		return false
	}
	t.bufferPlaces = maps.Clone(t.bufferPlaces)
	for ref := range t.bufferPlaces {
		if b.holds(ref) {
			delete(t.bufferPlaces, ref)
		}
	}
	return true
}

// bufferMark stands in the names of virtual pods, which no object can have.
const bufferMark = numberMark + "buffer"

// ref names one of the virtual pods, from 1 on.
func (b *Buffer) ref(i int) model.PodRef {
	return model.PodRef{Namespace: b.Namespace, Name: fmt.Sprint(b.Name, bufferMark, i)}
}

// pod is the virtual pod with this number, from 1.
func (b *Buffer) pod(i int) *Pod {
	p := *b.Pattern
	p.Ref = b.ref(i)
	p.UID, p.Revision = fmt.Sprint(b.UID, bufferMark, i), ""
	p.Owner, p.OwnerUID, p.Pattern = Owner{Kind: BufferKind, Name: b.Name}, b.UID, false
	p.Node, p.Nominated, p.Terminating, p.Leaving, p.Unready, p.ReadyAfter = "", "", false, nil, false, 0
	p.Wanted, p.Unjudged, p.Announced, p.Buffer = true, false, i, b.Name
	p.EvictionCost, p.Claims = 0, nil
	return &p
}

// holds reports whether a pod is one of the buffer's.
func (b *Buffer) holds(ref model.PodRef) bool {
	prefix := b.Name + bufferMark
	return ref.Namespace == b.Namespace && len(ref.Name) > len(prefix) && ref.Name[:len(prefix)] == prefix
}

// SetBuffers replaces all buffers.
func (s *Store) SetBuffers(buffers []*Buffer) {
	s.write(func(t *tables) bool {
		kept, changed := map[objectKey]bool{}, false
		for _, b := range buffers {
			kept[b.key()] = true
			changed = b.put(t) || changed
		}
		var gone []*Buffer
		for key, b := range t.buffers.rows {
			if !kept[key] {
				gone = append(gone, b)
			}
		}
		for _, b := range gone {
			changed = b.drop(t) || changed
		}
		return changed
	})
}

// PlaceBuffers says where the last plan has room for virtual pods: names of nodes or of
// their claims. Virtual pods without an entry have none. The plan was made at a revision;
// buffers that have changed since still count as not planned.
func (s *Store) PlaceBuffers(places map[model.PodRef]string, planned *Snapshot) {
	s.write(func(t *tables) bool {
		if maps.Equal(t.buffers.rows, planned.coming.buffers) {
			t.unplanned = false
		}
		if maps.Equal(t.bufferPlaces, places) {
			return false
		}
		t.bufferPlaces = maps.Clone(places)
		return true
	})
}

// BuffersPlanned reports whether a plan has looked at all buffers as they are now. Until
// then a node may look empty which holds room for them.
func (s *Store) BuffersPlanned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.tables.unplanned
}

// HasBuffers reports whether there is any buffer.
func (s *Store) HasBuffers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tables.buffers.rows) > 0
}

// BufferPlace is where the last plan has room for a virtual pod: the name of a node or of
// its claim, or "".
func (s *Snapshot) BufferPlace(ref model.PodRef) string { return s.coming.bufferPlaces[ref] }

// BufferNode is the node where the last plan has room for a virtual pod, nil while it is not
// there.
func (s *Snapshot) BufferNode(ref model.PodRef) *Node {
	place := s.BufferPlace(ref)
	if node := s.Node(place); node != nil {
		return node
	}
	if claim := s.Claim(place); claim != nil {
		return s.Node(claim.NodeName)
	}
	return nil
}

// BuffersInNeed are virtual pods, one of each buffer that lacks room: the last plan has none for
// the pod on a node that can run pods.
func (s *Snapshot) BuffersInNeed() []*Pod {
	var out []*Pod
	for _, b := range s.Buffers() {
		for i := range min(b.Pods, mostVirtual) {
			if node := s.BufferNode(b.ref(i + 1)); node == nil || !node.Initialized {
				out = append(out, b.pod(i+1))
				break
			}
		}
	}
	return out
}

// Buffers are all buffers, by namespace and name.
func (s *Snapshot) Buffers() []*Buffer {
	return slices.SortedFunc(maps.Values(s.coming.buffers), func(x, y *Buffer) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}

// mostVirtual is for how many virtual pods there is room at a time, for all buffers together.
const mostVirtual = 50_000

// virtualPods are the pods of all buffers, by buffer and number, as many as may be.
func (s *Snapshot) virtualPods() []*Pod {
	var out []*Pod
	for _, b := range s.Buffers() {
		for i := range min(b.Pods, mostVirtual-len(out)) {
			out = append(out, b.pod(i+1))
		}
	}
	return out
}

// placeVirtual puts virtual pods on the nodes where the last plan has room for them, as if
// they ran there. Those whose node is gone, leaves, or has taken in other pods since have
// no place until they are planned again.
func (a *assembly) placeVirtual() {
	for _, p := range a.snapshot.virtualPods() {
		n := a.nodes.named(a.snapshot.coming.bufferPlaces[p.Ref])
		if n == nil || n.state == model.NodeLeaving || !a.daemons.leaveRoom(p, n) {
			continue
		}
		a.virtual = append(a.virtual, p)
		if n.node != nil {
			p.Node = n.node.Name
		}
		i, _ := slices.BinarySearchFunc(n.pods, p, func(x, y *Pod) int { return compareRefs(x.Ref, y.Ref) })
		n.pods = slices.Insert(n.pods, i, p)
	}
}
