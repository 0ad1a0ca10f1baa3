package arm

import "strings"

// Path is a parsed ARM path. ARM ignores the case of everything but shows
// names as they were created, hence the names keep their case and the type is
// lower case.
type Path struct {
	Subscription string
	Group        string   // resource group; empty at subscription level
	Type         string   // microsoft.compute/virtualmachines/extensions, lower case
	Names        []string // one a type segment; one fewer for a collection or an action
	Segments     []string // the part after the last providers/, as written
	// Extended is the ID of the resource that the resource belongs to, where that is of
	// another provider: a role assignment on a cluster. Empty elsewhere.
	Extended string
}

// ParsePath reads /subscriptions/{s}[/resourceGroups/{g}]/providers/{ns}/{type}/{name}...
// What is before providers may stand alone: the type is then "subscriptions"
// or "resourcegroups". False when the path has another form.
func ParsePath(raw string) (Path, bool) {
	seg := strings.Split(strings.Trim(raw, "/"), "/")
	is := func(word string) bool { return len(seg) > 0 && strings.EqualFold(seg[0], word) }
	if is("providers") {
		return providerPath(Path{}, seg[1:])
	}
	if !is("subscriptions") {
		return Path{}, false
	}
	p := Path{Type: "subscriptions"}
	if len(seg) == 1 {
		return p, true
	}
	p.Subscription = seg[1]
	p.Names = []string{seg[1]}
	seg = seg[2:]
	switch {
	case len(seg) == 0:
		return p, true
	case is("providers") && len(seg) == 2:
		p.Type, p.Names = "subscriptions/providers", []string{seg[1]}
		p.Segments = seg[1:]
		return p, true
	case is("providers"):
		return providerPath(p, seg[1:])
	case is("resourcegroups") && len(seg) == 1:
		p.Type, p.Names = "resourcegroups", nil
		return p, true
	case is("resourcegroups"):
		p.Group = seg[1]
		p.Type, p.Names = "resourcegroups", []string{seg[1]}
		if len(seg) == 2 {
			return p, true
		}
		seg = seg[2:]
		if is("providers") {
			return providerPath(p, seg[1:])
		}
		return p, false
	case len(seg) == 1:
		p.Type, p.Names = "subscriptions/"+strings.ToLower(seg[0]), nil
		return p, true
	}
	return p, false
}

// providerPath reads what follows providers/: a namespace, then types and names in turn.
func providerPath(p Path, seg []string) (Path, bool) {
	for i := len(seg) - 2; i >= 3; i-- {
		if i%2 == 1 && strings.EqualFold(seg[i], "providers") {
			p.Segments = seg[:i]
			p.Extended = p.ID()
			seg = seg[i+1:]
			break
		}
	}
	if len(seg) < 2 {
		return p, false
	}
	p.Segments = seg
	types := []string{seg[0]}
	p.Names = nil
	for i := 1; i < len(seg); i += 2 {
		types = append(types, seg[i])
		if i+1 < len(seg) {
			p.Names = append(p.Names, seg[i+1])
		}
	}
	p.Type = strings.ToLower(strings.Join(types, "/"))
	return p, true
}

// Item says whether the path names one resource rather than a collection or an action.
func (p Path) Item() bool { return len(p.Names) == max(1, strings.Count(p.Type, "/")) }

// Name is the last name in the path.
func (p Path) Name() string {
	if len(p.Names) == 0 {
		return ""
	}
	return p.Names[len(p.Names)-1]
}

// ID is the resource ID of the path with the case as written.
func (p Path) ID() string {
	id := p.Extended
	if p.Subscription != "" && id == "" {
		id = "/subscriptions/" + p.Subscription
	}
	if p.Group != "" && p.Extended == "" {
		id += "/resourceGroups/" + p.Group
	}
	if len(p.Segments) > 0 {
		id += "/providers/" + strings.Join(p.Segments, "/")
	}
	return id
}

// Parent is the ID of the resource that the last segments belong to.
func (p Path) Parent() string {
	n := 2
	if !p.Item() {
		n = 1
	}
	q := p
	q.Segments = p.Segments[:len(p.Segments)-n]
	return q.ID()
}

// DisplayType is the type with the case as written: Microsoft.Compute/virtualMachines.
func (p Path) DisplayType() string {
	var b strings.Builder
	b.WriteString(p.Segments[0])
	for i := 1; i < len(p.Segments); i += 2 {
		b.WriteString("/" + p.Segments[i])
	}
	return b.String()
}

// Relative is type and name as error messages show them: Microsoft.Compute/virtualMachines/vm.
func (p Path) Relative() string { return strings.Join(p.Segments, "/") }

// Key is the form under which a resource ID is stored.
func Key(id string) string { return strings.ToLower(strings.TrimSuffix(id, "/")) }

// LastSegment is the name at the end of a resource ID.
func LastSegment(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

// CutLast cuts a text at the last occurrence of a separator.
func CutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Matches says whether a pattern with * wildcards matches the text, ignoring
// case as Azure's names do. The empty pattern matches all.
func Matches(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	parts := strings.Split(strings.ToLower(pattern), "*")
	text = strings.ToLower(text)
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	if len(parts) == 1 {
		return text == parts[0]
	}
	text = text[len(parts[0]):]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}
