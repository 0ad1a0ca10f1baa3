package planner_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

var rewrite = flag.Bool("rewrite", false, "write what the planner does into the scenario files")

// Scenario files hold scenarios: a line "== title", the problem, a line "--",
// and the plan as a picture. The words of the problem:
//
//	axes NAME...                                 extended resources
//	type NAME cpu=2 memory=8Gi price=0.1 zones=z1,z2 [spot=0.03] [disk=0.02] [reserved=N] [KEY=VALUE...]
//	unavailable TYPE ZONE WHY...                 the cloud does not sell it
//	pool NAME [weight=N] [taint=K=V:EFFECT] [limit=AXIS:N] [nodes=N] [require=K:OP:V,V] [min=KEY:N]
//	daemon POOL NAME cpu=100m [zone=z1] [port=N]
//	quota NAME LEFT                              every machine takes its cores of it
//	node NAME [STATE] zone=z1 cpu=4 memory=16Gi [used=2] [runs=APP:N] [KEY=VALUE...]
//	deploy NAME xN cpu=1 memory=1Gi [zone=z1] [require=...] [or=...] [prefer=...] [tolerate=K]
//	       [spread=KEY:SKEW[:soft]] [domains=N] [counts=all|tolerated] [anti=host:APP[:soft]] [near=zone:APP[:soft]] [port=N]
//	       (domains and counts belong to the spread before: its minDomains, and whether
//	       nodes count that the pod's affinity excludes, or only those it tolerates)
//	       [label=K:V] [priority=N] [volume=z1] [disks=N] [RESOURCE=N]
//	policy ignore-preferences | relax-min-values
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runFile(t, file) })
	}
}

