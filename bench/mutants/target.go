package mutants

import (
	"math/rand/v2"
	"slices"
)

// Target is a package that is changed and the packages whose tests must notice, nearest
// first. All are folders below the root of the module.
type Target struct {
	Dir   string
	Tests []string
}

// Targets are the packages in which the loss of a line costs money or pods: those that
// buy, move, give back and remember what cannot be had.
func Targets() []Target {
	const launch, provider, controller = "internal/azure/launch", "internal/azure/providertest", "internal/controller/"
	return []Target{
		{Dir: launch, Tests: []string{launch, provider, controller + "cloudprovider"}},
		{Dir: launch + "/vm", Tests: []string{launch + "/vm", provider, controller + "cloudprovider"}},
		{Dir: launch + "/aksmachine", Tests: []string{launch + "/aksmachine", provider, controller + "cloudprovider"}},
		{Dir: "internal/azure/unavailable", Tests: []string{"internal/azure/unavailable", provider}},
		{Dir: controller + "provisioning", Tests: []string{controller + "provisioning", controller + "karpenter"}},
		{Dir: controller + "disruption", Tests: []string{controller + "disruption"}},
		{Dir: controller + "cloudprovider", Tests: []string{controller + "cloudprovider", provider}},
		{Dir: controller + "nodeclaims", Tests: []string{controller + "nodeclaims", controller + "provisioning", controller + "disruption"}},
		{Dir: controller + "purchasebackoff", Tests: []string{controller + "purchasebackoff", controller + "provisioning"}},
		{Dir: controller + "garbagecollection", Tests: []string{controller + "garbagecollection", provider}},
	}
}

// Sample picks at most n of the mutants, the same ones for the same seed, in their order.
// n of zero picks all.
func Sample(all []Mutant, n int, seed uint64) []Mutant {
	if n <= 0 || n >= len(all) {
		return all
	}
	picked := rand.New(rand.NewPCG(seed, 0)).Perm(len(all))[:n]
	slices.Sort(picked)
	out := make([]Mutant, n)
	for i, at := range picked {
		out[i] = all[at]
	}
	return out
}
