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
	rests("ten sizes", instancetype.RegionalZone, model.Spot, true)
	rests("ten sizes", "eastus-1", model.OnDemand, false)
	if why := whyNot(o, other, "eastus-1", model.Spot); !strings.Contains(why, "SkuNotAvailable for one spot size after the other") {
		t.Errorf("the reason is %q", why)
	}
	c.at = c.at.Add(ScarceTTL)
	rests("after its time", "eastus-1", model.Spot, false)
	refuseSizes(o, "SkuNotAvailable", "eastus-1", model.Spot, 20, 20+ScarceAgain)
	rests("five more", "eastus-1", model.Spot, true)
	r := o.Revision()
	o.MarkLaunched(Attempt{other, "eastus-3", model.OnDemand})
	rests("an on-demand machine is made", "eastus-1", model.Spot, true)
	o.MarkLaunched(Attempt{other, "eastus-3", model.Spot})
	rests("a spot machine is made", "eastus-1", model.Spot, false)
	if o.Revision() == r {
		t.Error("the revision says that no answer has changed")
	}
	refuseSizes(o, "ZonalAllocationFailed", "eastus-1", model.Spot, 40, 40+ScarceSizes)
	rests("one zone is sold out", "eastus-1", model.Spot, true)
	rests("one zone is sold out", "eastus-2", model.Spot, false)
	rests("one zone is sold out", instancetype.RegionalZone, model.Spot, false)
	o.Forget("size-40")
	rests("a person wants to ask again", "eastus-1", model.Spot, false)
}

// Azure sells most sizes in zones and without one: that both refuse the same ones is no reason to ask
// twice as often.
func TestSizesRefusedInZonesAndWithoutOneCountTogether(t *testing.T) {
	for _, last := range []string{"eastus-1", instancetype.RegionalZone} {
		o := New((&clock{time.Unix(0, 0)}).now)
		other := size("Standard_D4s_v5", 4)
		rests := func(when string, want bool) {
			t.Helper()
			for _, zone := range []string{"eastus-1", "eastus-2", instancetype.RegionalZone} {
				if why := whyNot(o, other, zone, model.Spot); (why != "") != want {
					t.Errorf("%s: in zone %s: %q, want refused: %t", when, zone, why, want)
				}
			}
		}
		refuseSizes(o, "SkuNotAvailable", "eastus-1", model.Spot, 0, ScarceSizes/2)
		refuseSizes(o, "AllocationFailed", instancetype.RegionalZone, model.Spot, 1, ScarceSizes/2)
		rests("nine refusals", false)
		refuseSizes(o, "SkuNotAvailable", last, model.Spot, ScarceSizes, ScarceSizes+1)
		rests("ten refusals", true)
		o.MarkLaunched(Attempt{other, last, model.Spot})
		rests("a spot machine is made", false)
	}
}

// A machine without a zone is placed in one of the zones: where each of them is sold out by itself
// it is not asked for size after size.
func TestSpotThatEveryZoneRefusesIsScarceInTheRegion(t *testing.T) {
	o := New((&clock{time.Unix(0, 0)}).now)
	refuse := func(zone string, from, to int) {
		for i := from; i < to; i++ {
			s := &instancetype.SKU{Name: fmt.Sprint("size-", i), Family: fmt.Sprint("family-", i), VCPUs: 4, Zones: []string{"1", "2"}}
			o.MarkUnavailable(NewFailure("ZonalAllocationFailed", "sold out", nil), Attempt{s, zone, model.Spot})
		}
	}
	scarce := func(when string, want bool) {
		t.Helper()
		if why := whyNot(o, size("Standard_D4s_v5", 4), instancetype.RegionalZone, model.Spot); (why != "") != want {
			t.Errorf("%s: without a zone: %q, want refused: %t", when, why, want)
		}
	}
	refuse("eastus-1", 0, ScarceSizes)
	refuse("eastus-2", ScarceSizes-1, 2*ScarceSizes-2) // zone 1 has refused the kind of these, and one of them
	scarce("one zone, and nine sizes of the other", false)
	refuse("eastus-2", 2*ScarceSizes, 2*ScarceSizes+1)
	scarce("both zones", true)
}

