package armsim

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/armsim/authorization"
	"github.com/nodeautoprovision/nap/internal/armsim/billing"
	"github.com/nodeautoprovision/nap/internal/armsim/compute"
	"github.com/nodeautoprovision/nap/internal/armsim/containerservice"
	"github.com/nodeautoprovision/nap/internal/armsim/graph"
	"github.com/nodeautoprovision/nap/internal/armsim/identity"
	"github.com/nodeautoprovision/nap/internal/armsim/managedidentity"
	"github.com/nodeautoprovision/nap/internal/armsim/network"
	"github.com/nodeautoprovision/nap/internal/armsim/retailprices"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// Server is one simulated Azure. Create it with [New] and release it with
// [Server.Close]. Its methods may be called from any goroutine: each takes the lock
// of the subscription.
type Server struct {
	cfg       Config // with its defaults filled in
	sub       *arm.Subscription
	directory *identity.Directory
	network   *network.Provider
	compute   *compute.Provider
	aks       *containerservice.Provider
	prices    *retailprices.Provider
	saver     *saver
	gateway   *gateway
	routes    []arm.Route    // the rows of ARM
	endpoints []arm.Endpoint // the rows of the APIs beside it
}

// New builds the subscription that the configuration describes, or takes up
// the one in its StateFile. The error names the field that is wrong.
func New(cfg Config) (*Server, error) {
	cat, err := skutable.Load()
	if err != nil {
		return nil, err
	}
	if cfg, err = cfg.withDefaults(cat); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, saver: &saver{file: cfg.StateFile, log: cfg.Logger}}
	o := cfg.options(cat)
	o.Changed, o.Delivered = s.saver.changed, func() { s.compute.Deliver() }
	s.sub = arm.NewSubscription(o)
	index := graph.New(s.sub, cfg.Cluster.NodeResourceGroup, cfg.GraphLag)
	identities := managedidentity.New(s.sub)
	roles := authorization.New(s.sub, cfg.Account.roles(s.sub.Path(), cfg.Principals, cfg.Cluster.NodeResourceGroup),
		tenantOf(&cfg, identities))
	s.directory = identity.New(s.sub, cfg.Seed, cfg.Principals, identities, roles)
	s.network = network.New(s.sub, cfg.network())
	s.compute = compute.New(s.sub, cfg.compute(s.directory.ForeignSigned), s.network)
	s.aks = containerservice.New(s.sub, cfg.cluster(), cfg.Latency.VMDelete,
		containerservice.Neighbours{VMs: s.compute, Interfaces: s.network, Rights: roles})
	s.prices = retailprices.New(s.sub, s.compute.Sizes)
	bills := billing.New(s.sub, cfg.Billing, cfg.Latency.PriceSheet, s.prices.Meters)
	resources := subscription{sub: s.sub, state: cfg.Account.State, unregistered: cfg.Account.UnregisteredProviders}
	s.routes = slices.Concat(resources.routes(), identities.Routes(), roles.Routes(),
		s.compute.Routes(), s.network.Routes(), index.Routes(), s.aks.Routes(), bills.Routes())
	s.endpoints = slices.Concat(s.prices.Endpoints(), s.directory.Endpoints(), s.compute.Endpoints(), bills.Endpoints())
	limits := newThrottle(cfg.Limits, s.sub.Clock)
	s.gateway = newGateway(s.sub, s.directory, s.routes, limits, cfg.Latency, s.compute.Deliver, cfg.Logger)
	s.saver.sub, s.saver.limits = s.sub, limits
	s.saver.keepers = map[string]keeper{"network": s.network, "compute": s.compute}

	s.sub.Lock.Lock()
	defer s.sub.Lock.Unlock()
	restored, err := s.saver.restore()
	if err != nil {
		return nil, err
	}
	if restored {
		index.Settle()
		if wrong := s.unsound(); wrong != "" {
			cfg.Logger.Error("the restored state does not fit together", "file", cfg.StateFile, "error", wrong)
		}
	}
	resources.seed(append([]string{cfg.Cluster.ResourceGroup, cfg.Cluster.NodeResourceGroup}, cfg.ResourceGroups...))
	s.network.Seed()
	s.aks.Seed()
	s.sub.Tasks.Arm()
	return s, nil
}

