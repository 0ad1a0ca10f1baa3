package armsim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
)

// machinesMode is the body that makes a pool of mode Machines.
var machinesMode = map[string]any{"properties": map[string]any{"mode": "Machines"}}

// poolsOfCluster lists the agent pools that the managed cluster shows, as name, mode
// and state.
func (u *subscriber) poolsOfCluster() string {
	_, _, cluster := u.raw("GET", u.Server.ClusterID(), previewVersion, nil, nil)
	var out []string
	profiles, _ := cluster["properties"].(map[string]any)["agentPoolProfiles"].([]any)
	for _, p := range profiles {
		profile, _ := p.(map[string]any)
		out = append(out, fmt.Sprint(profile["name"], " ", profile["mode"], " ", profile["provisioningState"]))
	}
	return strings.Join(out, ", ")
}

func TestMachinesPoolIsMadeAndTakesMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, func(c *armsim.Config) { c.Cluster.MachinesPools = []string{} })
		if got := u.poolsOfCluster(); got != "system System Succeeded" {
			t.Fatalf("pools %s", got)
		}
		path := u.Server.ClusterID() + "/agentPools/machines"
		status, header, body := u.raw("PUT", path, previewVersion, http.Header{"If-None-Match": {"*"}}, machinesMode)
		if status != http.StatusCreated || header.Get("Azure-AsyncOperation") == "" || u.poolsOfCluster() != "machines Machines Creating, system System Succeeded" {
			t.Fatalf("%d %v, pools %s", status, body, u.poolsOfCluster())
		}
		if status, _, e := u.raw("PUT", u.machinePath("a"), previewVersion, nil, aksMachine("Standard_D4s_v5", "1")); status != http.StatusConflict {
			t.Errorf("a machine before the pool is there: %d %v", status, e)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := u.poolsOfCluster(); got != "machines Machines Succeeded, system System Succeeded" {
			t.Errorf("pools %s", got)
		}
		if status, _, e := u.raw("PUT", path, previewVersion, http.Header{"If-None-Match": {"*"}}, machinesMode); status != http.StatusPreconditionFailed {
			t.Errorf("a second client: %d %v", status, e)
		}
		if status, _, e := u.raw("PUT", u.machinePath("a"), previewVersion, nil, aksMachine("Standard_D4s_v5", "1")); status != http.StatusCreated {
			t.Errorf("a machine: %d %v", status, e)
		}
	})
}

func TestMachineInPoolOfOtherModeIsRefused(t *testing.T) {
	u := subscribe(t)
	status, _, e := u.raw("PUT", u.Server.ClusterID()+"/agentPools/system/machines/a", previewVersion, nil, aksMachine("Standard_D4s_v5", "1"))
	if status != http.StatusBadRequest || e["code"] != "BadRequest" || e["message"] != "Agent pool 'system' is not in 'Machines' mode." {
		t.Errorf("%d %v", status, e)
	}
	if !u.Server.Leaks().Empty() {
		t.Errorf("something was created: %+v", u.Server.Leaks())
	}
}

func TestPoolOfWrongBodyIsRefused(t *testing.T) {
	u := subscribe(t)
	properties := func(of ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(of); i += 2 {
			m[of[i].(string)] = of[i+1]
		}
		return map[string]any{"properties": m}
	}
	for name, row := range map[string]struct {
		pool string
		body map[string]any
		code string
	}{
		"mode of a pool that exists": {"system", machinesMode, "PropertyChangeNotAllowed"},
		"mode of a pool of machines": {"machines", properties("mode", "User"), "PropertyChangeNotAllowed"},
		"unknown mode":               {"other", properties("mode", "machines"), "InvalidParameter"},
		"no size":                    {"other", properties("mode", "User"), "InvalidParameter"},
		"name":                       {"Other_Pool", machinesMode, "InvalidParameter"},
	} {
		status, _, e := u.raw("PUT", u.Server.ClusterID()+"/agentPools/"+row.pool, previewVersion, nil, row.body)
		if status != http.StatusBadRequest || e["code"] != row.code {
			t.Errorf("%s: %d %v, want %s", name, status, e, row.code)
		}
	}
	if got := u.poolsOfCluster(); got != "machines Machines Succeeded, system System Succeeded" {
		t.Errorf("pools %s", got)
	}
}
