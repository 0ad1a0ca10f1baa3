package fleet

// onlyAdds reports whether putting a record into the tables only adds to what pods ask for, or
// to what is on its way for them: no node can become superfluous by it.
func onlyAdds(r Record, t *tables) bool {
	switch r := r.(type) {
	case *Pod:
		old := t.pods.rows[r.Ref]
		// What a pod was promised is free once it is promised something else.
		return takesNoRoom(r) && (old == nil || takesNoRoom(old) && old.UID == r.UID && old.Spec == r.Spec &&
			(old.Nominated == "" || old.Nominated == r.Nominated))
	case *Claim:
		old := t.claims.rows[r.Name]
		return comes(r) && (old == nil || comes(old))
	case *Attachment:
		return t.attached.rows[r.Name] == nil
	case *Workload:
		old := t.workloads.rows[r.UID]
		return old == nil || r.Pods >= old.Pods && r.WorkloadSet == old.WorkloadSet
	}
	return false
}

// takesNoRoom reports whether a pod waits for a node.
func takesNoRoom(p *Pod) bool { return p.Node == "" && !p.Terminal && !p.Terminating }

// comes reports whether a claim has no node yet that could be given back, and is not given up.
func comes(c *Claim) bool {
	return c.Initialized.IsZero() && !c.Leaving && !c.BootFailed && c.Command == nil && c.Repair == nil && c.Drift == ""
}
