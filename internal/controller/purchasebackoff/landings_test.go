package purchasebackoff

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// stage is a cluster with a pod that waits and a NodePool that buys for it.
type stage struct {
	t         *testing.T
	store     *fleet.Store
	purchases *Purchases
	pod       fleet.Pod
	pool      fleet.Pool
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, store: fleet.NewStore(), purchases: NewPurchases(clock.RealClock{})}
	s.pod = fleet.Pod{Ref: model.PodRef{Namespace: "default", Name: "web"}, UID: "web", OwnerUID: "web", Wanted: true}
	s.pool = fleet.Pool{Name: "general"}
	s.store.Put(&s.pool)
	s.wait()
	return s
}

func (s *stage) workload() Workload { return Workloads{}.Of(&s.pod) }

// wait has the pod wait for a node, run has it run on one.
func (s *stage) wait() { s.run("") }

func (s *stage) run(node string) {
	pod := s.pod
	pod.Node, pod.Wanted = node, node == ""
	s.store.Put(&pod)
}

// buy makes a claim, as a plan of the claim's name does.
func (s *stage) buy(name string) fleet.Claim {
	claim := fleet.Claim{Name: name, Pool: "general", Plan: name, BoughtFor: []string{string(s.workload())}, Created: time.Now()}
	s.store.Put(&claim)
	s.purchases.Bought(name, "general", name, []Workload{s.workload()})
	return claim
}

// become puts another state of a claim.
func (s *stage) become(claim fleet.Claim, change func(*fleet.Claim)) fleet.Claim {
	change(&claim)
	s.store.Put(&claim)
	return claim
}

// ready gives a claim a node that can run pods, with taints.
func (s *stage) ready(claim fleet.Claim, taints ...model.Taint) fleet.Claim {
	s.store.Put(&fleet.Node{Name: "node-" + claim.Name, Claim: claim.Name, Registered: true, Initialized: true, Ready: true, Taints: taints})
	return s.become(claim, func(c *fleet.Claim) {
		c.ProviderID, c.NodeName, c.Initialized = "azure:///"+c.Name, "node-"+c.Name, time.Now()
	})
}

// vanish removes a claim and its node.
func (s *stage) vanish(claim fleet.Claim) {
	s.store.Remove(&fleet.Node{Name: "node-" + claim.Name})
	s.store.Remove(&claim)
}

// round looks as a round of provisioning does, for the pod that waits.
func (s *stage) round() []Outcome {
	return s.purchases.Observe(View{
		Snapshot: s.store.Snapshot(), Waiting: []*fleet.Pod{&s.pod},
		Explain: func(string, *fleet.Pod) string { return "" }, Explained: func(string) bool { return false },
		Counted: func(string) bool { return false }, Pending: func(string) bool { return false },
	})
}

func (s *stage) want(what string, failures int) {
	s.t.Helper()
	if got := s.round(); len(got) != failures {
		s.t.Errorf("%s: %d purchases failed, want %d: %+v", what, len(got), failures, got)
	}
}

var cordon = model.Taint{Key: "node.kubernetes.io/unschedulable", Effect: model.NoSchedule}

// A Deployment is scaled to 2, runs, is scaled to 0 and its node goes, again and again. No round
// of provisioning sees its pods run: the loop does, and then rests.
func TestPodsThatRanBetweenRoundsLanded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		s := newStage(t)
		c.loop.Purchases, c.loop.Snapshot = s.purchases, s.store.Snapshot
		for _, name := range []string{"one", "two", "three"} {
			s.wait()
			s.want("the pods of "+name+" wait", 0)
			claim := s.buy(name)
			if before := c.loop.state(); c.loop.state() == before {
				t.Fatal("the loop rests though the outcome of a purchase is awaited")
			}
			c.look()
			claim = s.ready(claim)
			s.run(claim.NodeName)
			time.Sleep(every)
			c.look()
			if before := c.loop.state(); c.loop.state() != before {
				t.Error("the loop does not rest though all pods run")
			}
			time.Sleep(time.Minute)
			s.store.Remove(&s.pod)
			s.vanish(claim)
			c.look()
			time.Sleep(time.Minute)
		}
		s.wait()
		s.want("all of it is over", 0)
		if !s.purchases.Quiet() || len(s.purchases.open) > 0 {
			t.Errorf("kept are %v of purchases that worked", s.purchases.open)
		}
	})
}

// What has nothing to come is not looked at for ever: a purchase of which no pod waits any
// more, and one whose machine came long ago and is used by none of its pods.
func TestPurchasesWithoutOutcomeAreNotAwaitedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		gone, stays := s.buy("gone"), s.buy("stays")
		s.purchases.Land(s.store.Snapshot)
		s.ready(stays)
		s.store.Remove(&gone)
		s.purchases.Land(s.store.Snapshot)
		if len(s.purchases.open) != 2 {
			t.Errorf("followed are %v while the pod waits, want both", s.purchases.open)
		}
		s.store.Remove(&s.pod)
		s.purchases.Land(s.store.Snapshot)
		if len(s.purchases.open) != 1 || !s.purchases.awaits() {
			t.Errorf("followed are %v without a pod that waits, want the one with a machine", s.purchases.open)
		}
		time.Sleep(decideWithin + time.Second)
		s.purchases.Land(s.store.Snapshot)
		if s.purchases.awaits() {
			t.Error("what came long ago is awaited")
		}
	})
}

// A machine that became ready long ago says nothing when it goes.
func TestOldMachineThatGoesIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		claim := s.ready(s.buy("old"))
		time.Sleep(decideWithin - time.Second)
		s.purchases.Land(s.store.Snapshot)
		time.Sleep(2 * time.Second)
		s.vanish(claim)
		s.want("gone after long", 0)
	})
}

