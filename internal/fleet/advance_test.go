package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// d4AndE4 is a catalogue of two sizes at $0.20 and $0.30, and what is paid in advance: some
// machines of D4 at $0.01, and a savings plan with D4 at $0.12 and E4 at $0.15.
func d4AndE4(reserved, savings int64) *Catalog {
	size := func(name string, price float64) model.InstanceType {
		return model.InstanceType{
			Name: name, Capacity: model.Resources{4000, 16 << 30}, Offerings: []model.Offering{
				{Zone: "1", CapacityType: model.OnDemand, Price: model.USD(price), Available: true},
				{Zone: "1", CapacityType: model.Spot, Price: model.USD(price), Available: true},
			},
		}
	}
	return &Catalog{
		Axes: model.NewAxes(), InstanceTypes: []model.InstanceType{size("D4", 0.2), size("E4", 0.3)},
		Advance: &model.Advance{Lines: []model.AdvanceLine{
			{Quota: model.Quota{Name: "reserved", Left: reserved}, Sizes: []model.AdvanceSize{{Size: "d4", Price: model.USD(0.01), Amount: 1}}},
			{Quota: model.Quota{Name: "savings", Left: savings}, Sizes: []model.AdvanceSize{
				{Size: "e4", Price: model.USD(0.15), Amount: 150_000}, {Size: "d4", Price: model.USD(0.12), Amount: 120_000},
			}},
		}},
	}
}

// machine is a NodeClaim of a size, launched or not, at a minute.
func machine(name, size string, launched bool, minute int, planned float64) *Claim {
	c := &Claim{
		Name: name, Pool: "general", Created: time.Unix(int64(60*minute), 0), Planned: model.USD(planned),
		Labels: map[string]string{},
		Requirements: model.Requirements{
			{Key: model.LabelInstanceType, Operator: model.In, Values: []string{size}},
			{Key: model.LabelCapacityType, Operator: model.In, Values: []string{"on-demand"}},
		},
	}
	if launched {
		c.ProviderID, c.Allocatable = "azure:///"+name, Amounts{CPU: 3800, Pods: 100}
		c.Labels = map[string]string{model.LabelInstanceType: size, model.LabelZone: "1", model.LabelCapacityType: "on-demand"}
	}
	return c
}

// Machines use up what is paid in advance and cost what that costs: those that there are before
// those to be launched, of one size the oldest that stay. New machines get what is left.
func TestMachinesUseUpWhatIsPaidInAdvance(t *testing.T) {
	leaving := machine("a", "D4", true, 1, 0)
	leaving.Leaving = true
	spot := machine("s", "D4", true, 1, 0)
	spot.Labels[model.LabelCapacityType] = string(model.Spot)
	for name, c := range map[string]struct {
		reserved, savings int64
		claims            []*Claim
		prices            []float64 // of the claims
		left              [2]int64
		d4                []float64 // what one more D4 may cost on demand
	}{
		"nothing yet":        {2, 300_000, nil, nil, [2]int64{2, 300_000}, []float64{0.01, 0.12, 0.2}},
		"the oldest":         {1, 0, []*Claim{machine("a", "D4", true, 2, 0), machine("b", "D4", true, 1, 0)}, []float64{0.2, 0.01}, [2]int64{0, 0}, []float64{0.2}},
		"those that stay":    {1, 0, []*Claim{leaving, machine("b", "D4", true, 2, 0)}, []float64{0.2, 0.01}, [2]int64{0, 0}, []float64{0.2}},
		"no spot machine":    {1, 0, []*Claim{spot}, []float64{0.2}, [2]int64{1, 0}, []float64{0.01, 0.2}},
		"then savings plans": {1, 130_000, []*Claim{machine("a", "D4", true, 1, 0), machine("b", "D4", true, 2, 0)}, []float64{0.01, 0.12}, [2]int64{0, 10_000}, []float64{0.2}},
		"greater discount":   {0, 260_000, []*Claim{machine("a", "D4", true, 1, 0), machine("b", "E4", true, 2, 0)}, []float64{0.2, 0.15}, [2]int64{0, 110_000}, []float64{0.2}},
		"to be launched":     {1, 0, []*Claim{machine("a", "D4", false, 1, 0.01)}, []float64{0.01}, [2]int64{0, 0}, []float64{0.2}},
		"there are first":    {1, 0, []*Claim{machine("a", "D4", false, 1, 0.01), machine("b", "D4", true, 2, 0)}, []float64{0.2, 0.01}, [2]int64{0, 0}, []float64{0.2}},
		"counted on first":   {1, 0, []*Claim{machine("a", "D4", false, 1, 0.2), machine("b", "D4", false, 2, 0.01)}, []float64{0.2, 0.01}, [2]int64{0, 0}, []float64{0.2}},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewStore()
			s.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
			for _, claim := range c.claims {
				s.Put(claim)
			}
			in, err := s.Snapshot().Problem(t.Context(), answer{catalog: d4AndE4(c.reserved, c.savings)}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i, n := range in.Problem.Nodes {
				if n.Price != model.USD(c.prices[i]) {
					t.Errorf("%s costs %s, want $%v", n.Name, n.Price, c.prices[i])
				}
			}
			if want := []model.Quota{{Name: "reserved", Left: c.left[0]}, {Name: "savings", Left: c.left[1]}}; !slices.Equal(in.Problem.Quotas, want) {
				t.Errorf("left are %v, want %v", in.Problem.Quotas, want)
			}
			var prices []float64
			for _, o := range in.Problem.Catalogs[0].InstanceTypes[0].Offerings {
				if o.CapacityType == model.OnDemand {
					prices = append(prices, o.Price.Dollars())
				}
			}
			if !slices.Equal(prices, c.d4) {
				t.Errorf("one more costs %v, want %v", prices, c.d4)
			}
		})
	}
}

