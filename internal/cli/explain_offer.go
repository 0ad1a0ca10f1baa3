package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
)

func newExplainOffer(s command.Streams, now func() time.Time) *cobra.Command {
	c := &explainCommand{plan: planCommand{streams: s, now: now}}
	cmd := &cobra.Command{
		Use:   "offer SIZE",
		Short: "Say whether a VM size can be bought, by which NodePools, and whether the plan does",
		Long: `Say of one VM size what it is, where and for how much it is sold, and, with
objects to plan for, which NodePools may buy it and whether the plan does. Of a
live cluster it also says what Azure has refused there lately, and until when
the controller does not ask for it again.

Exit code 0: it can be bought. 2: it cannot. 1: an error.`,
		Example: `  nap explain offer Standard_D4s_v5
  nap explain offer Standard_NC4as_T4_v3 -f manifests/
  nap explain offer Standard_D4s_v5 --context prod`,
		Args: one("the name of a VM size", "Standard_D4s_v5"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.explainOffer(cmd.Context(), args[0]) },
	}
	c.add(cmd)
	return cmd
}

func (c *explainCommand) explainOffer(ctx context.Context, size string) error {
	if err := c.check(); err != nil {
		return err
	}
	var made *madePlan
	source, err := c.plan.input.unused().open(nil, func(string) string { return "" })
	if f := &c.plan.input; len(f.files) > 0 || f.live() {
		if made, err = c.plan.make(ctx); err == nil {
			source = made.source
			made.talk(c.plan.streams.Err)
			err = made.read.sayOffline(&c.plan.streams, c.output)
		}
	}
	if err != nil {
		return err
	}
	catalog := source.ForClass("")
	i := sizeNamed(catalog.InstanceTypes, size)
	if i < 0 {
		s := &story{Verdict: absence(source, size)}
		if err := c.tell(s); err != nil {
			return err
		}
		return &command.ExitError{Code: 2}
	}
	offer := catalog.InstanceTypes[i]
	s := describeOffer(&offer, catalog.Axes, c.verbose)
	if made != nil {
		made.judgeOffer(s, offer.Name)
	}
	if err := c.tell(s); err != nil {
		return err
	}
	if !sold(&offer) {
		return &command.ExitError{Code: 2}
	}
	return nil
}

// sizeNamed finds a size by its name, which may lack the prefix that Azure's have.
func sizeNamed(types []model.InstanceType, name string) int {
	for _, full := range []string{name, "Standard_" + name} {
		if i := slices.IndexFunc(types, func(t model.InstanceType) bool { return strings.EqualFold(t.Name, full) }); i >= 0 {
			return i
		}
	}
	return -1
}

// sold reports whether any offering of a size can be bought.
func sold(t *model.InstanceType) bool {
	return slices.ContainsFunc(t.Offerings, func(o model.Offering) bool { return o.Available })
}

// absence says that a size is not in the catalogue, and why.
func absence(s *offline.Source, size string) string {
	if s.Excluded != nil {
		if reason := s.Excluded(size); reason != "" {
			return fmt.Sprintf("%s cannot be bought: %s.", size, reason)
		}
	}
	if s.Unknown != nil && s.Unknown(size) {
		return fmt.Sprintf("%s is not planned with: nap's built-in table lacks it, and does not tell whether Azure sells it; "+
			"nap catalog -o name lists what the table has.", size)
	}
	return fmt.Sprintf("%s cannot be bought: the catalogue of %s has no size of that name; nap catalog -o name lists them.", size, s.Region)
}

