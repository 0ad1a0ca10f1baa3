package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/controller/inplaceupdate"
)

// InPlaceUpdater changes what may change of running machines. It has no state of its
// own.
type InPlaceUpdater struct{ azure *azure.Provider }

var _ inplaceupdate.Updater = (*InPlaceUpdater)(nil)

// InPlaceHash is the fingerprint of the class's tags and of what the cluster gives
// every machine.
func (u *InPlaceUpdater) InPlaceHash(class *v1beta1.AKSNodeClass) string {
	hash := fnv.New32a()
	for _, tags := range []map[string]string{class.Spec.Tags, u.azure.Config().AdditionalTags} {
		for _, key := range slices.Sorted(maps.Keys(tags)) {
			fmt.Fprintf(hash, "%q=%q,", key, tags[key])
		}
		fmt.Fprint(hash, ";")
	}
	for _, id := range slices.Sorted(slices.Values(u.azure.Config().NodeIdentities)) {
		fmt.Fprintf(hash, "%q,", id)
	}
	return fmt.Sprint(hash.Sum32())
}

// AKSMachine is the resource id of the AKS machine behind a provider id, empty for plain machines.
func (u *InPlaceUpdater) AKSMachine(providerID string) string {
	if id, is := azure.AKSMachineID(u.azure.Config(), providerID); is {
		return id
	}
	return ""
}

// Update gives the machine of a claim the tags and identities that a new one would
// have.
func (u *InPlaceUpdater) Update(ctx context.Context, claim string, class *v1beta1.AKSNodeClass) error {
	value := ClassValue(class)
	err := u.azure.Update(ctx, claim, &value)
	if errors.Is(err, launch.ErrNotFound) {
		return nil
	}
	return err
}
