package consolidate_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

var rewrite = flag.Bool("rewrite", false, "write what is answered now into the scenario files")

// TestScenarios plays every scenario of testdata/*.txt. A scenario begins with
// "== what it says", states a fleet line by line, and after "--" has the answer:
//
//	type NAME cpu= memory= price= [spot=] [beyond=] [disk=] [zones=] [soldout]
//	     (beyond is the price of machines beyond those that are paid for in advance)
//	types NAME of=N cpu= memory= spot=   (NAME1 to NAMEn, each a tenth of a cent dearer than the one before)
//	pool NAME [policy=] [after=5m|Never] [empty=N] [underutilized=N] [drifted=N] [unhealthy=N] [static]
//	     [replicas=N [nodes=N]] [limit=CPUS] [most=NODES] [dollars=$] [types=N] [frozen] [first=Drifted|Unhealthy]
//	pdb NAME allowed=N|never
//	pods NAME cpu= memory= [pdb=NAME,…] [cost=N] [zone=] [spread[=node]] [apart]
//	terms [eviction=$] [payback=] [minimum=0.05] [spot-to-spot]
//	window DURATION
//	node NAME POOL TYPE [spot] [zone=] [quiet=] [age=] [drift=WHY] [drifted=SINCE] [sick=SINCE] [expires=] [holds=POD[:FOR]] [rests=] [earned=$]
//	     [grace] [kept] [promised] [ordered] [marked] [starting] [unready] [daemon=PDB,…] [ending=N:FOR] [returning=N:FOR]
//	     [: POD xN …]
//	waiting POD xN
//
// Moves are printed as "- gone + bought | where pods go | what it saves", nodes
// that stay with their reason. Run with -rewrite to accept new answers.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(text), "\n== ")
		for i, part := range parts[1:] {
			name, rest, _ := strings.Cut(part, "\n")
			question, want, _ := strings.Cut(rest, "--\n")
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+name, func(t *testing.T) {
				s := readFleet(t, question)
				moves := consolidate.Plan(s.fleet)
				if err := verify.CheckMoves(s.fleet, moves); err != nil {
					t.Errorf("the answer is wrong: %v", err)
				}
				got := s.text(moves)
				if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" && !*rewrite {
					t.Errorf("answer (-want +got):\n%s", diff)
				}
				parts[i+1] = name + "\n" + question + "--\n" + got
				if i+2 < len(parts) {
					parts[i+1] += "\n"
				}
			})
		}
		if *rewrite {
			if err := os.WriteFile(file, []byte(strings.TrimRight(strings.Join(parts, "\n== "), "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// scenario is a fleet under construction.
type scenario struct {
	t       *testing.T
	fleet   *model.DisruptionProblem
	pools   map[string]int
	budgets map[string]int
	classes map[string]int
	// priceOf finds the price by size, zone and capacity type.
	priceOf map[string]model.Money
}

// words are the arguments of a line: name=value pairs and flags.
type words map[string]string

func (w words) has(name string) bool { _, ok := w[name]; return ok }

func (w words) or(name, otherwise string) string {
	if v, ok := w[name]; ok {
		return v
	}
	return otherwise
}

func readFleet(t *testing.T, text string) *scenario {
	s := &scenario{
		t: t, pools: map[string]int{}, budgets: map[string]int{}, classes: map[string]int{}, priceOf: map[string]model.Money{},
		fleet: &model.DisruptionProblem{
			Now: now, Terms: model.DefaultConsolidationTerms(), Problem: &model.Problem{Axes: model.NewAxes(), Catalogs: make([]model.Catalog, 1)},
		},
	}
	for line := range strings.SplitSeq(text, "\n") {
		if fields := strings.Fields(line); len(fields) > 1 {
			s.read(fields[0], fields[1], fields[2:])
		}
	}
	return s
}

func (s *scenario) read(what, name string, rest []string) {
	s.t.Helper()
	end := len(rest)
	if at := slices.Index(rest, ":"); at >= 0 {
		end = at
	}
	w := words{}
	var plain []string
	for _, field := range rest[:end] {
		key, value, _ := strings.Cut(field, "=")
		w[key] = value
		plain = append(plain, field)
	}
	switch what {
	case "type":
		s.readType(name, w)
	case "types":
		for i := range s.number(w["of"]) {
			w["spot"], w["price"] = fmt.Sprintf("%.3f", s.float(w["spot"])+0.001), ""
			s.readType(fmt.Sprint(name, i+1), w)
		}
	case "pool":
		s.readPool(name, w)
	case "pdb":
		b := model.PodBudget{Namespace: "default", Name: name, Blocking: w["allowed"] == "never"}
		if !b.Blocking {
			b.Allowed = s.number(w["allowed"])
		}
		s.budgets[name] = len(s.fleet.Budgets)
		s.fleet.Budgets = append(s.fleet.Budgets, b)
	case "pods":
		s.readPods(name, w)
	case "window":
		s.fleet.ConsolidateFrom = now.Add(s.duration(name))
	case "terms":
		s.readTerms(append([]string{name}, rest...))
	case "node":
		s.readNode(name, plain[0], plain[1], w, rest[end:])
	case "waiting":
		c := s.class(name).PodClass
		for i := range s.number(strings.TrimPrefix(rest[0], "x")) {
			c.Pods = append(slices.Clip(c.Pods[:0:0]), model.PodRef{Namespace: "default", Name: fmt.Sprint("waiting-", name, i)})
		}
		s.fleet.Problem.Classes = append(s.fleet.Problem.Classes, c)
	default:
		s.t.Fatalf("unknown line %q", what)
	}
}

func (s *scenario) number(text string) int {
	s.t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *scenario) float(text string) float64 {
	s.t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *scenario) duration(text string) time.Duration {
	s.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *scenario) readType(name string, w words) {
	it := model.InstanceType{Name: name, Capacity: model.Resources{int64(1000 * s.float(w["cpu"])), gi * int64(s.float(w["memory"])), 0, 110}}
	for zone := range strings.SplitSeq(w.or("zones", "z1"), ",") {
		for capacity, price := range map[model.CapacityType]string{model.OnDemand: w["price"], model.Spot: w["spot"]} {
			if price == "" {
				continue
			}
			o := model.Offering{Zone: zone, CapacityType: capacity, Price: model.USD(s.float(price)), Available: !w.has("soldout")}
			if w["beyond"] != "" && capacity == model.OnDemand {
				o.Uncovered = model.USD(s.float(w["beyond"]))
			}
			o.DiskPrice = model.USD(s.float(w.or("disk", "0"))) // a part of the price
			it.Offerings = append(it.Offerings, o)
			s.priceOf[name+zone+string(capacity)] = o.Price
		}
	}
	slices.SortFunc(it.Offerings, func(a, b model.Offering) int {
		return strings.Compare(a.Zone+string(a.CapacityType), b.Zone+string(b.CapacityType))
	})
	c := &s.fleet.Problem.Catalogs[0]
	c.InstanceTypes = append(c.InstanceTypes, it)
}

func (s *scenario) readPool(name string, w words) {
	policy := model.DisruptionPolicy{
		Pool: name, Consolidation: model.ConsolidationPolicy(w.or("policy", "WhenEmptyOrUnderutilized")), Static: w.has("static"),
	}
	if after := w.or("after", "0s"); after == "Never" {
		policy.Never = true
	} else {
		policy.After = s.duration(after)
	}
	for word, reason := range map[string]model.DisruptionReason{
		"empty": model.DisruptEmpty, "underutilized": model.DisruptUnderutilized, "drifted": model.DisruptDrifted,
		"unhealthy": model.DisruptUnhealthy,
	} {
		if w.has(word) {
			if policy.Allowed == nil {
				policy.Allowed = map[model.DisruptionReason]int{}
			}
			policy.Allowed[reason] = s.number(w[word])
		}
	}
	if w.has("frozen") {
		policy.Frozen = "until nap thaw"
	}
	if w.has("replicas") {
		policy.Static = true
		policy.Count = &model.StaticCount{Replicas: s.number(w["replicas"]), Limit: s.number(w.or("nodes", "-1"))}
		if w.has("first") {
			policy.Count.TerminateFirst = []model.DisruptionReason{model.DisruptionReason(w["first"])}
		}
	}
	s.pools[name] = len(s.fleet.Policies)
	s.fleet.Policies = append(s.fleet.Policies, policy)
	pool := model.Pool{Name: name, NodeLimit: -1, Weight: s.number(w.or("weight", "0"))}
	if w.has("only") {
		pool.Requirements = model.Requirements{{Key: model.LabelInstanceType, Operator: model.In, Values: strings.Split(w["only"], ",")}}
	}
	if w.has("limit") {
		pool.Limits = []model.Limit{{Axis: model.CPU, Value: int64(1000 * s.float(w["limit"]))}}
	}
	if w.has("most") {
		pool.NodeLimit = s.number(w["most"])
	}
	if w.has("dollars") {
		limit := model.USD(s.float(w["dollars"]))
		pool.CostLimit = &limit
	}
	if w.has("types") {
		pool.Requirements = model.Requirements{{Key: model.LabelInstanceType, Operator: model.Exists, MinValues: s.number(w["types"])}}
	}
	s.fleet.Problem.Pools = append(s.fleet.Problem.Pools, pool)
}

func (s *scenario) readPods(name string, w words) {
	c := model.MovableClass{EvictionCost: s.float(w.or("cost", "1"))}
	c.Owner, c.Namespace, c.Labels = "Deployment default/"+name, "default", map[string]string{"app": name}
	c.Requests = model.Resources{int64(1000 * s.float(w["cpu"])), int64(gi * s.float(w["memory"])), 0, 1}
	if w.has("zone") {
		c.NodeRequirements = model.Requirements{{Key: model.LabelZone, Operator: model.In, Values: []string{w["zone"]}}}
	}
	if w.has("spread") {
		over := model.LabelZone
		switch w["spread"] {
		case "node":
			over = model.LabelHostname
		case "capacity-type":
			over = model.LabelCapacityType
		}
		c.Spread = []model.SpreadConstraint{{TopologyKey: over, MaxSkew: 1, Hard: !w.has("soft"), Selector: selector(name), HonorNodeAffinity: true}}
	}
	if w.has("apart") {
		c.AntiAffinity = []model.AffinityTerm{{TopologyKey: model.LabelHostname, Selector: selector(name), Namespaces: []string{"default"}}}
	}
	if w.has("prefers") {
		c.NodePreferences = []model.NodePreference{{Weight: 1, Requirements: model.Requirements{
			{Key: model.LabelZone, Operator: model.In, Values: []string{w["prefers"]}},
		}}}
	}
	c.Budgets = s.budgetsOf(w["pdb"])
	s.classes[name] = len(s.fleet.Movable)
	s.fleet.Movable = append(s.fleet.Movable, c)
	s.fleet.Problem.Shapes = append(s.fleet.Problem.Shapes, c.PodShape)
}

// budgetsOf are the PodDisruptionBudgets that a word names.
func (s *scenario) budgetsOf(names string) []int {
	var out []int
	for _, b := range strings.FieldsFunc(names, func(r rune) bool { return r == ',' }) {
		out = append(out, s.budgets[b])
	}
	return out
}

func (s *scenario) class(name string) *model.MovableClass {
	i, ok := s.classes[name]
	if !ok {
		s.t.Fatalf("no pods %q", name)
	}
	return &s.fleet.Movable[i]
}

func (s *scenario) readTerms(fields []string) {
	for _, field := range fields {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "eviction":
			s.fleet.Terms.EvictionPrice = model.USD(s.float(value))
		case "payback":
			s.fleet.Terms.Payback = s.duration(value)
		case "minimum":
			s.fleet.Terms.MinimumSaving = s.float(value)
		case "spot-to-spot":
			s.fleet.Terms.SpotToSpot = true
		default:
			s.t.Fatalf("unknown term %q", field)
		}
	}
}

func (s *scenario) readNode(name, pool, size string, w words, pods []string) {
	p := s.fleet.Problem
	zone, capacity := w.or("zone", "z1"), model.OnDemand
	if w.has("spot") {
		capacity = model.Spot
	}
	var it *model.InstanceType
	for i := range p.Catalogs[0].InstanceTypes {
		if t := &p.Catalogs[0].InstanceTypes[i]; t.Name == size {
			it = t
		}
	}
	if it == nil {
		s.t.Fatalf("no type %q", size)
	}
	node := model.Node{
		Name: name, Claim: "claim-" + name, Pool: pool, State: model.NodeReady, Allocatable: it.Allocatable(), Used: make(model.Resources, 4),
		Labels: map[string]string{
			model.LabelZone: zone, model.LabelInstanceType: size, model.LabelCapacityType: string(capacity), model.LabelHostname: name,
		},
		Price: s.priceOf[size+zone+string(capacity)],
	}
	policy, ok := s.pools[pool]
	if ok {
		p.Pools[policy].Usage, p.Pools[policy].Nodes = p.Pools[policy].Usage.Add(it.Capacity), p.Pools[policy].Nodes+1
		p.Pools[policy].Cost += node.Price
	} else {
		policy = -1
	}
	age := s.duration(w.or("age", "24h"))
	t := model.NodeUsage{
		Policy: policy, Initialized: !w.has("starting"), Ready: !w.has("unready"), Nominated: w.has("promised"),
		Reserved: w.has("ordered"), DoNotDisrupt: w.has("kept"), Disrupting: w.has("marked"),
		Created: now.Add(-age), InitializedAt: now.Add(-age),
		LastPodEvent: now.Add(-s.duration(w.or("quiet", "1h"))), GracePeriod: w.has("grace"), Drift: w["drift"],
	}
	if ok {
		t.Held = it.Capacity
	}
	if w.has("sick") {
		t.Unhealthy, t.UnhealthySince = "NodeHealthy=False", now.Add(-s.duration(w["sick"]))
	}
	if ending, until, some := strings.Cut(w["ending"], ":"); some {
		t.Ending, t.EndingUntil = s.number(ending), now.Add(s.duration(until))
	}
	if returning, until, some := strings.Cut(w["returning"], ":"); some {
		t.Returning, t.ReturningUntil = s.number(returning), now.Add(s.duration(until))
	}
	if t.Drift != "" {
		t.DriftSince = now.Add(-s.duration(w.or("drifted", "1m")))
	}
	for word, moment := range map[string]*time.Time{"expires": &t.ExpiresAt, "rests": &t.RetryAfter} {
		if w.has(word) {
			*moment = now.Add(s.duration(w[word]))
		}
	}
	if w.has("earned") {
		t.ExpectedSaving = model.USD(s.float(w["earned"]))
	}
	for i := 1; i+1 < len(pods); i += 2 {
		c := s.class(pods[i])
		class := s.classes[pods[i]]
		entry := model.ClassPods{Class: class}
		for range s.number(strings.TrimPrefix(pods[i+1], "x")) {
			entry.Pods = append(entry.Pods, len(c.Pods))
			c.Pods = append(c.Pods, model.PodRef{Namespace: "default", Name: fmt.Sprint(pods[i], "-", len(c.Pods))})
			node.Used = node.Used.Add(c.Requests)
		}
		node.Bound = append(node.Bound, model.BoundPods{Shape: class, Count: len(entry.Pods)})
		t.Pods = append(t.Pods, entry)
	}
	if held, until, timed := strings.Cut(w["holds"], ":"); held != "" {
		h := model.DoNotDisruptPod{Pod: model.PodRef{Namespace: "default", Name: held}}
		if timed {
			h.Until = now.Add(s.duration(until))
		}
		t.DoNotDisruptPods = append(t.DoNotDisruptPods, h)
	}
	if w.has("daemon") {
		pod := model.PodRef{Namespace: "default", Name: "daemon-" + name}
		t.DaemonPods = []model.DaemonPod{{Pod: pod, Budgets: s.budgetsOf(w["daemon"])}}
	}
	p.Nodes = append(p.Nodes, node)
	if ok && s.fleet.Policies[policy].Count != nil {
		count := s.fleet.Policies[policy].Count
		count.Nodes++
		if !t.Disrupting {
			count.Staying++
		}
	}
	s.fleet.Usages = append(s.fleet.Usages, t)
}

// text is the answer as it is read.
func (s *scenario) text(moves *model.Commands) string {
	var b strings.Builder
	for i := range moves.Commands {
		mv := &moves.Commands[i]
		for _, n := range mv.Nodes {
			fmt.Fprintf(&b, "- %s ", s.fleet.Problem.Nodes[n].Name)
		}
		var places []string
		for _, pl := range mv.Placements {
			places = append(places, fmt.Sprintf("%s to %s", s.pods(pl.Pods), s.fleet.Problem.Nodes[pl.Node].Name))
		}
		for j := range mv.New {
			best := mv.New[j].Best()
			it := &s.fleet.Problem.Catalogs[0].InstanceTypes[best.InstanceType]
			fmt.Fprintf(&b, "+ %s %s %s ", it.Name, it.Offerings[best.Offering].Zone, it.Offerings[best.Offering].CapacityType)
			places = append(places, fmt.Sprintf("%s to the new %s", s.pods(mv.New[j].Pods), it.Name))
		}
		if mv.FromTemplate {
			b.WriteString("+ one as its pool's template says ")
		}
		if len(places) == 0 {
			places = []string{"no pod moves"}
		}
		fmt.Fprintf(&b, "| %s | %s, saves %s\n", strings.Join(places, ", "), mv.Reason, mv.Saving)
	}
	for i := range moves.Kept {
		st := &moves.Kept[i]
		fmt.Fprintf(&b, "%s stays: %s: %s\n", s.fleet.Problem.Nodes[st.Node].Name, st.Reason, st.Message)
	}
	for i := range moves.Scores {
		score := &moves.Scores[i]
		fmt.Fprintf(&b, "%d of %s score %.2f, approved %v\n", len(score.Nodes), s.fleet.Policies[score.Policy].Pool, score.Score(), score.Approved)
	}
	return b.String()
}

func (s *scenario) pods(entries []model.ClassPods) string {
	var parts []string
	for _, e := range entries {
		parts = append(parts, fmt.Sprintf("%s x%d", s.fleet.Movable[e.Class].Labels["app"], len(e.Pods)))
	}
	return strings.Join(parts, " ")
}

// A node that a budget keeps since others go first is told from one that it keeps by itself.
func TestBudgetThatLetsOthersGoFirst(t *testing.T) {
	for allowed, want := range map[string]string{"1": "b true", "never": "a false, b false"} {
		s := readFleet(t, "type d2 cpu=2 memory=8 price=0.10\npool general\npdb web allowed="+allowed+"\npods web cpu=1.5 memory=1 pdb=web\n"+
			"node a general d2 drift=NodePoolDrifted : web x1\nnode b general d2 drift=NodePoolDrifted : web x1\n")
		var got []string
		for _, kept := range consolidate.Plan(s.fleet).Kept {
			got = append(got, fmt.Sprint(s.fleet.Problem.Nodes[kept.Node].Name, " ", kept.OthersFirst))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("allowed %s: %s, want %s", allowed, text, want)
		}
	}
}
