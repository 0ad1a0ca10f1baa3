package compute

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// Types of resources, lower case, as they are stored.
const (
	TypeVM   = "microsoft.compute/virtualmachines"
	TypeDisk = "microsoft.compute/disks"
)

// Config is what of the subscription's configuration concerns compute.
type Config struct {
	Supply
	Latency       arm.Latencies
	Sizes         []string      // patterns of the sizes that lists name; nil means all
	Restrictions  []Restriction // the sizes that the subscription may not use
	SpotLifetime  arm.Distribution
	SpotNotice    time.Duration // warning before an eviction, before the time scale
	ImageVersions []string      // node image versions that exist, oldest first
	Foreign       ForeignTenant
	// ReportsProvisioning says that what runs in the machines is simulated too, and tells with
	// ReportProvisioned how their provisioning has ended. Else it ends well with the boot.
	ReportsProvisioning bool
}

// ForeignTenant is another tenant, of which machines may use images with its token.
type ForeignTenant struct {
	Subscriptions []string                // GUIDs
	Signed        func(token string) bool // says whether the tenant signed the token
}

// Interfaces are the network interfaces that machines use, by resource ID.
type Interfaces interface {
	// Attachable returns the ID with the case of its creation, or says why the
	// interface cannot be attached to the machine.
	Attachable(id, vm string) (string, error)
	// Reserve keeps the interface for a machine that could not be created.
	Reserve(id, vm string)
	// Attach attaches the interface and returns its primary address.
	Attach(id, vm string) string
	// Detach takes the interface from a machine that goes; without keep the
	// interface goes too. One that is attached to another machine stays as it is.
	Detach(id, vm string, keep bool)
}

// Provider is Microsoft.Compute. Its methods need the subscription's lock, except
// Deliver, which takes it.
type Provider struct {
	sub        *arm.Subscription
	machines   *table
	extensions *extensions
	sizes      *sizes
	images     *images
	books      *books
	life       *lifecycle
	observers  *observers
	handlers   *handlers
}

// New makes the provider of a subscription.
func New(sub *arm.Subscription, cfg Config, interfaces Interfaces) *Provider {
	p := &Provider{sub: sub, observers: &observers{lock: sub.Lock}}
	p.extensions = &extensions{sub: sub, latency: cfg.Latency.Extend, byKey: map[string]*extension{}}
	p.machines = &table{sub: sub, extensions: p.extensions, byKey: map[string]*VM{}}
	p.extensions.machines = p.machines
	p.sizes = &sizes{sub: sub, patterns: cfg.Sizes, restrictions: cfg.Restrictions, answers: map[string][]byte{}}
	p.images = &images{sub: sub, versions: slices.Clone(cfg.ImageVersions)}
	p.books = &books{
		sub: sub, cfg: cfg.Supply, sizes: p.sizes, machines: p.machines, quota: newQuotaBook(sub.Clock.Scaled(max(cfg.UsageLag, 0))),
	}
	p.life = &lifecycle{
		sub: sub, latency: cfg.Latency, spotLifetime: cfg.SpotLifetime, spotNotice: cfg.SpotNotice,
		machines: p.machines, books: p.books, disks: disks{sub}, interfaces: interfaces, observers: p.observers,
		reportsProvisioning: cfg.ReportsProvisioning,
	}
	p.handlers = &handlers{
		sub: sub, machines: p.machines, life: p.life, books: p.books, sizes: p.sizes, images: p.images, foreign: cfg.Foreign,
	}
	p.life.register()
	sub.Tasks.On(taskExtended, p.extensions.ended)
	sub.Tasks.On(taskExtensionLate, p.extensions.late)
	sub.Resources.Watch(p.extensions.watch)
	sub.Resources.ShowETags(TypeVM, "etag")
	return p
}

// versions are those of the SDK modules in use, and older ones that clients of the
// same resources send.
var versions = []string{"2021-07-01", "2022-08-01", "2024-03-01", "2024-07-01",
	"2024-11-01", "2025-01-02", "2025-03-03", "2025-04-01", "2025-06-05"}

