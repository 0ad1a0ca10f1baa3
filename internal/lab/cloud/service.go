package cloud

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/kubelet"
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
}

// clientID is who the controller signs in as.
const clientID = "11111111-0000-4000-8000-000000000003"

// Service is the simulated Azure with its kubelets. It implements lab.Service.
type Service struct{ options Options }

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
	if err := writeFiles(env, azure, adminToken); err != nil {
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
	azure.Observe(&observer{kubelets: kubelets})
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
		Region:     s.options.Region,
		Seed:       s.options.Seed,
		TimeScale:  s.options.Speed,
		Principals: []armsim.Principal{{ClientID: clientID, Actions: Permissions()}},
		StateFile:  filepath.Join(env.Dir, "azure-state.json"),
		AdminToken: adminToken,
		Logger:     env.Log,
	}
	cfg.Cluster.KubernetesVersion = trimV(env.KubernetesVersion)
	return cfg
}

// Permissions are the Azure actions that nap needs on the cluster's node resource
// group and subscription. The simulated Azure grants these and no others, so that
// the list is known to be enough.
func Permissions() []string {
	return []string{
		"Microsoft.Compute/virtualMachines/*",
		"Microsoft.Compute/disks/delete",
		"Microsoft.Compute/skus/read",
		"Microsoft.Compute/locations/usages/read",
		"Microsoft.Compute/locations/communityGalleries/images/versions/read",
		"Microsoft.Compute/locations/communityGalleries/*",
		"Microsoft.Network/networkInterfaces/*",
		"Microsoft.Network/virtualNetworks/read",
		"Microsoft.Network/virtualNetworks/subnets/read",
		"Microsoft.Network/virtualNetworks/subnets/join/action",
		"Microsoft.Network/loadBalancers/read",
		"Microsoft.Network/loadBalancers/backendAddressPools/join/action",
		"Microsoft.Network/networkSecurityGroups/read",
		"Microsoft.Network/networkSecurityGroups/join/action",
		"Microsoft.ResourceGraph/resources/*",
		"Microsoft.Resources/subscriptions/*",
		"Microsoft.ContainerService/managedClusters/read",
		"Microsoft.ContainerService/managedClusters/maintenanceConfigurations/read",
		// The rest is for AKS machines and for shared image galleries.
		"Microsoft.ContainerService/managedClusters/agentPools/read",
		"Microsoft.ContainerService/managedClusters/agentPools/machines/*",
		"Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/*",
		"Microsoft.ContainerService/locations/nodeImageVersions/read",
	}
}

// poolSize counts the machines of the fixed agent pool that a recovered state
// already has.
func poolSize(azure *armsim.Server) int {
	n := 0
	for _, m := range azure.Machines() {
		if m.AKS != nil {
			n++
		}
	}
	return n
}

// kubelets makes the kubelets, as fast as the cloud.
func (s *Service) kubelets(env lab.Environment, azure *armsim.Server) (*kubelet.Fleet, error) {
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
		Logger:     env.Log,
	})
}

// observer hands what happens to machines on to their kubelets.
type observer struct{ kubelets *kubelet.Fleet }

func (o *observer) Booted(m armsim.Machine) {
	zone := m.Zone
	if zone == "0" {
		zone = ""
	}
	o.kubelets.Booted(kubelet.Machine{
		ID: m.ID, ComputerName: m.ComputerName, Size: m.Size, VCPUs: int64(m.VCPUs), MemoryBytes: m.MemoryBytes,
		GPUs: int64(m.GPUs), GPUVendor: m.GPUVendor, Arch: m.Arch, MaxDataDisks: int32(m.MaxDataDisks), //nolint:gosec // a machine has a few dozen disks
		OSDiskGB: int64(m.OSDiskGB), Region: m.Region, Zone: zone, PrivateIP: m.PrivateIP, OSImage: m.Image, CustomData: string(m.CustomData),
	})
}

func (o *observer) EvictionNotice(id string, at time.Time) { o.kubelets.EvictionNotice(id, at) }

func (o *observer) Gone(id string) { o.kubelets.Gone(id) }
