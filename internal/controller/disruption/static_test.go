package disruption

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/state"

	"github.com/nodeautoprovision/nap/internal/controller/karpenter"
	"github.com/nodeautoprovision/nap/internal/model"
)

// staticPool keeps so many nodes, and has no more than limit of them, 0 for no limit.
func staticPool(replicas, limit int, change ...func(*karpv1.NodePool)) *karpv1.NodePool {
	return nodePool(append(change, func(np *karpv1.NodePool) {
		static(np)
		np.Spec.Replicas = ptr.To(int64(replicas))
		if limit > 0 {
			np.Spec.Limits = karpv1.Limits{corev1.ResourceName("nodes"): *resource.NewQuantity(int64(limit), resource.DecimalSI)}
		}
	})...)
}

// staticWorld has so many drifted nodes of a static pool and Karpenter's own mirror of
// the cluster.
func staticWorld(t *testing.T, pool *karpv1.NodePool, nodes int) *world {
	objects := []client.Object{pool}
	for i := range nodes {
		objects = append(objects, drifted(fmt.Sprintf("old-%d", i), "D2")...)
	}
	w := newWorld(t, objects...)
	w.real = &karpenter.Cluster{Cluster: state.NewCluster(w.clock, w.kube, nil)}
	w.restart()
	return w
}

// The cases are those of Karpenter's own suite of static drift.
func TestStaticDriftKeepsToBudgetsLimitsAndReplicas(t *testing.T) {
	budget := func(nodes string) func(*karpv1.NodePool) {
		return func(np *karpv1.NodePool) {
			np.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: nodes, Reasons: []karpv1.DisruptionReason{karpv1.DisruptionReasonDrifted}}}
		}
	}
	for name, c := range map[string]struct {
		pool        *karpv1.NodePool
		nodes, want int
	}{
		"a budget of nodes":                       {staticPool(5, 0, budget("2")), 5, 2},
		"a budget of a percentage":                {staticPool(5, 0, budget("20%")), 5, 1},
		"at its limit":                            {staticPool(5, 5), 5, 0},
		"below its limit and its replicas":        {staticPool(5, 5), 2, 2},
		"room for some below its limit":           {staticPool(5, 7), 5, 2},
		"room for one below its limit":            {staticPool(5, 6), 5, 1},
		"more nodes than replicas":                {staticPool(1, 0), 2, 0},
		"no replicas":                             {staticPool(0, 0), 1, 0},
		"all at once":                             {staticPool(3, 0), 3, 3},
		"a limit below what is there":             {staticPool(3, 2), 3, 0},
		"the smaller of budget and limit, budget": {staticPool(5, 9, budget("1")), 5, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := staticWorld(t, c.pool, c.nodes)
			w.pass()
			w.pass()
			if got := len(w.loop.commands.active); got != c.want {
				t.Fatalf("%d nodes are being replaced, want %d", got, c.want)
			}
			if got := len(w.claims()); got != c.nodes+c.want {
				t.Errorf("there are %d NodeClaims, want %d replacements beside %d", got, c.want, c.nodes)
			}
			active, deleting, pending := w.real.NodePoolState.GetNodeCount("general")
			if active != c.nodes || deleting != c.want || pending != 0 {
				t.Errorf("Karpenter counts %d active, %d deleting, %d pending nodes, want %d, %d, 0", active, deleting, pending, c.nodes, c.want)
			}
			atLimit := c.want == 0 && c.pool.Spec.Limits != nil
			if told := w.recorder.has("DisruptionBlocked node-old-0: node-old-0 needs a replacement before it goes"); told != atLimit {
				t.Errorf("an event says that the limit keeps nodes: %v, want %v; events are %q", told, atLimit, w.recorder.lines)
			}
		})
	}
}

// As Karpenter's suite does, it looks after every step: the limit holds all the time.
func TestStaticDriftEndsWithinItsLimit(t *testing.T) {
	w := staticWorld(t, staticPool(5, 6), 5)
	for range 40 {
		w.run(1)
		if got := len(w.claims()); got > 6 {
			t.Fatalf("there are %d NodeClaims, the limit is 6", got)
		}
	}
	for _, c := range w.claims() {
		if c.StatusConditions().IsTrue(karpv1.ConditionTypeDrifted) {
			t.Errorf("NodeClaim %s has drifted and is still there", c.Name)
		}
	}
	active, deleting, pending := w.real.NodePoolState.GetNodeCount("general")
	if active != 5 || deleting != 0 || pending != 0 {
		t.Errorf("Karpenter counts %d active, %d deleting, %d pending nodes, want 5, 0, 0", active, deleting, pending)
	}
	w.wantQuiet()
}

