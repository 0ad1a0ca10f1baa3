package unavailable

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

// refuseSizes refuses different sizes, from the n-th on, with a code.
func refuseSizes(o *Offerings, code, zone string, capacityType model.CapacityType, from, to int) {
	for i := from; i < to; i++ {
		s := &instancetype.SKU{Name: fmt.Sprint("size-", i), Family: fmt.Sprint("family-", i), VCPUs: 4}
		o.MarkUnavailable(NewFailure(code, "sold out", nil), Attempt{s, zone, capacityType})
	}
}

// A NodePool of spot machines must not ask for hundreds of sizes before another one buys.
func TestSpotIsNotAskedForWhereSizeAfterSizeIsSoldOut(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	o := New(c.now)
	other := size("Standard_D4s_v5", 4)
	rests := func(when string, zone string, capacityType model.CapacityType, want bool) {
		t.Helper()
		if why := whyNot(o, other, zone, capacityType); (why != "") != want {
			t.Errorf("%s: %s in zone %s: %q, want refused: %t", when, capacityType, zone, why, want)
		}
	}
	refuseSizes(o, "SkuNotAvailable", "eastus-1", model.Spot, 0, ScarceSizes-1)
	refuseSizes(o, "SkuNotAvailable", "eastus-1", model.Spot, 0, ScarceSizes-1) // the same again
	rests("nine sizes", "eastus-1", model.Spot, false)
	refuseSizes(o, "SkuNotAvailable", "eastus-1", model.Spot, ScarceSizes-1, ScarceSizes)
	rests("ten sizes", "eastus-2", model.Spot, true)
	rests("ten sizes", instancetype.RegionalZone, model.Spot, false)
	rests("ten sizes", "eastus-1", model.OnDemand, false)
	if why := whyNot(o, other, "eastus-1", model.Spot); !strings.Contains(why, "SkuNotAvailable for one spot size after the other") {
		t.Errorf("the reason is %q", why)
	}
	c.at = c.at.Add(ScarceTTL)
	rests("after its time", "eastus-1", model.Spot, false)
	refuseSizes(o, "SkuNotAvailable", "eastus-1", model.Spot, 20, 20+ScarceAgain)
	rests("five more", "eastus-1", model.Spot, true)
	r := o.Revision()
	o.MarkLaunched("size-30", "eastus-3", model.OnDemand)
	rests("an on-demand machine is made", "eastus-1", model.Spot, true)
	o.MarkLaunched("size-30", "eastus-3", model.Spot)
	rests("a spot machine is made", "eastus-1", model.Spot, false)
	if o.Revision() == r {
		t.Error("the revision says that no answer has changed")
	}
	refuseSizes(o, "ZonalAllocationFailed", "eastus-1", model.Spot, 40, 40+ScarceSizes)
	rests("one zone is sold out", "eastus-1", model.Spot, true)
	rests("one zone is sold out", "eastus-2", model.Spot, false)
	o.Forget("size-40")
	rests("a person wants to ask again", "eastus-1", model.Spot, false)
}

func TestSparseRefusalsDoNotMakeSpotScarce(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	o := New(c.now)
	for i := range 3 * ScarceSizes {
		refuseSizes(o, "SkuNotAvailable", "eastus-1", model.Spot, i, i+1)
		c.at = c.at.Add(scarceWithin + time.Second)
	}
	refuseSizes(o, "SkuNotAvailable", "eastus-2", model.OnDemand, 0, 3*ScarceSizes)
	refuseSizes(o, "SubnetIsFull", "eastus-2", model.Spot, 0, 3*ScarceSizes)
	for _, t1 := range []model.CapacityType{model.Spot, model.OnDemand} {
		if why := whyNot(o, size("Standard_D4s_v5", 4), "eastus-1", t1); why != "" {
			t.Errorf("%s: %s", t1, why)
		}
	}
}
