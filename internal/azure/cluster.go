package azure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch/aksmachine"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/azure/network"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

const (
	// readClusterEvery is how often the managed cluster is read; readPausedEvery is
	// the same while it keeps nap from buying, so that it goes on soon.
	readClusterEvery = 2 * time.Minute
	readPausedEvery  = 20 * time.Second
)

// Discover asks the managed cluster what it is, and completes the configuration with
// the answer, see [config.Config.Learn]. Where the cluster cannot be asked, because
// its resource group is not known or the role lacks the permission, the configuration
// must say everything.
func Discover(ctx context.Context, c config.Config, deps Deps) (config.Config, error) {
	conn, err := connect(&c, &deps)
	if err != nil {
		return c, err
	}
	if c.ResourceGroup == "" {
		deps.Log.Warn("ARM_RESOURCE_GROUP is not set: what the cluster says of itself is not read")
		return learn(c, nil, "", deps.Log)
	}
	clusters, err1 := armcontainerservice.NewManagedClustersClient(c.SubscriptionID, deps.Credential, conn.options)
	vnets, err2 := armnetwork.NewVirtualNetworksClient(c.SubscriptionID, deps.Credential, conn.options)
	if err := errors.Join(err1, err2); err != nil {
		return c, err
	}
	facts, err := managedcluster.Read(ctx, clusters, c.ResourceGroup, c.ClusterName)
	switch {
	case answered(err, http.StatusForbidden):
		deps.Log.Warn("the cluster may not be read: the variables must say everything, and nap does not notice "+
			"when AKS's own node provisioning is on; permit Microsoft.ContainerService/managedClusters/read on it", "error", err)
		return learn(c, nil, "", deps.Log)
	case answered(err, http.StatusNotFound):
		return c, fmt.Errorf("%w; check CLUSTER_NAME, ARM_RESOURCE_GROUP and AZURE_SUBSCRIPTION_ID", err)
	case err != nil:
		return c, err
	}
	own := ""
	if c.VNETSubnetID == "" && facts.SubnetID() == "" && facts.NodeResourceGroup != "" {
		if own, err = network.OwnSubnet(ctx, vnets, facts.NodeResourceGroup); err != nil {
			return c, fmt.Errorf("%w; permit Microsoft.Network/virtualNetworks/read on it, or set VNET_SUBNET_ID", err)
		}
	}
	if pool := config.ProbePool(&c, &facts); pool != "" {
		probe := c
		probe.MachinesPool = pool
		client, err := aksmachine.NewMachineClient(probe.PoolID(), deps.Credential, conn.options)
		if err != nil {
			return c, err
		}
		var there bool
		if c.NoMachineAPI, there = noMachineAPI(ctx, client); there && facts.Pools.Find(pool) == nil {
			facts.Pools = append(facts.Pools, managedcluster.AgentPool{Name: pool})
		}
	}
	return learn(c, &facts, own, deps.Log)
}

// learn completes a configuration, and tells which way of making machines was chosen
// where no variable says.
func learn(c config.Config, facts *managedcluster.Facts, ownSubnet string, log *slog.Logger) (config.Config, error) {
	out, err := c.Learn(facts, ownSubnet)
	if err == nil && c.ProvisionMode == "" {
		log.Info("PROVISION_MODE is not set: nap has chosen how machines are made", "mode", out.ProvisionMode, "because", out.ModeChoice)
	}
	return out, err
}

// Connect signs in to Azure for others than the provider, with the same options.
func Connect(c *config.Config) (azcore.TokenCredential, *arm.ClientOptions, error) {
	deps := Deps{}
	conn, err := connect(c, &deps)
	return deps.Credential, conn.options, err
}

func answered(err error, status int) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == status
}

// clusterWatch reads the managed cluster again and again.
type clusterWatch struct {
	config *config.Config
	client *armcontainerservice.ManagedClustersClient
	log    *slog.Logger
	pool   *poolWatch // nil where machines need no agent pool
	// awaited asks for the machine API for lack of which nap chose plain machines; nil where it
	// did not.
	awaited *aksmachine.MachineClient

	mu sync.Mutex
	// facts are as they were read last; the zero value before the first time. refused is why
	// they keep nap from buying, nil where they do not.
	facts   managedcluster.Facts
	refused *managedcluster.Pause
}

