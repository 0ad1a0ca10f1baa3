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
	const controller = "internal/controller/"
	return []Target{
		{Dir: "internal/azure/launch", Tests: []string{"internal/azure/launch", "internal/azure/providertest"}},
		{Dir: "internal/azure/launch/vm", Tests: []string{"internal/azure/launch/vm", "internal/azure/providertest"}},
		{Dir: "internal/azure/unavailable", Tests: []string{"internal/azure/unavailable", "internal/azure/providertest"}},
		{Dir: controller + "provisioning", Tests: []string{controller + "provisioning", controller + "karpenter"}},
		{Dir: controller + "disruption", Tests: []string{controller + "disruption"}},
		{Dir: controller + "cloudprovider", Tests: []string{controller + "cloudprovider", "internal/azure/providertest"}},
		{Dir: controller + "nodeclaims", Tests: []string{controller + "nodeclaims", controller + "provisioning", controller + "disruption"}},
		{Dir: controller + "purchasebackoff", Tests: []string{controller + "purchasebackoff", controller + "provisioning"}},
		{Dir: controller + "garbagecollection", Tests: []string{controller + "garbagecollection", "internal/azure/providertest"}},
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