// unsound names what does not fit together in the state; empty when all does. The
// caller holds the lock.
func (s *Server) unsound() string {
	if wrong := s.compute.Unsound(); wrong != "" {
		return wrong
	}
	return s.network.Unsound()
}

// Close stops the timers and writes the state a last time. Handlers still
// answer, but nothing moves any more.
func (s *Server) Close() error {
	s.sub.Lock.Lock()
	s.sub.Tasks.Stop()
	s.saver.closed = true
	s.sub.Lock.Unlock()
	return s.saver.flush()
}

// locked runs a function with the lock held.
func (s *Server) locked(f func()) {
	s.sub.Lock.Lock()
	defer s.sub.Lock.Unlock()
	f()
}

// announced is locked for what observers must hear of.
func (s *Server) announced(f func()) {
	s.locked(f)
	s.compute.Deliver()
}

// Config is the configuration with its defaults filled in.
func (s *Server) Config() Config { return s.cfg }

// SKUTable is the table of sizes and prices that the server answers from.
func (s *Server) SKUTable() *skutable.Table { return s.sub.SKUTable }

// Handler answers the API, the token endpoint, the retail prices and, when an
// admin token is configured, /admin/.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	if s.cfg.AdminToken != "" {
		(&admin{server: s, token: s.cfg.AdminToken, log: s.cfg.Logger}).handle(mux)
	}
	for _, e := range s.endpoints {
		pattern := e.Path
		if e.Method != "" {
			pattern = e.Method + " " + e.Path
		}
		mux.HandleFunc(pattern, s.gateway.front(e))
	}
	mux.HandleFunc("/", s.gateway.serveARM)
	return mux
}

// Route is one row of all that the server answers, except /admin/.
type Route struct {
	Method   string   // empty for any
	Path     string   // with {} for each parameter
	Versions []string // of api-version; nil where there is none
	Provider string   // namespace, as Microsoft.Compute; empty for the APIs beside ARM
}

// parameter is one in the path of an endpoint.
var parameter = regexp.MustCompile(`\{[^}]*\}`)

// Routes lists all that the server answers, a row for each method and path.
func (s *Server) Routes() []Route {
	var rows []Route
	for _, r := range s.routes {
		for _, p := range r.Paths() {
			rows = append(rows, Route{Method: r.Method, Path: p, Versions: r.Versions, Provider: r.Provider()})
		}
	}
	for _, e := range s.endpoints {
		rows = append(rows, Route{Method: e.Method, Path: parameter.ReplaceAllString(e.Path, "{}")})
	}
	return rows
}

// ClusterID is the resource ID of the managed cluster.
func (s *Server) ClusterID() string { return s.cfg.clusterID() }

// SubnetID is the resource ID of the subnet of the nodes.
func (s *Server) SubnetID() string { return s.network.SubnetID() }

// Token signs a bearer token for a client, good for an hour. Tests use it to
// skip the sign-in.
func (s *Server) Token(clientID string) (token string, expires time.Time) {
	s.locked(func() { token, expires = s.directory.Token(clientID) })
	return token, expires
}

// ForeignToken signs a token of the tenant that Config.ForeignSubscriptions belong
// to, good for an hour.
func (s *Server) ForeignToken() (token string, expires time.Time) {
	s.locked(func() { token, expires = s.directory.ForeignToken() })
	return token, expires
}

// AddFault starts a fault and returns it with its ID. It refuses one that is not
// valid.
func (s *Server) AddFault(f Fault) (added Fault, err error) {
	if err := f.Validate(); err != nil {
		return Fault{}, err
	}
	s.announced(func() { added = s.sub.Faults.Add(f) })
	return added, nil
}

// Faults lists the faults that are in force.
func (s *Server) Faults() (faults []Fault) {
	s.locked(func() { faults = s.sub.Faults.List() })
	return faults
}

