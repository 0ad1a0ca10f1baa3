// Package eligibility says which nodes consolidation may remove, which nodes may take
// in pods of removed ones, and why the others may not.
//
// [Rules] are what the nodes, their pods, budgets and NodePools say. They depend on
// the compiled problem alone. A [Table] holds for each node what the rules say, and
// what the search and the commands made so far add to it.
//
// See docs/planner.md, section "Consolidation".
package eligibility

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
)

// Table is the eligibility of every node. All states of one search share a table; it
// is changed only between the rounds of the search, when no other goroutine reads it.
type Table struct {
	// Rules made the table.
	Rules Rules
	nodes []eligibility
}

// eligibility is what a node may be used for.
type eligibility struct {
	// blocked says why the node is no candidate for consolidation, nil if it is one.
	blocked *model.KeptNode
	// later is set on a node that the goal of the search removes but budgets do not
	// allow now: what it waits for. Such a node takes in no pods.
	later *model.KeptNode
	// keptFor is set on a node that could be removed and that the goal keeps: what
	// it is kept for.
	keptFor *model.KeptNode
	// receives nodes may take in pods of removed nodes.
	receives bool
}

// New applies the rules to all nodes.
func New(p *compiled.Problem) *Table {
	t := &Table{Rules: Rules{p}, nodes: make([]eligibility, len(p.Nodes))}
	for n := range min(len(p.Nodes), len(p.Input.Usages)) {
		e := &t.nodes[n]
		e.receives = t.Rules.takesIn(n) && t.Rules.quiet(n)
		e.blocked = t.Rules.consolidation(n)
		if e.blocked == nil && p.Nodes[n].Evictions > 0 {
			e.blocked = t.Rules.worth(n)
		}
	}
	return t
}

// Candidate reports whether consolidation may remove a node now.
func (t *Table) Candidate(n int32) bool {
	e := &t.nodes[n]
	return e.blocked == nil && e.later == nil && e.keptFor == nil
}

// Blocked is why a node is no candidate, whatever the goal of the search; nil when
// nothing blocks it.
func (t *Table) Blocked(n int32) *model.KeptNode { return t.nodes[n].blocked }

// Block adds a reason why a node is no candidate. The first reason stays; nil adds
// nothing.
func (t *Table) Block(n int32, why *model.KeptNode) {
	if t.nodes[n].blocked == nil {
		t.nodes[n].blocked = why
	}
}

// Receives reports whether a node may take in pods of removed nodes.
func (t *Table) Receives(n int32) bool { return t.nodes[n].receives && t.nodes[n].later == nil }

// SetReceives overrides whether the rules let a node take in pods.
func (t *Table) SetReceives(n int32, receives bool) { t.nodes[n].receives = receives }

// ReceiveUnquiet lets all nodes whose quiet time is not over take in pods, and lists
// them, ascending: pods of nodes that have to go take any room there is.
func (t *Table) ReceiveUnquiet() []int32 {
	var out []int32
	for n := range t.nodes {
		if t.Rules.takesIn(n) && !t.Rules.quiet(n) {
			t.nodes[n].receives = true
			out = append(out, int32(n))
		}
	}
	return out
}

// Coming lists the nodes that are on their way and promised to no command, ascending. They take
// in no pods yet.
func (t *Table) Coming() []int32 { return t.list(t.Rules.coming) }

// Replacing lists the nodes that were bought lately for commands under way, ascending. What room
// the pods of these commands leave there is free when they have come.
func (t *Table) Replacing() []int32 { return t.list(t.Rules.replacing) }

// list lists the nodes to which a rule applies, ascending.
func (t *Table) list(applies func(n int) bool) []int32 {
	var out []int32
	for n := range min(len(t.nodes), len(t.Rules.p.Input.Usages)) {
		if applies(n) {
			out = append(out, int32(n))
		}
	}
	return out
}

// Postpone says of a node which the goal removes what it waits for.
func (t *Table) Postpone(n int32, until *model.KeptNode) { t.nodes[n].later = until }

// Postponed is what a node waits for, nil when it does not wait.
func (t *Table) Postponed(n int32) *model.KeptNode { return t.nodes[n].later }

// AnyPostponed reports whether some node waits.
func (t *Table) AnyPostponed() bool {
	return slices.ContainsFunc(t.nodes, func(e eligibility) bool { return e.later != nil })
}

// KeptFor is what the goal keeps a node for, nil when it does not keep it.
func (t *Table) KeptFor(n int32) *model.KeptNode { return t.nodes[n].keptFor }

// KeepForPods keeps all candidates but those which are leaving (sorted), so that pods
// of nodes that go later find room.
func (t *Table) KeepForPods(leaving []int32) {
	for n := range t.nodes {
		if _, goes := slices.BinarySearch(leaving, int32(n)); !goes && t.Candidate(int32(n)) {
			t.nodes[n].keptFor = compiled.Keep(n, model.ReasonReceivesPods,
				"%s is to take in pods of nodes that are removed later, when budgets allow it.", t.Rules.p.NodeName(n))
		}
	}
}

// ForgetGoal takes back what Postpone and KeepForPods have said.
func (t *Table) ForgetGoal() {
	for n := range t.nodes {
		t.nodes[n].later, t.nodes[n].keptFor = nil, nil
	}
}
