package rbac

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/crds"
	"github.com/nodeautoprovision/nap/api/v1alpha1"
)

// The chart makes its roles from these files; that what it renders grants the same is
// tested where Helm is, in module charts.
func TestChartHasTheSameRoles(t *testing.T) {
	for file, want := range map[string]string{"roles.yaml": string(roles), "users.yaml": users, "shadow.yaml": string(shadowRole)} {
		got, err := os.ReadFile("../../../charts/nap/files/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("charts/nap/files/%[1]s differs from internal/controller/rbac/%[1]s: copy the latter", file)
		}
	}
}

// A feature whose role the chart leaves out for ever would be noticed by users alone.
func TestChartKnowsEveryFeature(t *testing.T) {
	helpers, err := os.ReadFile("../../../charts/nap/templates/_helpers.tpl")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`nap\.azure\.com/feature: (\w+)`).FindAllStringSubmatch(string(roles), -1)
	if len(found) < 8 {
		t.Fatalf("only %d features were found", len(found))
	}
	for _, m := range found {
		if !strings.Contains(string(helpers), `append $on "`+m[1]+`"`) {
			t.Errorf("charts/nap/templates/_helpers.tpl never switches on feature %s: add it to nap.features", m[1])
		}
	}
}

// userRoles are the roles for users by name.
func userRoles(t *testing.T) map[string]rbacv1.ClusterRole {
	t.Helper()
	out := map[string]rbacv1.ClusterRole{}
	for doc := range strings.SplitSeq(Users(), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(doc), &role); err != nil {
			t.Fatal(err)
		}
		out[role.Name] = role
	}
	return out
}

func TestUsersSeeEveryKindOfObject(t *testing.T) {
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	found := userRoles(t)
	for _, crd := range all {
		for role, verb := range map[string]string{"nap-view": "list", "nap-edit": "delete", "nap-admin": "create"} {
			if crd.Spec.Group == v1alpha1.Group && verb == "create" {
				continue // the controller alone writes what it tells
			}
			grants := slices.ContainsFunc(found[role].Rules, func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.APIGroups, crd.Spec.Group) && slices.Contains(r.Resources, crd.Spec.Names.Plural) && slices.Contains(r.Verbs, verb)
			})
			if !grants {
				t.Errorf("%s does not grant %s %s", role, verb, crd.Name)
			}
		}
	}
	for role, into := range map[string]string{"nap-view": "view", "nap-edit": "edit", "nap-admin": "admin"} {
		if found[role].Labels["rbac.authorization.k8s.io/aggregate-to-"+into] != "true" {
			t.Errorf("%s does not become part of %s: %v", role, into, found[role].Labels)
		}
	}
	for _, rule := range found["nap-edit"].Rules {
		if slices.Contains(rule.Resources, "nodeclaims") && slices.Contains(rule.Verbs, "create") {
			t.Error("nap-edit makes NodeClaims: only the controller does")
		}
	}
}

// The controller compares every definition with its own, and reads no others.
func TestRoleNamesEveryDefinition(t *testing.T) {
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, d := range all {
		want = append(want, d.Name)
	}
	permissions, err := Required("nap")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range permissions {
		if p.Resource == "customresourcedefinitions" && p.Verb == "get" {
			got = append(got, p.Name)
		}
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the role reads definitions %v, want %v", got, want)
	}
}
