package feasible

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/noderules"
)

// mutations yields changes of single fields below a value: what the path of the
// field is, without indices, and a function that makes the change in another value
// of the same shape. Lists are emptied and grown, too, so that also a field that
// is not filled in is changed.
func mutations(v reflect.Value, path string, yield func(path string, change func(reflect.Value))) {
	nest := func(name string, child reflect.Value, step func(reflect.Value) reflect.Value) {
		mutations(child, path+name, func(p string, change func(reflect.Value)) {
			yield(p, func(root reflect.Value) { change(step(root)) })
		})
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name := "." + v.Type().Field(i).Name
			if v.Type().Field(i).Anonymous {
				name = ""
			}
			nest(name, v.Field(i), func(r reflect.Value) reflect.Value { return r.Field(i) })
		}
	case reflect.Pointer:
		if v.IsNil() {
			yield(path, func(r reflect.Value) { r.Set(reflect.New(r.Type().Elem())) })
			return
		}
		nest("", v.Elem(), func(r reflect.Value) reflect.Value { return r.Elem() })
	case reflect.Slice:
		yield(path, func(r reflect.Value) { r.Set(reflect.Append(r, reflect.Zero(r.Type().Elem()))) })
		yield(path, func(r reflect.Value) { r.SetZero() })
		for i := range v.Len() {
			nest("", v.Index(i), func(r reflect.Value) reflect.Value { return r.Index(i) })
		}
	case reflect.Map:
		yield(path, func(r reflect.Value) {
			changed := reflect.MakeMap(r.Type())
			for _, k := range r.MapKeys() {
				value := reflect.New(r.Type().Elem()).Elem()
				value.Set(r.MapIndex(k))
				mutateLeaf(value)
				changed.SetMapIndex(k, value)
			}
			r.Set(changed)
		})
	default:
		yield(path, mutateLeaf)
	}
}

func mutateLeaf(r reflect.Value) {
	switch r.Kind() {
	case reflect.String:
		r.SetString("changed")
	case reflect.Bool:
		r.SetBool(!r.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		r.SetInt(r.Int() + 1)
	default:
		panic("no mutation for " + r.Type().String())
	}
}

// richClass, richPool and richNode have something in every field.
func richClass() model.PodClass {
	needs := func(key, value string) model.Requirements {
		return model.Requirements{{Key: key, Operator: model.In, Values: []string{value}}}
	}
	term := model.AffinityTerm{TopologyKey: model.LabelZone, Selector: &model.Selector{Requirements: needs("app", "x")}, Namespaces: []string{"n"}}
	return model.PodClass{
		Pods: []model.PodRef{{Namespace: "n", Name: "p"}}, Owner: "Deployment n/x",
		PodShape: model.PodShape{Namespace: "n", Labels: map[string]string{"app": "x"}, AntiAffinity: []model.AffinityTerm{term}},
		Requests: model.Resources{1000, 1, 0, 1},
		PodRules: model.PodRules{
			NodeRequirements: needs("gen", "5"),
			NodeAlternatives: []model.Requirements{needs(model.LabelZone, "z1"), needs("tier", "x"), needs(noderules.LabelRegistered, "true")},
			NodePreferences:  []model.NodePreference{{Weight: 1, Requirements: needs("gen", "5")}},
			Tolerations:      []model.Toleration{{Key: "gpu", Value: "yes", Effect: model.NoSchedule}},
			HostPorts:        []model.HostPort{{IP: "10.0.0.1", Port: 80, Protocol: "TCP"}},
			Priority:         1,
		},
		Spread:             []model.SpreadConstraint{{TopologyKey: model.LabelZone, MaxSkew: 1, MinDomains: 1, Selector: term.Selector, Hard: true}},
		Affinity:           []model.AffinityTerm{term},
		Preferences:        []model.AffinityPreference{{Weight: 1, Term: term}},
		Volumes:            []model.Volume{{ID: "data", Driver: "disk"}},
		VolumeAlternatives: []model.Requirements{needs(model.LabelZone, "z1")},
		Devices:            needs("gen", "5"),
	}
}

func richPool() model.Pool {
	limit := model.USD(2)
	return model.Pool{
		Name: "rich", Weight: 0, Labels: map[string]string{"tier": "x"},
		Requirements:  model.Requirements{{Key: "team", Operator: model.In, Values: []string{"x"}}, {Key: model.LabelZone, Operator: model.In, Values: []string{"z1"}}},
		Taints:        []model.Taint{{Key: "gpu", Value: "yes", Effect: model.NoSchedule}, {Key: "arm", Effect: model.NoSchedule}},
		StartupTaints: []model.Taint{{Key: "booting", Effect: model.NoSchedule}},
		Limits:        []model.Limit{{Axis: model.CPU, Value: 64000}}, Usage: model.Resources{1000, 1, 0, 1}, NodeLimit: 9, Nodes: 1,
		Returnable: model.Resources{1000, 1, 0, 1}, ReturnableNodes: 1,
		CostLimit: &limit, Cost: 10,
		Daemons: []model.Daemon{{
			Name: "agent", Requests: model.Resources{100, 1, 0, 1},
			Requirements: []model.Requirements{{{Key: model.LabelZone, Operator: model.In, Values: []string{"z1"}}}},
			Tolerations:  []model.Toleration{{Key: "gpu", Value: "yes", Effect: model.NoSchedule}, {Key: "arm", Value: "any", Exists: true}},
			HostPorts:    []model.HostPort{{IP: "10.0.0.2", Port: 81, Protocol: "TCP"}},
		}},
	}
}

func richNode() model.Node {
	return model.Node{
		Name: "node", Claim: "claim", Pool: "rich", State: model.NodeLaunching,
		Labels:      map[string]string{"gen": "5", "team": "x", model.LabelZone: "z1"},
		Taints:      []model.Taint{{Key: "gpu", Value: "yes", Effect: model.NoSchedule}},
		Allocatable: model.Resources{4000, 16, 0, 10}, Used: model.Resources{1000, 1, 0, 1},
		HostPorts: []model.HostPort{{Port: 82, Protocol: "TCP"}}, VolumeSlots: map[string]int{"disk": 3},
		Attached: []model.Volume{{ID: "data", Driver: "disk"}}, Bound: []model.BoundPods{{Shape: 0, Count: 1}}, Price: 10, Vacating: 1,
	}
}

func richProblem() *model.Problem {
	offerings := []model.Offering{
		{Zone: "z1", CapacityType: model.OnDemand, Price: 10, Available: true},
		{Zone: "z2", CapacityType: model.Spot, Price: 4, Available: true},
	}
	return &model.Problem{
		Axes: model.NewAxes(),
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{
			{Name: "a", Labels: map[string]string{"gen": "3"}, Capacity: model.Resources{2000, 8, 0, 10}, Offerings: offerings},
			{Name: "b", Labels: map[string]string{"gen": "5"}, Capacity: model.Resources{4000, 16, 0, 10}, VolumeSlots: map[string]int{"disk": 4}, Offerings: offerings},
		}}},
		Pools:   []model.Pool{richPool(), {Name: "plain", NodeLimit: -1}},
		Nodes:   []model.Node{richNode()},
		Shapes:  []model.PodShape{{Namespace: "n"}},
		Classes: []model.PodClass{richClass()},
	}
}

// check changes one field of base after the other and asks whether the change has an
// effect here. Fields without one must be in the table elsewhere, which says where
// they count; a row covers the fields below it.
func check[T any](t *testing.T, base func() T, elsewhere map[string]string, effect func(changed T) bool) {
	t.Helper()
	original := base()
	has := map[string]bool{}
	mutations(reflect.ValueOf(&original).Elem(), "", func(path string, change func(reflect.Value)) {
		changed := base()
		change(reflect.ValueOf(&changed).Elem())
		has[path] = effect(changed) || has[path]
	})
	used := map[string]bool{}
	for path, effective := range has {
		row := slices.IndexFunc(sorted(elsewhere), func(row string) bool { return path == row || strings.HasPrefix(path, row+".") })
		switch {
		case row < 0 && !effective:
			t.Errorf("%T%s: no constraint depends on the field. Make it part of one in constraints.go; if another room handles it, add a row to the table here, with the reason", original, path)
		case row >= 0 && effective:
			t.Errorf("%T%s: the field counts here, too; remove the row %q", original, path, sorted(elsewhere)[row])
		case row >= 0:
			used[sorted(elsewhere)[row]] = true
		}
	}
	for row := range elsewhere {
		if !used[row] {
			t.Errorf("%T has no field %s", original, row)
		}
	}
}

func sorted(rows map[string]string) []string {
	var out []string
	for row := range rows {
		out = append(out, row)
	}
	slices.Sort(out)
	return out
}

// TestKeysCoverEveryFieldOfPodClass: two classes that differ in a field share what is
// cached only if the field belongs to another room.
func TestKeysCoverEveryFieldOfPodClass(t *testing.T) {
	s := New(richProblem(), nil)
	key := func(c *model.PodClass) string {
		pod := s.Pod(c)
		return string(s.AppendKey(s.AppendKey(nil, ForClass, pod), ForSize, pod))
	}
	base := richClass()
	check(t, richClass, map[string]string{
		".Pods":            "names, and how many there are: construct",
		".Owner":           "a name for messages",
		".Quarantined":     "such a class is refused by validate.Class",
		".Namespace":       "topology",
		".Labels":          "topology",
		".AntiAffinity":    "topology",
		".Spread":          "topology",
		".Affinity":        "topology",
		".Preferences":     "topology, by level of preferences: instance",
		".NodePreferences": "levels of preferences, which no two classes share: instance",
		".Priority":        "the order of classes: instance",
		".Volumes.ID":      "which disks pods have in common: construct",
	}, func(changed model.PodClass) bool { return key(&changed) != key(&base) })
}

// compiled is everything that the space of a problem says to a plan, as a text.
func compiled(p *model.Problem) string { return textOf(New(p, nil)) }

// textOf is everything that a space says to a plan, as a text.
func textOf(s *Space) string {
	p := s.Problem
	pod := s.Pod(&p.Classes[0])
	key := model.AppendKey(nil, &s.Options)
	key = model.AppendKey(key, &s.Pools)
	key = model.AppendKey(key, &s.Supply.Lines)
	key = model.AppendKey(key, &s.DaemonSets)
	key = model.AppendKey(key, &s.Rejected)
	for _, stage := range []Stage{ForClass, ForSize, ForSupply} {
		allowed := s.Allowed(stage, pod)
		key = model.AppendKey(key, &allowed)
	}
	for o := range s.Options {
		uses, net := s.Uses(o), s.Net(o)
		key = model.AppendKey(model.AppendKey(key, &uses), &net)
		for k := range s.Labels.Keys() {
			name, _ := s.Labels.ValueName(k, s.Labels.OptionValue(k, o))
			key = model.AppendKey(key, &name)
		}
	}
	nodes := s.AllowedNodes(pod)
	key = model.AppendKey(key, &nodes)
	for n := range p.Nodes {
		free := s.NodeFree(n)
		key = model.AppendKey(key, &free)
		for k := range s.Labels.Keys() {
			name, _ := s.Labels.ValueName(k, s.Labels.NodeValue(k, n))
			key = model.AppendKey(key, &name)
		}
	}
	return string(key)
}

func TestSpaceCoversEveryFieldOfPool(t *testing.T) {
	base := compiled(richProblem())
	check(t, richPool, map[string]string{
		".StartupTaints":                  "taints that vanish before pods run: the NodeClaim",
		".Requirements.MinValues":         "how many values alternatives keep: instance",
		".Daemons.Name":                   "a name for messages",
		".Daemons.Requirements.MinValues": "nothing: only a NodePool has minValues",
	}, func(changed model.Pool) bool {
		p := richProblem()
		p.Pools[0] = changed
		return compiled(p) != base
	})
}

func TestSpaceCoversEveryFieldOfNode(t *testing.T) {
	base := compiled(richProblem())
	check(t, richNode, map[string]string{
		".Name":      "a name for messages",
		".Vacating":  "whose room is free: messages",
		".Claim":     "what a plan writes to: controller",
		".HostPorts": "which pods share a node: construct",
		".Attached":  "which disks pods share: construct",
		".Bound":     "topology",
		".Price":     "what a node costs: consolidate",
	}, func(changed model.Node) bool {
		p := richProblem()
		p.Nodes[0] = changed
		return compiled(p) != base
	})
}