// Where a machine was ready at a time when it was not looked at, pods may have run there.
func TestMachineThatWasNotLookedAtIsNoFailure(t *testing.T) {
	for name, c := range map[string]struct {
		looked time.Duration // before it goes; 0 for never
		fails  int
	}{"never": {0, 0}, "long ago": {lookedWithin + time.Second, 0}, "just now": {every, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				claim := s.buy("brief")
				s.purchases.Land(s.store.Snapshot)
				claim = s.ready(claim)
				if c.looked > 0 {
					s.purchases.Land(s.store.Snapshot)
					time.Sleep(c.looked)
				} else {
					time.Sleep(every)
				}
				claim = s.become(claim, func(c *fleet.Claim) { c.Leaving = true })
				s.store.Remove(&fleet.Node{Name: claim.NodeName})
				got := s.round()
				if len(got) != c.fails || len(got) == 1 && !strings.Contains(got[0].Why, "ended before a pod ran on its machine") {
					t.Errorf("failed are %+v, want %d", got, c.fails)
				}
			})
		})
	}
}

// Who cordons a node keeps pods from it. A node that came so is a fault like any other taint.
func TestCordonedNodeIsNoFailure(t *testing.T) {
	for name, c := range map[string]struct {
		before []model.Taint
		fails  int
	}{"by hand": {nil, 0}, "from the start": {[]model.Taint{cordon}, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				claim := s.ready(s.buy("cordoned"), c.before...)
				s.purchases.Land(s.store.Snapshot)
				s.ready(claim, cordon)
				time.Sleep(settleWithin)
				s.want("cordoned", c.fails)
			})
		})
	}
}

// Of two machines one is cordoned: the other one says what keeps the pods away.
func TestOtherNodeSpeaksBesideACordonedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		one, two := s.buy("one"), s.buy("two")
		two = s.become(two, func(c *fleet.Claim) { c.Plan = "one" })
		clear(s.purchases.open)
		one = s.ready(one)
		s.ready(two)
		s.purchases.Land(s.store.Snapshot)
		s.ready(one, cordon)
		time.Sleep(settleWithin)
		if got := s.round(); len(got) != 1 || !strings.Contains(got[0].Why, "node-two") {
			t.Errorf("failed are %+v, want one because of the node that is not cordoned", got)
		}
	})
}

// What a user deletes before there is a machine says nothing about the workload, unless it goes
// on; what the cloud has refused does.
func TestClaimThatOthersDeleteIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		remove := func(name string, failures int) {
			t.Helper()
			claim := s.buy(name)
			s.purchases.Land(s.store.Snapshot)
			time.Sleep(time.Second)
			s.become(claim, func(c *fleet.Claim) { c.Leaving = true })
			s.want(name, failures)
		}
		for _, name := range []string{"one hand", "one hand, too", "one hand as well"} {
			s.buy(name)
		}
		time.Sleep(time.Second)
		for c := range s.store.Snapshot().AllClaims() {
			s.become(*c, func(c *fleet.Claim) { c.Leaving = true })
		}
		s.want("deleted together", 0)
		remove("again", 0)
		remove("and again", 1)

		landed := s.ready(s.buy("landed"))
		s.run(landed.NodeName)
		s.purchases.Land(s.store.Snapshot)
		s.wait()
		remove("after a success", 0)

		refused := s.buy("refused")
		s.purchases.Land(s.store.Snapshot)
		s.become(refused, func(c *fleet.Claim) { c.Leaving, c.Trouble = true, "QuotaExceeded: no cores" })
		s.want("refused", 1)
	})
}

// A NodePool that is deleted takes its claims with it, launched or not.
func TestClaimOfDeletedNodePoolIsNoFailure(t *testing.T) {
	for name, goes := range map[string]func(*stage){
		"gone": func(s *stage) { s.store.Remove(&s.pool) },
		"going": func(s *stage) {
			pool := s.pool
			pool.Deleting = true
			s.store.Put(&pool)
		},
		"made again": func(s *stage) {
			s.store.Remove(&s.pool)
			s.purchases.Land(s.store.Snapshot)
			s.store.Put(&s.pool)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				claim := s.become(s.buy("orphan"), func(c *fleet.Claim) { c.ProviderID = "azure:///orphan" })
				s.purchases.Land(s.store.Snapshot)
				goes(s)
				s.become(claim, func(c *fleet.Claim) { c.Leaving = true })
				s.want(name, 0)
			})
		})
	}
}

// A machine that was bought for pods which do not exist yet is given back since these do not come.
func TestMachineGivenBackBeforeItsPodsCameIsNoFailure(t *testing.T) {
	for _, c := range []struct {
		name string
		// waited is whether the pod was there when the machine was bought.
		waited bool
		// byHand is whether the claim was deleted, not disrupted.
		byHand   bool
		failures int
	}{
		{"pods that came later", false, false, 0},
		{"pods that waited for it", true, false, 1},
		{"a machine that others have deleted", false, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				s.pod.Created = time.Now()
				claim := s.ready(s.buy("one"))
				s.look()
				time.Sleep(lookedWithin / 2)
				if !c.waited {
					s.pod.Created = time.Now()
				}
				s.become(claim, func(claim *fleet.Claim) {
					claim.Leaving = true
					if !c.byHand {
						claim.Command = &fleet.Command{ID: "abc", Reason: "Empty"}
					}
				})
				s.wait()
				s.want("the machine is given back", c.failures)
			})
		})
	}
}

// look looks as the loop does where no pod waits.
func (s *stage) look() { s.purchases.Land(s.store.Snapshot) }
