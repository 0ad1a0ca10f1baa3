package armsim_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// undated hides the deadline of a test, which may not be asked for in a bubble.
type undated struct{ testing.TB }

// Whatever clients and faults do in whatever order, the books balance: quota
// is what the counted machines have, no address is given twice or lost,
// nothing belongs to what is gone, and every transition has an end, also across
// restarts.
func TestStateIsConsistentAfterAnyEvents(t *testing.T) {
	dir, files := t.TempDir(), 0
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(undated{t}, func(rt *rapid.T) {
			files++
			cfg := armsim.Config{
				Limits:    []armsim.Limit{},
				Quota:     map[string]int64{"cores": 20, "lowPriorityCores": 8},
				Capacity:  []armsim.CapacityRule{{Zone: "1", Machines: 2}},
				StateFile: filepath.Join(dir, fmt.Sprint(files)),
			}
			boot := func() *subscriber {
				server, err := armsim.New(cfg)
				if err != nil {
					rt.Fatal(err)
				}
				return clientsOf(t, armtest.Around(server))
			}
			u := boot()
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
			steps := map[string]func(*rapid.T){
				"buy": func(rt *rapid.T) {
					_, _ = u.begin(name.Draw(rt, "name"), machine{
						size: rapid.SampledFrom([]string{"Standard_D4s_v5", "Standard_E8s_v5"}).Draw(rt, "size"),
						zone: rapid.SampledFrom([]string{"", "1", "2"}).Draw(rt, "zone"), spot: rapid.Bool().Draw(rt, "spot"),
					})
				},
				"sell": func(rt *rapid.T) {
					_, _ = u.vms.BeginDelete(t.Context(), u.NodeResourceGroup, name.Draw(rt, "name"), nil)
				},
				"delete interface": func(rt *rapid.T) {
					_, _ = u.nics.BeginDelete(t.Context(), u.NodeResourceGroup, name.Draw(rt, "name"), nil)
				},
				"fault": func(rt *rapid.T) {
					u.fault(armsim.Fault{
						Kind: rapid.SampledFrom([]armsim.FaultKind{armsim.FaultCapacity, armsim.FaultHang,
							armsim.FaultEvict, armsim.FaultError, armsim.FaultNoBoot}).Draw(rt, "kind"),
						Rate: 0.5, Duration: time.Duration(rapid.IntRange(1, 300).Draw(rt, "seconds")) * time.Second,
					})
				},
				"wait": func(rt *rapid.T) {
					time.Sleep(time.Duration(rapid.IntRange(0, 200).Draw(rt, "seconds")) * time.Second)
				},
				"restart": func(rt *rapid.T) {
					if rapid.Bool().Draw(rt, "killed") {
						kill(u.Server)
					} else if err := u.Server.Close(); err != nil {
						rt.Fatal(err)
					}
					u = boot()
				},
				"": func(rt *rapid.T) {
					synctest.Wait()
					if wrong := u.Server.Unsound(); wrong != "" {
						rt.Fatal(wrong)
					}
				},
			}
			rt.Repeat(steps)
			if err := u.Server.Close(); err != nil {
				rt.Fatal(err)
			}
		})
	})
}
