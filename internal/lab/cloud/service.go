package cloud

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/containerservice"
	"github.com/nodeautoprovision/nap/internal/armsim/kubelet"
	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/bootdata"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/lab"
)

// Name is what the service is called in the lab, and the name of its port.
const Name = "azure"

// DefaultSpeed is how many times faster than the real Azure the lab's is: a
// machine that takes 50 s to boot there takes 2.5 s here.
const DefaultSpeed = 20

// Options are what can be chosen about the simulated Azure.
type Options struct {
	// Speed divides every duration of the cloud; 0 means DefaultSpeed, 1 is real.
	Speed float64
	// Region is where the cluster is; empty means eastus.
	Region string
	// Seed decides every random delay and failure.
	Seed uint64
	// ProvisionMode says how the controller makes machines, one of ProvisionModes;
	// empty leaves the choice to the controller.
	ProvisionMode string
	// Replicas is how many controllers the release has; 0 means 1, which needs no lease.
	Replicas int
	// Release is what the release is called, one of Releases; empty means the first. With
	// none there is no release: the lab is a cluster for nap enable.
	Release string
	// Network is the network of a new lab's cluster, one of armsim.Networks; Outbound is how
	// its nodes reach the internet, one of armsim.Outbounds. Empty means the first.
	Network, Outbound string
	// DefaultNodePools is Auto for a lab in which nap makes its default NodePools; empty
	// means None, for stories that apply their own. The variable DEFAULT_NODE_POOLS counts
	// before it.
	DefaultNodePools string
	// Variables are the controller's, each as NAME=value. They count before those of the
	// environment of this process, which every lab started by it has.
	Variables []string
}

// The values of Options.DefaultNodePools.
const (
	defaultsAuto = string(v1alpha1.DefaultNodePoolsAuto)
	defaultsNone = string(v1alpha1.DefaultNodePoolsNone)
)

// clientID is who the controller signs in as that the lab installs, adminID the owner of the
// subscription.
const (
	clientID = "11111111-0000-4000-8000-000000000003"
	adminID  = "11111111-0000-4000-8000-000000000004"
)

// Service is the simulated Azure with its kubelets. It implements lab.Service.
type Service struct {
	options Options
	alone   bool // the lab has no controller
	running atomic.Pointer[armsim.Server]
}

// current is the Azure that is running, nil before the service is ready.
func (s *Service) current() *armsim.Server { return s.running.Load() }

// ProvisionModes are the allowed values of Options.ProvisionMode: virtual machines of the controller's own, machines of an AKS agent pool
// one by one, and the same in batches.
func ProvisionModes() []string {
	return []string{config.ModeVMs, config.ModeAKSMachines, config.ModeAKSMachinesBatched}
}

// New makes the service.
func New(o Options) *Service {
	if o.Speed == 0 {
		o.Speed = DefaultSpeed
	}
	if o.Region == "" {
		o.Region = "eastus"
	}
	return &Service{options: o}
}

// Name implements lab.Service.
func (s *Service) Name() string { return Name }

// Run implements lab.Service: it serves until ctx is done.
func (s *Service) Run(ctx context.Context, env lab.Environment) error {
	adminToken := rand.Text()
	pools := &nodePools{}
	cfg := s.config(env, adminToken)
	cfg.Cluster.OpenNodePools = pools.open
	azure, err := armsim.New(cfg)
	if err != nil {
		return err
	}
	defer func() {
		if err := azure.Close(); err != nil {
			env.Log.Error("cannot save the state of the simulated Azure", "error", err)
		}
	}()
	kubelets, err := s.kubelets(env, azure)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(env.Ports[Name])))
	if err != nil {
		return fmt.Errorf("listen for Azure requests: %w", err)
	}
	if err := s.writeFiles(env, azure, adminToken); err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: azure.Handler(), ReadHeaderTimeout: 10 * time.Second}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return kubelets.Run(ctx) })
	g.Go(func() error { return pools.watch(ctx, env) })
	g.Go(func() error {
		err := server.ServeTLS(listener, env.ServingCert, env.ServingKey)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	})
	g.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	azure.Observe(&observer{kubelets: kubelets, cluster: aksNode(env, azure), log: env.Log})
	for i := poolSize(azure); i < env.Nodes; i++ {
		if _, err := azure.AddAgentPoolMachine(armsim.PoolMachine{Name: fixedNodeName(i)}); err != nil {
			env.Log.Error("cannot add a machine to the fixed agent pool", "error", err)
		}
	}
	if s.alone {
		if err := removeRelease(ctx, env); err != nil {
			return err
		}
	}
	s.running.Store(azure)
	env.Ready()
	return g.Wait()
}

func (s *Service) config(env lab.Environment, adminToken string) armsim.Config {
	cfg := armsim.Config{
		Region:    s.options.Region,
		Seed:      s.options.Seed,
		TimeScale: s.options.Speed,
		// What nap's role holds and nothing else, so that the role is known to be enough.
		Principals: []armsim.Principal{{ClientID: clientID, Actions: config.Actions()}, {ClientID: adminID, Secret: adminToken}},
		// The kubelets say how the provisioning of machines ends.
		ReportsProvisioning: true,
		StateFile:           filepath.Join(env.Dir, "azure-state.json"),
		AdminToken:          adminToken,
		Logger:              env.Log,
	}
	cfg.Cluster.Properties = map[string]any{
		"oidcIssuerProfile": map[string]any{"enabled": true, "issuerURL": lab.Issuer},
		"securityProfile":   map[string]any{"workloadIdentity": map[string]any{"enabled": true}},
	}
	cfg.Account.Features = []string{"Microsoft.ContainerService/ManagedGPUExperiencePreview"}
	cfg.Cluster.KubernetesVersion, cfg.Cluster.Endpoint = trimV(env.KubernetesVersion), env.ServerName
	cfg.Cluster.Network, cfg.Cluster.Outbound = s.options.Network, s.options.Outbound
	return cfg
}

