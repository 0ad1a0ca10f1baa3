package decompose

import (
	"maps"
	"slices"
	"strconv"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/noderules"
)

// Alike gives numbers to what may have any name in parts of a problem, as those of tenants have
// it. Of parts that differ in names alone one plan does for all of them, and others share what is
// compiled of their NodePools.
type Alike struct {
	// first is by part the first one that is like it, itself if there is none.
	first []int
	// names are those of each part, nil for a part that is compared with no other.
	names []*ownNames
}

// FindAlike compares all parts. Parts with nodes are like no other.
func FindAlike(p *model.Problem, parts []Part) *Alike {
	a := &Alike{first: allOf(len(parts)), names: make([]*ownNames, len(parts))}
	cloud, known := noderules.NewCloudLabels(p), map[string]int{}
	for i := range parts {
		if own := parts[i].Problem; len(own.Nodes) == 0 {
			a.names[i] = newNames(own, cloud)
			key := string(model.CompactKey(a.names[i].key(a.names[i].problem(own))))
			if other, found := known[key]; found {
				a.first[i] = other
			} else {
				known[key] = i
			}
		}
	}
	return a
}

// First is the first part that is like a part: itself if there is none before it.
func (a *Alike) First(part int) int { return a.first[part] }

// Problem is the problem of a part with numbers in the place of names. Parts with nodes keep their
// names.
func (a *Alike) Problem(part int, own *model.Problem) *model.Problem {
	if a.names[part] == nil {
		return own
	}
	return a.names[part].problem(own)
}

// Plan is the plan of a part by that of its problem with numbers, or of a part that is alike. It is nil
// where that plan says more than numbers can be exchanged in: why pods have no place, for instance. It
// shares all lists but those of names.
func (a *Alike) Plan(part int, of *model.Plan) *model.Plan {
	own := a.names[part]
	if own == nil {
		return of
	}
	if len(of.Unschedulable)+len(of.Rejected)+len(of.Relaxed)+len(of.Placements) > 0 {
		return nil
	}
	plan := *of
	plan.NewNodes = slices.Clone(of.NewNodes)
	for i := range plan.NewNodes {
		node := &plan.NewNodes[i]
		node.Requirements = slices.Clone(node.Requirements)
		for r := range node.Requirements {
			asked := &node.Requirements[r]
			if _, renamed := own.numbers[asked.Key]; renamed {
				asked.Values = slices.Clone(asked.Values)
				for v, number := range asked.Values {
					asked.Values[v] = own.name(asked.Key, number)
				}
				slices.Sort(asked.Values)
			}
		}
	}
	if a.first[part] != part {
		plan.Stats.Steps, plan.Stats.Rounds = 0, 0
	}
	return &plan
}

// ownNames numbers what may have any name in a problem, in the order in which it is met: the values
// of labels that NodePools require and the cloud does not decide, NodePools among them, and the
// values of taints.
type ownNames struct {
	// numbers are those of values by label, and values by number. They have an entry for each
	// label of which the values may have any name. The label of taints is empty.
	numbers map[string]map[string]int
	values  map[string][]string
}

// taintValues stands for the label of taints.
const taintValues = ""

// newNames finds the labels of which values may have any name. Those of which some rule compares
// values as numbers are none of them.
func newNames(p *model.Problem, cloud *noderules.CloudLabels) *ownNames {
	n := &ownNames{numbers: map[string]map[string]int{}, values: map[string][]string{}}
	n.numbers[model.LabelNodePool] = map[string]int{}
	n.numbers[taintValues] = map[string]int{}
	for i := range p.Pools {
		for _, r := range p.Pools[i].Requirements {
			n.numbers[r.Key] = map[string]int{}
		}
	}
	others := []string{model.LabelHostname, noderules.LabelRegistered, noderules.LabelInitialized}
	for _, key := range slices.Concat(noderules.CloudKeys(), others) {
		delete(n.numbers, key)
	}
	for i := range p.Pools {
		maps.DeleteFunc(n.numbers, func(key string, _ map[string]int) bool {
			return key != taintValues && key != model.LabelNodePool && cloud.Decides(&p.Pools[i], key)
		})
	}
	compared := func(rs model.Requirements) model.Requirements {
		for i := range rs {
			switch rs[i].Operator {
			case model.In, model.NotIn, model.Exists, model.DoesNotExist:
			default:
				delete(n.numbers, rs[i].Key)
			}
		}
		return rs
	}
	withRules(p, compared, func(ts []model.Toleration) []model.Toleration {
		if slices.ContainsFunc(ts, func(t model.Toleration) bool { return t.Compare != "" }) {
			delete(n.numbers, taintValues)
		}
		return ts
	})
	return n
}

