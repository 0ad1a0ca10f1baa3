package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/kube/manifest"
)

func TestInstallManifestsAreComplete(t *testing.T) {
	secret, err := bootstrapSecret("abcdef.0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Parse(bootstrapManifest, secret)
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
