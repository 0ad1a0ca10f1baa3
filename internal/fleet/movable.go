package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// movablePods are the pods that would need a place if their node went.
type movablePods struct {
	// groups are in the order of their first pods' nodes and names.
	groups []*movableClass
	// place is where a pod is found in DisruptionProblem.Movable: its class and one
	// index. It is filled by the method classes.
	place map[*Pod]model.ClassPods
	// stuck are the pods that cannot be planned anywhere else, and why: their volumes or
	// devices cannot be placed, they state too much, or they ask for a resource without an axis.
	// They are in no group.
	stuck map[*Pod]string
}

// movableClass is a class of pods that run, with what their evictions cost and
// count against.
type movableClass struct {
	podClass
	// cost is the eviction cost of one pod in Karpenter's unit, where a plain pod
	// is 1.
	cost float64
	// budgets index podBudgets.listed.
	budgets []int
}

// newMovablePods groups the pods of nodes by the records that they share, their
// eviction cost and their budgets. Pods must be sorted to the nodes already.
func (a *assembly) newMovablePods() *movablePods {
	type key struct {
		recordKey
		cost    float64
		budgets string
	}
	pods := 0
	for _, n := range a.nodes.list {
		pods += len(n.pods)
	}
	m := &movablePods{place: make(map[*Pod]model.ClassPods, pods), stuck: map[*Pod]string{}}
	index := map[key]*movableClass{}
	for _, n := range a.nodes.list {
		for _, p := range n.pods {
			if !n.runsPod(p) || p.Daemon || p.Static || p.Terminal || p.Terminating && p.Owner.Kind != "StatefulSet" {
				continue
			}
			held, problem := a.claims.devicesElsewhere(p)
			if why := cmp.Or(p.Spec.TooMuch, problem, a.extended.refusal(p)); why != "" {
				m.stuck[p] = why
				continue
			}
			var d disks
			if len(p.Claims) > 0 {
				var problem *Rejection
				if d, problem = a.volumes.disksElsewhere(p); problem != nil {
					m.stuck[p] = problem.Message
					continue
				}
			}
			counted := a.budgets.of(p)
			k := key{recordKey{p.Spec, p.Labels, p.Ref.Namespace, d.key, held.key}, p.EvictionCost, budgetsKey(counted)}
			c := index[k]
			if c == nil {
				class := podClass{spec: p.Spec, labels: p.Labels, namespace: p.Ref.Namespace, disks: d, devices: held}
				c = &movableClass{class, p.EvictionCost, counted}
				index[k] = c
				m.groups = append(m.groups, c)
			}
			c.pods = append(c.pods, p)
		}
	}
	return m
}

// budgetsKey is equal for equal budgets. Most pods have none.
func budgetsKey(budgets []int) string {
	if len(budgets) == 0 {
		return ""
	}
	return fmt.Sprint(budgets)
}

// placed are the pending classes and the classes of the movable pods.
func (m *movablePods) placed(pending []*podClass) []*podClass {
	all := slices.Clone(pending)
	for _, c := range m.groups {
		all = append(all, &c.podClass)
	}
	return all
}

// classes states the movable pods in the problem's terms. It merges those which no
// rule can tell apart, with the same eviction cost and the same budgets.
func (m *movablePods) classes(w *classWriter) []model.MovableClass {
	type key struct {
		classKey
		cost    float64
		budgets string
	}
	equal := map[key][]*movableClass{}
	var keys []key
	for _, c := range m.groups {
		k := key{w.key(&c.podClass), c.cost, budgetsKey(c.budgets)}
		if equal[k] == nil {
			keys = append(keys, k)
		}
		equal[k] = append(equal[k], c)
	}
	var out []model.MovableClass
	for _, k := range keys {
		list := equal[k]
		parts := make([]*podClass, len(list))
		for i, c := range list {
			parts[i] = &c.podClass
		}
		all := joined(parts)
		places := make([]int, len(all.pods))
		for i, p := range all.pods {
			places[i] = i
			m.place[p] = model.ClassPods{Class: len(out), Pods: places[i : i+1 : i+1]}
		}
		class := w.write(all)
		for i := range class.Spread { // no pod has to move to where its workload has its share already
			class.Spread[i].Hard = class.Spread[i].Hard || class.Spread[i].Share
		}
		out = append(out, model.MovableClass{PodClass: class, Budgets: list[0].budgets, EvictionCost: list[0].cost})
	}
	return out
}
