package controllercli

import (
	"context"
	"fmt"
	"net/http"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/controller"
	"github.com/nodeautoprovision/nap/internal/controller/cloudprovider"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/kube/clusterfacts"
	"github.com/nodeautoprovision/nap/internal/poollint"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
	"github.com/nodeautoprovision/nap/internal/prerequisites/azurefacts"
)

// Within these times a look at the prerequisites ends, whatever answers.
const (
	factsOfAzure   = 90 * time.Second
	factsOfCluster = 30 * time.Second
)

// surroundings are read as nap doctor reads them, without the sources that are left to it.
func surroundings(world cloudWorld, provider *azure.Provider, port *cloudprovider.Port) (controller.Surroundings, error) {
	c := provider.Config()
	target := azurefacts.Target{
		Subscription: c.SubscriptionID, ResourceGroup: c.ResourceGroup, Name: c.ClusterName, Class: offline.DefaultNodeClass("default"),
		RetailPrices: c.Cloud.RetailPrices, NoRetailPrices: !c.Cloud.HasRetailPrices(), Leave: prerequisites.LeftToDoctor(),
	}
	credential, options, err := azure.Connect(c)
	if err != nil {
		return controller.Surroundings{}, err
	}
	fromAzure, err := azurefacts.New(target, credential, options, http.DefaultClient, time.Now)
	if err != nil {
		return controller.Surroundings{}, err
	}
	fromCluster, err := clusterfacts.New(world.cluster, judge(port))
	if err != nil {
		return controller.Surroundings{}, err
	}
	fromCluster.Leave = prerequisites.LeftToDoctor()
	return controller.Surroundings{
		Facts: func(ctx context.Context) *prerequisites.Facts {
			facts := azureFacts(ctx, provider, fromAzure)
			ctx, cancel := context.WithTimeout(ctx, factsOfCluster)
			defer cancel()
			fromCluster.Read(ctx, facts)
			return facts
		},
		Doctor:       fmt.Sprintf("nap doctor --resource-group %s --name %s", c.ResourceGroup, c.ClusterName),
		OutboundType: c.Facts.Network.OutboundType,
		Excluded:     port.Excluded,
	}, nil
}

// azureFacts asks Azure, unless it is known that it does not answer.
func azureFacts(ctx context.Context, provider *azure.Provider, reader *azurefacts.Reader) *prerequisites.Facts {
	if provider.Config().ResourceGroup == "" {
		return prerequisites.WithoutAzure(time.Now(), "ARM_RESOURCE_GROUP is not set")
	}
	if out := provider.Outage(); out != "" {
		return prerequisites.WithoutAzure(time.Now(), out)
	}
	ctx, cancel := context.WithTimeout(ctx, factsOfAzure)
	defer cancel()
	facts, err := reader.Read(ctx)
	if err != nil {
		return prerequisites.WithoutAzure(time.Now(), azurefacts.Short(err))
	}
	return facts
}

// judge judges NodePools by what they can buy now.
func judge(port *cloudprovider.Port) clusterfacts.Judge {
	return func(ctx context.Context, p *karpv1.NodePool, limits map[string]int64) (string, int64, []string) {
		catalog, err := port.Catalog(ctx, p.Name)
		if err != nil {
			return "", -1, nil // its condition Ready says why
		}
		pool := kube.Pool(p)
		vcpus, of := poollint.Room(pool, catalog, limits)
		return poollint.Nothing(pool, catalog, poollint.Advice(catalog, poollint.Lacking{Excluded: port.Excluded(ctx, p)})), vcpus, of
	}
}
