package prerequisites

import "testing"

// What a release of Helm has made is mended by Helm, and nothing that is told touches roles:
// their bindings would name another account than that of the installation.
func TestDefinitionsAreMendedByWhatMadeThem(t *testing.T) {
	for release, want := range map[string]string{
		"":            "nap controller manifests --definitions | kubectl apply --server-side --force-conflicts -f -",
		"own/nap-crd": "helm upgrade --install nap-crd charts/nap-crd --namespace own, or nap enable",
	} {
		a := definitions(&Facts{Kubernetes: &Kubernetes{Outdated: []string{"nodepools.karpenter.sh"}, DefinitionsRelease: release}})
		if a.fix != want {
			t.Errorf("release %q: mended by %q, want %q", release, a.fix, want)
		}
	}
}
