package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
)

// drawCluster makes a small cluster in which labels, selectors, namespaces and
// volume claims collide often.
func drawCluster(t *rapid.T) []Record {
	var records []Record
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	drawSelector := func() *model.Selector {
		switch rapid.IntRange(0, 3).Draw(t, "selector") {
		case 0:
			return nil
		case 1:
			return &model.Selector{}
		}
		op := model.Operator(pick("operator", "In", "NotIn", "Exists", "DoesNotExist"))
		r := model.Requirement{Key: pick("key", "app", "tier", "rev"), Operator: op}
		if op == model.In || op == model.NotIn {
			r.Values = []string{pick("value", "a", "b")}
		}
		return &model.Selector{Requirements: model.Requirements{r}}
	}
	drawTerm := func() Term {
		term := Term{TopologyKey: pick("topology", model.LabelZone, model.LabelHostname), Selector: drawSelector()}
		switch rapid.IntRange(0, 3).Draw(t, "namespaces") {
		case 0:
			term.Namespaces = []string{pick("namespace", "one", "two")}
		case 1:
			term.NamespaceSelector = drawSelector()
		}
		return term
	}
	var specs []*PodSpec
	for i := range rapid.IntRange(1, 4).Draw(t, "specs") {
		s := &PodSpec{Key: fmt.Sprint("spec", i), Requests: Amounts{CPU: int64(i%2+1) * 100, Pods: 1}}
		if rapid.Bool().Draw(t, "spread") {
			s.Spread = []model.SpreadConstraint{{TopologyKey: model.LabelZone, MaxSkew: 1, Selector: drawSelector(), Hard: true}}
		}
		if rapid.Bool().Draw(t, "affinity") {
			s.Affinity = []Term{drawTerm()}
		}
		if rapid.Bool().Draw(t, "anti") {
			s.AntiAffinity = []Term{drawTerm()}
		}
		specs = append(specs, s)
	}
	for _, name := range []string{"one", "two"} {
		records = append(records, &Namespace{Name: name, Labels: map[string]string{"app": pick("label", "a", "b")}})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "nodes") {
		n := &Node{
			Name: fmt.Sprint("node", i), Labels: map[string]string{model.LabelZone: pick("zone", "1", "2")},
			Allocatable: Amounts{CPU: 4000, Pods: 10},
		}
		n.Disrupted = rapid.Bool().Draw(t, "disrupted")
		records = append(records, n)
	}
	for i := range rapid.IntRange(0, 12).Draw(t, "pods") {
		labels := map[string]string{}
		for _, k := range []string{"app", "tier", "rev", "noise"} {
			if v := pick("pod label", "", "a", "b"); v != "" {
				labels[k] = v
			}
		}
		p := &Pod{
			Ref:     model.PodRef{Namespace: pick("pod namespace", "one", "two"), Name: fmt.Sprint("pod", i)},
			Spec:    rapid.SampledFrom(specs).Draw(t, "spec"),
			Labels:  &Labels{Key: fmt.Sprint(labels), Values: labels},
			Owner:   Owner{Kind: "Deployment", Name: pick("owner", "x", "y")},
			Created: time.Unix(int64(rapid.IntRange(0, 2).Draw(t, "created")), 0),
		}
		if node := pick("bound", "", "node0", "node1", "gone"); node != "" {
			p.Node = node
		} else {
			p.Wanted = true
		}
		if rapid.IntRange(0, 3).Draw(t, "claims") == 0 {
			p.Claims = []string{pick("claim", "shared", "missing")}
		}
		records = append(records, p)
	}
	records = append(records, &VolumeClaim{Namespace: "one", Name: "shared", Class: "sc"},
		&StorageClass{Name: "sc", Driver: "disk"}, &Pool{Name: "pool", Ready: true, NodeLimit: -1})
	return records
}

func state(t *rapid.T, records []Record) *Input {
	s := NewStore()
	for _, r := range records {
		s.Put(r)
	}
	catalog := &Catalog{
		Axes: model.NewAxes(), InstanceTypes: []model.InstanceType{{Name: "t", Capacity: model.Resources{4000, 1 << 34, 0, 10}}},
	}
	in, err := s.Snapshot().Problem(t.Context(), oneCatalog{catalog}, Options{Now: time.Unix(100, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestProblemIgnoresOrderOfEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := drawCluster(t)
		first := state(t, records)
		shuffled := slices.Clone(records)
		random := rand.New(rand.NewPCG(uint64(rapid.IntRange(0, 1000).Draw(t, "shuffle")), 0))
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(first.Problem, state(t, shuffled).Problem); diff != "" {
			t.Fatalf("the same cluster gave another problem:\n%s", diff)
		}
	})
}

func TestEveryPendingPodIsPlannedOrRefusedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := drawCluster(t)
		in := state(t, records)
		times := map[model.PodRef]int{}
		for _, c := range in.Problem.Classes {
			for _, ref := range c.Pods {
				times[ref]++
			}
		}
		for _, r := range in.Rejected {
			times[r.Pod]++
		}
		for _, r := range records {
			p, ok := r.(*Pod)
			if !ok {
				continue
			}
			n := in.snapshot.Node(p.Node)
			want := 0
			if p.Wanted || n != nil && n.Disrupted {
				want = 1
			}
			if times[p.Ref] != want {
				t.Fatalf("pod %s occurs %d times, want %d", p.Ref, times[p.Ref], want)
			}
		}
	})
}

// TestTermsSelectWholePodClasses is what makes it right to plan classes: a
// term of the problem selects all pods of a class by their real labels, or none,
// and agrees with what the class shows.
func TestTermsSelectWholePodClasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := state(t, drawCluster(t))
		p := in.Problem
		var terms []model.AffinityTerm
		for i := range p.Classes {
			c := &p.Classes[i]
			terms = slices.Concat(terms, c.Affinity, c.AntiAffinity)
			for _, s := range c.Spread {
				terms = append(terms, model.AffinityTerm{Selector: s.Selector, Namespaces: []string{c.Namespace}})
			}
		}
		checkBound(t, in, terms)
		for i := range p.Shapes {
			terms = append(terms, p.Shapes[i].AntiAffinity...)
		}
		for i := range p.Classes {
			c := &p.Classes[i]
			for j := range terms {
				shown := terms[j].Selects(c.Namespace, c.Labels)
				for _, ref := range c.Pods {
					record := in.Record(ref)
					if got := terms[j].Selects(ref.Namespace, record.Labels.Values); got != shown {
						t.Fatalf("pod %s %v of class %d: term %+v selects it: %v, but its class: %v", ref, record.Labels.Values, i, terms[j], got, shown)
					}
				}
			}
		}
	})
}

// checkBound counts for every node and term the pods that the term selects, by
// the shapes of the problem and by their real labels.
func checkBound(t *rapid.T, in *Input, terms []model.AffinityTerm) {
	moved := map[model.PodRef]bool{}
	for i := range in.Problem.Classes {
		for _, ref := range in.Problem.Classes[i].Pods {
			moved[ref] = true
		}
	}
	for i := range in.Problem.Nodes {
		n := &in.Problem.Nodes[i]
		for j := range terms {
			shown, real := 0, 0
			for _, b := range n.Bound {
				if s := &in.Problem.Shapes[b.Shape]; terms[j].Selects(s.Namespace, s.Labels) {
					shown += b.Count
				}
			}
			for p := range in.snapshot.Pods() {
				if p.Node == n.Name && !moved[p.Ref] && terms[j].Selects(p.Ref.Namespace, p.Labels.Values) {
					real++
				}
			}
			if shown != real {
				t.Fatalf("node %s: term %+v selects %d of the shapes, but %d pods", n.Name, terms[j], shown, real)
			}
		}
	}
}
