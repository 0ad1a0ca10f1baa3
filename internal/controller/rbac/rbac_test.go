package rbac

import (
	"bytes"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

func TestRequiredReadsTheManifestRuleByRule(t *testing.T) {
	got, err := Required("kube-system", LeaderElection)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, p := range got {
		if have[p.String()] {
			t.Errorf("%s is asked for twice", p)
		}
		have[p.String()] = true
	}
	for _, want := range []string{
		"create nodeclaims.karpenter.sh",
		"patch nodeclaims.karpenter.sh/status",
		"delete nodeclaims.karpenter.sh", // giving back
		"patch nodes",                    // its taint
		"create pods/eviction",
		"list jobs.batch",
		"update leases.coordination.k8s.io in namespace kube-system",
		"update snapshots.nap.azure.com", "delete snapshotshards.nap.azure.com", "list snapshotshards.nap.azure.com",
	} {
		if !have[want] {
			t.Errorf("%s is missing", want)
		}
	}
	for p := range have {
		if strings.Contains(p, "*") || strings.Contains(p, "nodeoverlays.karpenter.sh") && !strings.Contains(p, "customresourcedefinitions") || strings.Contains(p, "secrets") {
			t.Errorf("%s is more than the base needs", p)
		}
	}
}

func TestFeaturesAndLeaderElectionAddRulesWhenEnabled(t *testing.T) {
	base, err := Required("kube-system")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []Feature{NodeOverlay, CapacityBuffer, DynamicResources, LeaderElection} {
		with, err := Required("kube-system", f)
		if err != nil {
			t.Fatal(err)
		}
		if len(with) <= len(base) {
			t.Errorf("%s needs nothing beyond the base", f)
		}
	}
	for _, p := range base {
		if p.Resource == "leases" {
			t.Errorf("without leader election %s is not needed", p)
		}
	}
}

func TestManifestsBindEveryRoleToTheSubject(t *testing.T) {
	out, err := Manifests("kube-system",
		rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "nap"}, NodeOverlay, LeaderElection)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for doc := range bytes.SplitSeq(bytes.TrimPrefix(out, []byte("---\n")), []byte("---\n")) {
		var o rbacv1.RoleBinding
		if err := yaml.Unmarshal(doc, &o); err != nil {
			t.Fatal(err)
		}
		kinds[o.Kind]++
		if strings.HasSuffix(o.Kind, "Binding") && (len(o.Subjects) != 1 || o.Subjects[0].Name != "nap" || o.RoleRef.Name != o.Name) {
			t.Errorf("%s %s binds %v to %v", o.Kind, o.Name, o.RoleRef, o.Subjects)
		}
		if o.Namespace != "" != strings.HasPrefix(o.Kind, "Role") {
			t.Errorf("%s %s is in namespace %q", o.Kind, o.Name, o.Namespace)
		}
	}
	if kinds["ClusterRole"] != 2 || kinds["ClusterRoleBinding"] != 2 || kinds["Role"] != 2 || kinds["RoleBinding"] != 2 {
		t.Errorf("got %v", kinds)
	}
}