func newClusterWatch(c *config.Config, client *armcontainerservice.ManagedClustersClient, log *slog.Logger, pool *poolWatch) *clusterWatch {
	w := &clusterWatch{config: c, client: client, log: log, pool: pool, facts: c.Facts, refused: refusedBy(&c.Facts)}
	if pause := w.pause(); pause != nil {
		log.Warn("no machine is bought", "reason", pause.Reason, "because", pause.Message)
	}
	return w
}

// Pause says why the managed cluster keeps nap from buying; nil while it does not.
func (p *Provider) Pause() *managedcluster.Pause { return p.cluster.pause() }

func (w *clusterWatch) pause() *managedcluster.Pause {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pauseNow()
}

// pauseNow is pause for callers that hold the lock. It costs next to nothing, for loops ask
// several times a second.
func (w *clusterWatch) pauseNow() *managedcluster.Pause {
	if w.refused != nil {
		return w.refused
	}
	return w.pool.pause(&w.facts)
}

// refusedBy is why the facts of a cluster keep nap from buying, nil where they do not.
func refusedBy(facts *managedcluster.Facts) *managedcluster.Pause {
	if pause := facts.Pause(); pause != nil {
		return pause
	}
	refusals := prerequisites.Refusals(facts)
	if len(refusals) == 0 {
		return nil
	}
	r := &refusals[0]
	return &managedcluster.Pause{Reason: managedcluster.ReasonPrerequisite, Message: fmt.Sprintf(
		"%s, see prerequisite %d (%s) of nap doctor: nap buys nothing. %s Mend it: %s", r.Finding, r.Number, r.Name, r.Why, r.Fix)}
}

// first is how long after the start the cluster is read: at once where the agent pool
// is to be made.
func (w *clusterWatch) first() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pool.missing(&w.facts) {
		return 0
	}
	return readClusterEvery
}

// run reads until the context ends. Its error says that machines made from now on
// would have to be made in another way than this process was set up for.
func (w *clusterWatch) run(ctx context.Context) error {
	if w.config.ResourceGroup == "" {
		return nil
	}
	timer := time.NewTimer(min(w.wait(), w.first()))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := w.read(ctx); err != nil {
			return err
		}
		timer.Reset(w.wait())
	}
}

// wait is how long the last answer is believed.
func (w *clusterWatch) wait() time.Duration {
	if w.pause() != nil {
		return readPausedEvery
	}
	return readClusterEvery
}

// arrived is an error, as that of run, once AKS makes machines which nap chose plain machines for
// lack of: the choice is made at the start alone.
func (w *clusterWatch) arrived(ctx context.Context, facts *managedcluster.Facts) error {
	pool := w.config.MachinesPool
	if w.awaited == nil || facts.Pools.Find(pool) == nil {
		return nil
	}
	if why, there := noMachineAPI(ctx, w.awaited); why != "" || !there {
		return nil
	}
	return fmt.Errorf("cluster %s makes machines of agent pool %s now: starting again with them", facts.Name, pool)
}

// read asks once. That Azure does not answer leaves what is known as it is.
func (w *clusterWatch) read(ctx context.Context) error {
	facts, err := managedcluster.Read(ctx, w.client, w.config.ResourceGroup, w.config.ClusterName)
	if err != nil {
		if ctx.Err() == nil {
			w.log.Warn("the cluster could not be read; what it said last holds", "error", err)
		}
		return nil
	}
	if known := w.config.Facts; known.ID != "" && !reflect.DeepEqual(known.Lasting(), facts.Lasting()) {
		return fmt.Errorf("cluster %s tells other facts of itself than at the start (%s): starting again with them",
			facts.Name, known.Difference(&facts))
	}
	if err := w.arrived(ctx, &facts); err != nil {
		return err
	}
	before := w.pause()
	w.pool.look(ctx, &facts)
	w.mu.Lock()
	w.facts, w.refused = facts, refusedBy(&facts)
	now := w.pauseNow()
	w.mu.Unlock()
	switch {
	case now != nil && (before == nil || before.Reason != now.Reason):
		w.log.Warn("no machine is bought", "reason", now.Reason, "because", now.Message)
	case now == nil && before != nil:
		w.log.Info("machines are bought again", "reason", before.Reason)
	}
	return nil
}
