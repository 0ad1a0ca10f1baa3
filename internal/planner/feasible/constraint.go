package feasible

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// Constraint is one rule on which options a pod may use. The list of them
// ([Constraints]) is the only place where a rule stands: the masks of planning,
// the keys of what is cached, the counts and the nearest miss of an explanation
// and the order of all reports derive from it.
//
// Rules that depend on what else is in the plan are not in the list: minValues,
// topology, and what several machines share. The packages that keep the state of a
// plan know them.
type Constraint struct {
	Reason model.Reason
	Stage  Stage
	// Implied says that an option which another constraint of the list leaves is
	// always left by this one, too: it only gives the worst misses a reason of
	// their own. Masks and keys leave it out.
	Implied bool
	// LimitsNodes says that the constraint holds for existing nodes, too.
	LimitsNodes bool

	// key appends a text of the part of the pod on which the rule depends.
	key func(key []byte, pod *Pod) []byte
	// options removes from left the options that the rule forbids; nodes does so with
	// existing nodes, and is nil where LimitsNodes is false.
	options func(s *Space, pod *Pod, left bitset.Set)
	nodes   func(s *Space, pod *Pod, left bitset.Set)
	// changes splits the rule into single changes, as [Check].Changes says; nil where the
	// whole rule is one change.
	changes func(s *Space, pod *Pod) []bitset.Set
	// figures puts a miss into words. Precondition: the rule forbids the option.
	figures func(at Candidate, pod *Pod) Miss
}

// Stage says on what the answer of a constraint depends.
type Stage int

// The stages, from what holds longest to what holds shortest.
const (
	// ForClass constraints hold for every pod of a class, however many of them
	// share a machine.
	ForClass Stage = iota
	// ForSize constraints depend on what the pods of a machine take together. A
	// mask answers for one pod.
	ForSize
	// ForSupply constraints depend on no pod: the cloud, a quota or a NodePool sells
	// no machine.
	ForSupply
)

// Pod is one pod of a class, as constraints see it.
type Pod struct {
	*model.PodClass
	// Size is what the pod takes of each dimension of the space ([Dimensions.Size]).
	Size []int64
}

// Pod returns one pod of a class. Precondition: the class is valid
// (validate.Class).
func (s *Space) Pod(c *model.PodClass) *Pod { return &Pod{c, s.Dims.Size(c)} }

// Candidate is an option that a constraint refuses, with what it takes to say why.
type Candidate struct {
	Space  *Space
	Option int
	// Ledger is what the plan leaves of what runs out.
	Ledger *Ledger
}

// Miss says in words by what an option misses a constraint.
type Miss struct {
	// Have and Want are what the constraint compared, with units.
	Have, Want string
	// Fix is one sentence on what to change; empty means that of the reason.
	Fix string
	// Quota is the name of the quota that is short, empty where none is.
	Quota string
}

// rule states a constraint over P, the part of a pod on which it depends. Its
// functions see that part and nothing else of the pod, and the key is made of the
// whole part: no rule can depend on something that its key leaves out.
type rule[P any] struct {
	part func(pod *Pod) P
	// options removes from left the options that the rule forbids; nodes does so
	// with existing nodes, nil where the rule does not limit them.
	options func(s *Space, part P, left bitset.Set)
	nodes   func(s *Space, part P, left bitset.Set)
	// changes splits the rule into single changes, as [Check].Changes says; nil where the
	// whole rule is one change.
	changes func(s *Space, part P) []bitset.Set
	// figures puts a miss into words. Precondition: the rule forbids the option.
	figures func(at Candidate, part P) Miss
}

func (r rule[P]) constraint(reason model.Reason, stage Stage) Constraint {
	c := Constraint{
		Reason: reason, Stage: stage, LimitsNodes: r.nodes != nil,
		key: func(key []byte, pod *Pod) []byte {
			part := r.part(pod)
			return model.AppendKey(key, &part)
		},
		options: func(s *Space, pod *Pod, left bitset.Set) { r.options(s, r.part(pod), left) },
		figures: func(at Candidate, pod *Pod) Miss { return r.figures(at, r.part(pod)) },
	}
	if r.changes != nil {
		c.changes = func(s *Space, pod *Pod) []bitset.Set { return r.changes(s, r.part(pod)) }
	}
	if r.nodes != nil {
		c.nodes = func(s *Space, pod *Pod, left bitset.Set) { r.nodes(s, r.part(pod), left) }
	}
	return c
}

// AppendKey appends a text that is equal for two pods exactly when every
// constraint of the stage depends on equal parts of them: then they have the same
// options and nodes.
func (s *Space) AppendKey(key []byte, stage Stage, pod *Pod) []byte {
	for i := range s.constraints {
		if c := &s.constraints[i]; c.Stage == stage && !c.Implied {
			key = c.key(key, pod)
		}
	}
	return key
}

// Allowed returns the options that the constraints of a stage leave to one pod.
// The caller owns the set.
func (s *Space) Allowed(stage Stage, pod *Pod) bitset.Set {
	left := bitset.Full(len(s.Options))
	for i := range s.constraints {
		if c := &s.constraints[i]; c.Stage == stage && !c.Implied {
			c.options(s, pod, left)
		}
	}
	return left
}

