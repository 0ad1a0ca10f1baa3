package disruption

import (
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// commands are those under way. The goroutine of the loop alone changes it.
type commands struct {
	// active are the commands that are carried on, oldest first.
	active []*command
	// settling are commands whose claims are deleted, until their nodes are gone.
	settling []*command
}

// nodes are the nodes of the active commands, and those of the others whose claims are deleted,
// by name: the mirror may not have seen the deletion yet.
func (cs *commands) nodes() map[string]bool {
	out := map[string]bool{}
	for _, c := range cs.active {
		for _, r := range slices.Concat(c.Remove, c.released) {
			out[r.Node] = true
		}
	}
	for _, c := range cs.settling {
		for _, r := range c.Remove {
			out[r.Node] = true
		}
	}
	return out
}

// untouched are the nodes of the active commands that are asked for whose pods are not evicted
// yet, by name.
func (cs *commands) untouched(asked func(*command) bool) map[string]bool {
	out := map[string]bool{}
	for _, c := range cs.active {
		for _, r := range c.Remove {
			if c.drain == nil && asked(c) {
				out[r.Node] = true
			}
		}
	}
	return out
}

// replacements are the claims that replace nodes, until those are drained, by name.
func (cs *commands) replacements() map[string]bool {
	return cs.replacementsOf(func(*command) bool { return true })
}

// withheld are the replacements on which some commands may not count: those of other commands
// that fail, or of which it is not known where their pods are to go. On all others there
// is the room that the placements leave.
func (cs *commands) withheld(from []*command) map[string]bool {
	return cs.replacementsOf(func(c *command) bool {
		return !slices.Contains(from, c) && (c.placements == nil || c.failure != nil)
	})
}

// replacementsOf are the replacements of the commands which are asked for.
func (cs *commands) replacementsOf(asked func(*command) bool) map[string]bool {
	out := map[string]bool{}
	for _, c := range slices.Concat(cs.active, cs.settling) {
		if !asked(c) {
			continue
		}
		for _, r := range c.Replace {
			out[r.Claim] = true
		}
	}
	return out
}

// placements are those of all pods that still wait for their eviction, except for
// pods of some commands. Without them a pod would be counted on any room that there
// is, and one command would be told that the pods of another have taken its room.
func (cs *commands) placements(except []*command) map[model.PodRef]string {
	out := map[model.PodRef]string{}
	for _, c := range slices.Concat(cs.active, cs.settling) {
		if c.failure == nil && !slices.Contains(except, c) {
			maps.Copy(out, c.placements)
		}
	}
	return out
}

// observed reports whether the mirror has seen what has been done so far: a fleet
// that still shows nodes as free that are about to go would have them removed
// twice. It forgets commands whose nodes are gone.
func (cs *commands) observed(s *fleet.Snapshot) bool {
	cs.settling = slices.DeleteFunc(cs.settling, func(c *command) bool {
		return !slices.ContainsFunc(c.Remove, func(r Removed) bool { return s.Claim(r.Claim) != nil })
	})
	for _, c := range cs.settling {
		if slices.ContainsFunc(c.Remove, func(r Removed) bool {
			claim := s.Claim(r.Claim)
			return claim != nil && !claim.Leaving
		}) {
			return false
		}
	}
	return !slices.ContainsFunc(cs.active, func(c *command) bool { return c.failure == nil && untainted(&c.Record, s) != "" })
}

// drains are the drains under way, each of them once.
func (cs *commands) drains() []*drain {
	var out []*drain
	for _, c := range cs.active {
		if c.drain != nil && !slices.Contains(out, c.drain) {
			out = append(out, c.drain)
		}
	}
	return out
}

// draining are the active commands of a drain.
func (cs *commands) draining(d *drain) []*command {
	return slices.DeleteFunc(slices.Clone(cs.active), func(c *command) bool { return c.drain != d })
}
