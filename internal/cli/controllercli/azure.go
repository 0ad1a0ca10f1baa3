package controllercli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/maintenance"
	"github.com/nodeautoprovision/nap/internal/controller"
	"github.com/nodeautoprovision/nap/internal/controller/bootstraptoken"
	"github.com/nodeautoprovision/nap/internal/controller/cloudprovider"
	ctrlmetrics "github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/outage"
	"github.com/nodeautoprovision/nap/internal/controller/registration"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
)

// newCloud connects to the cloud, as controller.Config.Connect.
type newCloud = func(ctx context.Context, start controller.Start) (controller.NewCloud, error)

// newAzure reads Azure's configuration, all of it before anything is connected.
func newAzure(world cloudWorld) (newCloud, error) {
	c, err := config.Load(world.lookupEnv, os.ReadFile)
	if err != nil {
		return nil, unusable(err)
	}
	if c.ClusterCA, err = authority(world.cluster); err != nil {
		return nil, err
	}
	return func(ctx context.Context, start controller.Start) (controller.NewCloud, error) {
		return connectAzure(ctx, c, world, start)
	}, nil
}

// connectAzure learns what the managed cluster is, and reads what Azure sells.
func connectAzure(ctx context.Context, c config.Config, world cloudWorld, start controller.Start) (controller.NewCloud, error) {
	direct, err := client.New(world.cluster, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server %s: %w", world.cluster.Host, err)
	}
	ask := func(ctx context.Context, by func(context.Context) error) error {
		return start.Ask(ctx, azure.IsOutage, by)
	}
	deps := azure.Deps{Log: world.log, Metrics: metrics.Registry, PricesFile: world.pricesFile, MayWrite: start.MayWrite, Ask: ask}
	given := c
	err = ask(ctx, func(ctx context.Context) (err error) {
		c, err = azure.Discover(ctx, given, deps)
		return err
	})
	if err != nil {
		return nil, unusable(err)
	}
	var keeper *bootstraptoken.Keeper
	// AKS machines join with what AKS gives them.
	if settings := world.tokens; settings.Mode != bootstraptoken.None && !c.StartsAKSMachines() {
		settings.Given = c.BootstrapToken
		numbers, err := ctrlmetrics.NewBootstrapToken(metrics.Registry)
		if err != nil {
			return nil, err
		}
		if keeper, err = bootstraptoken.New(direct, clock.RealClock{}, settings, numbers); err != nil {
			return nil, unusable(fmt.Errorf("KUBELET_BOOTSTRAP_TOKEN: %w", err))
		}
		deps.Token = keeper.Token
	}
	if c.DNSServiceIP == "" {
		if c.DNSServiceIP, err = cloudprovider.ClusterDNS(ctx, direct); err != nil {
			return nil, err
		}
	}
	provider, err := azure.New(ctx, c, deps)
	if err != nil {
		return nil, fmt.Errorf("connecting to Azure: %w", err)
	}
	return func(kube client.Client) (controller.Cloud, error) {
		return newPort(world, kube, direct, provider, keeper)
	}, nil
}

