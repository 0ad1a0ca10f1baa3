package arm

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/internal/skutable"
)

// Subscription is what resource providers share: who the subscription is, and the
// parts of its state that belong to no provider alone. Lock guards all of it.
type Subscription struct {
	ID       string // GUID of the subscription
	TenantID string // GUID of the tenant that owns it
	Region   string // the one region with machines
	SKUTable *skutable.Table
	Features []string // preview features that are registered, as Microsoft.ContainerService/NAME

	Lock       *sync.Mutex
	Clock      Clock
	Random     *Random
	IDs        *IDs
	Resources  *Store
	Operations *Operations
	Tasks      *Tasks
	Faults     *Faults
	Audit      *AuditLog
	// Changed says that something changed that must be saved; the parts above say it
	// themselves.
	Changed func()
}

// Options are what a Subscription is made of.
type Options struct {
	ID, TenantID, Region string
	SKUTable             *skutable.Table
	Features             []string      // preview features that are registered
	Seed                 uint64        // decides every random choice
	TimeScale            float64       // divides every simulated duration; above 0
	PollEvery            time.Duration // Retry-After of running operations, before TimeScale
	Changed              func()        // called with the lock held after every change of the state
	Delivered            func()        // called without the lock after tasks have run
}

// NewSubscription makes an empty subscription, whose lock is free.
func NewSubscription(o Options) *Subscription {
	s := &Subscription{ID: o.ID, TenantID: o.TenantID, Region: o.Region, SKUTable: o.SKUTable,
		Features: o.Features, Lock: &sync.Mutex{}, Changed: o.Changed}
	s.Clock = Clock{scale: o.TimeScale}
	s.Random = &Random{seed: o.Seed}
	s.IDs = &IDs{random: s.Random}
	s.Audit = &AuditLog{clock: s.Clock, changed: o.Changed, counters: map[string]int64{}}
	s.Resources = newStore(s.IDs, o.Changed)
	s.Operations = &Operations{byID: map[string]*Operation{}, ids: s.IDs, clock: s.Clock, audit: s.Audit,
		subscription: o.ID, region: o.Region, pollEvery: o.PollEvery}
	s.Tasks = &Tasks{lock: s.Lock, clock: s.Clock, ids: s.IDs, changed: o.Changed, delivered: o.Delivered, run: map[TaskKind]func(Task){}}
	s.Faults = &Faults{random: s.Random, clock: s.Clock, tasks: s.Tasks, audit: s.Audit, changed: o.Changed}
	s.Tasks.On(taskFault, func(t Task) { s.Faults.Remove(t.Key) })
	return s
}

// Path is the ID of the subscription as a resource.
func (s *Subscription) Path() string { return "/subscriptions/" + s.ID }

// Registered says whether a preview feature is registered.
func (s *Subscription) Registered(feature string) bool {
	return slices.ContainsFunc(s.Features, func(f string) bool { return strings.EqualFold(f, feature) })
}

// ResourceID is the ID of a resource in a group; typ is as Microsoft.Network/networkInterfaces.
func (s *Subscription) ResourceID(group, typ, name string) string {
	return s.Path() + "/resourceGroups/" + group + "/providers/" + typ + "/" + name
}