// AllowedNodes returns the existing nodes that the constraints of the class leave.
// What a node still has room for is not looked at. The caller owns the set.
func (s *Space) AllowedNodes(pod *Pod) bitset.Set {
	left := bitset.Full(len(s.Problem.Nodes))
	for i := range s.constraints {
		if c := &s.constraints[i]; c.Stage == ForClass && c.nodes != nil {
			c.nodes(s, pod, left)
		}
	}
	return left
}

// Check is one constraint applied to one pod.
type Check struct {
	Reason model.Reason
	// Pass are the options that the constraint leaves; nil means all of them.
	Pass bitset.Set
	// Changes are, per single change of the pod or the NodePool that may be necessary, the
	// options which do without it: an option outside n of these sets takes n changes. They
	// are empty where Pass is nil. A machine that is too small fails an implied check, too:
	// what a pod asks for is what it needs, so that this weighs more than a setting.
	Changes []bitset.Set
	// Figures says by what an option outside Pass misses.
	Figures func(option int) Miss
}

// Checks applies every constraint to one pod, in the order in which they are
// reported. The ledger is what the plan leaves of what runs out; only figures use
// it.
func (s *Space) Checks(pod *Pod, ledger *Ledger) []Check {
	checks := make([]Check, len(s.constraints))
	full := bitset.Full(len(s.Options))
	var pass bitset.Set // that of the last constraint if it forbade nothing, or nil
	for i := range s.constraints {
		c := &s.constraints[i]
		if pass == nil {
			pass = full.Clone()
		}
		c.options(s, pod, pass)
		checks[i] = Check{Reason: c.Reason, Figures: func(option int) Miss { return c.figures(Candidate{s, option, ledger}, pod) }}
		if !slices.Equal(pass, full) {
			checks[i].Pass, pass = pass, nil
			checks[i].Changes = c.counted(s, pod, checks[i].Pass)
		}
	}
	return checks
}

// counted are the single changes behind a check that leaves the options of pass.
func (c *Constraint) counted(s *Space, pod *Pod, pass bitset.Set) []bitset.Set {
	if c.changes == nil {
		return []bitset.Set{pass}
	}
	return c.changes(s, pod)
}

// Tolerating returns the options of pools whose taints the pods tolerate; with
// soft, PreferNoSchedule taints repel too.
func (s *Space) Tolerating(tolerations []model.Toleration, soft bool) bitset.Set {
	out := bitset.Full(len(s.Options))
	s.keepTolerating(out, tolerations, soft)
	return out
}

// keepTolerating keeps the options of [Space.Tolerating].
func (s *Space) keepTolerating(left bitset.Set, tolerations []model.Toleration, soft bool) {
	for _, p := range s.Pools {
		if !tolerates(s.Problem.Pools[p.Index].Taints, tolerations, soft) {
			left.RemoveRange(p.First, p.End)
		}
	}
}

// NodesTolerating is Tolerating for existing nodes.
func (s *Space) NodesTolerating(tolerations []model.Toleration, soft bool) bitset.Set {
	out := bitset.New(len(s.Problem.Nodes))
	for n := range s.Problem.Nodes {
		if tolerates(s.Problem.Nodes[n].Taints, tolerations, soft) {
			out.Add(n)
		}
	}
	return out
}

// tolerates reports whether pods may go where these taints are. With soft, they must also
// tolerate PreferNoSchedule taints: those are tested as NoSchedule ones, against the
// tolerations that name no effect or PreferNoSchedule.
func tolerates(taints []model.Taint, tolerations []model.Toleration, soft bool) bool {
	if model.Untolerated(taints, tolerations) != nil {
		return false
	}
	if !soft {
		return true
	}
	for _, t := range taints {
		if t.Effect != model.PreferNoSchedule {
			continue
		}
		t.Effect = model.NoSchedule
		ok := false
		for _, tol := range tolerations {
			if tol.Effect == model.PreferNoSchedule {
				tol.Effect = model.NoSchedule
			} else if tol.Effect == model.NoSchedule {
				continue
			}
			ok = ok || tol.Tolerates(t)
		}
		if !ok {
			return false
		}
	}
	return true
}

// keepPortsFree removes from left the options on which a daemon takes one of the
// ports.
func (s *Space) keepPortsFree(left bitset.Set, ports []model.HostPort) {
	if len(ports) == 0 {
		return
	}
	taken := make([]bool, len(s.DaemonSets))
	for i := range s.DaemonSets {
		taken[i] = PortsClash(ports, s.DaemonSets[i].Ports)
	}
	for i := range s.Options {
		if taken[s.Options[i].Daemons] {
			left.Remove(i)
		}
	}
}

// PortsClash reports whether any two of the ports conflict.
func PortsClash(a, b []model.HostPort) bool {
	return slices.ContainsFunc(a, func(x model.HostPort) bool { return slices.ContainsFunc(b, x.Conflicts) })
}
