package provisioning

// groups are members by the group that each of them is in. The zero value has none.
type groups[M, G comparable] struct {
	members map[G]map[M]bool
	// of is the group of each member; those of no group are absent.
	of map[M]G
}

// join notes the group of a member, the zero value for none.
func (g *groups[M, G]) join(member M, group G) {
	var none G
	before := g.of[member]
	if before == group {
		return
	}
	if delete(g.members[before], member); len(g.members[before]) == 0 {
		delete(g.members, before)
	}
	delete(g.of, member)
	if group == none {
		return
	}
	if g.of == nil {
		g.members, g.of = map[G]map[M]bool{}, map[M]G{}
	}
	if g.members[group] == nil {
		g.members[group] = map[M]bool{}
	}
	g.members[group][member], g.of[member] = true, group
}

// beside are the members of a member's group, itself among them; none where it is in no group.
func (g *groups[M, G]) beside(member M) map[M]bool { return g.members[g.of[member]] }
