package authorization

import (
	"net/http"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// configured are the assignments of the configuration as the API shows them.
func (p *Provider) configured() []arm.Document {
	var out []arm.Document
	for n, a := range p.assignments {
		out = append(out, p.shown(n, a))
	}
	return out
}

// shown is the nth assignment of the configuration.
func (p *Provider) shown(n int, a Assignment) arm.Document {
	return arm.Document{
		"id":   a.Scope + "/providers/" + displayAssignment + "/" + id(2, n),
		"name": id(2, n), "type": displayAssignment,
		"properties": arm.Document{
			"principalId": a.PrincipalID, "principalType": "ServicePrincipal", "scope": a.Scope, "roleDefinitionId": p.definitionID(n),
		},
	}
}

// all are all assignments.
func (p *Provider) all() []arm.Document {
	out := p.configured()
	for _, r := range p.sub.Resources.Sorted(typeAssignment) {
		out = append(out, r.Doc)
	}
	return out
}

// listAssignments lists those at, above and below a scope; of one principal where the
// filter names it, and not those below with the filter atScope().
func (p *Provider) listAssignments(c *arm.Call) (arm.Reply, error) {
	scope, filter := scopeOf(c.Path), c.Request.URL.Query().Get("$filter")
	principal := ""
	if rest, ok := strings.CutPrefix(filter, "principalId eq '"); ok {
		principal = strings.TrimSuffix(rest, "'")
	} else if filter != "" && filter != "atScope()" {
		return arm.Reply{}, arm.NewError(http.StatusBadRequest, "UnsupportedFilter", "The filter '%s' is not supported.", filter)
	}
	values := []any{}
	for _, d := range p.all() {
		at := arm.Text(d, "properties", "scope")
		if !arm.Within(scope, at) && (filter == "atScope()" || !arm.Within(at, scope)) {
			continue
		}
		if principal == "" || strings.EqualFold(arm.Text(d, "properties", "principalId"), principal) {
			values = append(values, d)
		}
	}
	if principal != "" && p.tenant.Open && !p.tenant.Has(principal) && len(values) == 0 {
		values = append(values, p.shown(owner, Assignment{PrincipalID: principal, Scope: p.sub.Path()}))
	}
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{"value": values}}, nil
}

func (p *Provider) getAssignment(c *arm.Call) (arm.Reply, error) {
	for _, d := range p.all() {
		if arm.Key(arm.Text(d, "id")) == arm.Key(c.Path.ID()) {
			return arm.Reply{Status: http.StatusOK, Body: d}, nil
		}
	}
	return arm.Reply{}, arm.NewError(http.StatusNotFound, "RoleAssignmentNotFound", "The role assignment '%s' is not found.", c.Path.Name())
}

// putAssignment makes an assignment, which never changes; the same one may be put again.
func (p *Provider) putAssignment(c *arm.Call) (arm.Reply, error) {
	var body struct {
		Properties struct {
			PrincipalID      string `json:"principalId"`
			RoleDefinitionID string `json:"roleDefinitionId"`
		} `json:"properties"`
	}
	doc, err := arm.DecodeBody(c.Body, &body)
	if err != nil {
		return arm.Reply{}, err
	}
	scope, b := scopeOf(c.Path), body.Properties
	bad := func(status int, code, format string, args ...any) (arm.Reply, error) {
		return arm.Reply{}, arm.NewError(status, code, format, args...)
	}
	switch {
	case !guid.MatchString(c.Path.Name()):
		return bad(http.StatusBadRequest, "InvalidRoleAssignmentId",
			"The role assignment ID '%s' is not valid. The role assignment ID must be a GUID.", c.Path.Name())
	case b.PrincipalID == "" || b.RoleDefinitionID == "":
		return bad(http.StatusBadRequest, "InvalidCreateRoleAssignmentRequest", "The role assignment request is not valid.")
	case p.definition(b.RoleDefinitionID) == nil:
		return bad(http.StatusNotFound, "RoleDefinitionDoesNotExist", "The specified role definition with ID '%s' does not exist.",
			arm.LastSegment(b.RoleDefinitionID))
	case !p.tenant.Open && !p.tenant.Has(b.PrincipalID):
		return bad(http.StatusBadRequest, "PrincipalNotFound", "Principal %s does not exist in the directory %s.",
			strings.ReplaceAll(b.PrincipalID, "-", ""), p.sub.TenantID)
	}
	same := func(d arm.Document) bool {
		return strings.EqualFold(arm.Text(d, "properties", "principalId"), b.PrincipalID) &&
			arm.Key(arm.Text(d, "properties", "scope")) == arm.Key(scope) &&
			strings.EqualFold(arm.LastSegment(arm.Text(d, "properties", "roleDefinitionId")), arm.LastSegment(b.RoleDefinitionID))
	}
	if old := p.sub.Resources.Find(c.Path.ID()); old != nil {
		if !same(old.Doc) {
			return bad(http.StatusConflict, "RoleAssignmentUpdateNotPermitted",
				"Tenant ID, application ID, principal ID, and scope are not allowed to be updated.")
		}
		return arm.Reply{Status: http.StatusOK, Body: old.Doc}, nil
	}
	if slices.ContainsFunc(p.all(), same) {
		return bad(http.StatusConflict, "RoleAssignmentExists", "The role assignment already exists.")
	}
	properties := arm.Section(doc, "properties")
	properties["scope"] = scope
	if properties["principalType"] == nil {
		properties["principalType"] = "ServicePrincipal"
	}
	doc["id"], doc["name"], doc["type"] = c.Path.ID(), c.Path.Name(), displayAssignment
	p.sub.Resources.Put(&arm.Resource{ID: c.Path.ID(), Type: typeAssignment, Group: c.Path.Group}, doc)
	return arm.Reply{Status: http.StatusCreated, Body: doc}, nil
}

func (p *Provider) deleteAssignment(c *arm.Call) (arm.Reply, error) {
	r := p.sub.Resources.Find(c.Path.ID())
	if r == nil {
		return arm.Reply{Status: http.StatusNoContent}, nil
	}
	p.sub.Resources.Drop(r)
	return arm.Reply{Status: http.StatusOK, Body: r.Doc}, nil
}
