// Package realcluster plays the lab's stories against a cluster that is not the
// lab's: the same assertions, without the lab's faults and kills.
//
// What a story asks of Azure is read from Azure Resource Manager, which [Azure] does
// as the controller does it and without its help: machines by their tags, network
// interfaces and disks without a machine. [Play] refuses a cluster that is in use,
// and gives everything back at the end. Start there.
package realcluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/launch/vm"
	"github.com/nodeautoprovision/nap/internal/lab/scenario"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// lookEvery is how long one look at Azure is believed: stories ask many times a
// second, and Azure counts requests.
const lookEvery = 5 * time.Second

// Azure is the Azure of a real cluster, as stories see it. It implements
// scenario.Azure.
type Azure struct {
	config   *config.Config
	provider *azure.Provider
	lists    *vm.Lists
	disks    *armcompute.DisksClient
	prices   *skutable.Table

	mu sync.Mutex
	// machines are those of the last look, looked is when that was.
	machines []launch.Machine
	looked   time.Time
	// bought are the machines that were seen, in the order in which they were; open
	// are the indexes of those that were there at the last look, by claim.
	bought []scenario.Purchase
	open   map[string]int
	// failed are the machines whose provisioning was seen to have failed.
	failed []scenario.FailedBoot
}

// Open connects to the Azure of the cluster that the variables describe, the same
// that the controller has.
func Open(ctx context.Context, lookup func(string) (string, bool), readFile func(string) ([]byte, error)) (*Azure, error) {
	c, err := config.Load(lookup, readFile)
	if err != nil {
		return nil, unusable(err)
	}
	deps := azure.Deps{Log: slog.New(slog.DiscardHandler)}
	if c, err = azure.Discover(ctx, c, deps); err != nil {
		return nil, unusable(err)
	}
	provider, err := azure.New(ctx, c, deps)
	if err != nil {
		return nil, fmt.Errorf("connecting to Azure: %w", err)
	}
	provider.OnFailed(nil)
	credential, options, err := azure.Connect(&c)
	if err != nil {
		return nil, err
	}
	lists, err1 := vm.NewLists(c.SubscriptionID, c.NodeResourceGroup, credential, options)
	disks, err2 := armcompute.NewDisksClient(c.SubscriptionID, credential, options)
	prices, err3 := skutable.Load()
	return &Azure{config: &c, provider: provider, lists: lists, disks: disks, prices: prices, open: map[string]int{}},
		errors.Join(err1, err2, err3)
}

func unusable(err error) error {
	return fmt.Errorf("the Azure configuration in the environment cannot be used: %s; set CLUSTER_NAME, ARM_RESOURCE_GROUP and "+
		"AZURE_SUBSCRIPTION_ID, and sign in", strings.ReplaceAll(err.Error(), "\n", "; "))
}

// look lists the machines, at most every few seconds.
func (a *Azure) look(ctx context.Context) ([]launch.Machine, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.looked.IsZero() && time.Since(a.looked) < lookEvery {
		return a.machines, nil
	}
	machines, err := a.provider.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the machines of cluster %s: %w", a.config.ClusterName, err)
	}
	a.machines, a.looked = machines, time.Now()
	a.account(machines)
	return machines, nil
}

// account keeps the book of what was bought.
func (a *Azure) account(machines []launch.Machine) {
	there := map[string]bool{}
	for _, m := range machines {
		there[m.Claim] = true
		known := func(f scenario.FailedBoot) bool { return f.Claim == m.Claim }
		if m.State == launch.Failed && !slices.ContainsFunc(a.failed, known) {
			a.failed = append(a.failed, scenario.FailedBoot{Claim: m.Claim, Reported: time.Now()})
		}
		if _, known := a.open[m.Claim]; !known {
			a.open[m.Claim] = len(a.bought)
			a.bought = append(a.bought, scenario.Purchase{Machine: a.machine(&m)})
		}
	}
	for claim, i := range a.open {
		if !there[claim] {
			a.bought[i].Returned = true
			delete(a.open, claim)
		}
	}
}

// watch keeps the book up to date until the context ends, so that machines count that
// come and go between two questions.
func (a *Azure) watch(ctx context.Context) {
	for {
		_, _ = a.look(ctx) // who asks next is told
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

// machine is what stories know of a machine.
func (a *Azure) machine(m *launch.Machine) scenario.Machine {
	out := scenario.Machine{Name: m.Claim, Size: m.Size, Zone: m.Zone, Priority: "regular"}
	price := a.prices.Price
	if m.CapacityType == model.Spot {
		out.Priority, price = "spot", a.prices.SpotPrice
	}
	out.DollarsPerHour, _ = price(m.Size, a.config.Location)
	if m.State == launch.Failed {
		out.Trouble = "Azure says that its provisioning has failed"
	}
	return out
}

// Machines implements scenario.Azure.
func (a *Azure) Machines(ctx context.Context) ([]scenario.Machine, error) {
	machines, err := a.look(ctx)
	var out []scenario.Machine
	for i := range machines {
		if s := machines[i].State; s == launch.Succeeded || s == launch.Failed {
			out = append(out, a.machine(&machines[i]))
		}
	}
	return out, err
}

// Accepted implements scenario.Azure.
func (a *Azure) Accepted(ctx context.Context) (int, error) {
	machines, err := a.look(ctx)
	return len(machines), err
}

// Purchases implements scenario.Azure: every machine that was seen since the story
// began.
func (a *Azure) Purchases(ctx context.Context) ([]scenario.Purchase, error) {
	if _, err := a.look(ctx); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.bought), nil
}

// FailedBoots implements scenario.Azure. When Azure reported a failure is not to be had:
// it counts from the first look that saw it.
func (a *Azure) FailedBoots(ctx context.Context) ([]scenario.FailedBoot, error) {
	if _, err := a.look(ctx); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.failed), nil
}

// Leaks implements scenario.Azure.
func (a *Azure) Leaks(ctx context.Context, claims []string) ([]string, error) {
	machines, err := a.look(ctx)
	if err != nil {
		return nil, err
	}
	var leaks []string
	for i := range machines {
		if !slices.Contains(claims, machines[i].Claim) {
			leaks = append(leaks, machines[i].Claim)
		}
	}
	group := a.config.NodeResourceGroup
	nics, err := a.lists.LooseNICs(ctx)
	if err != nil {
		return nil, err
	}
	for _, claim := range vm.OrphanClaims(nics, a.config.ClusterName) {
		leaks = append(leaks, "network interface "+launch.ResourceName(claim))
	}
	for pager := a.disks.NewListByResourceGroupPager(group, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		var answer *azcore.ResponseError
		if errors.As(err, &answer) && answer.StatusCode == http.StatusForbidden {
			break // nap's own role may not read disks; Azure deletes them with their machines
		}
		if err != nil {
			return nil, fmt.Errorf("list the disks of resource group %s: %w", group, err)
		}
		for _, d := range page.Value {
			if d != nil && d.Name != nil && d.ManagedBy == nil && launch.Values(d.Tags)[launch.TagCluster] == a.config.ClusterName {
				leaks = append(leaks, "disk "+*d.Name)
			}
		}
	}
	return leaks, nil
}

// errNoFaults is the answer to a story that wants to break a real Azure.
var errNoFaults = errors.New("the Azure of a real cluster is not broken on purpose")

// AddFault implements scenario.Azure: it refuses.
func (a *Azure) AddFault(context.Context, string, map[string]string) (string, error) {
	return "", errNoFaults
}

// ClearFaults implements scenario.Azure: there are none.
func (a *Azure) ClearFaults(context.Context) error { return nil }