// withRules are the NodePools and classes of a problem with other requirements on labels of nodes,
// and other tolerations, of which it comes to all in an order that does not depend on names.
func withRules(p *model.Problem, requirements func(model.Requirements) model.Requirements,
	tolerations func([]model.Toleration) []model.Toleration) (pools []model.Pool, classes []model.PodClass) {
	lists := func(alternatives []model.Requirements) []model.Requirements {
		out := slices.Clone(alternatives)
		for i := range out {
			out[i] = requirements(out[i])
		}
		return out
	}
	pools, classes = slices.Clone(p.Pools), slices.Clone(p.Classes)
	for i := range pools {
		pool := &pools[i]
		pool.Requirements, pool.Daemons = requirements(pool.Requirements), slices.Clone(pool.Daemons)
		for k := range pool.Daemons {
			d := &pool.Daemons[k]
			d.Requirements, d.Tolerations = lists(d.Requirements), tolerations(d.Tolerations)
		}
	}
	for i := range classes {
		c := &classes[i]
		c.NodeRequirements, c.NodeAlternatives = requirements(c.NodeRequirements), lists(c.NodeAlternatives)
		c.NodePreferences = slices.Clone(c.NodePreferences)
		for k := range c.NodePreferences {
			c.NodePreferences[k].Requirements = requirements(c.NodePreferences[k].Requirements)
		}
		c.VolumeAlternatives, c.Devices = lists(c.VolumeAlternatives), requirements(c.Devices)
		c.Tolerations = tolerations(c.Tolerations)
	}
	return pools, classes
}

// number is what stands for a value of a label.
func (n *ownNames) number(label, value string) string {
	numbers, any := n.numbers[label]
	if !any || value == "" { // a NodePool without a name is refused
		return value
	}
	number, known := numbers[value]
	if !known {
		number = len(numbers)
		numbers[value], n.values[label] = number, append(n.values[label], value)
	}
	return strconv.Itoa(number)
}

// name is the value of a label that a number stands for.
func (n *ownNames) name(label, number string) string {
	if i, err := strconv.Atoi(number); err == nil && i < len(n.values[label]) {
		return n.values[label][i]
	}
	return number
}

// problem is a problem with numbers in the place of names.
func (n *ownNames) problem(p *model.Problem) *model.Problem {
	out := *p
	out.Pools, out.Classes = withRules(p, n.requirements, n.tolerations)
	for i := range out.Pools {
		n.rename(&out.Pools[i])
	}
	return &out
}

// likeness is all of a problem with numbers for names that a plan depends on, but for what all parts
// share: two problems with equal ones have the same plans.
type likeness struct {
	pools   []model.Pool
	classes []model.PodClass
	// pods is how many each class has.
	pods []int
	// selected are by class and topology term the classes which the term selects.
	selected [][][]int
}

// key is a text of the likeness of a problem with numbers for names.
func (n *ownNames) key(p *model.Problem) []byte {
	l := likeness{pools: p.Pools, classes: slices.Clone(p.Classes)}
	for i := range l.classes {
		l.classes[i] = noderules.Anonymous(&l.classes[i])
		l.pods = append(l.pods, len(p.Classes[i].Pods))
		var selected [][]int
		eachTerm(&p.Classes[i], func(t *model.AffinityTerm) {
			var of []int
			for c := range p.Classes {
				if t.Selects(p.Classes[c].Namespace, p.Classes[c].Labels) {
					of = append(of, c)
				}
			}
			selected = append(selected, of)
		})
		l.selected = append(l.selected, selected)
	}
	return model.AppendKey(nil, &l)
}

// rename gives a NodePool numbers for its name, labels and taints.
func (n *ownNames) rename(pool *model.Pool) {
	pool.Name = n.number(model.LabelNodePool, pool.Name)
	pool.Labels = maps.Clone(pool.Labels)
	for _, key := range slices.Sorted(maps.Keys(pool.Labels)) {
		pool.Labels[key] = n.number(key, pool.Labels[key])
	}
	pool.Taints, pool.StartupTaints = n.taints(pool.Taints), n.taints(pool.StartupTaints)
}

func (n *ownNames) requirements(rs model.Requirements) model.Requirements {
	out := slices.Clone(rs)
	for i := range out {
		if _, any := n.numbers[out[i].Key]; any {
			out[i].Values = slices.Clone(out[i].Values)
			for v, value := range out[i].Values {
				out[i].Values[v] = n.number(out[i].Key, value)
			}
		}
	}
	return out
}

func (n *ownNames) taints(ts []model.Taint) []model.Taint {
	out := slices.Clone(ts)
	for i := range out {
		out[i].Value = n.number(taintValues, out[i].Value)
	}
	return out
}

func (n *ownNames) tolerations(ts []model.Toleration) []model.Toleration {
	out := slices.Clone(ts)
	for i := range out {
		out[i].Value = n.number(taintValues, out[i].Value)
	}
	return out
}
