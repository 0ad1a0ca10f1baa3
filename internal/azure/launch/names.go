package launch

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"
)

// namePrefix starts the names of everything that is made for a claim.
const namePrefix = "aks-"

const (
	// longestMachine is what AKS allows the name of an agent pool's machine.
	longestMachine = 34
	// hashLength is how much of a long name is a hash of what was left out.
	hashLength = 6
)

// ResourceName is the name of a claim's machine, network interface and disk.
func ResourceName(claim string) string { return namePrefix + claim }

// ClaimOf is the inverse of ResourceName; false for other names.
func ClaimOf(resource string) (string, bool) {
	if len(resource) <= len(namePrefix) || !strings.EqualFold(resource[:len(namePrefix)], namePrefix) {
		return "", false
	}
	return strings.ToLower(resource[len(namePrefix):]), true
}

// ProviderID is what a claim's Node carries as spec.providerID. It is the same
// for every process, so that a node finds its claim whichever process bought it.
func ProviderID(subscription, resourceGroup, claim string) string {
	return "azure:///subscriptions/" + subscription + "/resourceGroups/" + strings.ToLower(resourceGroup) +
		"/providers/Microsoft.Compute/virtualMachines/" + ResourceName(claim)
}

// ClaimOfProviderID finds the claim's name in a provider id; false when it is
// not that of a machine of nap's.
func ClaimOfProviderID(id string) (string, bool) {
	if !strings.HasPrefix(id, "azure://") {
		return "", false
	}
	return ClaimOf(id[strings.LastIndex(id, "/")+1:])
}

// MachineName is the name of a claim's machine in its agent pool: the claim's own
// where it is short enough. Of a longer one the end is kept, which Kubernetes
// drew for the claim, and of the pool's name a beginning and a hash of the rest, FNV-1 in the
// last six digits to base 36. The Azure provider of Karpenter makes the same name
// (pkg/providers/instance/aksmachineinstanceutils.go), so that machines can go from one to the
// other.
func MachineName(claim string) (string, error) {
	if len(claim) <= longestMachine {
		return claim, nil
	}
	i := strings.LastIndexByte(claim, '-')
	keep := longestMachine - hashLength - (len(claim) - i)
	if keep < 1 {
		return "", fmt.Errorf("NodeClaim %s has %d characters, AKS allows a machine's name %d, and without a dash near its "+
			"end it cannot be shortened; give the NodePool a shorter name", claim, len(claim), longestMachine)
	}
	hash := fnv.New64()
	hash.Write([]byte(claim[keep:i]))
	digits := strconv.FormatUint(hash.Sum64(), 36)
	digits = strings.Repeat("0", max(0, hashLength-len(digits))) + digits
	return claim[:keep] + digits[len(digits)-hashLength:] + claim[i:], nil
}

// aksVM is how AKS names the virtual machine behind a machine, after the agent pool, whose name
// has no dash, and the machine.
var aksVM = regexp.MustCompile(`(?i)^aks-([a-z0-9]+)-(.+)-\d{8}-vm$`)

// IsAKSVM reports whether a virtual machine's name is one that AKS gave it.
func IsAKSVM(name string) bool { return aksVM.MatchString(name) }

// MachineOfVM finds the machine of a pool behind a provider id or a virtual
// machine's name; false for the virtual machines of others.
func MachineOfVM(pool, id string) (string, bool) {
	of, machine, ok := PoolAndMachineOfVM(id)
	return machine, ok && strings.EqualFold(of, pool)
}

// PoolAndMachineOfVM finds the agent pool and the machine behind a provider id or a virtual
// machine's name, in lower case; false for virtual machines that AKS did not name.
func PoolAndMachineOfVM(id string) (pool, machine string, ok bool) {
	m := aksVM.FindStringSubmatch(id[strings.LastIndexByte(id, '/')+1:])
	if m == nil {
		return "", "", false
	}
	return strings.ToLower(m[1]), strings.ToLower(m[2]), true
}

// Stem is what the names of a claim's resources have in common, whichever way its
// machine was made: the claim's name, or what MachineName makes of it.
func Stem(pool, resource string) string {
	if machine, ok := MachineOfVM(pool, resource); ok {
		return machine
	}
	if claim, ok := ClaimOf(resource); ok {
		return claim
	}
	return strings.ToLower(resource)
}

var groupInID = regexp.MustCompile(`(?i)^/subscriptions/[^/]+/resourceGroups/([^/]+)/`)

// ProviderIDOf is the provider id of a virtual machine, by its resource id: the
// resource group in lower case, because Azure does not keep its case.
func ProviderIDOf(id string) string {
	if at := groupInID.FindStringSubmatchIndex(id); at != nil {
		id = id[:at[2]] + strings.ToLower(id[at[2]:at[3]]) + id[at[3]:]
	}
	return "azure://" + id
}
