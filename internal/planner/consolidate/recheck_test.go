package consolidate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// twoHalves are two nodes whose pods fit on one.
const twoHalves = `
type small cpu=4 memory=16 price=0.2
pool general after=5m
pdb web allowed=4
pods web cpu=1 memory=1 pdb=web
node a general small quiet=1h age=2h : web x1
node b general small quiet=1h age=2h : web x2
`

// twoLarge are two nodes whose pods fit on a smaller one together.
const twoLarge = `
type small cpu=4 memory=16 price=0.2
type large cpu=16 memory=64 price=0.8
pool general after=5m
pods web cpu=1 memory=1
node a general large quiet=1h age=2h : web x1
node b general large quiet=1h age=2h : web x2
`

// decided is the only move that is made on a fleet, in names, with its
// replacement bought and standing as the last node if it has one.
func decided(t *testing.T, s *scenario) consolidate.Intent {
	t.Helper()
	moves := consolidate.Plan(s.fleet)
	if len(moves.Commands) != 1 {
		t.Fatalf("%d moves, want one: %s", len(moves.Commands), s.text(moves))
	}
	in := intentOf(s.fleet, &moves.Commands[0])
	if len(in.Replacements) > 0 {
		s.read("node", "new", []string{"general", in.Replacements[0].InstanceType, "quiet=1s", "age=1m"})
		in.Replacements[0].Node = "new"
	}
	return in
}

func reasons(found []consolidate.Objection) []model.Reason {
	var out []model.Reason
	for _, o := range found {
		out = append(out, o.Reason)
	}
	return out
}

func (s *scenario) tenancy(name string) *model.NodeUsage {
	at := slices.IndexFunc(s.fleet.Problem.Nodes, func(n model.Node) bool { return n.Name == name })
	return &s.fleet.Usages[at]
}

func TestRecheckReceivingNodeNotQuiet(t *testing.T) {
	s := readFleet(t, twoHalves)
	in := decided(t, s)
	for _, name := range []string{"a", "b"} {
		if !slices.Contains(in.Nodes, name) {
			s.tenancy(name).LastPodEvent = now.Add(-time.Second)
		}
	}
	if found := consolidate.Recheck(s.fleet, in); len(found) > 0 {
		t.Errorf("objections %v", found)
	}
}

func TestRecheckOwnNodeNotQuiet(t *testing.T) {
	s := readFleet(t, twoHalves)
	in := decided(t, s)
	s.tenancy(in.Nodes[0]).LastPodEvent = now.Add(-time.Second)
	found := consolidate.Recheck(s.fleet, in)
	if got := reasons(found); !slices.Equal(got, []model.Reason{model.ReasonNotQuiet}) || found[0].Passing {
		t.Errorf("objections %v, want one that does not pass: %s", found, model.ReasonNotQuiet)
	}
}

func TestRecheckOwnNodeNotQuietOnceReplacementIsBought(t *testing.T) {
	s := readFleet(t, twoLarge)
	in := decided(t, s)
	s.tenancy(in.Nodes[0]).LastPodEvent = now.Add(-time.Second)
	if found := consolidate.Recheck(s.fleet, in); len(found) > 0 {
		t.Errorf("objections %v", found)
	}
}

func TestRecheckPodBudgetPassesUnlessItBlocks(t *testing.T) {
	s := readFleet(t, twoHalves)
	in := decided(t, s)
	s.fleet.Budgets[0].Allowed = 0
	if found := consolidate.Recheck(s.fleet, in); len(found) != 1 || found[0].Reason != model.ReasonPodBudget || !found[0].Passing {
		t.Errorf("with a budget used up: objections %v, want one that passes", found)
	}
	s.fleet.Budgets[0].Blocking = true
	if found := consolidate.Recheck(s.fleet, in); len(found) != 1 || found[0].Reason != model.ReasonPodBudget || found[0].Passing {
		t.Errorf("with a budget that blocks: objections %v, want one that does not pass", found)
	}
}

