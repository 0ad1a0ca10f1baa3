package setup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/authorization/armauthorization/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/msi/armmsi"

	"github.com/nodeautoprovision/nap/internal/azure/launch/aksmachine"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
)

// Step is one thing that is made in Azure.
type Step struct {
	// What names the thing; Command is the az command that makes it, Undo the one that
	// removes it, empty where it stays.
	What, Command, Undo string
	// There reports whether the thing is there as it should be.
	There func(context.Context) (bool, error)
	// Make makes it, or corrects it. It may be repeated.
	Make func(context.Context) error
	// Remove removes it, and is nil where it stays.
	Remove func(context.Context) error
}

// Plan are the steps of a setup, in order.
type Plan struct {
	target      Target
	identities  *armmsi.UserAssignedIdentitiesClient
	credentials *armmsi.FederatedIdentityCredentialsClient
	definitions *armauthorization.RoleDefinitionsClient
	assignments *armauthorization.RoleAssignmentsClient
	pool        *aksmachine.MachineClient // nil without a pool

	// ClientID and PrincipalID are those of nap's identity, known once that was found or
	// made.
	ClientID, PrincipalID string
}

// New makes the plan for a target. The credential is whose who makes it.
func New(target Target, credential azcore.TokenCredential, options *arm.ClientOptions) (*Plan, error) {
	p := &Plan{target: target}
	subscription := target.Cluster.Subscription
	var errs [5]error
	p.identities, errs[0] = armmsi.NewUserAssignedIdentitiesClient(subscription, credential, options)
	p.credentials, errs[1] = armmsi.NewFederatedIdentityCredentialsClient(subscription, credential, options)
	p.definitions, errs[2] = armauthorization.NewRoleDefinitionsClient(credential, options)
	p.assignments, errs[3] = armauthorization.NewRoleAssignmentsClient(subscription, credential, options)
	if target.MachinesPool != "" {
		p.pool, errs[4] = aksmachine.NewMachineClient(target.Cluster.ID+"/agentPools/"+target.MachinesPool, credential, options)
	}
	return p, errors.Join(errs[:]...)
}

// Steps are what is to be made, in this order, and removed in the reverse one.
func (p *Plan) Steps() []Step {
	machines, catalogue := p.target.Roles()
	steps := []Step{p.identity(), p.credential(), p.role(machines), p.role(catalogue)}
	for _, a := range p.target.Assignments() {
		steps = append(steps, p.assignment(a))
	}
	if p.pool != nil {
		steps = append(steps, p.machinesPool())
	}
	return steps
}

