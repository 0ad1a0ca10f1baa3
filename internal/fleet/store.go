package fleet

import (
	"sync"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Record is one object of the mirror: *Pod, *Node, *Claim, *Pool, *Daemon,
// *VolumeClaim, *Volume, *StorageClass, *DriverLimits, *Attachment, *Namespace, *Budget, *Workload,
// *Quota, *Buffer, *DeviceClass, *DeviceClaimTemplate, *DeviceClaim or *DeviceSlice.
// A record that was handed to a store must not be changed any more.
type Record interface {
	// put and drop write the record into the tables or remove the one with its
	// name; they report whether anything changed.
	put(t *tables) bool
	drop(t *tables) bool
}

type objectKey struct{ namespace, name string }

// tables are the rows of every kind.
type tables struct {
	pods     table[model.PodRef, *Pod]
	nodes    table[string, *Node]
	claims   table[string, *Claim]
	expected table[string, *Claim]
	pools    table[string, *Pool]
	daemons  table[objectKey, *Daemon]
	vclaims  table[objectKey, *VolumeClaim]
	volumes  table[string, *Volume]
	classes  table[string, *StorageClass]
	drivers  table[string, *DriverLimits]
	attached table[string, *Attachment]
	spaces   table[string, *Namespace]
	budgets  table[objectKey, *Budget]
	// workloads are by UID.
	workloads table[string, *Workload]
	quotas    table[objectKey, *Quota]

	deviceClasses   table[string, *DeviceClass]
	deviceTemplates table[objectKey, *DeviceClaimTemplate]
	deviceClaims    table[objectKey, *DeviceClaim]
	deviceSlices    table[string, *DeviceSlice]
	// ofGPU is as in PlanDevices.
	ofGPU func(*model.GPU) Device

	buffers table[objectKey, *Buffer]
	// bufferPlaces are as in PlaceBuffers; the map is replaced and never written to.
	// unplanned is set while no plan has looked at the buffers as they are.
	bufferPlaces map[model.PodRef]string
	unplanned    bool
}

// Store is the live mirror. All methods may be called from any goroutine.
type Store struct {
	mu       sync.Mutex
	revision uint64
	// saving counts those changes of revision that may save something (DisruptionRevision).
	saving uint64
	tables tables
	last   *Snapshot
}

// NewStore returns an empty mirror at revision zero.
func NewStore() *Store { return NewStoreFor(0) }

// NewStoreFor is NewStore with room for about so many pods, where they are known
// to come at once.
func NewStoreFor(pods int) *Store {
	return &Store{
		tables: tables{
			pods:     table[model.PodRef, *Pod]{rows: make(map[model.PodRef]*Pod, pods)},
			nodes:    newTable[string, *Node](),
			claims:   newTable[string, *Claim](),
			expected: newTable[string, *Claim](),
			pools:    newTable[string, *Pool](),
			daemons:  newTable[objectKey, *Daemon](),
			vclaims:  newTable[objectKey, *VolumeClaim](),
			volumes:  newTable[string, *Volume](),
			classes:  newTable[string, *StorageClass](),
			drivers:  newTable[string, *DriverLimits](),
			attached: newTable[string, *Attachment](),
			spaces:   newTable[string, *Namespace](),
			budgets:  newTable[objectKey, *Budget](),

			workloads: newTable[string, *Workload](),
			quotas:    newTable[objectKey, *Quota](),
			buffers:   newTable[objectKey, *Buffer](),

			deviceClasses:   newTable[string, *DeviceClass](),
			deviceTemplates: newTable[objectKey, *DeviceClaimTemplate](),
			deviceClaims:    newTable[objectKey, *DeviceClaim](),
			deviceSlices:    newTable[string, *DeviceSlice](),
		},
	}
}

// Put stores a record, replacing the one of the same kind and name.
func (s *Store) Put(r Record) {
	s.PutAll([]Record{r})
}

// PutAll stores records as Put does, in one step.
func (s *Store) PutAll(records []Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, saves := false, false
	for _, r := range records {
		adds := onlyAdds(r, &s.tables)
		if r.put(&s.tables) {
			changed, saves = true, saves || !adds
		}
	}
	s.changed(changed, saves)
}

// Remove deletes the record of r's kind and name, whatever else r holds.
func (s *Store) Remove(r Record) {
	s.write(r.drop)
}

// Expect counts a claim that was just created as capacity on its way, until the
// mirror observes the claim itself.
func (s *Store) Expect(c *Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, observed := s.tables.claims.rows[c.Name]; !observed {
		s.tables.expected.put(c.Name, c)
		s.changed(true, false)
	}
}

// Forget drops an expectation: the claim was refused, or deleted before it was
// ever observed.
func (s *Store) Forget(claim string) {
	s.write(func(t *tables) bool { return t.expected.remove(claim) })
}

// write makes a change that may save something.
func (s *Store) write(change func(*tables) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := change(&s.tables)
	s.changed(changed, changed)
}

// changed counts a change. The caller holds the lock.
func (s *Store) changed(changed, saves bool) {
	if !changed {
		return
	}
	s.revision++
	if saves {
		s.saving++
	}
	s.last = nil
}

// Revision counts the changes so far.
func (s *Store) Revision() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// DisruptionRevision counts the changes so far after which fewer or cheaper nodes might do.
// Others only add to what pods ask for, or to what is on its way for them: a pod that waits,
// one more that a workload wants, a NodeClaim whose node is not ready yet.
func (s *Store) DisruptionRevision() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saving
}