func runFile(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(data), "== ")
	out := head
	for _, block := range strings.Split(rest, "\n== ") {
		title, body, _ := strings.Cut(block, "\n")
		input, want, _ := strings.Cut(body, "\n--\n")
		want = strings.TrimSpace(want)
		t.Run(title, func(t *testing.T) {
			s := &scenario{t: t, p: &model.Problem{Policy: model.Policy{Budget: 2 * time.Millisecond}}}
			for _, line := range strings.Split(input, "\n") {
				s.line(line)
			}
			plan := planner.Solve(s.p)
			for _, v := range verify.Check(s.p, plan) {
				t.Errorf("%s", v)
			}
			got := picture(s.p, plan)
			if !*rewrite {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the plan differs (-want +got):\n%s", diff)
				}
			}
			out += "== " + title + "\n" + input + "\n--\n" + got + "\n\n"
		})
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(strings.TrimRight(out, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// scenario turns lines into a problem.
type scenario struct {
	t *testing.T
	p *model.Problem
}

func (s *scenario) line(line string) {
	f := strings.Fields(line)
	if len(f) == 0 || strings.HasPrefix(line, "#") {
		return
	}
	if s.p.Axes == nil {
		s.p.Axes = model.NewAxes()
		s.p.Catalogs = make([]model.Catalog, 1)
	}
	switch f[0] {
	case "axes":
		s.p.Axes = model.NewAxes(f[1:]...)
	case "type":
		s.instanceType(f[1], options(f[2:]))
	case "unavailable":
		s.unavailable(f[1], f[2], strings.Join(f[3:], " "))
	case "pool":
		s.pool(f[1], options(f[2:]))
	case "daemon":
		s.daemon(f[1], f[2], options(f[3:]))
	case "quota":
		s.quota(f[1], s.number(f[2]))
	case "node":
		s.node(f[1], f[2:])
	case "deploy":
		s.deploy(f[1], int(s.number(f[2][1:])), options(f[3:]))
	case "policy":
		s.p.Policy.IgnorePreferences = s.p.Policy.IgnorePreferences || f[1] == "ignore-preferences"
		s.p.Policy.RelaxMinValues = s.p.Policy.RelaxMinValues || f[1] == "relax-min-values"
	default:
		s.t.Fatalf("unknown word %q", f[0])
	}
}

// option is key=value; bare words have an empty value.
type option struct{ key, value string }

func options(words []string) []option {
	var out []option
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		out = append(out, option{k, v})
	}
	return out
}

func (s *scenario) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// amount reads a quantity: cores with m, bytes with Mi or Gi, else a count.
func (s *scenario) amount(axis int, text string) int64 {
	switch {
	case strings.HasSuffix(text, "Gi"):
		return s.number(strings.TrimSuffix(text, "Gi")) << 30
	case strings.HasSuffix(text, "Mi"):
		return s.number(strings.TrimSuffix(text, "Mi")) << 20
	case strings.HasSuffix(text, "m"):
		return s.number(strings.TrimSuffix(text, "m"))
	case axis == model.CPU:
		return s.number(text) * 1000
	}
	return s.number(text)
}

// resource stores the option if its key is a resource.
func (s *scenario) resource(r *model.Resources, o option) bool {
	axis := s.p.Axes.Index(o.key)
	if axis < 0 {
		return false
	}
	if len(*r) == 0 {
		*r = make(model.Resources, len(s.p.Axes))
	}
	(*r)[axis] = s.amount(axis, o.value)
	return true
}

func (s *scenario) instanceType(name string, opts []option) {
	t := model.InstanceType{Name: name, Labels: map[string]string{}}
	var zones []string
	var price, spot, disk float64
	reserved := 0
	for _, o := range opts {
		switch o.key {
		case "price":
			price, _ = strconv.ParseFloat(o.value, 64)
		case "spot":
			spot, _ = strconv.ParseFloat(o.value, 64)
		case "disk": // a part of the price
			disk, _ = strconv.ParseFloat(o.value, 64)
		case "zones":
			zones = strings.Split(o.value, ",")
		case "reserved":
			reserved = int(s.number(o.value))
		case "disks":
			t.VolumeSlots = map[string]int{"disk": int(s.number(o.value))}
		case "choose":
			k, v, _ := strings.Cut(o.value, ":")
			t.Choices = map[string][]string{k: strings.Split(v, ",")}
		default:
			if !s.resource(&t.Capacity, o) {
				t.Labels[o.key] = o.value
			}
		}
	}
	if t.Capacity[model.Pods] == 0 {
		t.Capacity[model.Pods] = 110
	}
	for _, z := range zones {
		t.Offerings = append(t.Offerings, model.Offering{Zone: z, CapacityType: model.OnDemand, Price: model.USD(price), DiskPrice: model.USD(disk), Available: true})
		if spot > 0 {
			t.Offerings = append(t.Offerings, model.Offering{Zone: z, CapacityType: model.Spot, Price: model.USD(spot), DiskPrice: model.USD(disk), Available: true})
		}
		if reserved > 0 {
			t.Offerings = append(t.Offerings,
				model.Offering{Zone: z, CapacityType: model.Reserved, Available: true, Reservation: "r-" + name + "-" + z, Remaining: reserved})
		}
	}
	s.p.Catalogs[0].InstanceTypes = append(s.p.Catalogs[0].InstanceTypes, t)
}

func (s *scenario) unavailable(name, zone, why string) {
	for i := range s.p.Catalogs[0].InstanceTypes {
		t := &s.p.Catalogs[0].InstanceTypes[i]
		for o := range t.Offerings {
			if t.Name == name && t.Offerings[o].Zone == zone {
				t.Offerings[o].Available, t.Offerings[o].Unavailable = false, why
			}
		}
	}
}

func (s *scenario) requirement(text string) model.Requirement {
	parts := strings.SplitN(text, ":", 3)
	r := model.Requirement{Key: long(parts[0]), Operator: model.Operator(parts[1])}
	if len(parts) == 3 {
		r.Values = strings.Split(parts[2], ",")
	}
	return r
}

// dollars reads an amount per hour.
func (s *scenario) dollars(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatalf("%q is no amount of dollars", text)
	}
	return v
}

// long spells out the label keys that scenarios abbreviate.
func long(key string) string {
	switch key {
	case "zone":
		return model.LabelZone
	case "host":
		return model.LabelHostname
	case "capacity":
		return model.LabelCapacityType
	case "type":
		return model.LabelInstanceType
	}
	return key
}

func (s *scenario) pool(name string, opts []option) {
	p := model.Pool{Name: name, NodeLimit: -1}
	for _, o := range opts {
		switch o.key {
		case "weight":
			p.Weight = int(s.number(o.value))
		case "taint":
			p.Taints = append(p.Taints, taint(o.value))
		case "limit":
			axis, v, _ := strings.Cut(o.value, ":")
			i := s.p.Axes.Index(axis)
			p.Limits = append(p.Limits, model.Limit{Axis: i, Value: s.amount(i, v)})
		case "nodes":
			p.NodeLimit = int(s.number(o.value))
		case "dollars":
			limit := model.USD(s.dollars(o.value))
			p.CostLimit = &limit
		case "spent":
			p.Cost = model.USD(s.dollars(o.value))
		case "require":
			p.Requirements = append(p.Requirements, s.requirement(o.value))
		case "min":
			k, n, _ := strings.Cut(o.value, ":")
			p.Requirements = append(p.Requirements, model.Requirement{Key: long(k), Operator: model.Exists, MinValues: int(s.number(n))})
		}
	}
	s.p.Pools = append(s.p.Pools, p)
}