// Routes are the rows of the provider.
func (p *Provider) Routes() []arm.Route {
	const vm, extension, image = "Microsoft.Compute/virtualMachines", "Microsoft.Compute/virtualMachines/extensions",
		"Microsoft.Compute/locations/communityGalleries/images/versions"
	h, ext, documents := p.handlers, p.extensions, arm.Documents{Resources: p.sub.Resources}
	score := &scores{sub: p.sub, books: p.books}
	rows := []arm.Route{
		{Method: http.MethodPut, Type: vm, Item: true, Policy: "PutVM", Handle: h.put},
		{Method: http.MethodPatch, Type: vm, Item: true, Policy: "UpdateVM", Handle: h.patch},
		{Method: http.MethodDelete, Type: vm, Item: true, Policy: "DeleteVM", Handle: h.remove},
		{Method: http.MethodGet, Type: vm, Item: true, Policy: "LowCostGetVM", Handle: h.get},
		{Method: http.MethodGet, Type: vm, Policy: "HighCostGetVM", Handle: documents.List},
		{Method: http.MethodGet, Type: vm + "/instanceView", Policy: "LowCostGetVM", Handle: h.getInstanceView},
		{Method: http.MethodPost, Type: vm + "/simulateEviction", Policy: "DeleteVM", Handle: h.simulateEviction},
		{Method: http.MethodPost, Type: vm + "/restart", Policy: "UpdateVM", Handle: h.restart},
		{Method: http.MethodPost, Type: vm + "/retrieveBootDiagnosticsData", Policy: "LowCostGetVM", Handle: h.bootDiagnostics},
		{Method: http.MethodPut, Type: extension, Item: true, Policy: "UpdateVM", Handle: ext.put},
		{Method: http.MethodPatch, Type: extension, Item: true, Policy: "UpdateVM", Handle: ext.patch},
		{Method: http.MethodDelete, Type: extension, Item: true, Policy: "UpdateVM", Handle: documents.Delete},
		{Method: http.MethodGet, Type: extension, Item: true, Policy: "LowCostGetVM", Handle: ext.get},
		{Method: http.MethodGet, Type: extension, Policy: "LowCostGetVM", Handle: documents.List},
		{Method: http.MethodGet, Type: "Microsoft.Compute/locations/operations", Item: true,
			Scope: arm.SubscriptionScope, Policy: "GetOperation", Open: true, Handle: p.sub.Operations.Get},
		{Method: http.MethodGet, Type: "Microsoft.Compute/locations/usages", Scope: arm.SubscriptionScope, Handle: p.books.listUsages},
		{Method: http.MethodGet, Type: "Microsoft.Compute/skus", Scope: arm.SubscriptionScope, Handle: p.sizes.list},
		{Method: http.MethodPost, Type: "Microsoft.Compute/locations/placementScores/generate",
			Scope: arm.SubscriptionScope, Handle: score.generate},
		{Method: http.MethodGet, Type: image, Scope: arm.SubscriptionScope, Handle: p.images.list},
		{Method: http.MethodGet, Type: image, Item: true, Scope: arm.SubscriptionScope, Handle: p.images.get},
	}
	for i := range rows {
		rows[i].Versions = versions
	}
	disk := documents
	disk.Deleted = p.life.disks.deleted
	rows = append(rows, disk.Routes("Microsoft.Compute/disks", "", "", versions, disk.Patch)...)
	for _, typ := range []string{"diskEncryptionSets", "capacityReservationGroups", "capacityReservationGroups/capacityReservations"} {
		rows = append(rows, documents.Routes("Microsoft.Compute/"+typ, "", "", versions, documents.Patch)...)
	}
	return rows
}

// ListNodeImages answers the list of AKS's node images, shared ones included.
func (p *Provider) ListNodeImages(c *arm.Call) (arm.Reply, error) { return p.images.listNodeImages(c) }

// HasNodeImage says whether a node image version such as
// AKSUbuntu-2204gen2containerd-202606.09.0 exists.
func (p *Provider) HasNodeImage(version string) bool { return p.images.has(parseNodeImage(version)) }

// PublishImages adds a node image version to every image, as a release of AKS does.
func (p *Provider) PublishImages(version string) { p.images.publish(version) }

// Sizes are those that the lists of sizes and prices name.
func (p *Provider) Sizes() []skutable.Size { return p.sizes.listed() }

// Restricted says whether the subscription may not use a size in a zone.
func (p *Provider) Restricted(size, zone string) bool { return p.sizes.isRestricted(size, zone) }