func describeOffer(t *model.InstanceType, axes model.Axes, verbose bool) *story {
	s := &story{}
	var prices []string
	for _, capacityType := range []model.CapacityType{model.OnDemand, model.Spot, model.Reserved} {
		if price := cheapest(t, capacityType); price != notSold {
			prices = append(prices, fmt.Sprintf("%s from %s/h", capacityType, dollars(price.Dollars())))
		}
	}
	s.Verdict = fmt.Sprintf("%s can be bought: %s; zones: %s.", t.Name, strings.Join(prices, ", "), zonesText(t))
	if !sold(t) {
		s.Verdict = t.Name + " cannot be bought at the moment."
	}
	s.say("it is %s; pods get %s", t.Capacity.Format(axes), t.Allocatable().Format(axes))
	if line := priceParts(t); line != "" {
		s.say("%s", line)
	}
	for i := range t.Offerings {
		o := &t.Offerings[i]
		switch {
		case !o.Available:
			s.say("not sold: zone %s, %s: %s", zoneText(o.Zone), o.CapacityType, o.Unavailable)
		case verbose:
			s.say("sold: zone %s, %s, %s/h", zoneText(o.Zone), o.CapacityType, dollars(o.Price.Dollars()))
		}
	}
	if verbose {
		for _, k := range slices.Sorted(maps.Keys(t.Labels)) {
			s.say("label %s=%s", k, t.Labels[k])
		}
	}
	return s
}

// priceParts says what the price of the size is made of, or nothing where it is the
// machine's alone.
func priceParts(t *model.InstanceType) string {
	for i := range t.Offerings {
		o := &t.Offerings[i]
		if o.DiskPrice+o.NodePrice == 0 {
			continue
		}
		line := fmt.Sprintf("its price: machine %s/h (%s)", dollars(o.MachinePrice().Dollars()), o.CapacityType)
		if o.DiskPrice > 0 {
			line += fmt.Sprintf(", managed disk %s/h", dollars(o.DiskPrice.Dollars()))
		}
		if o.NodePrice > 0 {
			line += fmt.Sprintf(", per node %s/h", dollars(o.NodePrice.Dollars()))
		}
		return line
	}
	return ""
}

// judgeOffer adds what the NodePools and the plan make of a size.
func (m *madePlan) judgeOffer(s *story, size string) {
	p := m.input.Problem
	for i := range p.Pools {
		pool := &p.Pools[i]
		types := p.Catalogs[pool.Catalog].InstanceTypes
		at := slices.IndexFunc(types, func(t model.InstanceType) bool { return t.Name == size })
		if at < 0 {
			s.say("NodePool %s: its node class excludes the size", pool.Name)
			continue
		}
		allowed, first := 0, ""
		for j := range types[at].Offerings {
			refused := refusal(pool, &types[at], &types[at].Offerings[j])
			if refused == "" {
				allowed++
			} else if first == "" {
				first = refused
			}
		}
		line := fmt.Sprintf("NodePool %s: allows %d of %s", pool.Name, allowed, plural(len(types[at].Offerings), "offering"))
		if first != "" {
			line += "; its requirement " + first + " excludes the others"
		}
		s.say("%s", line)
	}
	bought, standby := 0, 0
	for i := range m.report.Nodes {
		if n := &m.report.Nodes[i]; n.InstanceType == size {
			bought++
		} else if n.fallsBackOn(size) {
			standby++
		}
	}
	s.say("the plan buys %d of %s, and could fall back on it for %d", bought, plural(len(m.report.Nodes), "node"), standby)
}

// brings reports whether a machine of the offering has a label of its own.
func brings(t *model.InstanceType, o *model.Offering, key string) bool {
	_, ofType := t.Labels[key]
	_, ofOffering := o.Labels[key]
	return ofType || ofOffering || len(t.Choices[key]) > 0
}

// refusal is the first requirement of a pool that an offering does not meet.
func refusal(pool *model.Pool, t *model.InstanceType, o *model.Offering) string {
	for _, r := range pool.Requirements {
		if value, own := pool.Labels[r.Key]; own && r.Matches(value, true) && !brings(t, o, r.Key) {
			continue
		}
		if !explain.Meets(t, o, r) {
			return r.String()
		}
	}
	return ""
}