// A budget that others have used up passes any moment, and one that lets none go when its schedule
// ends.
func TestRecheckPoolBudgetPassesWhenItsScheduleEnds(t *testing.T) {
	ends := now.Add(8 * time.Hour)
	for budgeted, want := range map[int]time.Time{0: ends, 1: {}} {
		s := readFleet(t, twoHalves)
		in := decided(t, s)
		policy := &s.fleet.Policies[0]
		policy.Allowed = map[model.DisruptionReason]int{in.Reason: 0}
		policy.Budgeted = map[model.DisruptionReason]int{in.Reason: budgeted}
		policy.BudgetEnds = map[model.DisruptionReason]time.Time{in.Reason: ends}
		found := consolidate.Recheck(s.fleet, in)
		if len(found) != 1 || found[0].Reason != model.ReasonPoolBudget || !found[0].Passing || !found[0].Until.Equal(want) {
			t.Errorf("with %d nodes allowed: objections %+v, want one that passes at %s", budgeted, found, want)
		}
	}
}

// What a move's own evictions have used up speaks against it no more than pods
// that have just come; that its pods have no room does.
func TestRecheckDrainingAsksForPlacesAlone(t *testing.T) {
	s := readFleet(t, twoHalves)
	in := decided(t, s)
	in.Draining = true
	s.fleet.Budgets[0].Allowed = 0
	s.tenancy(in.Nodes[0]).LastPodEvent = now.Add(-time.Second)
	if found := consolidate.Recheck(s.fleet, in); len(found) > 0 {
		t.Errorf("objections %v", found)
	}
	s = readFleet(t, twoHalves+"pods big cpu=2 memory=1\nnode c general small quiet=1h age=2h : big x1\n")
	in.Nodes = []string{"a", "b", "c"}
	if got := reasons(consolidate.Recheck(s.fleet, in)); len(got) != 1 {
		t.Errorf("objections %v, want that the pods of all nodes have no place", got)
	}
}

// Which pods of a node stay until its grace period ends was decided for the reason of the command,
// whatever else comes true of the node meanwhile.
func TestRecheckAsksForNoPlaceOfPodsThatStay(t *testing.T) {
	for name, happens := range map[string]func(*model.NodeUsage){
		"nothing else": func(*model.NodeUsage) {},
		"it expires":   func(u *model.NodeUsage) { u.ExpiresAt = now.Add(5 * time.Minute) },
		"it falls ill": func(u *model.NodeUsage) { u.Unhealthy, u.UnhealthySince = "NodeHealthy=False", now },
	} {
		s := readFleet(t, `
type tiny cpu=1 memory=4 price=0.1
type small cpu=4 memory=16 price=0.3
pool general
pods web cpu=3 memory=1
pods job cpu=1 memory=1
node a general small drift=NodePoolDrifted holds=web-0:2m grace : web x1 job x1
`)
		in := decided(t, s)
		if len(in.Replacements) != 1 || in.Replacements[0].InstanceType != "tiny" {
			t.Fatalf("the replacements are %+v, want one for the job alone", in.Replacements)
		}
		happens(s.tenancy("a"))
		if found := consolidate.Recheck(s.fleet, in); len(found) > 0 {
			t.Errorf("%s: objections %v", name, found)
		}
		s.tenancy("a").DoNotDisruptPods = nil
		if got := reasons(consolidate.Recheck(s.fleet, in)); len(got) != 1 {
			t.Errorf("%s: objections %v, want one to a pod which could be evicted by now and has no place", name, got)
		}
	}
}

