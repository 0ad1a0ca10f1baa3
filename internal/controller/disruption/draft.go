package disruption

import (
	"strconv"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclaims"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// drafter writes moves in names, with the claims that are to be created.
type drafter struct {
	*Loop
	input  *fleet.DisruptionInput
	pools  map[string]*karpv1.NodePool
	writer *nodeclaims.Writer
}

// records writes down the moves of a decision. One is left out when a NodePool
// went between the two readings, and is then decided anew.
func (l *Loop) records(input *fleet.DisruptionInput, moves []model.Command, pools map[string]*karpv1.NodePool) []*move {
	var fresh []model.NewNode
	for i := range moves {
		fresh = append(fresh, moves[i].New...)
	}
	d := &drafter{l, input, pools, nodeclaims.NewWriter(input.Problem, fresh, pools)}
	var out []*move
	for i := range moves {
		if m := d.record(&moves[i]); m != nil {
			out = append(out, m)
		}
	}
	return out
}

func (d *drafter) record(mv *model.Command) *move {
	now := d.Clock.Now()
	m := &move{Record: Record{
		ID: d.NewID(8), Reason: mv.Reason, Begun: now.UTC(), FromTemplate: mv.FromTemplate,
		Saving: mv.Saving.Dollars(), Evictions: mv.Evictions,
	}, drafts: map[string]*karpv1.NodeClaim{}, since: now}
	for _, n := range mv.Nodes {
		node := &d.input.Problem.Nodes[n]
		m.Remove = append(m.Remove, Removed{Claim: node.Claim, Node: node.Name, Pool: node.Pool})
	}
	if mv.FromTemplate {
		if !d.copies(m) {
			return nil
		}
		return m
	}
	if !d.machines(m, mv) {
		return nil
	}
	m.homes = homesOf(d.input, mv, m)
	return m
}

// copies replaces every node by what its pool's template says.
func (d *drafter) copies(m *move) bool {
	for _, r := range m.Remove {
		pool := d.pools[r.Pool]
		if pool == nil {
			return false
		}
		name := d.name(pool.Name)
		m.buys(nodeclaims.FromTemplate(pool, name), Replacement{Claim: name, Pool: pool.Name})
	}
	return true
}

// machines writes the claims of the machines that the planner chose.
func (d *drafter) machines(m *move, mv *model.Command) bool {
	p := d.input.Problem
	earned, bought := d.earned(mv), model.Money(0)
	for i := range mv.New {
		bought += mv.New[i].Best().Price
	}
	for i := range mv.New {
		pool := &p.Pools[mv.New[i].Pool]
		name := d.name(pool.Name)
		claim, offerings := d.writer.Write(&mv.New[i], name)
		if claim == nil {
			return false
		}
		best := offerings[0]
		if earned > 0 && bought > 0 {
			share := strayed * earned.Dollars() * best.Price.Dollars() / bought.Dollars()
			claim.Annotations[v1beta1.AnnotationExpectedSaving] = strconv.FormatFloat(share, 'f', 6, 64)
		}
		t := &p.Catalogs[pool.Catalog].InstanceTypes[best.InstanceType]
		o := &t.Offerings[best.Offering]
		m.buys(claim, Replacement{Claim: name, Pool: pool.Name, InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType})
	}
	return true
}

// strayed makes up for pods that do not come to the machines that were bought for
// them: those that do answer for what was earned with all.
const strayed = 1.25

// earned is what moving the pods saves, together with what moving them before was
// to save.
func (d *drafter) earned(mv *model.Command) model.Money {
	if mv.Reason != model.DisruptUnderutilized {
		return 0
	}
	sum := max(0, mv.Saving)
	for _, n := range mv.Nodes {
		sum += d.input.Fleet.Usages[n].ExpectedSaving
	}
	return sum
}

// name is a name for a claim that nobody has.
func (d *drafter) name(pool string) string { return pool + "-" + d.NewID(5) }

// buys adds a replacement to the move.
func (m *move) buys(claim *karpv1.NodeClaim, r Replacement) {
	claim.Annotations[v1beta1.AnnotationReplaces] = m.ID
	m.Replace = append(m.Replace, r)
	m.drafts[claim.Name] = claim
}