func (p *Plan) identity() Step {
	t := &p.target
	group, name := t.Cluster.ResourceGroup, t.IdentityName()
	read := func(ctx context.Context) (bool, error) {
		answer, err := p.identities.Get(ctx, group, name, nil)
		if missing(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		p.learn(answer.Properties)
		return true, nil
	}
	return Step{
		What:    "identity " + name,
		Command: fmt.Sprintf("az identity create --resource-group %s --name %s --location %s", group, name, t.Cluster.Location),
		Undo:    fmt.Sprintf("az identity delete --resource-group %s --name %s", group, name),
		There:   read,
		Make: func(ctx context.Context) error {
			answer, err := p.identities.CreateOrUpdate(ctx, group, name, armmsi.Identity{Location: &t.Cluster.Location}, nil)
			if err == nil {
				p.learn(answer.Properties)
			}
			return err
		},
		Remove: func(ctx context.Context) error {
			_, err := p.identities.Delete(ctx, group, name, nil)
			return err
		},
	}
}

func (p *Plan) learn(i *armmsi.UserAssignedIdentityProperties) {
	if i != nil {
		p.ClientID, p.PrincipalID = value(i.ClientID), value(i.PrincipalID)
	}
}

func (p *Plan) credential() Step {
	t := &p.target
	group, name := t.Cluster.ResourceGroup, t.IdentityName()
	return Step{
		What: "federated credential " + CredentialName + " for " + t.Subject(),
		Command: fmt.Sprintf("az identity federated-credential create --resource-group %s --identity-name %s --name %s "+
			"--issuer %s --subject %s --audiences %s",
			group, name, CredentialName, t.Cluster.OIDCIssuer, t.Subject(), Audience),
		Undo: fmt.Sprintf("az identity federated-credential delete --resource-group %s --identity-name %s --name %s --yes",
			group, name, CredentialName),
		There: func(ctx context.Context) (bool, error) {
			answer, err := p.credentials.Get(ctx, group, name, CredentialName, nil)
			if missing(err) {
				return false, nil
			}
			if err != nil || answer.Properties == nil {
				return false, err
			}
			c := answer.Properties
			return value(c.Issuer) == t.Cluster.OIDCIssuer && value(c.Subject) == t.Subject() &&
				len(c.Audiences) == 1 && value(c.Audiences[0]) == Audience, nil
		},
		Make: func(ctx context.Context) error {
			subject, audience := t.Subject(), Audience
			_, err := p.credentials.CreateOrUpdate(ctx, group, name, CredentialName, armmsi.FederatedIdentityCredential{
				Properties: &armmsi.FederatedIdentityCredentialProperties{
					Issuer: &t.Cluster.OIDCIssuer, Subject: &subject, Audiences: []*string{&audience},
				},
			}, nil)
			return err
		},
		Remove: func(ctx context.Context) error {
			_, err := p.credentials.Delete(ctx, group, name, CredentialName, nil)
			return ignoreMissing(err)
		},
	}
}

// TrustedSubject is whose tokens of the cluster count as those of nap's identity: what the
// federated credential says now. It is empty where there is none, or where it is for tokens of
// another cluster.
func (p *Plan) TrustedSubject(ctx context.Context) (string, error) {
	t := &p.target
	answer, err := p.credentials.Get(ctx, t.Cluster.ResourceGroup, t.IdentityName(), CredentialName, nil)
	if missing(err) {
		return "", nil
	}
	if err != nil || answer.Properties == nil || value(answer.Properties.Issuer) != t.Cluster.OIDCIssuer {
		return "", err
	}
	return value(answer.Properties.Subject), nil
}

func (p *Plan) role(r Role) Step {
	scope := p.target.subscription()
	guid := r.ID[strings.LastIndexByte(r.ID, '/')+1:]
	custom := "CustomRole"
	return Step{
		What: fmt.Sprintf("role %q", r.Name),
		Command: fmt.Sprintf(`az role definition create --role-definition '{"Name": %q, "Description": %q, "Actions": ["%s"], "AssignableScopes": [%q]}'`,
			r.Name, r.Purpose, strings.Join(r.Actions, `", "`), scope),
		Undo: fmt.Sprintf("az role definition delete --name %q", r.Name),
		There: func(ctx context.Context) (bool, error) {
			found, err := p.definition(ctx, r)
			if err != nil || found == nil {
				return false, err
			}
			var has []string
			for _, permission := range found.Properties.Permissions {
				for _, action := range permission.Actions {
					has = append(has, value(action))
				}
			}
			return !slices.ContainsFunc(r.Actions, func(action string) bool { return !slices.Contains(has, action) }), nil
		},
		Make: func(ctx context.Context) error {
			definition := armauthorization.RoleDefinition{Properties: &armauthorization.RoleDefinitionProperties{
				RoleName: &r.Name, Description: &r.Purpose, RoleType: &custom, AssignableScopes: []*string{&scope},
				Permissions: []*armauthorization.Permission{{Actions: pointers(r.Actions)}},
			}}
			name := guid
			if found, err := p.definition(ctx, r); err != nil {
				return err
			} else if found != nil {
				name = value(found.Name)
			}
			_, err := p.definitions.CreateOrUpdate(ctx, strings.TrimPrefix(scope, "/"), name, definition, nil)
			return err
		},
		Remove: func(ctx context.Context) error {
			found, err := p.definition(ctx, r)
			if err != nil || found == nil {
				return err
			}
			_, err = p.definitions.Delete(ctx, strings.TrimPrefix(scope, "/"), value(found.Name), nil)
			if code(err) == "RoleDefinitionHasAssignments" {
				return nil // of other clusters of the subscription
			}
			return err
		},
	}
}

// definition is a role as it is, by its name: one that az has made has a GUID of its own.
// It is nil where there is none.
func (p *Plan) definition(ctx context.Context, r Role) (*armauthorization.RoleDefinition, error) {
	filter := "roleName eq '" + r.Name + "'"
	pager := p.definitions.NewListPager(strings.TrimPrefix(p.target.subscription(), "/"),
		&armauthorization.RoleDefinitionsClientListOptions{Filter: &filter})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, d := range page.Value {
			if d != nil && d.Properties != nil && value(d.Properties.RoleName) == r.Name {
				return d, nil
			}
		}
	}
	return nil, nil
}

