package fleet

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Overbooked are the pods, sorted by name, that wait with a nomination for a node which is
// initialized and has no room for them: beside the pods that are bound to it, and the
// nominated ones that ask for more. While such a nomination stands, the scheduler keeps what
// is left of the node from other pods, too.
func (s *Snapshot) Overbooked() []*Pod {
	nominated := map[string][]*Pod{}
	for _, p := range s.pods {
		if n := s.nodes[p.Nominated]; p.Node == "" && p.Wanted && !p.Terminal && n != nil && n.Initialized && !n.Deleting {
			nominated[p.Nominated] = append(nominated[p.Nominated], p)
		}
	}
	if len(nominated) == 0 {
		return nil
	}
	bound := map[string][]*Pod{}
	for _, p := range s.pods {
		if nominated[p.Node] != nil && !p.Terminal {
			bound[p.Node] = append(bound[p.Node], p)
		}
	}
	var out []*Pod
	for name, pods := range nominated {
		out = append(out, withoutRoom(s.nodes[name], bound[name], pods)...)
	}
	slices.SortFunc(out, func(a, b *Pod) int { return compareRefs(a.Ref, b.Ref) })
	return out
}

// withoutRoom are the pods among those nominated for a node for which there is no room
// beside the bound ones and the larger nominated ones.
func withoutRoom(node *Node, bound, nominated []*Pod) []*Pod {
	var names []string
	for _, p := range nominated {
		names = append(names, p.Spec.Requests.Names()...)
	}
	slices.Sort(names)
	axes := model.NewAxes(names...)
	all, used := node.Allocatable.Vector(axes), make(model.Resources, len(axes))
	for _, p := range bound {
		p.Spec.Requests.addTo(used, axes)
	}
	share := func(p *Pod) float64 { return p.Spec.Requests.Vector(axes).ShareOf(all) }
	slices.SortFunc(nominated, func(a, b *Pod) int {
		return cmp.Or(cmp.Compare(share(b), share(a)), compareRefs(a.Ref, b.Ref))
	})
	var out []*Pod
	for _, p := range nominated {
		if with := used.Add(p.Spec.Requests.Vector(axes)); with.Fits(all) {
			used = with
		} else {
			out = append(out, p)
		}
	}
	return out
}
