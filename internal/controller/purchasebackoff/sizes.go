package purchasebackoff

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Sizes know which machines come smaller than their size promises, by AKSNodeClass and
// size, so that the next plan counts with what such a machine really has. What the
// newest node of a size shows is what counts. It is safe for concurrent use.
type Sizes struct {
	clock clock.Clock

	mu sync.Mutex
	// classes are the AKSNodeClasses of the NodePools, by the name of the NodePool.
	classes map[string]string
	lessons map[sizeKey]lesson
	// changed are the catalogues that lessons have changed, by the one that they were
	// made of. They are made again when a lesson changes.
	changed map[changeKey]*fleet.Catalog
}

type sizeKey struct{ class, size string }

type changeKey struct {
	class string
	of    *fleet.Catalog
}

// lesson is what one node has shown.
type lesson struct {
	// missing is by how much less than promised its pods may use, by resource.
	missing map[string]int64
	// created is when the node was created, seen when it was last there.
	created, seen time.Time
}

// NewSizes returns sizes of which nothing is known.
func NewSizes(clk clock.Clock) *Sizes {
	return &Sizes{clock: clk, classes: map[string]string{}, lessons: map[sizeKey]lesson{}, changed: map[changeKey]*fleet.Catalog{}}
}

// classLabel names the AKSNodeClass of a NodePool's nodes.
const classLabel = "karpenter.azure.com/aksnodeclass"

// Learn looks at the nodes of a snapshot.
func (s *Sizes) Learn(snapshot *fleet.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pool := range snapshot.Pools() {
		s.classes[pool.Name] = pool.Labels[classLabel]
	}
	newest := map[sizeKey]lesson{}
	for claim := range snapshot.AllClaims() {
		node := snapshot.Node(claim.NodeName)
		if node == nil || !node.Initialized || claim.Allocatable.IsZero() {
			continue
		}
		key := sizeKey{s.classes[claim.Pool], node.Labels[model.LabelInstanceType]}
		if before, known := newest[key]; !known || node.Created.After(before.created) {
			newest[key] = lesson{missing: missing(claim, node), created: node.Created, seen: s.clock.Now()}
		}
	}
	for key, now := range newest {
		before, known := s.lessons[key]
		if known && now.created.Before(before.created) {
			continue // a node that is gone has shown more
		}
		s.learn(key, before.missing, now)
	}
	for key, l := range s.lessons {
		if s.clock.Since(l.seen) > forgetAfter {
			s.learn(key, l.missing, lesson{})
		}
	}
}

// learn replaces what is known of a size; before is what was.
func (s *Sizes) learn(key sizeKey, before map[string]int64, now lesson) {
	if len(now.missing) == 0 {
		delete(s.lessons, key)
	} else {
		s.lessons[key] = now
	}
	if !maps.Equal(before, now.missing) {
		clear(s.changed)
	}
}

// missing is by how much less than promised the pods of a node may use.
func missing(claim *fleet.Claim, node *fleet.Node) map[string]int64 {
	var out map[string]int64
	for _, name := range claim.Allocatable.Names() {
		if less := claim.Allocatable.Get(name) - node.Allocatable.Get(name); less > 0 {
			if out == nil {
				out = map[string]int64{}
			}
			out[name] = less
		}
	}
	return out
}

// Over returns the catalogues with machines as large as they have come.
func (s *Sizes) Over(inner fleet.Catalogs) fleet.Catalogs { return learnedCatalogs{s, inner} }

type learnedCatalogs struct {
	sizes *Sizes
	inner fleet.Catalogs
}

// Catalog returns the catalogue of a NodePool as it was learned.
func (c learnedCatalogs) Catalog(ctx context.Context, nodePool string) (*fleet.Catalog, error) {
	catalog, err := c.inner.Catalog(ctx, nodePool)
	if err != nil || catalog == nil {
		return catalog, err
	}
	return c.sizes.change(nodePool, catalog), nil
}

// change returns a catalogue as it was learned: itself where nothing was.
func (s *Sizes) change(nodePool string, catalog *fleet.Catalog) *fleet.Catalog {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lessons) == 0 {
		return catalog
	}
	class := s.classes[nodePool]
	key := changeKey{class, catalog}
	if known := s.changed[key]; known != nil {
		return known
	}
	out := *catalog
	out.InstanceTypes = slices.Clone(catalog.InstanceTypes)
	for i := range out.InstanceTypes {
		t := &out.InstanceTypes[i]
		l, known := s.lessons[sizeKey{class, t.Name}]
		if !known {
			continue
		}
		t.Overhead = slices.Clone(t.Overhead)
		for axis, name := range catalog.Axes {
			if axis < len(t.Overhead) {
				t.Overhead[axis] = min(t.Capacity.Get(axis), t.Overhead[axis]+l.missing[name])
			}
		}
	}
	if len(s.changed) > mostChanged {
		clear(s.changed) // the inner catalogues are renewed now and then
	}
	s.changed[key] = &out
	return &out
}

// mostChanged bounds the catalogues that are kept.
const mostChanged = 64