func (p *Plan) assignment(a Assignment) Step {
	kind := armauthorization.PrincipalTypeServicePrincipal
	show := fmt.Sprintf("$(az identity show --resource-group %s --name %s --query principalId --output tsv)",
		p.target.Cluster.ResourceGroup, p.target.IdentityName())
	return Step{
		What: fmt.Sprintf("assignment of role %q on %s", a.Role.Name, a.Of),
		Command: fmt.Sprintf("az role assignment create --name %s --assignee-principal-type %s --assignee-object-id %s --role %q --scope %s",
			a.Name, kind, show, a.Role.Name, a.Scope),
		Undo: fmt.Sprintf("az role assignment delete --ids %s/providers/Microsoft.Authorization/roleAssignments/%s", a.Scope, a.Name),
		There: func(ctx context.Context) (bool, error) {
			if p.PrincipalID == "" {
				return false, nil
			}
			found, err := p.assigned(ctx, a)
			return found != nil, err
		},
		Make: func(ctx context.Context) error {
			role, err := p.definition(ctx, a.Role)
			if err != nil {
				return err
			}
			if role == nil {
				return fmt.Errorf("role %q is not there yet", a.Role.Name)
			}
			return p.assign(ctx, a, armauthorization.RoleAssignmentCreateParameters{Properties: &armauthorization.RoleAssignmentProperties{
				PrincipalID: &p.PrincipalID, PrincipalType: &kind, RoleDefinitionID: role.ID,
			}})
		},
		Remove: func(ctx context.Context) error {
			found, err := p.assigned(ctx, a)
			if err != nil || found == nil {
				return err
			}
			_, err = p.assignments.DeleteByID(ctx, strings.TrimPrefix(value(found.ID), "/"), nil)
			return ignoreMissing(err)
		},
	}
}

// assigned is the assignment as it is, whatever it is called; nil where there is none.
func (p *Plan) assigned(ctx context.Context, a Assignment) (*armauthorization.RoleAssignment, error) {
	role, err := p.definition(ctx, a.Role)
	if err != nil || role == nil || p.PrincipalID == "" {
		return nil, err
	}
	filter := "principalId eq '" + p.PrincipalID + "'"
	pager := p.assignments.NewListForScopePager(strings.TrimPrefix(a.Scope, "/"),
		&armauthorization.RoleAssignmentsClientListForScopeOptions{Filter: &filter})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, one := range page.Value {
			if one != nil && one.Properties != nil && strings.EqualFold(value(one.Properties.Scope), a.Scope) &&
				strings.EqualFold(value(one.Properties.RoleDefinitionID), value(role.ID)) {
				return one, nil
			}
		}
	}
	return nil, nil
}

// A new identity is known to the directory some seconds after it was made.
const (
	principalEvery = 3 * time.Second
	principalTries = 40
)

// assign makes an assignment. One of its name that an identity of the past has left is
// removed first.
func (p *Plan) assign(ctx context.Context, a Assignment, body armauthorization.RoleAssignmentCreateParameters) error {
	scope := strings.TrimPrefix(a.Scope, "/")
	for try := 0; ; try++ {
		_, err := p.assignments.Create(ctx, scope, a.Name, body, nil)
		switch c := code(err); {
		case c == "RoleAssignmentExists":
			return nil
		case c == "RoleAssignmentUpdateNotPermitted" && try == 0:
			if _, err := p.assignments.Delete(ctx, scope, a.Name, nil); err != nil {
				return err
			}
		case c == "PrincipalNotFound" && try < principalTries:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(principalEvery):
			}
		default:
			return err
		}
	}
}

func (p *Plan) machinesPool() Step {
	t := &p.target
	return Step{
		What:    "agent pool " + t.MachinesPool + " of mode " + managedcluster.ModeMachines,
		Command: managedcluster.MakePool(t.Cluster.ID, t.MachinesPool),
		There: func(ctx context.Context) (bool, error) {
			if pool := t.Cluster.Pools.Find(t.MachinesPool); pool != nil {
				return pool.ForMachines(), nil
			}
			return p.pool.Ask(ctx) == nil, nil
		},
		Make: func(ctx context.Context) error {
			if pool := t.Cluster.Pools.Find(t.MachinesPool); pool != nil {
				return fmt.Errorf("agent pool %s has the mode %s, and the mode of a pool never changes: name another pool", pool.Name, pool.Mode)
			}
			err := p.pool.MakePool(ctx)
			if status(err) == http.StatusPreconditionFailed {
				return nil // it is there
			}
			return err
		},
	}
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func pointers(texts []string) []*string {
	out := make([]*string, len(texts))
	for i := range texts {
		out[i] = &texts[i]
	}
	return out
}

func status(err error) int {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.StatusCode
	}
	return 0
}

func code(err error) string {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.ErrorCode
	}
	return ""
}

func missing(err error) bool { return status(err) == http.StatusNotFound }

func ignoreMissing(err error) error {
	if missing(err) {
		return nil
	}
	return err
}
