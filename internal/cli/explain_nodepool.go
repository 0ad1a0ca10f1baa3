package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/poollint"
)

func newExplainPool(s command.Streams, now func() time.Time) *cobra.Command {
	c := &explainCommand{plan: planCommand{streams: s, now: now}}
	cmd := &cobra.Command{
		Use:     "nodepool NAME",
		Aliases: []string{"pool"},
		Short:   "Say whether a NodePool buys, what it may buy, and what holds its nodes",
		Long: `Say of a NodePool whether it buys, and why not; how much of its limits is used;
how many sizes it may buy and which is the cheapest; whether its nodes may be
removed, and which of its disruption budgets cannot be read.

Exit code 0: it buys. 2: it does not. 1: an error.`,
		Example: `  nap explain nodepool general -f docs/examples/fleet.yaml`,
		Args:    one("the name of a NodePool", "general"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(); err != nil {
				return err
			}
			return c.explainPool(cmd.Context(), args[0])
		},
	}
	c.add(cmd)
	return cmd
}

func (c *explainCommand) explainPool(ctx context.Context, name string) error {
	made, err := c.plan.make(ctx)
	if err != nil {
		return err
	}
	made.talk(c.plan.streams.Err)
	if err := made.read.sayOffline(&c.plan.streams, c.output); err != nil {
		return err
	}
	if made.read.pools[name] == nil && made.read.saidOf(name) {
		return fmt.Errorf("NodePool %s: the API server would refuse it: correct the fields that are named above", name)
	}
	if made.read.pools[name] == nil {
		var names []string
		for pool := range made.read.pools {
			names = append(names, pool)
		}
		slices.Sort(names)
		return fmt.Errorf("no NodePool %s; there are %s", name, cmp.Or(strings.Join(names, ", "), "none"))
	}
	s, buys, err := made.explainPool(ctx, name, c.plan.now())
	if err != nil {
		return err
	}
	if err := c.tell(s); err != nil {
		return err
	}
	return answered(made.read, !buys)
}

// explainPool is the story of a NodePool, and whether it buys.
func (m *madePlan) explainPool(ctx context.Context, name string, now time.Time) (*story, bool, error) {
	s := &story{Lines: []string{}}
	if err := kube.CheckManaged(m.read.pools[name]); err != nil {
		s.Verdict = notManaged(name, err.Error()) + "."
		return s, false, nil
	}
	nothing := ""
	fleet := m.read.store.Snapshot()
	s.Verdict = "NodePool " + name + " buys."
	for _, l := range m.input.Problem.LeftOut {
		switch {
		case l.Pool != name:
		case l.Static:
			nodes := plural(int(*m.read.pools[name].Spec.Replicas), "node")
			s.Verdict = fmt.Sprintf("NodePool %s keeps %s (spec.replicas), and buys for no pod.", name, nodes)
		default:
			nothing, s.Fix = l.Message, reasonNamed(string(l.Reason)).Fix
		}
	}
	unreadable := s.sayUnreadable("it", m.read.pools[name])
	views, err := fleet.Views(ctx, m.source)
	if err != nil {
		return nil, false, err
	}
	states, _ := snapshot.Pools(fleet, views, now)
	for i := range states {
		p := &states[i]
		if p.Name != name {
			continue
		}
		if p.Nodes == 0 {
			s.say("it has no node")
		} else {
			s.say("it has %s for $%s/h; their pods request %s of the cpu and %s of the memory", plural(int(p.Nodes), "node"),
				cmp.Or(p.HourlyCost, "0.000"), percentText(p.CPUPercent), percentText(p.MemoryPercent))
		}
		if text := p.Limits[snapshot.LimitDollars]; text != "" {
			s.say("limit in dollars: %s used", text)
		}
		for _, limit := range []string{"cpu", "memory", "nodes"} {
			if p.Limits[limit] != "" {
				s.say("limit of %s: %s used", limit, p.Limits[limit])
			}
		}
	}
	if at := slices.IndexFunc(m.input.Problem.Pools, func(pool model.Pool) bool { return pool.Name == name }); at >= 0 {
		nothing = cmp.Or(nothing, m.describeBuying(s, &m.input.Problem.Pools[at]))
	}
	if unreadable != "" {
		s.Fix = cmp.Or(s.Fix, unreadable)
		if edit := "kubectl edit nodepool " + name; !slices.Contains(s.Commands, edit) {
			s.Commands = append(s.Commands, edit)
		}
	}
	if nothing != "" {
		s.Verdict = fmt.Sprintf("NodePool %s buys nothing: %s.", name, strings.TrimSuffix(nothing, "."))
	}
	if frozen := kube.FreezeOf(m.read.pools[name]); frozen.Holds(now) {
		s.say("its nodes are not removed voluntarily, frozen %s; thaw them: nap thaw %s", frozen, name)
	}
	return s, nothing == "", nil
}

