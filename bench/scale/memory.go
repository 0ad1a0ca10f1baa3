package scale

import (
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/nodeautoprovision/nap/bench/beside"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// Size is how large a cluster is.
type Size struct{ Nodes, Pods int }

// Kept is what is kept in memory for a cluster, in bytes per node or pod.
type Kept struct {
	Size
	// NodeStripped and PodStripped are what a cache holds that drops field ownership alone;
	// NodeTrimmed and PodTrimmed what the controller's does.
	NodeStripped, PodStripped, NodeTrimmed, PodTrimmed float64
	// NodeMirrored and PodMirrored are what the mirror holds beside.
	NodeMirrored, PodMirrored float64
	// CPU is what mirroring the cluster has taken, garbage collection included.
	CPU time.Duration
}

// Total is what cache and mirror hold for the whole cluster, in bytes.
func (k *Kept) Total() float64 {
	return float64(k.Nodes)*(k.NodeTrimmed+k.NodeMirrored) + float64(k.Pods)*(k.PodTrimmed+k.PodMirrored)
}

// Former is Total where the cache drops field ownership alone.
func (k *Kept) Former() float64 {
	return float64(k.Nodes)*(k.NodeStripped+k.NodeMirrored) + float64(k.Pods)*(k.PodStripped+k.PodMirrored)
}

// deploymentsPerCluster is how many workloads the pods come from.
const deploymentsPerCluster = 200

// Measure fills the caches and the mirror with a cluster and says what they keep.
func Measure(s Size) (*Kept, error) {
	k := &Kept{Size: s}
	for _, way := range []struct {
		transform  cache.TransformFunc
		node, pod  *float64
		thenMirror bool
	}{
		{dropOwnership, &k.NodeStripped, &k.PodStripped, false},
		{kube.Trim, &k.NodeTrimmed, &k.PodTrimmed, true},
	} {
		before := live()
		nodes, err := nodesOf(s, way.transform)
		if err != nil {
			return nil, err
		}
		withNodes := live()
		pods, err := podsOf(s, way.transform)
		if err != nil {
			return nil, err
		}
		withPods := live()
		*way.node, *way.pod = per(before, withNodes, s.Nodes), per(withNodes, withPods, s.Pods)
		if way.thenMirror {
			k.mirror(nodes, pods)
		}
		runtime.KeepAlive(nodes)
		runtime.KeepAlive(pods)
	}
	return k, nil
}

// mirror states what the mirror keeps of the objects.
func (k *Kept) mirror(nodes []*corev1.Node, pods []*corev1.Pod) {
	store := fleet.NewStore()
	mirror := kube.NewMirror(store, kube.Settings{})
	before, begin := live(), beside.CPU()
	for _, n := range nodes {
		mirror.Apply(n)
	}
	withNodes := live()
	for _, p := range pods {
		mirror.Apply(p)
	}
	k.CPU = beside.CPU() - begin
	withPods := live()
	k.NodeMirrored, k.PodMirrored = per(before, withNodes, k.Nodes), per(withNodes, withPods, k.Pods)
	runtime.KeepAlive(mirror)
	runtime.KeepAlive(store)
}

// nodesOf are the nodes as a cache with the transform holds them.
func nodesOf(s Size, transform cache.TransformFunc) ([]*corev1.Node, error) {
	out := make([]*corev1.Node, s.Nodes)
	for i := range out {
		wire, err := node(i).Marshal()
		if err != nil {
			return nil, fmt.Errorf("encoding node %d: %w", i, err)
		}
		out[i] = &corev1.Node{}
		if err := out[i].Unmarshal(wire); err != nil {
			return nil, fmt.Errorf("decoding node %d: %w", i, err)
		}
		if _, err := transform(out[i]); err != nil {
			return nil, fmt.Errorf("trimming node %d: %w", i, err)
		}
	}
	return out, nil
}

// podsOf are the pods as a cache with the transform holds them.
func podsOf(s Size, transform cache.TransformFunc) ([]*corev1.Pod, error) {
	out := make([]*corev1.Pod, s.Pods)
	for i := range out {
		wire, err := pod(i, s.Nodes, deploymentsPerCluster).Marshal()
		if err != nil {
			return nil, fmt.Errorf("encoding pod %d: %w", i, err)
		}
		out[i] = &corev1.Pod{}
		if err := out[i].Unmarshal(wire); err != nil {
			return nil, fmt.Errorf("decoding pod %d: %w", i, err)
		}
		if _, err := transform(out[i]); err != nil {
			return nil, fmt.Errorf("trimming pod %d: %w", i, err)
		}
	}
	return out, nil
}

// dropOwnership is the least that caches of controllers drop.
func dropOwnership(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		o.ManagedFields = nil
	case *corev1.Node:
		o.ManagedFields = nil
	}
	return object, nil
}

// live is the heap that is in use after garbage is gone.
func live() uint64 {
	runtime.GC()
	runtime.GC() // what had a finalizer goes in the second round
	return beside.Heap()
}

func per(before, after uint64, n int) float64 {
	return (float64(after) - float64(before)) / float64(max(1, n))
}
