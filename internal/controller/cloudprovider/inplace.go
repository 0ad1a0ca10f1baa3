package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/controller/inplaceupdate"
)

var _ inplaceupdate.Updater = (*Port)(nil)

// InPlaceHash is the fingerprint of the class's tags and of what the cluster gives
// every machine.
func (p *Port) InPlaceHash(class *v1beta1.AKSNodeClass) string {
	hash := fnv.New32a()
	for _, tags := range []map[string]string{class.Spec.Tags, p.azure.Config().AdditionalTags} {
		for _, key := range slices.Sorted(maps.Keys(tags)) {
			fmt.Fprintf(hash, "%q=%q,", key, tags[key])
		}
		fmt.Fprint(hash, ";")
	}
	for _, id := range slices.Sorted(slices.Values(p.azure.Config().NodeIdentities)) {
		fmt.Fprintf(hash, "%q,", id)
	}
	return fmt.Sprint(hash.Sum32())
}

// Update gives the machine of a claim the tags and identities that a new one would
// have.
func (p *Port) Update(ctx context.Context, claim string, class *v1beta1.AKSNodeClass) error {
	value := ClassValue(class)
	err := p.azure.Update(ctx, claim, &value)
	if errors.Is(err, launch.ErrNotFound) {
		return nil
	}
	return err
}