// RemoveFault ends a fault; what it held back goes on. It errs when there is
// no such fault.
func (s *Server) RemoveFault(id string) error {
	known := false
	s.announced(func() { known = s.sub.Faults.Remove(id) })
	if !known {
		return fmt.Errorf("there is no fault %q in force", id)
	}
	return nil
}

// Audit returns the entries of the audit log after the given sequence number; 0
// returns all.
func (s *Server) Audit(after uint64) (entries []AuditEntry) {
	s.locked(func() { entries = s.sub.Audit.After(after) })
	return entries
}

// Stats returns counters: "calls <action>", "errors <code>", "throttled
// <class>" and one for each lifecycle event.
func (s *Server) Stats() (counters map[string]int64) {
	s.locked(func() { counters = s.sub.Audit.Counters() })
	return counters
}

// Leaks lists everything that was created and still exists. After a test has
// scaled to nothing it must be Empty.
func (s *Server) Leaks() (inv Inventory) {
	s.locked(func() { inv = takeInventory(s.sub.Resources, s.network.Attached) })
	return inv
}

// Exists says whether there is a resource with this ID, whatever its case: a
// machine that is being deleted still exists.
func (s *Server) Exists(id string) (exists bool) {
	s.locked(func() { exists = s.sub.Resources.Find(id) != nil })
	return exists
}

// Observe registers an observer. It first hears of every machine that is
// running, in order of creation.
func (s *Server) Observe(o MachineObserver) { s.announced(func() { s.compute.Observe(o) }) }

// Machines lists the machines that run, by name.
func (s *Server) Machines() (ms []Machine) {
	s.locked(func() { ms = s.compute.Running() })
	return ms
}

// ReportProvisioned tells how the provisioning of a machine has ended. Extensions that wait
// for it end then.
func (s *Server) ReportProvisioned(id string, end Provisioning) {
	s.locked(func() { s.compute.ReportProvisioned(id, end) })
}

// AddAgentPoolMachine puts a running machine into an agent pool. It costs no
// quota, is not a leak, and is there again after a restart from the state
// file; adding one of the same name again changes nothing.
func (s *Server) AddAgentPoolMachine(m PoolMachine) (added Machine, err error) {
	s.announced(func() { added, err = s.aks.AddMachine(m) })
	return added, err
}

// DriftMachines makes every machine of the agent pools one that AKS would
// replace, as a change of the cluster does that running machines cannot take.
func (s *Server) DriftMachines() { s.locked(s.aks.Drift) }

// PublishImages adds a node image version to every image, as a release of AKS does.
func (s *Server) PublishImages(version string) { s.locked(func() { s.compute.PublishImages(version) }) }

// SetKubernetesVersion makes the cluster's control plane one of another Kubernetes version,
// as 1.36.0. Agent pools keep theirs.
func (s *Server) SetKubernetesVersion(version string) {
	s.locked(func() { s.aks.SetKubernetesVersion(version) })
}

// SetMaintenanceWindow sets a maintenance configuration of the cluster, such as
// aksManagedNodeOSUpgradeSchedule: one whose window is open now, or one whose window is not,
// or, where open is nil, none.
func (s *Server) SetMaintenanceWindow(name string, open *bool) {
	s.locked(func() { s.aks.SetMaintenanceWindow(name, open) })
}

// Price is the price of a size in USD per hour: what SetPrice said, else the
// catalogue. False when it is not sold.
func (s *Server) Price(size string, spot bool) (price float64, sold bool) {
	s.locked(func() { price, sold = s.prices.Price(size, spot) })
	return price, sold
}

// SetPrice changes the price of a size in the server's region, in USD per hour.
// It errs when the catalogue does not know the size.
func (s *Server) SetPrice(size string, spot bool, price float64) (err error) {
	s.locked(func() {
		before, _ := s.prices.Price(size, spot)
		if err = s.prices.Set(size, spot, price); err == nil {
			s.sub.Audit.Event(actionPriceSet, "", fmt.Sprintf("%s was %v", meterOf(size, spot), before))
		}
	})
	return err
}
