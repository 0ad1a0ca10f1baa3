package lab

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInstallOrdersDefinitionsFirst(t *testing.T) {
	objects, err := parseManifests([][]byte{
		[]byte("# nothing but a comment\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n" +
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: b}\n"),
		[]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: c}\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	if diff := cmp.Diff([]string{"b", "a", "c"}, names); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestInstallRefusesInvalidManifest(t *testing.T) {
	for manifest, want := range map[string]string{
		"kind: Namespace\nmetadata: {name: a}": "apiVersion",
		"apiVersion: v1\nkind: Namespace":      "metadata.name",
		"\tnot yaml":                           "manifest 0",
	} {
		if _, err := parseManifests([][]byte{[]byte(manifest)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error = %v, want one about %s", manifest, err, want)
		}
	}
}

func TestInstallManifestsAreComplete(t *testing.T) {
	secret, err := bootstrapSecret("abcdef.0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := parseManifests([][]byte{bootstrapManifest, secret})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		got = append(got, o.GetKind()+" "+o.GetName())
	}
	want := []string{
		"ClusterRoleBinding nap-lab:node-bootstrapper",
		"ClusterRoleBinding nap-lab:approve-node-certificates",
		"ClusterRoleBinding nap-lab:approve-node-certificate-renewals",
		"RoleBinding nap-lab:authentication-reader",
		"Secret bootstrap-token-abcdef",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}