// Problems that share a space have what each would have of its own, whatever differs in them; and
// they do share one where no space depends on it.
func TestSharedSpaceIsThatOfItsProblem(t *testing.T) {
	alone := func() *model.Problem {
		p := richProblem()
		p.Nodes = nil
		return p
	}
	base := alone()
	base.Quotas = []model.Quota{{Name: "cores", Left: 8}}
	for i := range base.Catalogs[0].InstanceTypes {
		base.Catalogs[0].InstanceTypes[i].Offerings[0].Quotas = []model.QuotaUse{{Quota: "cores", Amount: 4}}
	}
	shared := NewCatalogs(base.Catalogs)
	New(base, shared)
	differs := func(p *model.Problem) bool {
		if p.Catalogs = base.Catalogs; p.Quotas == nil {
			p.Quotas = base.Quotas
		}
		if textOf(New(p, shared)) != compiled(p) {
			t.Errorf("the shared space of %+v is another one", p)
		}
		return shared.key(p) != shared.key(base)
	}
	for name, c := range map[string]struct {
		change func(p *model.Problem)
		own    bool
	}{
		"no quota":    {func(p *model.Problem) { p.Quotas = []model.Quota{} }, false},
		"less quota":  {func(p *model.Problem) { p.Quotas = []model.Quota{{Name: "cores", Left: 1}} }, false},
		"preferences": {func(p *model.Problem) { p.Policy.IgnorePreferences = true }, false},
		"no limits": {func(p *model.Problem) {
			p.Pools = slices.Clone(p.Pools)
			p.Pools[0].Limits, p.Pools[0].NodeLimit, p.Pools[0].CostLimit = nil, -1, nil
		}, false},
		"a node": {func(p *model.Problem) { p.Nodes = []model.Node{richNode()} }, true},
		"running pods that repel others": {func(p *model.Problem) {
			p.Shapes = []model.PodShape{{AntiAffinity: []model.AffinityTerm{{TopologyKey: "rack"}}}}
		}, true},
	} {
		for _, limited := range []bool{true, false} {
			of, kept := alone(), NewCatalogs(base.Catalogs)
			of.Catalogs, of.Quotas = base.Catalogs, base.Quotas
			if pool := &of.Pools[0]; !limited {
				pool.Limits, pool.NodeLimit, pool.CostLimit = nil, -1, nil
			}
			first := New(of, kept)
			was, p := textOf(first), *of
			c.change(&p)
			if textOf(New(&p, kept)) != compiled(&p) || (kept.key(&p) != kept.key(of)) != c.own {
				t.Errorf("%s, limited %v: another space than its own, or not shared as it should be (%v)", name, limited, !c.own)
			}
			if textOf(first) != was {
				t.Errorf("%s, limited %v: has changed the space that it shares", name, limited)
			}
		}
	}
	check(t, richClass, map[string]string{
		".Pods": "names", ".Owner": "a name", ".Namespace": "topology", ".Labels": "topology", ".Requests": "what pods ask of options",
		".AntiAffinity.Selector": "topology", ".AntiAffinity.Namespaces": "topology", ".AntiAffinity.AllNamespaces": "topology",
		".Affinity.Selector": "topology", ".Affinity.Namespaces": "topology", ".Affinity.AllNamespaces": "topology",
		".Spread.Selector":           "topology",
		".Preferences.Term.Selector": "topology", ".Preferences.Term.Namespaces": "topology", ".Preferences.Term.AllNamespaces": "topology",
		".Tolerations": "what pods ask of options", ".HostPorts": "what pods ask of options", ".MaxPrice": "what pods ask of options",
		".Priority": "the order of classes", ".Volumes.ID": "which disks pods have in common",
	}, func(changed model.PodClass) bool {
		p := alone()
		p.Classes[0] = changed
		return differs(p)
	})
	check(t, richPool, map[string]string{
		".StartupTaints": "taints that vanish", ".Limits": "the supply", ".Usage": "the supply", ".NodeLimit": "the supply",
		".Nodes": "the supply", ".CostLimit": "the supply", ".Cost": "the supply",
	}, func(changed model.Pool) bool {
		p := alone()
		p.Pools[0] = changed
		return differs(p)
	})
}

// TestImpliedConstraintsAreImplied: leaving them out of the masks changes nothing.
func TestImpliedConstraintsAreImplied(t *testing.T) {
	p := richProblem()
	s := New(p, nil)
	for cpu := int64(0); cpu <= 5000; cpu += 100 {
		c := p.Classes[0]
		c.Requests = model.Resources{cpu, 1, 0, 1}
		pod := s.Pod(&c)
		allowed := s.Allowed(ForSize, pod)
		for i := range s.constraints {
			if !s.constraints[i].Implied {
				continue
			}
			left := allowed.Clone()
			s.constraints[i].options(s, pod, left)
			if !slices.Equal(left, allowed) {
				t.Fatalf("%s removes options that no other constraint removes, at %d", s.constraints[i].Reason, cpu)
			}
		}
	}
}

func TestConstraintsInOrderOfReasons(t *testing.T) {
	var listed []model.Reason
	for _, c := range Constraints() {
		listed = append(listed, c.Reason)
	}
	var documented []model.Reason
	for _, info := range model.Reasons() {
		if slices.Contains(listed, info.Reason) {
			documented = append(documented, info.Reason)
		}
	}
	if !slices.Equal(listed, documented) {
		t.Errorf("constraints are asked in the order %v, but documented in the order %v", listed, documented)
	}
}