func taint(text string) model.Taint {
	kv, effect, _ := strings.Cut(text, ":")
	k, v, _ := strings.Cut(kv, "=")
	return model.Taint{Key: k, Value: v, Effect: model.TaintEffect(effect)}
}

func (s *scenario) daemon(pool, name string, opts []option) {
	d := model.Daemon{Name: name, Tolerations: []model.Toleration{{Exists: true}}}
	for _, o := range opts {
		switch o.key {
		case "zone":
			d.Requirements = []model.Requirements{{{Key: model.LabelZone, Operator: model.In, Values: []string{o.value}}}}
		case "port":
			d.HostPorts = append(d.HostPorts, model.HostPort{Port: int32(s.number(o.value)), Protocol: "TCP"})
		default:
			s.resource(&d.Requests, o)
		}
	}
	for i := range s.p.Pools {
		if s.p.Pools[i].Name == pool {
			s.p.Pools[i].Daemons = append(s.p.Pools[i].Daemons, d)
		}
	}
}

func (s *scenario) quota(name string, left int64) {
	s.p.Quotas = append(s.p.Quotas, model.Quota{Name: name, Left: left})
	for i := range s.p.Catalogs[0].InstanceTypes {
		t := &s.p.Catalogs[0].InstanceTypes[i]
		for o := range t.Offerings {
			t.Offerings[o].Quotas = append(t.Offerings[o].Quotas, model.QuotaUse{Quota: name, Amount: t.Capacity[model.CPU] / 1000})
		}
	}
}

func (s *scenario) node(name string, words []string) {
	n := model.Node{Name: name, State: model.NodeReady, Labels: map[string]string{model.LabelHostname: name}}
	n.Used = make(model.Resources, len(s.p.Axes))
	for _, o := range options(words) {
		switch {
		case o.value == "":
			n.State = model.NodeState(o.key)
		case o.key == "used":
			n.Used[model.CPU] = s.amount(model.CPU, o.value)
		case o.key == "taint":
			n.Taints = append(n.Taints, taint(o.value))
		case o.key == "disks":
			n.VolumeSlots = map[string]int{"disk": int(s.number(o.value))}
		case o.key == "runs":
			app, count, _ := strings.Cut(o.value, ":")
			s.p.Shapes = append(s.p.Shapes, model.PodShape{Namespace: "default", Labels: map[string]string{"app": app}})
			n.Bound = append(n.Bound, model.BoundPods{Shape: len(s.p.Shapes) - 1, Count: int(s.number(count))})
		case !s.resource(&n.Allocatable, o):
			n.Labels[long(o.key)] = o.value
		}
	}
	if n.Allocatable[model.Pods] == 0 {
		n.Allocatable[model.Pods] = 110
	}
	s.p.Nodes = append(s.p.Nodes, n)
}

func (s *scenario) deploy(name string, count int, opts []option) {
	c := model.PodClass{Owner: "Deployment default/" + name}
	c.Namespace, c.Labels = "default", map[string]string{"app": name}
	for i := range count {
		c.Pods = append(c.Pods, model.PodRef{Namespace: "default", Name: fmt.Sprintf("%s-%d", name, i)})
	}
	for _, o := range opts {
		s.deployOption(&c, o)
	}
	c.Requests[model.Pods] = 1
	s.p.Classes = append(s.p.Classes, c)
}

func (s *scenario) deployOption(c *model.PodClass, o option) {
	parts := strings.Split(o.value, ":")
	soft := len(parts) == 3 && parts[2] == "soft"
	app := func(name string) *model.Selector {
		return &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{name}}}}
	}
	switch o.key {
	case "zone":
		c.NodeRequirements = append(c.NodeRequirements, model.Requirement{Key: model.LabelZone, Operator: model.In, Values: []string{o.value}})
	case "require":
		c.NodeRequirements = append(c.NodeRequirements, s.requirement(o.value))
	case "or":
		c.NodeAlternatives = append(c.NodeAlternatives, model.Requirements{s.requirement(o.value)})
	case "prefer":
		c.NodePreferences = append(c.NodePreferences, model.NodePreference{Weight: 1, Requirements: model.Requirements{s.requirement(o.value)}})
	case "tolerate":
		c.Tolerations = append(c.Tolerations, model.Toleration{Key: o.value, Exists: true})
	case "spread":
		c.Spread = append(c.Spread, model.SpreadConstraint{
			TopologyKey: long(parts[0]), MaxSkew: int32(s.number(parts[1])), Selector: app(c.Labels["app"]), Hard: !soft, HonorNodeAffinity: true,
		})
	case "label":
		k, v, _ := strings.Cut(o.value, ":")
		c.Labels[k] = v
	case "domains":
		c.Spread[len(c.Spread)-1].MinDomains = int32(s.number(o.value))
	case "counts":
		last := &c.Spread[len(c.Spread)-1]
		last.HonorNodeAffinity, last.HonorTaints = o.value != "all", o.value == "tolerated"
	case "anti", "near":
		term := model.AffinityTerm{TopologyKey: long(parts[0]), Selector: app(parts[1]), Namespaces: []string{"default"}}
		switch {
		case soft:
			c.Preferences = append(c.Preferences, model.AffinityPreference{Weight: 1, Anti: o.key == "anti", Term: term})
		case o.key == "anti":
			c.AntiAffinity = append(c.AntiAffinity, term)
		default:
			c.Affinity = append(c.Affinity, term)
		}
	default:
		s.podOption(c, o)
	}
}

