package azure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/launch/vm"
)

// untaggedAge is how long a machine or an interface that has lost its tags must have
// been without a NodeClaim before it is taken for garbage. It is long, because
// the tags that would prove whose it is are what is missing.
const untaggedAge = time.Hour

// A name of ours: that of a NodePool, and five characters drawn for the claim.
// What AKS itself names has eight digits instead, of pools, or of machines of its
// own.
var (
	ourClaim = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?-[a-z0-9]{5}$`)
	aksOwn   = regexp.MustCompile(`-[0-9]{8}-(vm|vmss|nic|nsg)`)
)

// firstSeen remembers when interfaces without tags were first seen: Azure does not
// say how old an interface is.
type firstSeen struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

// since is how long a name has been seen; names that are not in the present list
// are forgotten by keep.
func (s *firstSeen) since(name string, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]time.Time{}
	}
	first, known := s.seen[name]
	if !known {
		first = now
		s.seen[name] = now
	}
	return now.Sub(first)
}

func (s *firstSeen) keep(present map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.seen, func(name string, _ time.Time) bool { return !present[name] })
}

// claimOfUntagged is the claim of a resource by its name alone; false for names that
// are not certainly ours.
func claimOfUntagged(name string) (string, bool) {
	claim, ok := launch.ClaimOf(name)
	return claim, ok && ourClaim.MatchString(claim) && !aksOwn.MatchString(strings.ToLower(name))
}

// adoptMachines gives virtual machines that have lost their tags the cluster's
// tag again, so that they are listed, updated and collected as before. Such a
// machine is ours when it is in the node resource group, is named as nap names
// machines, bears that name on its interface, its disk and its own host name as
// well, and either has a NodeClaim of that name or is older than an hour.
func (c *collector) adoptMachines(ctx context.Context, claims map[string]bool) error {
	listed, err := c.vms.Lists.Machines(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range listed {
		claim, ok := c.claimOf(m)
		if !ok || !claims[claim] && c.now().Sub(*m.Properties.TimeCreated) < untaggedAge {
			continue
		}
		tags := withTag(m.Tags, c.config.ClusterName)
		if _, err := c.vms.Machines.BeginUpdate(ctx, c.config.NodeResourceGroup,
			*m.Name, armcompute.VirtualMachineUpdate{Tags: tags}, nil); err != nil {
			errs = append(errs, fmt.Errorf("give virtual machine %s its tag %s back: %w", *m.Name, launch.TagCluster, err))
			continue
		}
		c.list.forget()
		c.log.Warn("a virtual machine had lost its tags and was recognised by its names", "machine", *m.Name, "claimed", claims[claim])
	}
	return errors.Join(errs...)
}

// claimOf is the claim of a machine without the cluster tag; false for machines
// that are not certainly ours.
func (c *collector) claimOf(m *armcompute.VirtualMachine) (string, bool) {
	if m == nil || m.Name == nil || m.Properties == nil || m.Properties.TimeCreated == nil || hasTag(m.Tags) {
		return "", false
	}
	claim, ok := claimOfUntagged(*m.Name)
	q := m.Properties
	if !ok || q.OSProfile == nil || q.StorageProfile == nil || q.StorageProfile.OSDisk == nil ||
		q.NetworkProfile == nil || len(q.NetworkProfile.NetworkInterfaces) != 1 {
		return "", false
	}
	nic := q.NetworkProfile.NetworkInterfaces[0]
	for _, name := range []*string{q.OSProfile.ComputerName, q.StorageProfile.OSDisk.Name, lastPart(nic)} {
		if name == nil || !strings.EqualFold(*name, *m.Name) {
			return "", false
		}
	}
	return claim, true
}

func lastPart(nic *armcompute.NetworkInterfaceReference) *string {
	if nic == nil || nic.ID == nil {
		return nil
	}
	return to.Ptr((*nic.ID)[strings.LastIndex(*nic.ID, "/")+1:])
}

// adoptNICs does the same for interfaces without a machine, which are the loose ones. Azure
// does not say how old they are, so the hour begins when this process first sees them.
func (c *collector) adoptNICs(ctx context.Context, claims map[string]bool, loose []vm.LooseNIC) error {
	var errs []error
	present := map[string]bool{}
	for _, nic := range loose {
		claim, ok := claimOfUntagged(nic.Name)
		if !ok || claims[claim] || hasTag(nic.Tags) {
			continue
		}
		present[nic.Name] = true
		if c.untagged.since(nic.Name, c.now()) < untaggedAge {
			continue
		}
		tags := armnetwork.TagsObject{Tags: withTag(nic.Tags, c.config.ClusterName)}
		if _, err := c.vms.NICs.UpdateTags(ctx, c.config.NodeResourceGroup, nic.Name, tags, nil); err != nil {
			errs = append(errs, fmt.Errorf("give network interface %s its tag %s back: %w", nic.Name, launch.TagCluster, err))
			continue
		}
		c.log.Warn("a network interface had lost its tags and was recognised by its name", "interface", nic.Name)
	}
	c.untagged.keep(present)
	return errors.Join(errs...)
}

func hasTag(tags map[string]*string) bool {
	_, has := launch.Values(tags)[launch.TagCluster]
	return has
}

func withTag(tags map[string]*string, cluster string) map[string]*string {
	out := maps.Clone(tags)
	if out == nil {
		out = map[string]*string{}
	}
	out[launch.TagCluster] = &cluster
	return out
}
