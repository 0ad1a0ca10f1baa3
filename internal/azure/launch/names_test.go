package launch

import (
	"strconv"
	"strings"
	"testing"

	"github.com/mitchellh/hashstructure/v2"
)

func TestMachineNameFitsAndIsStemOfVMName(t *testing.T) {
	for claim, want := range map[string]string{
		"general-abc12":                            "general-abc12",
		strings.Repeat("a", 28) + "-abc12":         strings.Repeat("a", 28) + "-abc12",
		"a-node-pool-with-quite-a-long-name-abc12": "a-node-pool-with-quite",
	} {
		got, err := MachineName(claim)
		if err != nil || len(got) > longestMachine || !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "-abc12") {
			t.Errorf("%s is named %q, %v", claim, got, err)
		}
		for _, resource := range []string{got, "aks-pool1-" + got + "-12345678-vm", ResourceName(got)} {
			if stem := Stem("pool1", resource); stem != got {
				t.Errorf("the stem of %s is %s, want %s", resource, stem, got)
			}
		}
		if back, ok := MachineOfVM("pool1", "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/aks-pool1-"+
			got+"-12345678-vm"); !ok || back != got {
			t.Errorf("the virtual machine of %s leads back to %q", got, back)
		}
	}
	one, _ := MachineName("a-node-pool-with-quite-a-long-name-abc12")
	two, _ := MachineName("a-node-pool-with-quite-a-long-game-abc12")
	if one == two {
		t.Errorf("two claims are both named %s", one)
	}
	if _, err := MachineName(strings.Repeat("a", 40)); err == nil {
		t.Error("a long name without a dash was shortened")
	}
	for _, id := range []string{"azure:///x/virtualMachines/aks-general-abc12",
		"azure:///x/virtualMachines/aks-pool2-general-abc12-12345678-vm"} {
		if back, ok := MachineOfVM("pool1", id); ok {
			t.Errorf("%s leads to machine %s of pool1", id, back)
		}
	}
}

// Karpenter's Azure provider shortens a long name with the last six digits to base 36 of the hash
// that hashstructure makes (pkg/utils/utils.go, GetAlphanumericHash). Machines which it has made
// are found by it.
func TestMachineNameIsThatOfKarpentersAzureProvider(t *testing.T) {
	for _, claim := range []string{
		"general-purpose-on-demand-amd64-abc12", "a-node-pool-with-quite-a-long-name-abc12", strings.Repeat("p", 57) + "-zzzzz",
	} {
		pool, end := claim[:strings.LastIndex(claim, "-")], claim[strings.LastIndex(claim, "-"):]
		keep := longestMachine - hashLength - len(end)
		hash, err := hashstructure.Hash(pool[keep:], hashstructure.FormatV2, nil)
		if err != nil {
			t.Fatal(err)
		}
		digits := ""
		for range hashLength {
			digits = strconv.FormatUint(hash%36, 36) + digits
			hash /= 36
		}
		want := pool[:keep] + digits + end
		if got, err := MachineName(claim); err != nil || got != want {
			t.Errorf("%s is named %s, %v, want %s", claim, got, err, want)
		}
	}
	if got, err := MachineName("general-purpose-on-demand-amd64-abc12"); err != nil || got != "general-purpose-on-demseczej-abc12" {
		t.Errorf("the name is %s, %v", got, err)
	}
}

func TestClaimOfProviderID(t *testing.T) {
	id := ProviderID("s", "MC_Group", "general-abc12")
	if claim, ok := ClaimOfProviderID(id); !ok || claim != "general-abc12" {
		t.Errorf("%s leads to %q", id, claim)
	}
	for _, foreign := range []string{"", "aws:///x/aks-a",
		"azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/other", "azure://aks-"} {
		if claim, ok := ClaimOfProviderID(foreign); ok {
			t.Errorf("%q leads to %q", foreign, claim)
		}
	}
}

// The shortest beginning of a name that can be kept is one character.
func TestMachineNameKeepsOneCharacterAtLeast(t *testing.T) {
	end := "-" + strings.Repeat("z", longestMachine-hashLength-2)
	name, err := MachineName("general-purpose" + end)
	if err != nil || len(name) != longestMachine || name[:1] != "g" || !strings.HasSuffix(name, end) {
		t.Errorf("got %q, %v", name, err)
	}
	if name, err := MachineName("general-purpose" + end + "z"); err == nil {
		t.Errorf("a name without room for its beginning became %q", name)
	}
}

func TestProviderIDHasTheGroupInLowerCase(t *testing.T) {
	for id, want := range map[string]string{
		"/subscriptions/S/resourceGroups/MC_Group/providers/X": "azure:///subscriptions/S/resourceGroups/mc_group/providers/X",
		"/providers/X/MC_Group":                                "azure:///providers/X/MC_Group",
	} {
		if got := ProviderIDOf(id); got != want {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
}