// podOption reads what a pod takes of a node, apart from topology.
func (s *scenario) podOption(c *model.PodClass, o option) {
	switch o.key {
	case "port":
		c.HostPorts = append(c.HostPorts, model.HostPort{Port: int32(s.number(o.value)), Protocol: "TCP"})
	case "maxprice":
		dollars, err := strconv.ParseFloat(o.value, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		c.MaxPrice = model.USD(dollars)
	case "priority":
		c.Priority = int32(s.number(o.value))
	case "volume":
		zone := model.Requirement{Key: model.LabelZone, Operator: model.In, Values: []string{o.value}}
		c.VolumeAlternatives = append(c.VolumeAlternatives, model.Requirements{zone})
	case "disks":
		for i := range s.number(o.value) {
			c.Volumes = append(c.Volumes, model.Volume{ID: fmt.Sprint("own", i), Driver: "disk"})
		}
	default:
		if !s.resource(&c.Requests, o) {
			s.t.Fatalf("unknown option %q of deploy", o.key)
		}
	}
}

// picture draws a plan: one line per machine, node and class left out.
func picture(p *model.Problem, plan *model.Plan) string {
	var b strings.Builder
	pods := func(list []model.ClassPods) string {
		var parts []string
		for _, cp := range list {
			parts = append(parts, fmt.Sprintf("%s x%d", p.Classes[cp.Class].Labels["app"], len(cp.Pods)))
		}
		return strings.Join(parts, ", ")
	}
	for _, pl := range plan.Placements {
		fmt.Fprintf(&b, "%-22s | %s\n", p.Nodes[pl.Node].Name, pods(pl.Pods))
	}
	var last string
	times := 0
	flush := func() {
		if times > 1 {
			fmt.Fprintf(&b, "%s  (%d of these)\n", last, times)
		} else if times == 1 {
			fmt.Fprintf(&b, "%s\n", last)
		}
		times = 0
	}
	for _, n := range plan.NewNodes {
		t := p.Catalogs[0].InstanceTypes[n.Best().InstanceType]
		o := t.Offerings[n.Best().Offering]
		what := fmt.Sprintf("%s %s %s", t.Name, o.Zone, o.CapacityType)
		line := fmt.Sprintf("+ %-20s | %s | %s of %s, or %d others", what, pods(n.Pods), p.Pools[n.Pool].Name, o.Price, len(n.Offerings)-1)
		if len(n.Requirements) > 0 {
			line += " | " + n.Requirements.String()
		}
		if line != last {
			flush()
		}
		last = line
		times++
	}
	flush()
	for i := range plan.Unschedulable {
		u := &plan.Unschedulable[i]
		words := explain.Describe(p, u)
		fmt.Fprintf(&b, "%s x%d | %s: %s\n", p.Classes[u.Class].Labels["app"], len(u.Pods), u.Reason, words.Why)
		if n := u.Nearest; n != nil && strings.Contains(n.Have, " left of quota ") != (n.Quota != "") {
			fmt.Fprintf(&b, "  names the quota %q\n", n.Quota)
		}
		if words.Nearest != "" {
			fmt.Fprintf(&b, "  nearest miss: %s\n", words.Nearest)
		}
		if words.Fix != "" {
			fmt.Fprintf(&b, "  fix: %s\n", words.Fix)
		}
		for _, line := range words.Details {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	for _, r := range plan.Relaxed {
		fmt.Fprintf(&b, "given up for %d of %s: %s\n", r.Pods, p.Classes[r.Class].Labels["app"], r.Preference)
	}
	for _, r := range plan.Rejected {
		fmt.Fprintf(&b, "rejected %s %s: %s\n", r.Kind, r.Name, r.Message)
	}
	fmt.Fprintf(&b, "cost %s", plan.Cost)
	return b.String()
}
