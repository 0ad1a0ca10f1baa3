package config

import (
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
)

// having gives the cluster agent pools besides its system pool, as name, mode, name, mode.
func having(pools ...string) func(*managedcluster.Facts) {
	return func(f *managedcluster.Facts) {
		for i := 0; i < len(pools); i += 2 {
			f.Pools = append(f.Pools, managedcluster.AgentPool{Name: pools[i], Mode: pools[i+1]})
		}
	}
}

func TestModeChosenByPoolsOfCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		vars       []string
		pools      []string
		noAPI      string
		mode, pool string
		because    string
	}{
		"no pool": {mode: ModeVMs, because: `no agent pool of mode Machines; this makes one: az rest --method PUT --url "/subscriptions/s/` +
			`resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/c/agentPools/machines?api-version=2026-04-02-preview" ` +
			`--body '{"properties": {"mode": "Machines"}}'`},
		"pools of other modes":  {pools: []string{"machines", "User"}, mode: ModeVMs, because: "no agent pool of mode Machines"},
		"one pool":              {pools: []string{"own", "Machines"}, mode: ModeAKSMachines, pool: "own", because: "has agent pool own of mode Machines"},
		"AKS's own pool":        {pools: []string{"aksmanagedap", "Machines"}, mode: ModeVMs, because: "no agent pool of mode Machines"},
		"AKS's own and another": {pools: []string{"aksmanagedap", "Machines", "own", "Machines"}, mode: ModeAKSMachines, pool: "own", because: "own"},
		"the one that is named": {vars: []string{"AKS_MACHINES_POOL_NAME", "b"}, pools: []string{"a", "Machines", "b", "Machines"},
			mode: ModeAKSMachines, pool: "b", because: "agent pool b"},
		"named and missing": {vars: []string{"AKS_MACHINES_POOL_NAME", "b"}, mode: ModeVMs, pool: "b", because: "no agent pool of mode Machines"},
		"nap may make it": {vars: []string{"NAP_CREATE_MACHINES_POOL", "true"}, mode: ModeAKSMachines, pool: "machines",
			because: "NAP_CREATE_MACHINES_POOL lets nap make one"},
		"nap may make the one that is named": {vars: []string{"NAP_CREATE_MACHINES_POOL", "true", "AKS_MACHINES_POOL_NAME", "b"},
			mode: ModeAKSMachines, pool: "b", because: "NAP_CREATE_MACHINES_POOL"},
		"no API":                {pools: []string{"own", "Machines"}, noAPI: "no preview here", mode: ModeVMs, pool: "own", because: "no preview here"},
		"set but empty":         {vars: []string{"PROVISION_MODE", ""}, pools: []string{"own", "Machines"}, mode: ModeAKSMachines, pool: "own", because: "own"},
		"set to plain machines": {vars: []string{"PROVISION_MODE", ModeVMs}, pools: []string{"own", "Machines"}, mode: ModeVMs, pool: "own"},
		"set, pool learned":     {vars: []string{"PROVISION_MODE", ModeAKSMachinesBatched}, pools: []string{"own", "Machines"}, mode: ModeAKSMachinesBatched, pool: "own"},
		"set, pool to come":     {vars: []string{"PROVISION_MODE", ModeAKSMachines}, mode: ModeAKSMachines, pool: "machines"},
	} {
		c, err := read(few(tt.vars...), nil)
		if err != nil {
			t.Fatal(err)
		}
		f := told()
		having(tt.pools...)(&f)
		c.NoMachineAPI = tt.noAPI
		c, err = c.Learn(&f, ownSubnet)
		if err != nil || c.ProvisionMode != tt.mode || c.MachinesPool != tt.pool || !strings.Contains(c.ModeChoice, tt.because) ||
			(c.ModeChoice == "") != (tt.because == "") {
			t.Errorf("%s: mode %q in pool %q because %q, %v", name, c.ProvisionMode, c.MachinesPool, c.ModeChoice, err)
		}
	}
}

func TestModeIsPlainWhereClusterCannotBeAsked(t *testing.T) {
	c, err := load(good(), nil)
	if err != nil || c.ProvisionMode != ModeVMs || !strings.Contains(c.ModeChoice, "could not be asked") {
		t.Errorf("mode %q because %q, %v", c.ProvisionMode, c.ModeChoice, err)
	}
}

func TestModeRefusedByNameAndWithTheWayOut(t *testing.T) {
	for name, tt := range map[string]struct {
		vars  []string
		pools []string
		noAPI string
		want  []string
	}{
		"pool of another mode": {vars: []string{"PROVISION_MODE", ModeAKSMachines, "AKS_MACHINES_POOL_NAME", "system"},
			want: []string{"AKS_MACHINES_POOL_NAME is system, the cluster says that agent pool is of mode System", "this makes one: az rest --method PUT"}},
		"pool of another mode, and a right one": {vars: []string{"AKS_MACHINES_POOL_NAME", "system"}, pools: []string{"own", "Machines"},
			want: []string{"AKS_MACHINES_POOL_NAME is system", "those are own"}},
		"the name that nap would take": {vars: []string{"PROVISION_MODE", ModeAKSMachines}, pools: []string{"machines", "User"},
			want: []string{"AKS_MACHINES_POOL_NAME is machines, the cluster says that agent pool is of mode User"}},
		"several pools": {pools: []string{"b", "Machines", "a", "Machines"},
			want: []string{"AKS_MACHINES_POOL_NAME: must be set", "allowed are a, b"}},
		"no API": {vars: []string{"PROVISION_MODE", ModeAKSMachines}, noAPI: "no preview here; set PROVISION_MODE to aksscriptless",
			want: []string{"PROVISION_MODE is aksmachineapi, and AKS does not make machines here: no preview here; set PROVISION_MODE to aksscriptless"}},
		"existing ones of no pool": {vars: []string{"PROVISION_MODE", ModeVMs, "MANAGE_EXISTING_AKS_MACHINES", "true"},
			want: []string{"AKS_MACHINES_POOL_NAME: must be set with MANAGE_EXISTING_AKS_MACHINES"}},
	} {
		c, err := read(few(tt.vars...), nil)
		if err != nil {
			t.Fatal(err)
		}
		f := told()
		having(tt.pools...)(&f)
		c.NoMachineAPI = tt.noAPI
		_, err = c.Learn(&f, ownSubnet)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
	for name, tt := range map[string]struct {
		vars []string
		want string
	}{
		"a pool for plain machines": {[]string{"NAP_CREATE_MACHINES_POOL", "true", "PROVISION_MODE", ModeVMs}, "NAP_CREATE_MACHINES_POOL: is true, and PROVISION_MODE"},
		"yes is not true":           {[]string{"NAP_CREATE_MACHINES_POOL", "yes"}, `"yes" is not allowed; allowed are ["true" "false"]`},
		"a pool of no cluster":      {[]string{"NAP_CREATE_MACHINES_POOL", "true", "ARM_RESOURCE_GROUP", ""}, "ARM_RESOURCE_GROUP: must be set with NAP_CREATE_MACHINES_POOL"},
	} {
		if _, err := read(few(tt.vars...), nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	vars := good()
	vars["NAP_CREATE_MACHINES_POOL"], vars["ARM_RESOURCE_GROUP"] = "true", "rg"
	if _, err := load(vars, nil); err == nil || !strings.Contains(err.Error(), "permit Microsoft.ContainerService/managedClusters/read") {
		t.Errorf("a pool of a cluster that may not be read: %v", err)
	}
}