// What the loop writes on a claim comes back to Karpenter's mirror as something observed,
// late on a busy machine, and would make the claim count as one that stays: then the
// replacement is one too many, and Karpenter deletes it.
func TestStaticReplacementIsNeverOneTooMany(t *testing.T) {
	w := staticWorld(t, staticPool(2, 0), 2)
	created := 0
	w.creating = func() {
		created++
		claims := w.claims()
		for i := range claims {
			if old := w.known[fmt.Sprintf("%T /%s", &claims[i], claims[i].Name)]; old != nil && old.GetResourceVersion() != claims[i].ResourceVersion {
				w.real.UpdateNodeClaim(&claims[i])
			}
		}
		if active, _, _ := w.real.NodePoolState.GetNodeCount("general"); active >= 2 {
			t.Errorf("%d claims count as running when a replacement is created for a pool of 2", active)
		}
	}
	w.run(20)
	if created != 2 {
		t.Errorf("%d replacements were created, want 2", created)
	}
	w.wantQuiet()
}

// A node too many goes first; then the others are replaced.
func TestStaticDriftWaitsForSurplus(t *testing.T) {
	w := staticWorld(t, staticPool(1, 0), 2)
	w.run(3)
	if got := len(w.claims()); got != 2 {
		t.Fatalf("there are %d NodeClaims, want 2", got)
	}
	gone := w.claims()[1]
	w.delete(&gone)
	w.run(12)
	if left := w.claims(); len(left) != 1 || left[0].StatusConditions().IsTrue(karpv1.ConditionTypeDrifted) {
		t.Errorf("left are %d NodeClaims, want the replacement of the one that was left", len(left))
	}
	w.wantQuiet()
}

// A replacement that does not come gives the node back to its pool, in Karpenter's
// mirror, too: otherwise the pool would count it as gone and buy another.
func TestStaticNodeCountsAgainAfterRollback(t *testing.T) {
	w := staticWorld(t, staticPool(2, 0), 2)
	w.soldOut = true
	w.run(6)
	active, deleting, pending := w.real.NodePoolState.GetNodeCount("general")
	if active != 2 || deleting != 0 || pending != 0 {
		t.Errorf("Karpenter counts %d active, %d deleting, %d pending nodes, want 2, 0, 0", active, deleting, pending)
	}
	w.wantQuiet()
}

// With the gate TerminateFirstDrift, nodes of a static pool at its limit go before their
// replacements, which the pool makes: the loop creates none and does not count them as
// replaced already. The cases are those of Karpenter's own suite.
func TestTerminateFirst(t *testing.T) {
	two := func(np *karpv1.NodePool) { np.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "2"}} }
	unready := func(np *karpv1.NodePool) {
		np.StatusConditions().SetFalse(karpv1.ConditionTypeNodeClassReady, "NotReady", "its class is not ready")
	}
	for name, c := range map[string]struct {
		pool *karpv1.NodePool
		off  bool
		// gone and replaced are nodes that go first, and whose replacement comes first.
		nodes, gone, replaced int
	}{
		"at its limit":                     {pool: staticPool(3, 3), nodes: 3, gone: 3},
		"within a budget":                  {pool: staticPool(5, 5, two), nodes: 5, gone: 2},
		"beyond its limit":                 {pool: staticPool(3, 2), nodes: 3, gone: 3},
		"room for one below its limit":     {pool: staticPool(5, 6), nodes: 5, replaced: 1},
		"no limit":                         {pool: staticPool(2, 0), nodes: 2, replaced: 2},
		"more nodes than replicas":         {pool: staticPool(1, 2), nodes: 2},
		"a pool that can make no new node": {pool: staticPool(3, 3, unready), nodes: 3},
		"without the gate":                 {pool: staticPool(3, 3), off: true, nodes: 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := staticWorld(t, c.pool, c.nodes)
			if !c.off {
				w.terminateFirst = []model.DisruptionReason{model.DisruptDrifted}
			}
			w.restart()
			w.pass()
			if got := len(w.loop.commands.active); got != c.gone+c.replaced {
				t.Fatalf("%d nodes go, want %d", got, c.gone+c.replaced)
			}
			if c.gone == 0 {
				w.pass()
				if got := len(w.claims()); got != c.nodes+c.replaced {
					t.Errorf("there are %d NodeClaims, want %d and %d replacements", got, c.nodes, c.replaced)
				}
				return
			}
			w.restart() // what an earlier process has begun is carried on as it was
			if active, deleting, pending := w.real.NodePoolState.GetNodeCount("general"); active != c.nodes || deleting+pending != 0 {
				t.Errorf("Karpenter counts %d active, %d deleting, %d pending nodes, want %d active ones", active, deleting, pending, c.nodes)
			}
			w.run(1)
			if got := len(w.claims()); got != c.nodes-c.gone {
				t.Errorf("%d NodeClaims are left, want %d: the pool makes the new ones", got, c.nodes-c.gone)
			}
		})
	}
}