// notManaged says that a NodePool is of another node class, and what that is.
func notManaged(name, why string) string {
	return fmt.Sprintf("NodePool %s is not nap's: %s", name, why)
}

// sayUnreadable says of a NodePool, which may be nil, what of its budgets cannot be read, and
// returns how to mend that; empty where all can.
func (s *story) sayUnreadable(subject string, p *v1.NodePool) (fix string) {
	if p == nil {
		return ""
	}
	found := poollint.UnreadableBudgets(kube.Pool(p))
	for i := range found {
		s.say("%s %s", subject, found[i].Message)
		fix = found[i].Fix
	}
	return fix
}

// buyable is what a NodePool may buy.
type buyable struct {
	// allowed are the sizes that its requirements leave, sold those of them that Azure sells
	// now, roomy those of these for which its limits have room.
	allowed, sold, roomy int
	// cheapest says which offering is the cheapest for which there is room, and price is its price.
	cheapest string
	price    model.Money
	// limit is what leaves no room for the cheapest offering for which there is none.
	limit string
}

// buyableOf looks at what a NodePool may buy.
func buyableOf(p *model.Problem, pool *model.Pool) buyable {
	out, full := buyable{price: notSold}, notSold
	types := p.Catalogs[pool.Catalog].InstanceTypes
	for i := range types {
		t := &types[i]
		may, can, room := false, false, false
		for j := range t.Offerings {
			o := &t.Offerings[j]
			if refusal(pool, t, o) != "" {
				continue
			}
			if may = true; !o.Available {
				continue
			}
			can = true
			limit := limitReached(pool, t, o, p.Axes)
			room = room || limit == ""
			switch {
			case limit == "" && o.Price < out.price:
				out.price, out.cheapest = o.Price, fmt.Sprintf("%s %s, %s", t.Name, inZone(o.Zone), o.CapacityType)
			case limit != "" && o.Price < full:
				full, out.limit = o.Price, limit
			}
		}
		out.allowed, out.sold, out.roomy = out.allowed+oneIf(may), out.sold+oneIf(can), out.roomy+oneIf(room)
	}
	return out
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// limitReached says which limit of a NodePool leaves no room for a machine, or nothing.
func limitReached(pool *model.Pool, t *model.InstanceType, o *model.Offering, axes model.Axes) string {
	if pool.NodeLimit >= 0 && pool.Nodes >= pool.NodeLimit {
		return fmt.Sprintf("its limit is %s, and it has %d", plural(pool.NodeLimit, "node"), pool.Nodes)
	}
	for _, limit := range pool.Limits {
		used, more := pool.Usage.Get(limit.Axis), t.Capacity.Get(limit.Axis)
		if more > 0 && used+more > limit.Value {
			return fmt.Sprintf("of its limit of %s %s it uses %s, and %s takes %s", axes[limit.Axis], axes.Amount(limit.Axis, limit.Value),
				axes.Amount(limit.Axis, used), t.Name, axes.Amount(limit.Axis, more))
		}
	}
	if pool.CostLimit != nil && pool.Cost+o.Price > *pool.CostLimit {
		return fmt.Sprintf("of its limit of %s it uses %s, and %s costs %s", *pool.CostLimit, pool.Cost, t.Name, o.Price)
	}
	return ""
}

// describeBuying says what the NodePool may buy, and returns why nothing where it can buy none of
// it now.
func (m *madePlan) describeBuying(s *story, pool *model.Pool) (nothing string) {
	axes := m.input.Problem.Axes
	for _, limit := range pool.Limits {
		if limit.Axis != model.CPU && limit.Axis != model.Memory {
			s.say("limit of %s: %s of %s used", axes[limit.Axis], axes.Amount(limit.Axis, pool.Usage.Get(limit.Axis)),
				axes.Amount(limit.Axis, limit.Value))
		}
	}
	can := buyableOf(m.input.Problem, pool)
	switch {
	case can.allowed == 0:
		nothing = "no size meets its requirements"
		s.Commands = append(s.Commands, "kubectl edit nodepool "+pool.Name)
	case can.sold == 0:
		nothing = fmt.Sprintf("it may buy %s, and Azure sells none of them now", plural(can.allowed, "size"))
		s.Commands = append(s.Commands, "nap get offers --filter refused=everywhere")
	case can.roomy == 0:
		nothing = can.limit
		s.Commands = append(s.Commands, "kubectl edit nodepool "+pool.Name)
	default:
		s.say("it may buy %s, of which Azure sells %d now; the cheapest is %s, %s/h", plural(can.allowed, "size"), can.sold, can.cheapest,
			dollars(can.price.Dollars()))
	}
	for _, taint := range pool.Taints {
		s.say("only pods which tolerate the taint %s=%s:%s go there", taint.Key, taint.Value, taint.Effect)
	}
	return nothing
}