// poolSize counts the machines of the fixed agent pool that a recovered state
// already has.
func poolSize(azure *armsim.Server) int {
	n := 0
	for _, m := range azure.Machines() {
		if m.Fixed {
			n++
		}
	}
	return n
}

// connect is how long machines try to connect with the API server, which is a real one and
// no faster than others: so long do the images' scripts try.
const connect = 34 * time.Second

// network is the machines' own: the API server's name leads to the lab's API server, and no
// other name leads anywhere.
func network(env lab.Environment) kubelet.Network {
	return kubelet.Network{net.JoinHostPort(env.ServerName, "443"): strings.TrimPrefix(env.Server, "https://")}
}

// kubelets makes the kubelets, as fast as the cloud.
func (s *Service) kubelets(env lab.Environment, azure *armsim.Server) (*kubelet.Kubelets, error) {
	admin, err := env.AdminConfig()
	if err != nil {
		return nil, err
	}
	admin.QPS = -1
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) / s.options.Speed) }
	return kubelet.New(kubelet.Config{
		APIServer: admin,
		Delays: kubelet.Delays{
			Register:         scaled(5 * time.Second),
			Lookup:           scaled(300 * time.Second),
			Connect:          connect,
			Ready:            scaled(8 * time.Second),
			DevicePlugin:     scaled(10 * time.Second),
			PodStart:         scaled(4 * time.Second),
			PodStop:          scaled(2 * time.Second),
			PreemptionNotice: scaled(30 * time.Second),
		},
		// Half the heartbeats of a real kubelet: well below the 50 s after which
		// the control plane worries, and half the work for it with many nodes.
		LeaseRenew: 20 * time.Second,
		// The system node's machine is not one of the simulated Azure.
		VMExists: func(id string) bool {
			return strings.Contains(strings.ToLower(id), "/"+systemScaleSet+"/") || azure.Exists(id)
		},
		WithoutCilium: !containerservice.Cilium(azure.Config().Cluster.Network),
		Network:       network(env),
		Provisioned: func(id string, end bootdata.Result) {
			azure.ReportProvisioned(id, armsim.Provisioning{ExitCode: end.ExitCode, Stdout: end.Stdout, Stderr: end.Stderr})
		},
		Logger: env.Log,
	})
}

// observer hands what happens to machines on to their kubelets.
type observer struct {
	kubelets *kubelet.Kubelets
	cluster  bootdata.AKSNode // how machines reach the cluster that AKS boots itself
	log      *slog.Logger
}

// aksNode is what AKS knows of the cluster.
func aksNode(env lab.Environment, azure *armsim.Server) bootdata.AKSNode {
	cfg := azure.Config()
	return bootdata.AKSNode{
		APIServer: env.ServerName, CA: env.CA, Token: env.BootstrapToken, SubscriptionID: cfg.SubscriptionID,
		ResourceGroup: cfg.Cluster.NodeResourceGroup, Location: cfg.Region, ClusterDNS: "10.0.0.10",
	}
}

// bootData is what a machine boots from: what its launcher wrote, or for a machine
// of an agent pool what AKS makes of what it was told.
func (o *observer) bootData(m armsim.Machine) string {
	if m.AKS == nil {
		return string(m.CustomData)
	}
	n, a := o.cluster, m.AKS
	n.Pool, n.Mode, n.Labels, n.Taints, n.MaxPods = a.Pool, a.Mode, a.Labels, a.Taints, a.MaxPods
	n.NodeImage = m.Image // the machine API names images so
	n.Version, n.NoGPUDriver, n.ManagedGPU, n.Spot = a.Kubernetes, a.NoGPUDriver, a.ManagedGPU, m.Priority == "Spot"
	n.VMSize, n.VCPUs, n.MemoryBytes, n.NvidiaGPUs = m.Size, int64(m.VCPUs), m.MemoryBytes, m.GPUVendor == "nvidia" && m.GPUs > 0
	data, err := n.CustomData()
	if err != nil {
		o.log.Error("AKS cannot write boot data", "machine", m.Name, "error", err)
	}
	return string(data)
}

func (o *observer) Booted(m armsim.Machine) { o.kubelets.Booted(o.kubelet(m)) }

// kubelet is the machine as its kubelet knows it.
func (o *observer) kubelet(m armsim.Machine) kubelet.Machine {
	zone := m.Zone
	if zone == "0" {
		zone = ""
	}
	var broken *bootdata.Failure
	if b := m.Broken; b != nil {
		broken = &bootdata.Failure{ExitCode: b.ExitCode, Reason: b.Output}
	}
	return kubelet.Machine{
		Broken: broken,
		ID:     m.ID, ComputerName: m.ComputerName, Size: m.Size, VCPUs: int64(m.VCPUs), MemoryBytes: m.MemoryBytes,
		GPUs: int64(m.GPUs), GPUVendor: m.GPUVendor, Arch: m.Arch,
		MaxDataDisks: int32(m.MaxDataDisks), //nolint:gosec // a machine has a few dozen disks
		OSDiskGB:     int64(m.OSDiskGB), Region: m.Region, Zone: zone, PrivateIP: m.PrivateIP, OSImage: m.Image, CustomData: o.bootData(m),
	}
}

func (o *observer) EvictionNotice(id string, at time.Time) { o.kubelets.EvictionNotice(id, at) }

func (o *observer) Gone(id string) { o.kubelets.Gone(id) }