// What is sold out on one kind of hardware closes no other: ten GPU sizes say nothing about those
// without.
func TestScarcityOfOneKindClosesNoOther(t *testing.T) {
	kinds := map[string]*instancetype.SKU{
		"amd64":               {Name: "d", Family: "d", Arch: "amd64"},
		"arm64":               {Name: "p", Family: "p", Arch: "arm64"},
		"amd64, GPUs":         {Name: "n", Family: "n", Arch: "amd64", GPUs: 1},
		"amd64, confidential": {Name: "c", Family: "c", Arch: "amd64", Confidential: true},
	}
	for sold, like := range kinds {
		o := New((&clock{time.Unix(0, 0)}).now)
		refuse := func(zone string) {
			for i := range ScarceSizes {
				s := *like
				s.Name, s.Family, s.VCPUs = fmt.Sprint("size-", i), fmt.Sprint("family-", i), int64(4+4*(i%2))
				o.MarkUnavailable(NewFailure("SkuNotAvailable", "sold out", nil), Attempt{&s, zone, model.Spot})
			}
		}
		closed := func(when string, want bool) {
			t.Helper()
			for kind, s := range kinds {
				if why := whyNot(o, s, "eastus-1", model.Spot); (why != "") != (want && kind == sold) {
					t.Errorf("%s are sold out, %s: of %s it is said: %q", sold, when, kind, why)
				}
			}
		}
		refuse("eastus-1")
		closed("ten sizes", true)
		if last := o.Entries()[0]; last.Kind != sold {
			t.Errorf("%s are sold out: the entry is %+v", sold, last)
		}
		for kind, s := range kinds {
			if kind != sold {
				o.MarkLaunched(Attempt{s, "eastus-1", model.Spot})
			}
		}
		closed("machines of other kinds are made", true)
		o.MarkLaunched(Attempt{like, "eastus-1", model.Spot})
		closed("a machine of the kind is made", false)
	}
}

// soldOutAs refuses different spot machines of 4, 8 or so many vCPUs in zones, from the n-th on.
func soldOutAs(o *Offerings, vcpus int64, from, to int) {
	for i := from; i < to; i++ {
		s := &instancetype.SKU{Name: fmt.Sprintf("size-%d-%d", vcpus, i), Family: fmt.Sprint("family-", i), Arch: "amd64", VCPUs: vcpus}
		o.MarkUnavailable(NewFailure("SkuNotAvailable", "sold out", nil), Attempt{s, "eastus-1", model.Spot})
	}
}

// scarceNumbers lists the numbers of vCPUs of which no spot machine is asked for.
func scarceNumbers(o *Offerings) string {
	var out []string
	for _, n := range []int64{1, 4, 8, 16} {
		s := &instancetype.SKU{Name: "never", Family: "never", Arch: "amd64", VCPUs: n}
		if whyNot(o, s, "eastus-2", model.Spot) != "" {
			out = append(out, fmt.Sprint(n))
		}
	}
	return strings.Join(out, " ")
}

// Azure may run out of machines of 4 vCPUs alone, which a plan asks for first: those of 8 are still
// a third of the price of on-demand.
func TestSpotOfOneNumberOfVCPUsIsScarceAlone(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	o := New(c.now)
	want := func(when, want string) {
		t.Helper()
		if got := scarceNumbers(o); got != want {
			t.Errorf("%s: scarce are %q vCPUs, want %q", when, got, want)
		}
	}
	made := func(vcpus int64) {
		s := &instancetype.SKU{Name: "made", Family: "made", Arch: "amd64", VCPUs: vcpus}
		o.MarkLaunched(Attempt{s, "eastus-1", model.Spot})
	}
	soldOutAs(o, 4, 0, ScarceSizes-1)
	want("nine sizes", "")
	soldOutAs(o, 4, ScarceSizes-1, ScarceSizes)
	want("ten sizes", "4")
	s := &instancetype.SKU{Name: "never", Family: "never", Arch: "amd64", VCPUs: 4}
	if why := whyNot(o, s, "eastus-1", model.Spot); !strings.Contains(why, "its kind (amd64, 4 vCPUs) was refused, SkuNotAvailable for one spot size after the other") {
		t.Errorf("the reason is %q", why)
	}
	soldOutAs(o, 8, 0, ScarceOthers-1)
	made(8)
	want("a machine of 8 vCPUs is made", "4")
	soldOutAs(o, 8, 0, ScarceOthers-1)
	want("the count of the others has begun again", "4")
	c.at = c.at.Add(ScarceTTL)
	want("after its time", "")
	soldOutAs(o, 4, 20, 20+ScarceAgain)
	want("five more", "4")
	made(4)
	want("a machine of 4 vCPUs is made", "")
	soldOutAs(o, 4, 40, 40+ScarceAgain)
	want("and five are refused", "")
	soldOutAs(o, 4, 40, 40+ScarceSizes)
	want("ten", "4")
	o.Forget("size-4-0")
	want("a person wants to ask again", "")
	soldOutAs(o, 1, 0, ScarceSizes)
	want("one vCPU", "1")
}

