package purchasebackoff

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// oneCatalog sells sizes d2 and d4 to every NodePool.
type oneCatalog struct{ c *fleet.Catalog }

func (o oneCatalog) Catalog(context.Context, string) (*fleet.Catalog, error) { return o.c, nil }

func TestSizesLearnFromTheNewestNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sizes := NewSizes(clock.RealClock{})
		sold := &fleet.Catalog{Axes: model.NewAxes(), InstanceTypes: []model.InstanceType{
			{Name: "d2", Capacity: model.Resources{2000, 8 << 30, 0, 110}, Overhead: model.Resources{100, 1 << 30, 0, 0}},
			{Name: "d4", Capacity: model.Resources{4000, 16 << 30, 0, 110}, Overhead: model.Resources{100, 1 << 30, 0, 0}},
		}}
		catalogs := sizes.Over(oneCatalog{sold})
		store := fleet.NewStore()
		for pool, class := range map[string]string{"general": "default", "other": "default", "foreign": "gpu"} {
			store.Put(&fleet.Pool{Name: pool, Labels: map[string]string{classLabel: class}})
		}
		come := func(name string, cpu int64) {
			store.Put(&fleet.Claim{Name: name, Pool: "general", ProviderID: name, NodeName: name, Allocatable: fleet.Amounts{CPU: 1900, Memory: 7 << 30}})
			store.Put(&fleet.Node{Name: name, ProviderID: name, Initialized: true, Created: time.Now(),
				Labels: map[string]string{model.LabelInstanceType: "d2"}, Allocatable: fleet.Amounts{CPU: cpu, Memory: 7 << 30}})
			sizes.Learn(store.Snapshot())
		}
		want := func(pool string, cpu int64) *fleet.Catalog {
			t.Helper()
			c, err := catalogs.Catalog(t.Context(), pool)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.InstanceTypes[0].Allocatable(); got[model.CPU] != cpu || got[model.Memory] != 7<<30 {
				t.Errorf("NodePool %s counts with cpu %d and memory %d of a d2, want cpu %d", pool, got[model.CPU], got[model.Memory], cpu)
			}
			if got := c.InstanceTypes[1].Allocatable()[model.CPU]; got != 3900 {
				t.Errorf("NodePool %s counts with cpu %d of a d4, of which nothing is known", pool, got)
			}
			return c
		}
		come("a", 1900)
		if want("general", 1900) != sold {
			t.Error("a catalogue is changed though nothing was learned")
		}
		time.Sleep(time.Second)
		come("b", 1200)
		if want("general", 1200) != want("other", 1200) {
			t.Error("NodePools of one AKSNodeClass do not share their catalogue any more")
		}
		want("foreign", 1900)
		time.Sleep(time.Second)
		// A node that is not initialized says nothing yet.
		store.Put(&fleet.Claim{Name: "young", Pool: "general", ProviderID: "young", NodeName: "young", Allocatable: fleet.Amounts{CPU: 1900, Memory: 7 << 30}})
		store.Put(&fleet.Node{Name: "young", ProviderID: "young", Created: time.Now(), Labels: map[string]string{model.LabelInstanceType: "d2"},
			Allocatable: fleet.Amounts{CPU: 100, Memory: 7 << 30}})
		sizes.Learn(store.Snapshot())
		want("general", 1200)
		come("c", 1500)
		want("general", 1500)
		time.Sleep(time.Second)
		come("d", 1900)
		want("general", 1900)
		time.Sleep(time.Second)
		come("e", 1200)
		// The nodes go; what they have shown is not forgotten at once.
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			store.Remove(&fleet.Claim{Name: name})
			store.Remove(&fleet.Node{Name: name})
		}
		sizes.Learn(store.Snapshot())
		want("general", 1200)
		time.Sleep(forgetAfter + time.Second)
		sizes.Learn(store.Snapshot())
		want("general", 1900)
		if sold.InstanceTypes[0].Overhead[model.CPU] != 100 {
			t.Error("the provider's own catalogue was changed")
		}
	})
}
