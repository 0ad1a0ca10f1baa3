package fleet

import (
	"maps"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// resolver turns the affinity and spread terms of specs into terms with plain
// namespaces, and knows which pods any of them speaks of. Labels and namespaces
// that no term speaks of are dropped from the problem, which is what lets the
// pods of different workloads share a class.
type resolver struct {
	spaces map[string]*Namespace
	// ordered are the same by name, once a term asks for them.
	ordered []*Namespace
	// names is storage for the list of one term.
	names []string
	// shares are the caps of workloads, or nil.
	shares *workloadShares
	// pending speaks for pods that are placed, running for the anti-affinity of
	// pods that run.
	pending selectorIndex
	running selectorIndex
	// keys are the label keys that any term reads.
	keys []string

	// resolved are the answers of the method class so far, spoken those of
	// identity.
	resolved map[termsIn]*model.PodClass
	spoken   map[podIdentity]*identity
	// identities finds equal identities by their text.
	identities map[string]*identity
	// numbers are the answers of the method number so far, byKey the numbers by
	// PodSpec.Key.
	numbers map[*PodSpec]int
	byKey   map[string]int
	// runners are the answers of the method shape so far: indices into list, -1
	// for pods that no rule sees. shapes finds equal shapes by their text.
	runners map[runner]int
	shapes  map[string]int
	// list are the shapes of the problem, in the order of their first use.
	list []model.PodShape
}

// runner is what a running pod's shape depends on; spec is nil for pods without
// anti-affinity.
type runner struct {
	podIdentity
	spec *PodSpec
}

// termsIn are the topology terms of a spec, by where they are, in a namespace.
// Specs that differ in nothing but their sizes often share them.
type termsIn struct {
	spread         *model.SpreadConstraint
	affinity, anti *Term
	preferences    *PreferredTerm
	namespace      string
}

func (s *PodSpec) termsIn(namespace string) termsIn {
	return termsIn{firstOf(s.Spread), firstOf(s.Affinity), firstOf(s.AntiAffinity), firstOf(s.Preferences), namespace}
}

func firstOf[T any](list []T) *T {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

type podIdentity struct {
	labels    *Labels
	namespace string
}

func newResolver(s *Snapshot, shares *workloadShares) *resolver {
	return &resolver{
		spaces:     s.spaces,
		shares:     shares,
		pending:    newSelectorIndex(),
		running:    newSelectorIndex(),
		resolved:   map[termsIn]*model.PodClass{},
		spoken:     map[podIdentity]*identity{},
		identities: map[string]*identity{},
		numbers:    map[*PodSpec]int{},
		byKey:      map[string]int{},
		runners:    map[runner]int{},
		shapes:     map[string]int{},
	}
}

// class returns the topology terms of a spec in a namespace, resolved. Callers
// copy what they need and do not change it.
func (r *resolver) class(s *PodSpec, namespace string) *model.PodClass {
	key := s.termsIn(namespace)
	if c := r.resolved[key]; c != nil {
		return c
	}
	c := &model.PodClass{Spread: s.Spread}
	for i := range s.Affinity {
		c.Affinity = append(c.Affinity, r.term(&s.Affinity[i], namespace))
	}
	for i := range s.AntiAffinity {
		c.AntiAffinity = append(c.AntiAffinity, r.term(&s.AntiAffinity[i], namespace))
	}
	for i := range s.Preferences {
		p := &s.Preferences[i]
		c.Preferences = append(c.Preferences, model.AffinityPreference{Weight: p.Weight, Anti: p.Anti, Term: r.term(&p.Term, namespace)})
	}
	r.resolved[key] = c
	return c
}

func (r *resolver) term(t *Term, namespace string) model.AffinityTerm {
	out := model.AffinityTerm{TopologyKey: t.TopologyKey, Selector: t.Selector, Namespaces: t.Namespaces}
	switch {
	case t.ownNamespace():
		out.Namespaces = []string{namespace}
	case t.NamespaceSelector == nil:
	case len(t.NamespaceSelector.Requirements) == 0:
		out.Namespaces, out.AllNamespaces = nil, true
	default:
		names := append(r.names[:0], t.Namespaces...)
		for _, space := range r.byName() {
			if t.NamespaceSelector.Matches(space.Labels) {
				names = append(names, space.Name)
			}
		}
		r.names = names
		slices.Sort(names) // but for those that the term lists itself it is done
		out.Namespaces = slices.Clone(slices.Compact(names))
	}
	return out
}

// byName are the namespaces in the order of their names: many terms may select nearly all of them,
// and each lists them in this order.
func (r *resolver) byName() []*Namespace {
	if r.ordered == nil {
		r.ordered = slices.SortedFunc(maps.Values(r.spaces), func(a, b *Namespace) int { return strings.Compare(a.Name, b.Name) })
	}
	return r.ordered
}

// listen registers the terms of everything that is placed and the required
// anti-affinity of everything that runs.
// Only then do identity and shape give valid answers.
func (r *resolver) listen(placed []*podClass, nodes []*stateNode) {
	heard := map[termsIn]bool{}
	capped := map[podIdentity]bool{}
	for _, p := range placed {
		if who := (podIdentity{p.labels, p.namespace}); r.shares != nil && !capped[who] {
			capped[who] = true
			if c := r.shares.of(p.namespace, p.labels); c != nil {
				r.pending.add(&model.AffinityTerm{Selector: c.Selector, Namespaces: []string{p.namespace}})
			}
		}
		key := p.spec.termsIn(p.namespace)
		if heard[key] {
			continue
		}
		heard[key] = true
		c := r.class(p.spec, p.namespace)
		for i := range c.Spread {
			r.pending.add(&model.AffinityTerm{Selector: c.Spread[i].Selector, Namespaces: []string{p.namespace}})
		}
		for i := range c.Affinity {
			r.pending.add(&c.Affinity[i])
		}
		for i := range c.AntiAffinity {
			r.pending.add(&c.AntiAffinity[i])
		}
		for i := range c.Preferences {
			r.pending.add(&c.Preferences[i].Term)
		}
	}
	clear(heard)
	for _, n := range nodes {
		for _, p := range n.pods {
			key := p.Spec.termsIn(p.Ref.Namespace)
			if len(p.Spec.AntiAffinity) == 0 || heard[key] || !p.counts() {
				continue
			}
			heard[key] = true
			c := r.class(p.Spec, p.Ref.Namespace)
			for i := range c.AntiAffinity {
				r.running.add(&c.AntiAffinity[i])
			}
		}
	}
	keys := maps.Clone(r.pending.keys)
	maps.Copy(keys, r.running.keys)
	r.keys = slices.Sorted(maps.Keys(keys))
}

// speaksOf reports whether any term selects a pod with these labels.
func (r *resolver) speaksOf(namespace string, labels map[string]string) bool {
	return r.pending.selects(namespace, labels) || r.running.selects(namespace, labels)
}

// identity is what terms can see of a pod: its namespace and the labels that
// some term reads; nothing of pods that no term speaks of, with or without their
// labels. (A term such as "app NotIn [web]" speaks of a pod that has lost its
// labels, so such a pod must keep them.)
type identity struct {
	number int
	labels map[string]string
}

func (r *resolver) identity(namespace string, labels *Labels) *identity {
	key := podIdentity{labels, namespace}
	if id, known := r.spoken[key]; known {
		return id
	}
	text, visible := "", map[string]string(nil)
	values := r.shares.values(labels)
	if r.speaksOf(namespace, values) || r.speaksOf(namespace, nil) {
		text, visible = namespace+"\x00"+r.project(values), r.visible(values)
	}
	id, known := r.identities[text]
	if !known {
		id = &identity{len(r.identities), visible}
		r.identities[text] = id
	}
	r.spoken[key] = id
	return id
}

// number is the same for equal specs.
func (r *resolver) number(s *PodSpec) int {
	if n, known := r.numbers[s]; known {
		return n
	}
	n, known := r.byKey[s.Key]
	if !known {
		n = len(r.byKey)
		r.byKey[s.Key] = n
	}
	r.numbers[s] = n
	return n
}

func (r *resolver) project(labels map[string]string) string {
	var b strings.Builder
	for _, k := range r.keys {
		if v, ok := labels[k]; ok {
			b.WriteString(k)
			b.WriteByte('=')
			b.WriteString(v)
			b.WriteByte('\x00')
		}
	}
	return b.String()
}

func (r *resolver) visible(labels map[string]string) map[string]string {
	out := map[string]string{}
	for _, k := range r.keys {
		if v, ok := labels[k]; ok {
			out[k] = v
		}
	}
	return out
}

// bound counts the pods of a node by the shapes that matter to some pod that
// is placed.
func (r *resolver) bound(node *stateNode) []model.BoundPods {
	counts := map[int]int{}
	for _, p := range node.pods {
		if !p.counts() {
			continue
		}
		if shape := r.shape(p); shape >= 0 {
			counts[shape]++
		}
	}
	if len(counts) == 0 {
		return nil
	}
	out := make([]model.BoundPods, 0, len(counts))
	for _, shape := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, model.BoundPods{Shape: shape, Count: counts[shape]})
	}
	return out
}

