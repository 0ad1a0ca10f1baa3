package cloud

import (
	"cmp"
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
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/kubelet"
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
	// empty means the first.
	ProvisionMode string
}

// clientID is who the controller signs in as.
const clientID = "11111111-0000-4000-8000-000000000003"

// Service is the simulated Azure with its kubelets. It implements lab.Service.
type Service struct{ options Options }

// ProvisionModes are the allowed values of Options.ProvisionMode, the default
// first: virtual machines of the controller's own, machines of an AKS agent pool
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
	o.ProvisionMode = cmp.Or(o.ProvisionMode, ProvisionModes()[0])
	return &Service{options: o}
}

// Name implements lab.Service.
func (s *Service) Name() string { return Name }

// Run implements lab.Service: it serves until ctx is done.
func (s *Service) Run(ctx context.Context, env lab.Environment) error {
	adminToken := rand.Text()
	azure, err := armsim.New(s.config(env, adminToken))
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
	for range env.Nodes - poolSize(azure) {
		if _, err := azure.AddAgentPoolMachine(armsim.PoolMachine{CustomData: bootScript(env)}); err != nil {
			env.Log.Error("cannot add a machine to the fixed agent pool", "error", err)
		}
	}
	env.Ready()
	return g.Wait()
}

func (s *Service) config(env lab.Environment, adminToken string) armsim.Config {
	cfg := armsim.Config{
		Region:    s.options.Region,
		Seed:      s.options.Seed,
		TimeScale: s.options.Speed,
		// What nap's role holds and nothing else, so that the role is known to be enough.
		Principals: []armsim.Principal{{ClientID: clientID, Actions: config.Actions()}},
		StateFile:  filepath.Join(env.Dir, "azure-state.json"),
		AdminToken: adminToken,
		Logger:     env.Log,
	}
	cfg.Cluster.KubernetesVersion = trimV(env.KubernetesVersion)
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
			Ready:            scaled(8 * time.Second),
			DevicePlugin:     scaled(10 * time.Second),
			PodStart:         scaled(4 * time.Second),
			PodStop:          scaled(2 * time.Second),
			PreemptionNotice: scaled(30 * time.Second),
		},
		// Half the heartbeats of a real kubelet: well below the 50 s after which
		// the control plane worries, and half the work for it with many nodes.
		LeaseRenew: 20 * time.Second,
		VMExists:   azure.Exists,
		Trouble:    azure.ReportGuest,
		Logger:     env.Log,
	})
}

// observer hands what happens to machines on to their kubelets.
type observer struct {
	kubelets *kubelet.Kubelets
	cluster  kubelet.AKSNode // how machines reach the cluster that AKS boots itself
	log      *slog.Logger
}

// spoiltToken has the form of a bootstrap token, and no cluster knows it.
const spoiltToken = "000000.0000000000000000"

// aksNode is what AKS knows of the cluster.
func aksNode(env lab.Environment, azure *armsim.Server) kubelet.AKSNode {
	return kubelet.AKSNode{
		Server: env.Server, CA: env.CA, Token: env.BootstrapToken, NodeResourceGroup: azure.Config().Cluster.NodeResourceGroup,
	}
}

// bootData is what a machine boots from: what its launcher wrote, or for a machine
// of an agent pool what AKS makes of what it was told.
func (o *observer) bootData(m armsim.Machine, k kubelet.Machine) string {
	if m.AKS == nil || m.Fixed {
		return string(m.CustomData)
	}
	n, a := o.cluster, m.AKS
	n.Pool, n.Mode, n.Labels, n.Taints, n.MaxPods = a.Pool, a.Mode, a.Labels, a.Taints, a.MaxPods
	n.Version, n.NoGPUDriver, n.Spot = "v"+trimV(a.Kubernetes), a.NoGPUDriver, m.Priority == "Spot"
	boot, err := n.BootData(k)
	if err != nil {
		o.log.Error("AKS cannot write boot data", "machine", m.Name, "error", err)
		return ""
	}
	return boot.Script()
}

func (o *observer) Booted(m armsim.Machine) { o.kubelets.Booted(o.kubelet(m)) }

// kubelet is the machine as its kubelet knows it.
func (o *observer) kubelet(m armsim.Machine) kubelet.Machine {
	zone := m.Zone
	if zone == "0" {
		zone = ""
	}
	k := kubelet.Machine{
		ID: m.ID, ComputerName: m.ComputerName, Size: m.Size, VCPUs: int64(m.VCPUs), MemoryBytes: m.MemoryBytes,
		GPUs: int64(m.GPUs), GPUVendor: m.GPUVendor, Arch: m.Arch,
		MaxDataDisks: int32(m.MaxDataDisks), //nolint:gosec // a machine has a few dozen disks
		OSDiskGB:     int64(m.OSDiskGB), Region: m.Region, Zone: zone, PrivateIP: m.PrivateIP, OSImage: m.Image,
	}
	k.CustomData = o.bootData(m, k)
	if m.SpoiltBoot {
		k.CustomData = strings.ReplaceAll(k.CustomData, o.cluster.Token, spoiltToken)
	}
	return k
}

func (o *observer) EvictionNotice(id string, at time.Time) { o.kubelets.EvictionNotice(id, at) }

func (o *observer) Gone(id string) { o.kubelets.Gone(id) }