// Where all spot is sold out, one refusal after the other says so, in whatever order sizes are asked
// for: no plan is to need more than 14 before it buys on-demand.
func TestSpotOfAllNumbersOfVCPUsIsScarceAfterAtMost14(t *testing.T) {
	for name, tc := range map[string]struct {
		order        []int64
		first, again int // how many refusals it takes, and after ScarceTTL
	}{
		"4 before 8":          {[]int64{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 8, 8, 8, 8}, 14, 7},
		"8 before 4":          {[]int64{8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 4, 4, 4, 4}, 14, 7},
		"each in turn":        {[]int64{4, 8, 4, 8, 4, 8, 4, 8, 4, 8}, 10, 5},
		"three numbers":       {[]int64{4, 4, 4, 4, 4, 4, 8, 8, 16, 16}, 10, 7},
		"one of 8 among 4":    {[]int64{4, 4, 4, 8, 4, 4, 4, 4, 4, 4, 8, 8, 8}, 13, 6},
		"8 and 16 after nine": {[]int64{4, 4, 4, 4, 4, 4, 4, 4, 4, 8, 8, 16, 16}, 13, 7},
	} {
		c := &clock{time.Unix(0, 0)}
		o := New(c.now)
		const all = "1 4 8 16"
		refusals := func(from int) int {
			asked := 0
			for i, n := range tc.order {
				if strings.Contains(" "+scarceNumbers(o)+" ", fmt.Sprint(" ", n, " ")) {
					continue // it is not asked for
				}
				soldOutAs(o, n, from+i, from+i+1)
				if asked++; scarceNumbers(o) == all {
					break
				}
			}
			return asked
		}
		if got := refusals(0); got != tc.first || scarceNumbers(o) != all {
			t.Errorf("%s: after %d refusals %q are scarce, want all after %d", name, got, scarceNumbers(o), tc.first)
		}
		c.at = c.at.Add(ScarceTTL)
		if got := refusals(100); got != tc.again || scarceNumbers(o) != all {
			t.Errorf("%s, again: after %d refusals %q are scarce, want all after %d", name, got, scarceNumbers(o), tc.again)
		}
		o.MarkLaunched(Attempt{&instancetype.SKU{Name: "made", Arch: "amd64", VCPUs: 8}, "eastus-1", model.Spot})
		c.at = c.at.Add(ScarceTTL)
		if got := scarceNumbers(o); got != "" {
			t.Errorf("%s: after a machine was made %q are scarce", name, got)
		}
	}
}

// A controller that starts knows from the entry alone what it is.
func TestScarcityEndsAfterARestartAsBefore(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	never := size("Standard_D4s_v5", 4)
	for name, end := range map[string]func(*Offerings){
		"a spot machine is made":      func(o *Offerings) { o.MarkLaunched(Attempt{never, "eastus-1", model.Spot}) },
		"a person wants to ask again": func(o *Offerings) { o.Forget("Standard_D4s_v5") },
	} {
		before := New(c.now)
		refuseSizes(before, "SkuNotAvailable", "eastus-1", model.Spot, 0, ScarceSizes)
		text, err := before.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		after := New(c.now)
		if err := after.Unmarshal(text); err != nil {
			t.Fatal(err)
		}
		why := whyNot(after, never, "eastus-1", model.Spot)
		if !strings.HasPrefix(why, "Azure is not asked for it: its kind (unknown architecture, 4 vCPUs) was refused, SkuNotAvailable for one spot size") {
			t.Errorf("of a size that was never asked for it is said: %q", why)
		}
		end(after)
		if why := whyNot(after, never, "eastus-1", model.Spot); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
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
