package fleet

import (
	"iter"
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Snapshot is the cluster at one revision. It is immutable and may be read from
// any goroutine.
type Snapshot struct {
	revision uint64
	pods     map[model.PodRef]*Pod
	nodes    map[string]*Node
	claims   map[string]*Claim
	expected map[string]*Claim
	pools    map[string]*Pool
	daemons  map[objectKey]*Daemon
	vclaims  map[objectKey]*VolumeClaim
	volumes  map[string]*Volume
	classes  map[string]*StorageClass
	spaces   map[string]*Namespace
	budgets  map[objectKey]*Budget

	attaching attaching
	devices   deviceTables
	coming    comingPods
}

// attaching is what is known of how nodes attach volumes.
type attaching struct {
	// drivers are by the name of the node, attached by that of the VolumeAttachment.
	drivers  map[string]*DriverLimits
	attached map[string]*Attachment
}

// comingPods is what is known of pods that do not exist.
type comingPods struct {
	// workloads are by UID.
	workloads map[string]*Workload
	quotas    map[objectKey]*Quota
	buffers   map[objectKey]*Buffer
	// bufferPlaces are as in Store.PlaceBuffers.
	bufferPlaces map[model.PodRef]string
}

// Pod returns the record of a pod, or nil.
func (s *Snapshot) Pod(ref model.PodRef) *Pod { return s.pods[ref] }

// Pods iterates over all pods in no particular order.
func (s *Snapshot) Pods() iter.Seq[*Pod] { return maps.Values(s.pods) }

// Node returns the record of a node, or nil.
func (s *Snapshot) Node(name string) *Node { return s.nodes[name] }

// Nodes are all nodes, in no order.
func (s *Snapshot) Nodes() iter.Seq[*Node] { return maps.Values(s.nodes) }

// Claim returns the record of a claim, observed or expected, or nil.
func (s *Snapshot) Claim(name string) *Claim {
	if c := s.claims[name]; c != nil {
		return c
	}
	return s.expected[name]
}

// withoutClaims are the NodePools by name where there is no NodeClaim at all, nil otherwise.
func (s *Snapshot) withoutClaims() map[string]*Pool {
	if len(s.claims)+len(s.expected) > 0 {
		return nil
	}
	return s.pools
}

// Pools returns the NodePools by name.
func (s *Snapshot) Pools() []*Pool {
	return slices.SortedFunc(maps.Values(s.pools), func(a, b *Pool) int { return compare(a.Name, b.Name) })
}

// AllClaims are all NodeClaims, observed or expected, in no order.
func (s *Snapshot) AllClaims() iter.Seq[*Claim] {
	return func(yield func(*Claim) bool) {
		for _, c := range s.claims {
			if !yield(c) {
				return
			}
		}
		for name, c := range s.expected {
			if s.claims[name] == nil && !yield(c) {
				return
			}
		}
	}
}

// Daemons are all DaemonSets, in no order.
func (s *Snapshot) Daemons() iter.Seq[*Daemon] { return maps.Values(s.daemons) }

// Claims are all NodeClaims that have been observed, in no order.
func (s *Snapshot) Claims() iter.Seq[*Claim] { return maps.Values(s.claims) }
