package disruption

import (
	"strconv"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclaims"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// drafter writes the planned commands of one decision in names, with the claims that
// are to be created.
type drafter struct {
	input *fleet.DisruptionInput
	// pools are the NodePools as the API server has them, by name.
	pools map[string]*karpv1.NodePool
	// writer writes the replacements of all commands of the decision.
	writer *nodeclaims.Writer
	newID  func(n int) string
}

func newDrafter(input *fleet.DisruptionInput, planned []model.Command,
	pools map[string]*karpv1.NodePool, newID func(n int) string) *drafter {
	var fresh []model.NewNode
	for i := range planned {
		fresh = append(fresh, planned[i].New...)
	}
	return &drafter{input: input, pools: pools, writer: nodeclaims.NewWriter(input.Problem, fresh, pools), newID: newID}
}

// commands writes down the commands of a decision. One is left out when a NodePool
// was deleted between the two readings, and is then decided again.
func (d *drafter) commands(planned []model.Command, now func() time.Time) []*command {
	var out []*command
	for i := range planned {
		if c := d.command(&planned[i], now()); c != nil {
			out = append(out, c)
		}
	}
	return out
}

func (d *drafter) command(planned *model.Command, now time.Time) *command {
	c := &command{Record: Record{
		ID: d.newID(8), Reason: planned.Reason, Begun: now.UTC(), FromTemplate: planned.FromTemplate, TerminateFirst: planned.TerminateFirst,
		Saving: planned.Saving.Dollars(), Evictions: planned.Evictions,
	}, drafts: map[string]*karpv1.NodeClaim{}}
	for _, n := range planned.Nodes {
		node := &d.input.Problem.Nodes[n]
		c.Remove = append(c.Remove, Removed{Claim: node.Claim, Node: node.Name, Pool: node.Pool, Pods: d.moving(n)})
	}
	if planned.TerminateFirst {
		return c
	}
	if planned.FromTemplate {
		if !d.copies(c) {
			return nil
		}
		return c
	}
	if !d.replacements(c, planned) {
		return nil
	}
	c.placements = d.placements(planned, c.Replace)
	return c
}

// moving is the number of pods of a node, by its index, that have to move.
func (d *drafter) moving(node int) int {
	pods := 0
	for _, of := range d.input.Disruption.Usages[node].Pods {
		pods += len(of.Pods)
	}
	return pods
}

// copies replaces every node by what its pool's template says. It returns false when
// a pool is gone.
func (d *drafter) copies(c *command) bool {
	for _, r := range c.Remove {
		pool := d.pools[r.Pool]
		if pool == nil {
			return false
		}
		claim := nodeclaims.Whole(pool, d.name(pool.Name))
		d.add(c, claim, Replacement{Claim: claim.Name, Pool: pool.Name})
	}
	return true
}

// replacements writes the claims of the nodes that the planner chose. It returns
// false when a pool is gone.
func (d *drafter) replacements(c *command, planned *model.Command) bool {
	p := d.input.Problem
	expected, bought := d.expectedSaving(planned), model.Money(0)
	for i := range planned.New {
		bought += planned.New[i].Best().Price
	}
	for i := range planned.New {
		pool := &p.Pools[planned.New[i].Pool]
		name := d.name(pool.Name)
		claim, offerings := d.writer.Write(&planned.New[i], name)
		if claim == nil {
			return false
		}
		best := offerings[0]
		if expected > 0 && bought > 0 {
			share := elsewhere * expected.Dollars() * best.Price.Dollars() / bought.Dollars()
			claim.Annotations[v1beta1.AnnotationExpectedSaving] = strconv.FormatFloat(share, 'f', 6, 64)
		}
		t := &p.Catalogs[pool.Catalog].InstanceTypes[best.InstanceType]
		o := &t.Offerings[best.Offering]
		d.add(c, claim, Replacement{Claim: name, Pool: pool.Name, InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType})
	}
	return true
}

// elsewhere is a factor for pods that do not come to the nodes that were bought for
// them: those that do answer for what was to be saved with all.
const elsewhere = 1.25

// expectedSaving is what moving the pods saves, together with what moving them
// before was to save.
func (d *drafter) expectedSaving(planned *model.Command) model.Money {
	if planned.Reason != model.DisruptUnderutilized {
		return 0
	}
	sum := max(0, planned.Saving)
	for _, n := range planned.Nodes {
		sum += d.input.Disruption.Usages[n].ExpectedSaving
	}
	return sum
}

// name returns a fresh name for a claim.
func (d *drafter) name(pool string) string { return pool + "-" + d.newID(5) }

// add marks a claim as a replacement of a command and adds it to that.
func (d *drafter) add(c *command, claim *karpv1.NodeClaim, r Replacement) {
	claim.Annotations[v1beta1.AnnotationReplaces] = c.ID
	c.addReplacement(claim, r)
}

// placements names the places that a command's pods are to have: nodes that exist,
// and the claims of its replacements, which are in the order of the planned ones.
func (d *drafter) placements(planned *model.Command, replacements []Replacement) map[model.PodRef]string {
	out := map[model.PodRef]string{}
	add := func(pods []model.ClassPods, name string) {
		for _, ref := range d.input.Movable(pods) {
			out[ref] = name
		}
	}
	for i := range planned.Placements {
		add(planned.Placements[i].Pods, d.input.Problem.Nodes[planned.Placements[i].Node].Name)
	}
	for i := range planned.New {
		add(planned.New[i].Pods, replacements[i].Claim)
	}
	return out
}
