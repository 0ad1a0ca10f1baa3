package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodeautoprovision/nap/api/crds"
)

// Commands judge files by the definitions that nap ships: a kind that is missing here would
// not be judged.
func TestDefinedKindsAreThoseOfTheDefinitions(t *testing.T) {
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]schema.GroupVersion{}
	for _, d := range definitions {
		for _, v := range d.Spec.Versions {
			if v.Storage {
				want[d.Spec.Names.Kind] = schema.GroupVersion{Group: d.Spec.Group, Version: v.Name}
			}
		}
	}
	if diff := cmp.Diff(want, definedKinds()); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}
