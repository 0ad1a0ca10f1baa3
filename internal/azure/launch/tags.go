package launch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// Tags that every resource of a machine carries.
const (
	TagCluster = "karpenter.azure.com_cluster"
	TagPool    = "karpenter.sh_nodepool"
	tagBilling = "compute.aks.billing"
)

// TagClaim names the claim of an AKS machine, on it and on everything behind it.
// Plain virtual machines do not have it.
const TagClaim = "karpenter.azure.com_aksmachine_nodeclaim"

// mostTags is what Azure lets a resource have.
const mostTags = 50

// ErrTags says that Azure would refuse every machine for the tags of its class.
var ErrTags = errors.New("the tags cannot be put on Azure's resources")

// ownTags are nap's: by them it finds its machines again.
func ownTags() []string { return []string{TagCluster, TagPool, TagClaim, tagBilling} }

// TagName is the name by which nap knows a tag that Azure answers with. Azure does not tell
// upper case from lower case in names of tags, and whatever writes tags may change it: nap's
// own have the names above, and all others those that they have.
func TagName(name string) string {
	for _, own := range ownTags() {
		if strings.EqualFold(name, own) {
			return own
		}
	}
	return name
}

// TagsOf are the tags of a machine's resources: those of the configuration,
// overridden by those of the class, and nap's own, which nothing overrides. Azure
// does not tell upper case from lower case in their names.
func TagsOf(c *config.Config, spec NodeSpec) map[string]string {
	out := map[string]string{}
	spelled := map[string]string{} // names by their lower case
	put := func(name, value string) {
		lower := strings.ToLower(name)
		delete(out, spelled[lower])
		out[name], spelled[lower] = value, name
	}
	for _, key := range slices.Sorted(maps.Keys(c.AdditionalTags)) {
		put(key, c.AdditionalTags[key])
	}
	for _, key := range slices.Sorted(maps.Keys(spec.Class.Tags)) {
		put(tagName(key), spec.Class.Tags[key])
	}
	for _, own := range ownTags() {
		delete(out, spelled[own])
	}
	out[TagCluster], out[tagBilling] = c.ClusterName, "linux"
	if spec.Pool != "" {
		out[TagPool] = spec.Pool
	}
	return out
}

// tagName is how a key of a class is spelled in Azure.
func tagName(key string) string { return strings.ReplaceAll(key, "/", "_") }

// CheckTags says what is wrong with the tags of a class, as ErrTags with the keys and
// what is allowed; nil when Azure takes them.
func CheckTags(c *config.Config, class *nodeclass.NodeClass) error {
	seen := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(class.Tags)) {
		name := strings.ToLower(tagName(key))
		switch twin, twice := seen[name]; {
		case strings.TrimSpace(key) == "":
			return fmt.Errorf("%w: spec.tags has a key without a name; remove it", ErrTags)
		case slices.Contains(ownTags(), name):
			return fmt.Errorf("%w: spec.tags[%s] is what nap finds its machines by; choose another key", ErrTags, key)
		case twice:
			return fmt.Errorf("%w: spec.tags[%s] and spec.tags[%s] are one name to Azure, which takes / for _ and upper case "+
				"for lower case; keep one", ErrTags, twin, key)
		}
		seen[name] = key
	}
	n := len(TagsOf(c, NodeSpec{Class: class}))
	if more := len(ownTags()) - 2; n+more > mostTags { // two of nap's are not on every machine
		return fmt.Errorf("%w: spec.tags and ADDITIONAL_TAGS are %d with nap's own, and Azure takes %d; remove %d",
			ErrTags, n+more, mostTags, n+more-mostTags)
	}
	return nil
}
