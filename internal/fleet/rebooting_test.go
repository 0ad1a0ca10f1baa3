package fleet

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// A node that reboots is capacity on its way: its pods may wait for it, and no decision on
// giving back looks at it.
func TestRebootingNodeIsOnItsWay(t *testing.T) {
	lasting := model.Taint{Key: "team", Value: "a", Effect: model.NoSchedule}
	node := &Node{
		Name: "n", Registered: true, Initialized: true, Labels: map[string]string{model.LabelNodePool: "general"},
		Taints:   []model.Taint{lasting, {Key: "karpenter.sh/rebooting", Effect: model.NoSchedule}},
		Capacity: Amounts{CPU: 4000}, Allocatable: Amounts{CPU: 3800},
	}
	for _, rebooting := range []bool{true, false} {
		n := &stateNode{node: node, claim: &Claim{Name: "c", Pool: "general", Rebooting: rebooting}}
		n.describeRegistered()
		want, taints := model.NodeReady, 2
		if rebooting {
			want, taints = model.NodeRegistered, 1
		}
		if n.state != want || len(n.taints) != taints || n.taints[0] != lasting || n.allocatable.CPU != 3800 {
			t.Errorf("rebooting %t: state %v with taints %v and %d CPU, want %v with %d taints and 3800", rebooting, n.state, n.taints, n.allocatable.CPU, want, taints)
		}
	}
}
