package rbac

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/bootstraptoken"
)

//go:embed roles.yaml
var roles []byte

//go:embed users.yaml
var users string

//go:embed shadow.yaml
var shadowRole []byte

// Feature is a part of the controller with permissions of its own.
type Feature string

// The features that need more than the base role.
const (
	NodeOverlay      Feature = "NodeOverlay"
	CapacityBuffer   Feature = "CapacityBuffer"
	DynamicResources Feature = "DynamicResources"
	LeaderElection   Feature = "LeaderElection"
	SecureMetrics    Feature = "SecureMetrics"
	// PodDeletionCost is the feature gate PodDeletionCostManagement.
	PodDeletionCost Feature = "PodDeletionCostManagement"
	// SchedulerConfig are default spread constraints.
	SchedulerConfig Feature = "SchedulerConfig"
	// DefaultNodePools are NodePools and AKSNodeClasses of nap's own making.
	DefaultNodePools Feature = "DefaultNodePools"
	// BootstrapTokens are tokens of nap's own, ClusterBootstrapTokens those of others.
	BootstrapTokens        Feature = "BootstrapTokens"
	ClusterBootstrapTokens Feature = "ClusterBootstrapTokens"
)

// Permission is one thing that the controller must be allowed to do. Namespace
// is empty for permissions on the whole cluster, Name for those on all objects.
type Permission struct {
	Verb, Group, Resource, Subresource, Namespace, Name string
}

// String prints the permission as kubectl auth can-i reads it:
// "create pods/eviction", "patch nodeclaims.karpenter.sh/status".
func (p Permission) String() string {
	s := p.Verb + " " + p.Resource
	if p.Group != "" {
		s += "." + p.Group
	}
	if p.Subresource != "" {
		s += "/" + p.Subresource
	}
	if p.Name != "" {
		s += " " + p.Name
	}
	if p.Namespace != "" {
		s += " in namespace " + p.Namespace
	}
	return s
}

// Required lists every permission that a controller with these features needs,
// in the order of the manifest. The namespace is that of the lease and of the
// controller's memory.
func Required(namespace string, features ...Feature) ([]Permission, error) {
	set, err := parse(features)
	if err != nil {
		return nil, err
	}
	var out []Permission
	for _, role := range set.cluster {
		out = append(out, permissions(role.Rules, "")...)
	}
	for _, role := range set.namespaced {
		out = append(out, permissions(role.Rules, cmp.Or(role.Namespace, namespace))...)
	}
	return out, nil
}

// Manifests are the roles and their bindings to a subject, as YAML documents:
// everything that makes the subject able to run the controller with these
// features, with its memory and, where elected, its lease in the namespace.
func Manifests(namespace string, subject rbacv1.Subject, features ...Feature) ([]byte, error) {
	set, err := parse(features)
	if err != nil {
		return nil, err
	}
	var objects []any
	for _, role := range set.namespaced {
		role.Namespace = cmp.Or(role.Namespace, namespace)
		objects = append(objects, role, binding(role.ObjectMeta, "Role", subject))
	}
	for _, role := range set.cluster {
		objects = append(objects, role, binding(role.ObjectMeta, "ClusterRole", subject))
	}
	if slices.Contains(features, BootstrapTokens) {
		objects = append(objects, machines("nap-node-bootstrapper", "system:node-bootstrapper"),
			machines("nap-node-client-certificates", "system:certificates.k8s.io:certificatesigningrequests:nodeclient"))
	}
	var out bytes.Buffer
	for _, o := range objects {
		doc, err := yaml.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("writing %T: %w", o, err)
		}
		fmt.Fprintf(&out, "---\n%s", doc)
	}
	return out.Bytes(), nil
}

// Users are the roles for users of nap's objects, as YAML documents: what becomes part
// of Kubernetes' roles view, edit and admin, and who may read metrics and profiles.
func Users() string { return users }

// Shadow is the role of nap-controller --shadow and its binding to a subject, as YAML
// documents.
func Shadow(subject rbacv1.Subject) ([]byte, error) {
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(shadowRole, role); err != nil {
		return nil, fmt.Errorf("reading the embedded role of the shadow: %w", err)
	}
	var out bytes.Buffer
	for _, o := range []any{role, binding(role.ObjectMeta, "ClusterRole", subject)} {
		doc, err := yaml.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("writing %T: %w", o, err)
		}
		fmt.Fprintf(&out, "---\n%s", doc)
	}
	return out.Bytes(), nil
}

// binding grants a role, under the role's own name. Both kinds of binding have
// the same fields.
func binding(role metav1.ObjectMeta, kind string, subject rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind + "Binding"},
		ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: role.Namespace, Labels: role.Labels},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role.Name},
		Subjects:   []rbacv1.Subject{subject},
	}
}

// machines grants one of Kubernetes' own roles to what joins with a token of nap's:
// to ask for a certificate, and to have it approved.
func machines(name, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/name": "nap"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: bootstraptoken.Group}},
	}
}

type roleSet struct {
	cluster    []*rbacv1.ClusterRole
	namespaced []*rbacv1.Role
}

func parse(features []Feature) (roleSet, error) {
	var out roleSet
	for i, doc := range bytes.Split(roles, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			return roleSet{}, fmt.Errorf("reading document %d of the embedded roles: %w", i+1, err)
		}
		if kind.Kind == "Role" {
			role := &rbacv1.Role{}
			if err := yaml.UnmarshalStrict(doc, role); err != nil {
				return roleSet{}, fmt.Errorf("reading document %d of the embedded roles: %w", i+1, err)
			}
			if wanted(role.Labels, features) {
				out.namespaced = append(out.namespaced, role)
			}
			continue
		}
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(doc, role); err != nil {
			return roleSet{}, fmt.Errorf("reading document %d of the embedded roles: %w", i+1, err)
		}
		if wanted(role.Labels, features) {
			out.cluster = append(out.cluster, role)
		}
	}
	return out, nil
}

// wanted reports whether a role belongs to the base or to one of the features.
func wanted(labels map[string]string, features []Feature) bool {
	f := Feature(labels[v1beta1.LabelFeature])
	return f == "" || slices.Contains(features, f)
}

func permissions(rules []rbacv1.PolicyRule, namespace string) []Permission {
	var out []Permission
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name, sub, _ := strings.Cut(resource, "/")
				for _, verb := range rule.Verbs {
					p := Permission{Verb: verb, Group: group, Resource: name, Subresource: sub, Namespace: namespace}
					if len(rule.ResourceNames) == 0 {
						out = append(out, p)
					}
					for _, p.Name = range rule.ResourceNames {
						out = append(out, p)
					}
				}
			}
		}
	}
	return out
}