// Observe registers an observer, which first hears of every machine that runs. The
// caller delivers.
func (p *Provider) Observe(o MachineObserver) { p.observers.add(o, p.machines) }

// Deliver sends observers what they have not heard yet. The lock must be free.
func (p *Provider) Deliver() { p.observers.deliver() }

// Running lists the machines that run, by name.
func (p *Provider) Running() []Machine {
	var ms []Machine
	for _, v := range p.machines.running() {
		ms = append(ms, p.machines.describe(v))
	}
	slices.SortFunc(ms, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
	return ms
}

// ReportProvisioned notes how the provisioning of a machine has ended, which the
// extensions that wait for it tell then. What is reported first counts.
func (p *Provider) ReportProvisioned(id string, end Provisioning) {
	if v := p.machines.find(id); v != nil {
		p.life.provisioned(v, end)
	}
}

// Find looks a machine up by the ID of its resource; nil when there is none.
func (p *Provider) Find(id string) *VM { return p.machines.find(id) }

// Describe is a machine as its kubelet may know it.
func (p *Provider) Describe(v *VM) Machine { return p.machines.describe(v) }

// Allocate decides whether a machine gets its place: nil when it does. A failure is
// told either now, as an answer to the request, or at the end of the operation.
func (p *Provider) Allocate(id string, m Spec) (failure *arm.Error, now bool) {
	return p.books.allocate(id, m)
}

// Create stores a machine that was allocated, or will fail with the failure, and
// plans what becomes of it.
func (p *Provider) Create(path arm.Path, doc arm.Document, m Spec, failure *arm.Error) *VM {
	return p.life.create(path, doc, m, failure)
}

// BeginDelete starts the end of a machine and returns the ID of the operation.
func (p *Provider) BeginDelete(v *VM, force bool) string { return p.life.beginDelete(v, force) }

// AddFixed adds a machine that runs from the start, costs no quota and is no leak;
// v has its resource, whose document is d, and everything but vmId and state.
func (p *Provider) AddFixed(v *VM, d arm.Document) {
	now := p.sub.Clock.Now()
	v.VMID, v.Phase, v.Booted, v.CreatedAt, v.BootedAt = p.sub.IDs.GUID(), phaseSucceeded, true, now, now
	p.machines.insert(v)
	p.sub.Resources.Put(v.Resource, d)
}

// NotifyBooted tells the observers that a machine has booted.
func (p *Provider) NotifyBooted(m Machine) {
	p.observers.notify(func(o MachineObserver) { o.Booted(m) })
}

// Follow has functions called when the creation of a machine has ended, either way, when
// its provisioning has, and when a machine has been removed.
func (p *Provider) Follow(settled, provisioned, deleted func(*VM)) {
	p.life.onProvided = append(p.life.onProvided, provisioned)
	p.life.onSettled = append(p.life.onSettled, settled)
	p.life.onDeleted = append(p.life.onDeleted, deleted)
}

// saved is what the provider keeps of its resources besides their documents.
type saved struct {
	Machines   map[string]*VM        `json:"machines"`
	Extensions map[string]*extension `json:"extensions"`
	Images     []string              `json:"images,omitempty"` // published since the start; all versions, oldest first
}

// Snapshot copies what is saved.
func (p *Provider) Snapshot() any {
	c := saved{Machines: make(map[string]*VM, len(p.machines.byKey)), Extensions: make(map[string]*extension, len(p.extensions.byKey))}
	c.Images = slices.Clone(p.images.versions)
	for k, v := range p.machines.byKey {
		f := *v
		c.Machines[k] = &f
	}
	for k, e := range p.extensions.byKey {
		f := *e
		c.Extensions[k] = &f
	}
	return c
}

// Restore takes a snapshot, whose resources are restored already, and derives the
// books from it.
func (p *Provider) Restore(raw json.RawMessage) error {
	var c saved
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	for k, v := range c.Machines {
		if v.Resource = p.sub.Resources.Find(k); v.Resource == nil {
			return fmt.Errorf("machine %s has no resource", k)
		}
		p.machines.insert(v)
		if v.Counted {
			v.Counted = false
			p.books.count(v, 1)
		}
	}
	maps.Copy(p.extensions.byKey, c.Extensions)
	for _, version := range c.Images {
		p.images.publish(version)
	}
	p.books.quota.settle()
	return nil
}
