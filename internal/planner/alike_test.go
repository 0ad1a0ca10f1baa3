package planner_test

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// again is a deep copy of a problem.
func (d *dice) again(p *model.Problem) *model.Problem {
	var buffer bytes.Buffer
	out := &model.Problem{}
	if err := gob.NewEncoder(&buffer).Encode(p); err != nil {
		d.Fatal(err)
	}
	if err := gob.NewDecoder(&buffer).Decode(out); err != nil {
		d.Fatal(err)
	}
	return out
}

// likeTenants draws a problem of tenants who have the same but for names. Now and then one has
// something else.
func (d *dice) likeTenants() *model.Problem {
	all := d.problem()
	own := d.again(all)
	all.Pools, all.Nodes, all.Classes, all.Shapes, own.Nodes, own.Shapes = nil, nil, nil, nil, nil, nil
	for i := range 3 + d.upTo(2) {
		other := d.again(own)
		for c := range other.Classes {
			if d.once(20) {
				d.change(&other.Classes[c])
			}
		}
		for k := range other.Pools {
			pool := &other.Pools[k]
			pool.Taints = append(pool.Taints, model.Taint{Key: "of", Value: fmt.Sprint("t", i), Effect: model.NoSchedule})
			if d.once(20) {
				pool.Taints = append(pool.Taints, model.Taint{Key: "also", Effect: model.NoSchedule})
			}
		}
		for c := range other.Classes {
			class := &other.Classes[c]
			tolerated := model.Toleration{Key: "of", Value: fmt.Sprint("t", i)}
			class.Tolerations = append(class.Tolerations, tolerated)
			if d.once(20) {
				class.Tolerations[len(class.Tolerations)-1].Value = "t0"
			}
		}
		d.settle(all, other, fmt.Sprint("t", i))
	}
	return all
}

// change changes something of a class that a plan depends on.
func (d *dice) change(c *model.PodClass) {
	switch d.upTo(5) {
	case 0:
		c.Pods = c.Pods[:len(c.Pods)-1]
	case 1:
		c.Requests = c.Requests.Add(model.Resources{1000})
	case 2:
		c.HostPorts = append(c.HostPorts, model.HostPort{Protocol: "TCP", Port: 99})
	case 3:
		c.MaxPrice = model.USD(0.2)
	case 4:
		for i := range c.Spread {
			c.Spread[i].Selector = nil
		}
	default:
		c.AntiAffinity = append(c.AntiAffinity, model.AffinityTerm{
			TopologyKey: model.LabelHostname, Selector: &model.Selector{}, Namespaces: []string{c.Namespace},
		})
	}
}

// A plan in which one part's does for all that are like it breaks no rule of the whole, leaves no
// pod out that would fit, and has a bound that holds.
func TestPlanOfAlikePartsIsOneOfTheWhole(t *testing.T) {
	alike, compared := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt, tiny: rapid.Bool().Draw(rt, "tiny")}
		p := d.likeTenants()
		p.Policy.Budget = pick(d, 0, 2*time.Millisecond)
		if planner.AlikeParts(p) == 0 {
			return
		}
		alike++
		if d.judgeInParts(p) {
			compared++
		}
	})
	if t.Logf("%d plans with parts that are alike, %d of them compared", alike, compared); compared < 10 {
		t.Errorf("only %d plans with parts that are alike, %d of them compared", alike, compared)
	}
}
