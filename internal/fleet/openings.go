package fleet

// demand is a record of which some states only add to what pods ask for, or to what is on
// its way for them.
type demand interface {
	// onlyAdds reports whether no node can become superfluous by putting the record into
	// the tables.
	onlyAdds(t *tables) bool
}

func onlyAdds(r Record, t *tables) bool {
	d, ok := r.(demand)
	return ok && d.onlyAdds(t)
}

// waits reports whether the pod takes room on no node.
func (p *Pod) waits() bool { return p.Node == "" && !p.Terminal && !p.Terminating }

func (p *Pod) onlyAdds(t *tables) bool {
	old := t.pods.rows[p.Ref]
	if old == nil {
		return p.waits()
	}
	// What a pod was promised is free once it is promised something else.
	return p.waits() && old.waits() && old.UID == p.UID && old.Spec == p.Spec && (old.Nominated == "" || old.Nominated == p.Nominated)
}

// coming reports whether the claim has no node that could be given back yet, and is not given
// up.
func (c *Claim) coming() bool {
	return c.Initialized.IsZero() && !c.Leaving && !c.BootFailed && c.Command == nil && c.Repair == nil && c.Drift == ""
}

func (c *Claim) onlyAdds(t *tables) bool {
	old := t.claims.rows[c.Name]
	return c.coming() && (old == nil || old.coming())
}

func (w *Workload) onlyAdds(t *tables) bool {
	old := t.workloads.rows[w.UID]
	return old == nil || w.Pods >= old.Pods && w.WorkloadSet == old.WorkloadSet
}
