package armsim

import (
	"strings"
)

// path is a parsed ARM path. ARM ignores the case of everything but shows
// names as they were created, hence the names keep their case and the type is
// lower case.
type path struct {
	subscription string
	group        string   // resource group; empty at subscription level
	typ          string   // microsoft.compute/virtualmachines/extensions, lower case
	names        []string // one a type segment; one fewer for a collection or an action
	segments     []string // the part after providers/, as written
}

// parsePath reads /subscriptions/{s}[/resourceGroups/{g}]/providers/{ns}/{type}/{name}...
// What is before providers may stand alone: the type is then "subscriptions"
// or "resourcegroups". False when the path has another form.
func parsePath(raw string) (path, bool) {
	seg := strings.Split(strings.Trim(raw, "/"), "/")
	is := func(word string) bool { return len(seg) > 0 && strings.EqualFold(seg[0], word) }
	if is("providers") {
		return providerPath(path{}, seg[1:])
	}
	if !is("subscriptions") {
		return path{}, false
	}
	p := path{typ: "subscriptions"}
	if len(seg) == 1 {
		return p, true
	}
	p.subscription = seg[1]
	p.names = []string{seg[1]}
	seg = seg[2:]
	switch {
	case len(seg) == 0:
		return p, true
	case is("providers"):
		return providerPath(p, seg[1:])
	case is("resourcegroups") && len(seg) == 1:
		p.typ, p.names = "resourcegroups", nil
		return p, true
	case is("resourcegroups"):
		p.group = seg[1]
		p.typ, p.names = "resourcegroups", []string{seg[1]}
		if len(seg) == 2 {
			return p, true
		}
		seg = seg[2:]
		if is("providers") {
			return providerPath(p, seg[1:])
		}
		return p, false
	case len(seg) == 1:
		p.typ, p.names = "subscriptions/"+strings.ToLower(seg[0]), nil
		return p, true
	}
	return p, false
}

// providerPath reads what follows providers/: a namespace, then types and names in turn.
func providerPath(p path, seg []string) (path, bool) {
	if len(seg) < 2 {
		return p, false
	}
	p.segments = seg
	types := []string{seg[0]}
	p.names = nil
	for i := 1; i < len(seg); i += 2 {
		types = append(types, seg[i])
		if i+1 < len(seg) {
			p.names = append(p.names, seg[i+1])
		}
	}
	p.typ = strings.ToLower(strings.Join(types, "/"))
	return p, true
}

// item says whether the path names one resource rather than a collection or an action.
func (p path) item() bool { return len(p.names) == max(1, strings.Count(p.typ, "/")) }

// name is the last name in the path.
func (p path) name() string {
	if len(p.names) == 0 {
		return ""
	}
	return p.names[len(p.names)-1]
}

// id is the resource ID of the path with the case as written.
func (p path) id() string {
	id := ""
	if p.subscription != "" {
		id = "/subscriptions/" + p.subscription
	}
	if p.group != "" {
		id += "/resourceGroups/" + p.group
	}
	if len(p.segments) > 0 {
		id += "/providers/" + strings.Join(p.segments, "/")
	}
	return id
}

// parent is the ID of the resource that the last segments belong to.
func (p path) parent() string {
	n := 2
	if !p.item() {
		n = 1
	}
	q := p
	q.segments = p.segments[:len(p.segments)-n]
	return q.id()
}

// displayType is the type with the case as written: Microsoft.Compute/virtualMachines.
func (p path) displayType() string {
	var b strings.Builder
	b.WriteString(p.segments[0])
	for i := 1; i < len(p.segments); i += 2 {
		b.WriteString("/" + p.segments[i])
	}
	return b.String()
}

// relative is type and name as error messages show them: Microsoft.Compute/virtualMachines/vm.
func (p path) relative() string { return strings.Join(p.segments, "/") }

// key is the form under which a resource ID is stored.
func key(id string) string { return strings.ToLower(strings.TrimSuffix(id, "/")) }

// lastSegment is the name at the end of a resource ID.
func lastSegment(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }
