package fleet

import (
	"maps"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// A node costs what its offering costs now with the disk that its machine has, also when new
// machines of its NodePool get another one, and what it cost at first where the catalogue
// does not have the offering any more.
func TestNodeCostsWhatItsMachineCosts(t *testing.T) {
	money := func(dollars float64) *model.Money {
		m := model.USD(dollars)
		return &m
	}
	const known, guess = false, true
	for name, c := range map[string]struct {
		claim              Claim
		sold               bool
		guessed            bool
		price, disk, extra float64
		counted            float64
	}{
		"the disk of today":                {Claim{DiskPrice: money(0.5)}, true, known, 1.75, 0.5, 0.25, 1.75},
		"another disk":                     {Claim{DiskPrice: money(0.2)}, true, known, 1.45, 0.2, 0.25, 1.45},
		"an ephemeral disk":                {Claim{DiskPrice: money(0)}, true, known, 1.25, 0, 0.25, 1.25},
		"the machine's price has moved":    {Claim{DiskPrice: money(0.2), Paid: model.USD(9)}, true, known, 1.45, 0.2, 0.25, 1.45},
		"no disk recorded":                 {Claim{Paid: model.USD(9)}, true, known, 1.75, 0.5, 0.25, 1.75},
		"not sold any more":                {Claim{DiskPrice: money(0.2), Paid: model.USD(9), Planned: model.USD(8)}, false, known, 9, 0.2, 0, 9},
		"not sold, no disk recorded":       {Claim{Paid: model.USD(9)}, false, known, 9, 0, 0, 9},
		"not sold, only the plan is known": {Claim{Planned: model.USD(8)}, false, known, 8, 0, 0, 8},
		"its price is not known":           {Claim{DiskPrice: money(0.2), Paid: model.USD(9)}, true, guess, 9, 0.2, 0, 9},
		"nor is what it was bought at":     {Claim{}, true, guess, 0, 0, 0, 0},
		"it was bought at the same guess":  {Claim{DiskPrice: money(0.5), Paid: model.USD(999.75)}, true, guess, 999.75, 0.5, 0, 999.75},
		"not sold, nothing known":          {Claim{}, false, known, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			catalog := &Catalog{Axes: model.NewAxes()}
			if c.sold {
				catalog.InstanceTypes = []model.InstanceType{{Name: "D4", Offerings: []model.Offering{{
					Zone: "1", CapacityType: model.OnDemand, Price: model.USD(1.75), DiskPrice: model.USD(0.5), NodePrice: model.USD(0.25),
				}}}}
			}
			if c.guessed {
				o := &catalog.InstanceTypes[0].Offerings[0]
				o.Price, o.Unpriced = model.USD(999.75), true
			}
			claim := c.claim
			claim.Name, claim.Pool, claim.ProviderID, claim.Allocatable = "a", "general", "azure:///a", Amounts{CPU: 4000, Pods: 10}
			claim.Labels = map[string]string{model.LabelInstanceType: "D4", model.LabelZone: "1", model.LabelCapacityType: "on-demand"}
			s := NewStore()
			s.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
			s.Put(&claim)
			views, err := s.Snapshot().Views(t.Context(), answer{catalog: catalog})
			if err != nil {
				t.Fatal(err)
			}
			v := &views[0]
			if v.Price != model.USD(c.price) || v.DiskPrice != model.USD(c.disk) || v.NodePrice != model.USD(c.extra) || v.Counted != model.USD(c.counted) {
				t.Errorf("it costs %s, of that its disk %s and per node %s, and counts for %s; want %v, %v, %v and %v",
					v.Price, v.DiskPrice, v.NodePrice, v.Counted, c.price, c.disk, c.extra, c.counted)
			}
		})
	}
}

