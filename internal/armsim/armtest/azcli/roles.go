package azcli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/uuid"
)

// networkContributor is the built-in role of that name.
const networkContributor = "/providers/Microsoft.Authorization/roleDefinitions/4d97b98b-1d4f-4910-a051-f42900715ad8"

func (s *Shell) createIdentity(o *options) map[string]any {
	location := o.one("location")
	if location == "" { // that of the resource group
		location = s.Env.Region
	}
	return s.ask(http.MethodPut, o.in("Microsoft.ManagedIdentity/userAssignedIdentities/"+o.need("name")), identityVersion,
		map[string]any{"location": location})
}

func (s *Shell) showIdentity(o *options) map[string]any {
	return s.ask(http.MethodGet, o.in("Microsoft.ManagedIdentity/userAssignedIdentities/"+o.need("name")), identityVersion, nil)
}

func (s *Shell) createCredential(o *options) map[string]any {
	id := o.in("Microsoft.ManagedIdentity/userAssignedIdentities/" + o.need("identity-name") +
		"/federatedIdentityCredentials/" + o.need("name"))
	return s.ask(http.MethodPut, id, identityVersion, map[string]any{"properties": map[string]any{
		"issuer": o.need("issuer"), "subject": o.need("subject"), "audiences": o.list("audiences"),
	}})
}

// defineRole makes the role of a file; its ID is one that the command line makes up.
func (s *Shell) defineRole(o *options) map[string]any {
	text, err := os.ReadFile(filepath.Join(s.Root, o.need("role-definition")))
	if err != nil {
		s.Fatal(err)
	}
	var role struct {
		Name, Description                     string
		IsCustom                              bool
		Actions, NotActions, AssignableScopes []string
	}
	if err := json.Unmarshal(text, &role); err != nil || !role.IsCustom || len(role.AssignableScopes) == 0 {
		s.Fatalf("az %s: %s: %v", o.name, text, err)
	}
	id := role.AssignableScopes[0] + "/providers/Microsoft.Authorization/roleDefinitions/" +
		uuid.NewSHA1(uuid.NameSpaceURL, []byte(role.Name)).String()
	return s.ask(http.MethodPut, id, roleVersion, map[string]any{"properties": map[string]any{
		"roleName": role.Name, "description": role.Description, "type": "CustomRole", "assignableScopes": role.AssignableScopes,
		"permissions": []any{map[string]any{"actions": role.Actions, "notActions": role.NotActions}},
	}})
}

// roleOf is the ID of a role by its name: the built-in one that pages use, or one of the
// subscription's own.
func (s *Shell) roleOf(name, scope string) string {
	if name == "Network Contributor" {
		return networkContributor
	}
	answer := s.ask(http.MethodGet, scope+"/providers/Microsoft.Authorization/roleDefinitions", roleVersion, nil)
	listed, _ := answer["value"].([]any)
	for _, one := range listed {
		role, _ := one.(map[string]any)
		if p, _ := role["properties"].(map[string]any); p["roleName"] == name {
			id, _ := role["id"].(string)
			return id
		}
	}
	s.Fatalf("there is no role %q at %s", name, scope)
	return ""
}

func (s *Shell) assignRole(o *options) map[string]any {
	scope, to := o.need("scope"), o.need("assignee-object-id")
	role := s.roleOf(o.need("role"), scope)
	name := uuid.NewSHA1(uuid.NameSpaceURL, []byte(scope+to+role)).String()
	return s.ask(http.MethodPut, scope+"/providers/Microsoft.Authorization/roleAssignments/"+name, roleVersion, map[string]any{
		"properties": map[string]any{
			"principalId": to, "principalType": o.need("assignee-principal-type"), "roleDefinitionId": role,
		},
	})
}