// shapesOn are the shapes of the pods of all nodes.
func (r *resolver) shapesOn(nodes []*stateNode) []model.PodShape {
	for _, n := range nodes {
		for _, p := range n.pods {
			if p.counts() {
				r.shape(p)
			}
		}
	}
	return r.list
}

// shape returns the index of a running pod's shape, or -1 when no rule that is
// left can see the pod.
func (r *resolver) shape(p *Pod) int {
	key := runner{podIdentity: podIdentity{p.Labels, p.Ref.Namespace}}
	if len(p.Spec.AntiAffinity) > 0 {
		key.spec = p.Spec
	}
	i, known := r.runners[key]
	if !known {
		i = r.newShape(p)
		r.runners[key] = i
	}
	return i
}

func (r *resolver) newShape(p *Pod) int {
	values := r.shares.values(p.Labels)
	seen := r.pending.selects(p.Ref.Namespace, values)
	if !seen && len(p.Spec.AntiAffinity) == 0 {
		return -1
	}
	shape := model.PodShape{Namespace: p.Ref.Namespace}
	key := p.Ref.Namespace + "\x00"
	if seen || r.pending.selects(p.Ref.Namespace, nil) {
		shape.Labels = r.visible(values)
		key += r.project(values)
	}
	if len(p.Spec.AntiAffinity) > 0 {
		shape.AntiAffinity = r.class(p.Spec, p.Ref.Namespace).AntiAffinity
		key += "\x00" + p.Spec.Key
	}
	i, known := r.shapes[key]
	if !known {
		i = len(r.list)
		r.shapes[key] = i
		r.list = append(r.list, shape)
	}
	return i
}