// What is planned with is never the guess for a price that is not known: giving a node back
// would seem to save it.
func TestUnknownPriceIsNoSaving(t *testing.T) {
	for name, c := range map[string]struct {
		paid, want float64
		overlaid   bool
	}{
		"bought at a known price":           {paid: 0.2, want: 0.2},
		"bought at the guess":               {paid: 999.03},
		"nothing is known of the purchase":  {},
		"a NodeOverlay stated what it cost": {paid: 999.03, overlaid: true, want: 999.03},
	} {
		claim := Claim{Name: "a", Pool: "general", ProviderID: "azure:///a", Allocatable: Amounts{CPU: 4000, Pods: 10}, Paid: model.USD(c.paid)}
		claim.Labels = map[string]string{model.LabelInstanceType: "D4", model.LabelZone: "1", model.LabelCapacityType: "on-demand"}
		s := NewStore()
		s.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
		s.Put(&claim)
		in, err := s.Snapshot().Problem(t.Context(), answer{catalog: &Catalog{Axes: model.NewAxes(), InstanceTypes: []model.InstanceType{{
			Name: "D4", Offerings: []model.Offering{{Zone: "1", CapacityType: model.OnDemand, Price: model.USD(999.03),
				DiskPrice: model.USD(0.03), Unpriced: true, PriceOverlaid: c.overlaid}},
		}}}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := in.Problem.Nodes[0].Price; got != model.USD(c.want) {
			t.Errorf("%s: the node is planned with at %s, want %s", name, got, model.USD(c.want))
		}
	}
}

// A user may remove labels of a node. Its NodeClaim still says as what its machine was bought.
func TestNodeThatHasLostLabelsCostsWhatItsClaimSays(t *testing.T) {
	labels := map[string]string{model.LabelInstanceType: "D4", model.LabelZone: "1", model.LabelCapacityType: "on-demand"}
	catalog := &Catalog{Axes: model.NewAxes(), InstanceTypes: []model.InstanceType{{Name: "D4", Offerings: []model.Offering{
		{Zone: "1", CapacityType: model.OnDemand, Price: model.USD(0.5)}, {Zone: "1", CapacityType: model.Spot, Price: model.USD(0.1)},
		{Zone: "2", CapacityType: model.OnDemand, Price: model.USD(0.6)},
	}}}}
	for lost := range labels {
		left := maps.Clone(labels)
		delete(left, lost)
		for claimed, want := range map[*Claim]model.Money{
			{Name: "a", Pool: "general", ProviderID: "azure:///a", NodeName: "a", Labels: labels}: model.USD(0.5),
			{Name: "a", Pool: "general", ProviderID: "azure:///a", NodeName: "a", Labels: left}:   0,
		} {
			s := NewStore()
			s.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
			s.Put(claimed)
			s.Put(&Node{
				Name: "a", ProviderID: "azure:///a", Labels: left, Registered: true, Initialized: true,
				Allocatable: Amounts{CPU: 4000, Pods: 10},
			})
			in, err := s.Snapshot().Problem(t.Context(), answer{catalog: catalog}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if n := &in.Problem.Nodes[0]; n.Price != want || n.Labels[lost] != "" {
				t.Errorf("without label %s the node costs %s and has %q for it, want %s and nothing: the scheduler sees none",
					lost, n.Price, n.Labels[lost], want)
			}
		}
	}
}

// Where neither the node nor its NodeClaim has a label, the price is known if it does not depend on
// the label, and else taken from the purchase if that may be the price.
func TestNodeWithoutZoneOrCapacityTypeCostsWhatItMust(t *testing.T) {
	offering := func(zone string, capacityType model.CapacityType, price float64) model.Offering {
		return model.Offering{Zone: zone, CapacityType: capacityType, Price: model.USD(price)}
	}
	guessed := offering("2", model.OnDemand, 0.5)
	guessed.Unpriced = true
	one, two, spot := offering("1", model.OnDemand, 0.5), offering("2", model.OnDemand, 0.5), offering("1", model.Spot, 0.1)
	dear := offering("2", model.OnDemand, 0.7)
	onDemand := map[string]string{model.LabelCapacityType: "on-demand"}
	for name, c := range map[string]struct {
		offerings  []model.Offering
		labels     map[string]string
		asked      model.Requirements
		paid, want float64
	}{
		"all zones cost the same":      {offerings: []model.Offering{one, spot, two}, labels: onDemand, want: 0.5},
		"zones differ":                 {offerings: []model.Offering{one, dear}, labels: onDemand},
		"bought at a price of these":   {offerings: []model.Offering{one, dear}, labels: onDemand, paid: 0.7, want: 0.7},
		"bought at a price of none":    {offerings: []model.Offering{one, dear}, labels: onDemand, paid: 0.9},
		"one price is a guess":         {offerings: []model.Offering{one, guessed}, labels: onDemand, paid: 0.5},
		"on-demand or spot":            {offerings: []model.Offering{one, spot}, labels: map[string]string{model.LabelZone: "1"}},
		"none is sold in its zone":     {offerings: []model.Offering{one, spot}, labels: map[string]string{model.LabelZone: "3"}, paid: 0.5},
		"the NodeClaim asked for both": {offerings: []model.Offering{one, spot}, asked: required(model.LabelCapacityType, "on-demand", "spot")},
		"the NodeClaim asked for one":  {offerings: []model.Offering{one, spot}, asked: required(model.LabelCapacityType, "spot"), want: 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			labels := map[string]string{model.LabelInstanceType: "D4"}
			maps.Copy(labels, c.labels)
			s := NewStore()
			s.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
			s.Put(&Claim{
				Name: "a", Pool: "general", ProviderID: "azure:///a", Allocatable: Amounts{CPU: 4000, Pods: 10},
				Labels: labels, Requirements: c.asked, Paid: model.USD(c.paid),
			})
			catalog := &Catalog{Axes: model.NewAxes(), InstanceTypes: []model.InstanceType{{Name: "D4", Offerings: c.offerings}}}
			in, err := s.Snapshot().Problem(t.Context(), answer{catalog: catalog}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := in.Problem.Nodes[0].Price; got != model.USD(c.want) {
				t.Errorf("the node is planned with at %s, want %s", got, model.USD(c.want))
			}
		})
	}
}

func required(key string, values ...string) model.Requirements {
	return model.Requirements{{Key: key, Operator: model.In, Values: values}}
}