// Five and three fit beside four and three in one way alone, which filling the
// tightest node first does not find.
func TestRecheckTriesPlannedPlacesFirst(t *testing.T) {
	s := readFleet(t, `
type nine cpu=9 memory=64 price=0.4
type eight cpu=8 memory=64 price=0.4
type wide cpu=16 memory=64 price=0.9
pool general after=5m
pods five cpu=5 memory=1
pods four cpu=4 memory=1
pods three cpu=3 memory=1
pods keep cpu=1 memory=1
node d general wide quiet=1h age=2h : five x1 four x1 three x2
node e general nine quiet=1h age=2h : keep x1
node f general eight quiet=1h age=2h : keep x1
`)
	in := consolidate.Intent{Reason: model.DisruptUnderutilized, Nodes: []string{"d"}}
	if got := reasons(consolidate.Recheck(s.fleet, in)); !slices.Equal(got, []model.Reason{model.ReasonNoPlace}) {
		t.Fatalf("objections %v without homes; the case is too easy to show anything", got)
	}
	in.Homes = map[model.PodRef]string{}
	threes := 0
	for _, cp := range s.tenancy("d").Pods {
		class := &s.fleet.Movable[cp.Class]
		for _, at := range cp.Pods {
			home := "e"
			switch class.Requests.Get(model.CPU) {
			case 4000:
				home = "f"
			case 3000:
				home = []string{"e", "f"}[threes]
				threes++
			}
			in.Homes[class.Pods[at]] = home
		}
	}
	if found := consolidate.Recheck(s.fleet, in); len(found) > 0 {
		t.Errorf("objections %v though the plan's places are free", found)
	}
}

func TestRecheckEmptyNodeThatRunsPods(t *testing.T) {
	s := readFleet(t, twoHalves+"node c general small quiet=1h age=2h\n")
	in := consolidate.Intent{Reason: model.DisruptEmpty, Nodes: []string{"c"}}
	if found := consolidate.Recheck(s.fleet, in); len(found) > 0 {
		t.Fatalf("objections %v to giving back a node on which nothing runs", found)
	}
	s = readFleet(t, twoHalves+"pods late cpu=1 memory=1\nnode c general small quiet=1h age=2h : late x1\n")
	if got := reasons(consolidate.Recheck(s.fleet, in)); !slices.Equal(got, []model.Reason{model.ReasonPolicy}) {
		t.Errorf("objections %v, want one: %s", got, model.ReasonPolicy)
	}
}

func TestRecheckCommandThatPaysNoMore(t *testing.T) {
	s := readFleet(t, twoLarge)
	in := decided(t, s)
	s.fleet.Terms.EvictionPrice = model.USD(0.4) // 3 pods, and $1.40/h
	if found := consolidate.Recheck(s.fleet, in); len(found) > 0 {
		t.Errorf("objections %v though it pays for the evictions", found)
	}
	s.fleet.Terms.EvictionPrice = model.USD(0.5)
	if got := reasons(consolidate.Recheck(s.fleet, in)); !slices.Equal(got, []model.Reason{model.ReasonDoesNotPay}) {
		t.Errorf("objections %v, want one: %s", got, model.ReasonDoesNotPay)
	}
}

func TestPlanSpotReplacementStaysSpot(t *testing.T) {
	s := readFleet(t, `
type d4 cpu=4 memory=16 price=0.20 spot=0.05
pool general
pods web cpu=3 memory=1
node a general d4 : web x1
`)
	moves := consolidate.Plan(s.fleet)
	if len(moves.Commands) != 1 || len(moves.Commands[0].New) != 1 {
		t.Fatalf("want a replacement: %s", s.text(moves))
	}
	requirements := moves.Commands[0].New[0].Requirements
	if requirements.MatchLabels(map[string]string{model.LabelCapacityType: "on-demand", model.LabelZone: "z1"}) {
		t.Errorf("an on-demand machine meets %s", requirements)
	}
}

// intentOf puts a command into names.
func intentOf(f *model.DisruptionProblem, c *model.Command) consolidate.Intent {
	in := consolidate.Intent{Reason: c.Reason, FromTemplate: c.FromTemplate}
	for _, n := range c.Nodes {
		in.Nodes = append(in.Nodes, f.Problem.Nodes[n].Name)
	}
	for i := range c.New {
		pool := &f.Problem.Pools[c.New[i].Pool]
		best := c.New[i].Best()
		t := &f.Problem.Catalogs[pool.Catalog].InstanceTypes[best.InstanceType]
		o := &t.Offerings[best.Offering]
		in.Replacements = append(in.Replacements,
			consolidate.Replacement{Pool: pool.Name, InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType})
	}
	return in
}