// Snapshot returns the state of now. It never changes, and taking one costs
// nothing but a copy of the touched tables at the next write.
func (s *Store) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		t := &s.tables
		s.last = &Snapshot{
			revision: s.revision,
			pods:     t.pods.share(),
			nodes:    t.nodes.share(),
			claims:   t.claims.share(),
			expected: t.expected.share(),
			pools:    t.pools.share(),
			daemons:  t.daemons.share(),
			vclaims:  t.vclaims.share(),
			volumes:  t.volumes.share(),
			classes:  t.classes.share(),
			spaces:   t.spaces.share(),
			budgets:  t.budgets.share(),

			attaching: attaching{drivers: t.drivers.share(), attached: t.attached.share()},
			devices: deviceTables{
				classes: t.deviceClasses.share(), templates: t.deviceTemplates.share(),
				claims: t.deviceClaims.share(), slices: t.deviceSlices.share(), ofGPU: t.ofGPU,
			},
			coming: comingPods{
				workloads: t.workloads.share(), quotas: t.quotas.share(), buffers: t.buffers.share(), bufferPlaces: t.bufferPlaces,
			},
		}
	}
	return s.last
}

func (p *Pod) put(t *tables) bool {
	// A resync delivers every pod again; what is known is not a change. Its spec may be
	// another one where the cluster, not the pod, says how it is spread.
	if p.Revision != "" {
		if old, ok := t.pods.rows[p.Ref]; ok && old.Revision == p.Revision && old.UID == p.UID && old.Spec == p.Spec {
			return false
		}
	}
	t.pods.put(p.Ref, p)
	return true
}
func (p *Pod) drop(t *tables) bool { return t.pods.remove(p.Ref) }

func (n *Node) put(t *tables) bool  { t.nodes.put(n.Name, n); return true }
func (n *Node) drop(t *tables) bool { return t.nodes.remove(n.Name) }

func (c *Claim) put(t *tables) bool {
	t.expected.remove(c.Name)
	t.claims.put(c.Name, c)
	return true
}

func (c *Claim) drop(t *tables) bool {
	expected := t.expected.remove(c.Name)
	return t.claims.remove(c.Name) || expected
}

func (p *Pool) put(t *tables) bool  { t.pools.put(p.Name, p); return true }
func (p *Pool) drop(t *tables) bool { return t.pools.remove(p.Name) }

func (d *Daemon) put(t *tables) bool {
	t.daemons.put(objectKey{d.Namespace, d.Name}, d)
	return true
}
func (d *Daemon) drop(t *tables) bool { return t.daemons.remove(objectKey{d.Namespace, d.Name}) }

func (c *VolumeClaim) put(t *tables) bool {
	t.vclaims.put(objectKey{c.Namespace, c.Name}, c)
	return true
}
func (c *VolumeClaim) drop(t *tables) bool { return t.vclaims.remove(objectKey{c.Namespace, c.Name}) }

func (v *Volume) put(t *tables) bool  { t.volumes.put(v.Name, v); return true }
func (v *Volume) drop(t *tables) bool { return t.volumes.remove(v.Name) }

func (c *StorageClass) put(t *tables) bool  { t.classes.put(c.Name, c); return true }
func (c *StorageClass) drop(t *tables) bool { return t.classes.remove(c.Name) }

func (d *DriverLimits) put(t *tables) bool  { t.drivers.put(d.Node, d); return true }
func (d *DriverLimits) drop(t *tables) bool { return t.drivers.remove(d.Node) }

func (a *Attachment) put(t *tables) bool {
	if old := t.attached.rows[a.Name]; old != nil && *old == *a {
		return false // its status changes, and says nothing that counts
	}
	t.attached.put(a.Name, a)
	return true
}
func (a *Attachment) drop(t *tables) bool { return t.attached.remove(a.Name) }

func (n *Namespace) put(t *tables) bool  { t.spaces.put(n.Name, n); return true }
func (n *Namespace) drop(t *tables) bool { return t.spaces.remove(n.Name) }

func (b *Budget) put(t *tables) bool {
	t.budgets.put(objectKey{b.Namespace, b.Name}, b)
	return true
}
func (b *Budget) drop(t *tables) bool { return t.budgets.remove(objectKey{b.Namespace, b.Name}) }