// A limit in dollars counts a machine that is paid in advance with what it costs so.
func TestCostLimitCountsWhatIsPaidInAdvance(t *testing.T) {
	limit := model.USD(0.5)
	s := NewStore()
	s.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1, CostLimit: &limit})
	for _, name := range []string{"a", "b", "c"} {
		s.Put(machine(name, "D4", true, 1, 0))
	}
	in, err := s.Snapshot().Problem(t.Context(), answer{catalog: d4AndE4(3, 0)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := in.Problem.Pools[0].Cost; got != model.USD(0.03) {
		t.Errorf("three reserved machines count for %s, want $0.030/h", got)
	}
	views, err := s.Snapshot().Views(t.Context(), answer{catalog: d4AndE4(3, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range views {
		if v.Price != model.USD(0.01) || v.Counted != model.USD(0.01) {
			t.Errorf("%s is shown at %s and counts for %s, want $0.010/h", v.Name, v.Price, v.Counted)
		}
	}
	s.Put(&Pool{Name: "unlimited", Ready: true, NodeLimit: -1})
	limits, err := s.Snapshot().DollarLimits(t.Context(), answer{catalog: d4AndE4(3, 0)})
	if want := []DollarLimit{{"general", limit, model.USD(0.03)}}; err != nil || !slices.Equal(limits, want) {
		t.Errorf("the limits are %v, %v, want %v", limits, err, want)
	}
}

// What a node holds of limits is told where its NodePool has some, and while it counts.
func TestNodesHoldWhatLimitsCount(t *testing.T) {
	limit := []Amount{{Name: "cpu", Value: 16_000}}
	for name, c := range map[string]struct {
		pool    Pool
		leaves  bool
		counted int
		cpu     int64
	}{
		"no limits":       {Pool{NodeLimit: -1}, false, 1, -1},
		"cpu":             {Pool{NodeLimit: -1, Limits: limit}, false, 1, 4_000},
		"nodes":           {Pool{NodeLimit: 3}, false, 1, 4_000},
		"one that leaves": {Pool{NodeLimit: 3, Limits: limit}, true, 0, -1},
	} {
		s := NewStore()
		c.pool.Name, c.pool.Ready = "general", true
		s.Put(&c.pool)
		claim := machine("a", "D4", true, 1, 0)
		claim.Capacity, claim.Leaving = Amounts{CPU: 4_000, Pods: 110}, c.leaves
		s.Put(claim)
		in, err := s.Snapshot().Disruption(t.Context(), answer{catalog: d4AndE4(0, 0)}, DisruptionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cpu := int64(-1)
		if held := in.Disruption.Usages[0].Held; held != nil {
			cpu = held.Get(model.CPU)
		}
		if pool := &in.Problem.Pools[0]; cpu != c.cpu || pool.Nodes != c.counted || max(cpu, 0) != pool.Usage.Get(model.CPU) && c.cpu >= 0 {
			t.Errorf("%s: it holds %d of %d, of %d nodes", name, cpu, pool.Usage.Get(model.CPU), pool.Nodes)
		}
	}
}

// A node that a command is to remove counts until it is deleted, for the command may fail. Its
// replacement counts for what it exceeds it.
func TestLimitsCountNodesUntilTheyAreDeleted(t *testing.T) {
	claim := func(name string, cpu int64, change func(*Claim)) *Claim {
		c := machine(name, "D4", true, 1, 0)
		c.Pool, c.Capacity, c.NodeName = "general", Amounts{CPU: cpu, Pods: 110}, name
		change(c)
		return c
	}
	old := func(name string) *Claim {
		return claim(name, 4_000, func(c *Claim) { c.Command = &Command{ID: "one"} })
	}
	deleted := func(name string) *Claim {
		c := old(name)
		c.Leaving = true
		return c
	}
	replacement := func(name string, cpu int64) *Claim {
		return claim(name, cpu, func(c *Claim) { c.Replaces = "one" })
	}
	lost := replacement("r", 8_000)
	lost.Leaving = true
	both := replacement("r", 4_000)
	both.Command = &Command{ID: "two"}
	for name, c := range map[string]struct {
		tainted []string
		claims  []*Claim
		nodes   int
		cpu     int64
		// replaced are not tainted, and have their replacement.
		replaced []string
	}{
		"before the replacement": {[]string{"a"}, []*Claim{old("a")}, 1, 4_000, nil},
		"both":                   {[]string{"a"}, []*Claim{old("a"), replacement("r", 4_000)}, 1, 4_000, nil},
		"not tainted yet":        {nil, []*Claim{old("a"), replacement("r", 4_000)}, 1, 4_000, []string{"a"}},
		"a smaller one":          {[]string{"a"}, []*Claim{old("a"), replacement("r", 2_000)}, 1, 4_000, nil},
		"a larger one":           {[]string{"a"}, []*Claim{old("a"), replacement("r", 8_000)}, 1, 8_000, nil},
		"two for one":            {[]string{"a"}, []*Claim{old("a"), replacement("r", 1_000), replacement("s", 2_000)}, 2, 4_000, nil},
		"one for two":            {[]string{"a", "b"}, []*Claim{old("a"), old("b"), replacement("r", 6_000)}, 2, 8_000, nil},
		"lost":                   {[]string{"a"}, []*Claim{old("a"), lost}, 1, 4_000, nil},
		"the first is deleted":   {[]string{"a", "b"}, []*Claim{deleted("a"), old("b"), replacement("r", 6_000)}, 1, 6_000, nil},
		"deleted":                {[]string{"a"}, []*Claim{deleted("a"), replacement("r", 8_000)}, 1, 8_000, nil},
		"the replacement goes":   {[]string{"r"}, []*Claim{both}, 1, 4_000, nil},
		"tainted by others":      {[]string{"a"}, []*Claim{claim("a", 4_000, func(*Claim) {})}, 0, 0, nil},
	} {
		s := NewStore()
		s.Put(&Pool{Name: "general", Ready: true, NodeLimit: 9, Limits: []Amount{{Name: "cpu", Value: 16_000}}})
		for _, one := range c.claims {
			s.Put(one)
			s.Put(&Node{
				Name: one.Name, ProviderID: one.ProviderID, Registered: true, Initialized: true, Ready: true,
				Disrupted: slices.Contains(c.tainted, one.Name),
				Capacity:  one.Capacity, Allocatable: one.Capacity,
			})
		}
		in, err := s.Snapshot().Disruption(t.Context(), answer{catalog: d4AndE4(0, 0)}, DisruptionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if pool := &in.Problem.Pools[0]; pool.Nodes != c.nodes || pool.Usage.Get(model.CPU) != c.cpu {
			t.Errorf("%s: %d nodes of %d count, want %d of %d", name, pool.Nodes, pool.Usage.Get(model.CPU), c.nodes, c.cpu)
		}
		for i, n := range in.Problem.Nodes {
			held := in.Disruption.Usages[i].Held
			if want := n.State != model.NodeLeaving && !slices.Contains(c.replaced, n.Name); (held != nil) != want {
				t.Errorf("%s: %s is %v and gives back %v", name, n.Name, n.State, held)
			}
		}
	}
}