// Pods that waited because of a limit have taken the room of what was bought for a node. It goes all
// the same where it goes whatever that costs: they would take the room of the next one, too.
func TestRecheckGoesOnWhereLimitsLeavePodsNoPlace(t *testing.T) {
	for name, c := range map[string]struct {
		pool, drift string
		bought      bool
		want        []model.Reason
	}{
		"drift and a limit":                {"limit=4", " drift=NodePoolDrifted", true, nil},
		"drift and a limit of nodes":       {"most=1", " drift=NodePoolDrifted", true, nil},
		"drift and nothing bought":         {"limit=4", " drift=NodePoolDrifted", false, []model.Reason{model.ReasonLimit}},
		"drift and a limit in dollars":     {"dollars=1.20", " drift=NodePoolDrifted", true, []model.Reason{model.ReasonCostLimit}},
		"drift and room for another":       {"limit=16", " drift=NodePoolDrifted", true, []model.Reason{model.ReasonNoPlace}},
		"consolidation, which can wait":    {"limit=4", "", true, []model.Reason{model.ReasonLimit}},
		"the same with a limit in dollars": {"dollars=1.20", "", true, []model.Reason{model.ReasonCostLimit}},
	} {
		s := readFleet(t, `
type d4 cpu=4 memory=16 price=0.40
type d8 cpu=8 memory=32 price=0.80 soldout
pool general `+c.pool+`
pods web cpu=3 memory=1
pods wait cpu=3 memory=1
node a general d8`+c.drift+` : web x1
`)
		pool := &s.fleet.Problem.Pools[0]
		in := decided(t, s)
		s.fleet.Problem.Nodes, s.fleet.Usages = s.fleet.Problem.Nodes[:1], s.fleet.Usages[:1] // without new
		if c.bought {
			s.read("node", "new", strings.Fields("general d4 : wait x1"))
		} else {
			in.Replacements = nil
		}
		pool.Usage, pool.Nodes = s.fleet.Usages[0].Held, 1
		s.fleet.Usages[0].Held = nil // new has taken its place
		if got := reasons(consolidate.Recheck(s.fleet, in)); !slices.Equal(got, c.want) {
			t.Errorf("%s: objections %v, want %v", name, got, c.want)
		}
	}
}

// A command that has begun goes on when pods of its node end: it needs no more room for that.
func TestRecheckDoesNotWaitForPodsThatEnd(t *testing.T) {
	s := readFleet(t, twoHalves)
	in := decided(t, s)
	s.tenancy(in.Nodes[0]).Ending, s.tenancy(in.Nodes[0]).EndingUntil = 1, now.Add(10*time.Second)
	if found := consolidate.Recheck(s.fleet, in); len(found) > 0 {
		t.Errorf("objections %v", found)
	}
}

// Others have taken the room of a command. It waits for machines on their way that have some, such
// as the replacements of other commands, and for no others.
func TestRecheckWaitsForMachinesOnTheirWay(t *testing.T) {
	for name, c := range map[string]struct {
		machine string
		waits   bool
	}{
		"none":                     {"", false},
		"it starts":                {"node c general small starting age=1m", true},
		"it is promised to others": {"node c general small starting ordered age=1m", false},
		"it takes too long":        {"node c general small starting age=20m", false},
		"it is too small":          {"type tiny cpu=0.5 memory=2 price=0.02\nnode c general tiny starting age=1m", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := readFleet(t, twoHalves+c.machine+"\n")
			in := decided(t, s)
			for n := range s.fleet.Problem.Nodes {
				if node := &s.fleet.Problem.Nodes[n]; node.Name != "c" && !slices.Contains(in.Nodes, node.Name) {
					node.Used = node.Allocatable
				}
			}
			found := consolidate.Recheck(s.fleet, in)
			if len(found) != 1 || found[0].Passing != c.waits {
				t.Fatalf("objections %+v, want one that passes: %t", found, c.waits)
			}
			want := "on no other node now"
			if c.waits {
				want = "have room on c, not ready yet"
			}
			if !strings.Contains(found[0].Message, want) || strings.Contains(found[0].Message, "bought") {
				t.Errorf("says %q, want %q and of no machine that can be bought", found[0].Message, want)
			}
		})
	}
}