// newPort makes the cloud of a provider, on the manager's cached client.
func newPort(
	world cloudWorld, kube, direct client.Client, provider *azure.Provider, keeper *bootstraptoken.Keeper,
) (controller.Cloud, error) {
	server, err := discovery.NewDiscoveryClientForConfig(world.cluster)
	if err != nil {
		return controller.Cloud{}, fmt.Errorf("connecting to the API server %s: %w", world.cluster.Host, err)
	}
	cloudprovider.RegisterLabels()
	port := cloudprovider.New(kube, server, provider)
	port.ReadDirectly(direct)
	if world.overlays {
		port.ApplyNodeOverlays()
	}
	plain, err := kubernetes.NewForConfig(world.cluster)
	if err != nil {
		return controller.Cloud{}, fmt.Errorf("connecting to the API server %s: %w", world.cluster.Host, err)
	}
	port.MaintenanceMap(func(ctx context.Context) (map[string]string, error) {
		m, err := plain.CoreV1().ConfigMaps(maintenance.Namespace).Get(ctx, maintenance.ConfigMap, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read ConfigMap %s/%s: %w", maintenance.Namespace, maintenance.ConfigMap, err)
		}
		return m.Data, nil
	})
	around, err := surroundings(world, provider, port)
	if err != nil {
		return controller.Cloud{}, err
	}
	return controller.Cloud{
		Surroundings: around,
		Paused:       paused(provider), Tokens: keeper, Dataplane: provider.Config().NetworkDataplane,
		Provider: port, Catalogs: port, Classes: port.Classes, Run: provider.Run, Record: port.Record, Outage: provider.Outage,
		Market: provider.Market, Evicted: provider.Evicted, WatchGone: port.WatchGone, WatchUnsold: port.WatchUnsold,
		Boots:   boots(provider),
		InPlace: port.InPlace, Unavailable: provider.Unavailable(), Prices: provider.Supply().PriceMemory(),
		Forget: forget(provider), Told: market(provider),
		Maintenance: port.Maintenance,
		Instances:   port.Garbage.CollectMachines, Interfaces: port.Garbage.CollectNICs,
	}, nil
}

// paused is why the cluster does not let nap buy.
func paused(provider *azure.Provider) func() outage.Finding {
	return func() outage.Finding {
		if pause := provider.Pause(); pause != nil {
			return outage.Finding{Reason: pause.Reason, Message: pause.Message}
		}
		return outage.Finding{}
	}
}

// market is what the provider knows of what can be bought, as the snapshot tells it.
func market(provider *azure.Provider) func() snapshot.Market {
	return func() snapshot.Market {
		facts := provider.MarketFacts()
		out := snapshot.Market{Region: provider.Config().Location, Terms: facts.Terms,
			Prices: v1alpha1.PriceSource{Source: facts.Prices, SpotEstimated: facts.SpotEstimated}}
		for _, l := range facts.Quotas {
			out.Quotas = append(out.Quotas, v1alpha1.QuotaLine{Name: l.Name, Limit: l.Limit, Used: l.Used + l.InFlight})
		}
		for _, x := range provider.Unavailable().Entries() {
			out.Refusals = append(out.Refusals, v1alpha1.Refusal{
				Size: x.Size, Family: x.Family, Kind: x.Kind, Policy: x.Policy.String(), Place: x.Place,
				CapacityType: string(x.CapacityType), MinVCPUs: x.MinVCPUs,
				Until: metav1.NewTime(x.Until.Truncate(time.Second)), Why: x.Why,
			})
		}
		return out
	}
}

// forget makes the provider forget what Azure has refused, and read the quota again.
func forget(provider *azure.Provider) func(context.Context, []string) int {
	return func(ctx context.Context, names []string) int {
		n := 0
		for _, name := range names {
			n += provider.Unavailable().Forget(strings.TrimSpace(name))
		}
		if err := provider.RefreshQuota(ctx); err != nil {
			log.FromContext(ctx).Error(err, "reading the quota failed; it is read again at its turn")
		}
		return n
	}
}

// unusable says what is wrong with the configuration, in one line, or that Azure does not
// answer.
func unusable(err error) error {
	if azure.IsOutage(err) {
		return fmt.Errorf("no answer of Azure, try again later: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return fmt.Errorf("the Azure configuration in the environment cannot be used: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
}

// boots is the provider as the registration of machines sees it.
func boots(provider *azure.Provider) registration.Boots {
	return registration.Boots{
		Failure: func(ctx context.Context, claim, providerID string) (registration.Failure, error) {
			f, err := provider.Boots().Failure(ctx, claim, providerID)
			return registration.Failure{ExitCode: f.ExitCode, Text: f.Text}, err
		},
		Console: provider.Boots().Console, Joined: provider.Boots().Joined,
	}
}

// authority is the certificate that vouches for the API server. Machines get it
// with their boot data.
func authority(config *rest.Config) ([]byte, error) {
	if len(config.CAData) > 0 || config.CAFile == "" {
		return config.CAData, nil
	}
	pem, err := os.ReadFile(config.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's authority: %w", err)
	}
	return pem, nil
}
