// Package quarantine keeps a class of pods on which the planner panics from ending the
// process, or the plans of all other pods. The class is found by planning parts of the
// problem, left out, and tried again at growing intervals.
package quarantine

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
	"sort"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/model"
)

// A class is tried again after firstPause, then after twice as long each time, at most
// after longestPause.
const (
	firstPause   = time.Minute
	longestPause = time.Hour
)

// mostFound is how many classes are looked for in one problem. If there are more, the
// classes behind the last one in the problem wait for the next plan.
const mostFound = 4

// Failure is a class of pods that cannot be planned.
type Failure struct {
	// Owner is the workload as a person names it, Pod one of its pods.
	Owner string
	Pod   model.PodRef
	// Cause is what the planner has said, with its stack.
	Cause string
	// Until is when the class is planned again.
	Until time.Time
}

// Planner plans by another planner whose panics it survives. It may be used by several
// goroutines.
type Planner struct {
	solve  func(*model.Problem) *model.Plan
	clock  clock.PassiveClock
	failed func(Failure)

	mu sync.Mutex
	// classes are those that have failed, by what they ask for; mu guards them.
	classes map[string]*exclusion
}

// exclusion is how long a class is left out.
type exclusion struct {
	until    time.Time
	failures int
	cause    string
}

// New returns a planner which calls solve, and failed for each class that it leaves out
// from then on.
func New(solve func(*model.Problem) *model.Plan, c clock.PassiveClock, failed func(Failure)) *Planner {
	return &Planner{solve: solve, clock: c, failed: failed, classes: map[string]*exclusion{}}
}

// Solve plans the problem. Classes on which the planner panics are in Unschedulable with
// the reason PlanningFailed.
func (q *Planner) Solve(p *model.Problem) *model.Plan {
	left := q.leftOut(p)
	plan, cause := q.try(p, left)
	for found := 1; cause != nil; found++ {
		class := q.find(p, left)
		if class < 0 {
			return q.nothing(p, left, cause)
		}
		left[class] = q.exclude(&p.Classes[class], cause)
		if found == mostFound {
			for i := class + 1; i < len(p.Classes); i++ {
				left[i] = cmp.Or(left[i], "planning other pods failed several times; the pod is planned next")
			}
		}
		plan, cause = q.try(p, left)
	}
	q.forget(p, left)
	return plan
}

// leftOut says of the classes whose time has not come why they are left out, by index.
func (q *Planner) leftOut(p *model.Problem) map[int]string {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := map[int]string{}
	if len(q.classes) == 0 {
		return left
	}
	now := q.clock.Now()
	for i := range p.Classes {
		if s := q.classes[key(&p.Classes[i])]; s != nil && s.until.After(now) {
			left[i] = s.message()
		}
	}
	for k, s := range q.classes {
		if now.Sub(s.until) > longestPause {
			delete(q.classes, k) // its pods are gone
		}
	}
	return left
}

// try plans without the classes that are left out.
func (q *Planner) try(p *model.Problem, left map[int]string) (plan *model.Plan, failed error) {
	if len(left) > 0 {
		part := *p
		part.Classes = slices.Clone(p.Classes)
		for i, why := range left {
			c := &p.Classes[i]
			part.Classes[i] = model.PodClass{
				Pods: c.Pods, Owner: c.Owner, Requests: make(model.Resources, len(p.Axes)), Quarantined: why,
			}
		}
		p = &part
	}
	defer func() {
		if cause := recover(); cause != nil {
			failed = fmt.Errorf("%v\n%s", cause, debug.Stack())
		}
	}()
	return q.solve(p), nil
}

// find returns a class without which, and without those behind it, the problem can be
// planned, and with which it cannot; -1 if it cannot be planned without any class.
func (q *Planner) find(p *model.Problem, left map[int]string) int {
	fails := func(n int) bool {
		without := map[int]string{}
		for i := range p.Classes {
			if i >= n {
				without[i] = "left out to find the class that fails"
			}
		}
		for i, why := range left {
			without[i] = why
		}
		_, err := q.try(p, without)
		return err != nil
	}
	if fails(0) {
		return -1
	}
	return sort.Search(len(p.Classes), func(i int) bool { return fails(i + 1) })
}

// exclude leaves a class out from now on and says why.
func (q *Planner) exclude(c *model.PodClass, cause error) string {
	q.mu.Lock()
	s := q.classes[key(c)]
	if s == nil {
		s = &exclusion{}
		q.classes[key(c)] = s
	}
	pause := min(firstPause<<min(s.failures, 10), longestPause)
	s.failures++
	s.until, s.cause = q.clock.Now().Add(pause), cause.Error()
	f := Failure{Owner: c.Owner, Cause: s.cause, Until: s.until}
	message := s.message()
	q.mu.Unlock()
	if len(c.Pods) > 0 {
		f.Pod = c.Pods[0]
	}
	q.failed(f)
	return message
}

// forget forgets the failures of the classes that have just been planned.
func (q *Planner) forget(p *model.Problem, left map[int]string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.classes) == len(left) {
		return
	}
	for i := range p.Classes {
		if _, out := left[i]; !out {
			delete(q.classes, key(&p.Classes[i]))
		}
	}
}

// nothing is the plan of a problem which cannot be planned without any class either:
// nothing is bought, and all pods wait.
func (q *Planner) nothing(p *model.Problem, left map[int]string, cause error) *model.Plan {
	q.failed(Failure{Cause: cause.Error(), Until: q.clock.Now()})
	plan := &model.Plan{}
	for i := range p.Classes {
		u := model.Unschedulable{Class: i, Reason: model.ReasonPlanningFailed, Message: left[i]}
		for pod := range p.Classes[i].Pods {
			u.Pods = append(u.Pods, pod)
		}
		plan.Unschedulable = append(plan.Unschedulable, u)
	}
	return plan
}

// message says what users see in the pod's event.
func (s *exclusion) message() string {
	return fmt.Sprintf("planning the pod failed, which is a mistake in nap; it is tried again at %s", s.until.UTC().Format("15:04:05 MST"))
}

// key is equal for classes that ask for the same, whichever their pods are.
func key(c *model.PodClass) string {
	same := *c
	same.Pods = nil
	return string(model.AppendKey(nil, &same))
}
