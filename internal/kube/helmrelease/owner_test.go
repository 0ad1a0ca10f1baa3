package helmrelease

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/nodeautoprovision/nap/charts"
	"github.com/nodeautoprovision/nap/internal/kube/manifest"
)

// definitions is the release of nap's custom resource definitions.
func definitions() charts.Release {
	return charts.Release{Chart: "nap-crd", Name: "nap-crd", Namespace: namespace, Kubernetes: "v1.37.1"}
}

// definitionsPath is where the API server has them.
const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

// clusterWith has the definition of NodePools already, marked by a label and annotations.
func clusterWith(t *testing.T, labels, annotations map[string]string) (*cluster, []*unstructured.Unstructured) {
	t.Helper()
	release := definitions()
	rendered, err := release.Render()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Parse([]byte(rendered.Manifest))
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, objects...)
	const name = "nodepools.karpenter.sh"
	for _, o := range objects {
		if o.GetName() == name {
			there := o.DeepCopy()
			there.SetLabels(labels)
			there.SetAnnotations(annotations)
			c.objects[definitionsPath+name] = there
		}
	}
	if len(objects) < 5 || len(c.objects) != 1 {
		t.Fatalf("%d definitions, %d of them in the cluster", len(objects), len(c.objects))
	}
	return c, objects
}

// TestDefinitionsOfAnotherOwnerAreRefused: by the name of the definition and of the owner,
// with the commands that hand it over, and before anything is written.
func TestDefinitionsOfAnotherOwnerAreRefused(t *testing.T) {
	helm := map[string]string{labelManagedBy: "Helm"}
	for name, tt := range map[string]struct {
		labels, annotations map[string]string
		owner               string
	}{
		"another release": {helm, map[string]string{annotationName: "karpenter-crd", annotationNamespace: "kube-system"},
			"belongs to release karpenter-crd in namespace kube-system"},
		"the same release of another namespace": {helm, map[string]string{annotationName: "nap-crd", annotationNamespace: "shop"},
			"belongs to release nap-crd in namespace shop"},
		"no release": {nil, nil, "belongs to no release of Helm"},
		"another way than Helm": {map[string]string{labelManagedBy: "Argo"}, map[string]string{annotationName: "nap-crd", annotationNamespace: namespace},
			"is managed by Argo"},
		"no label": {nil, map[string]string{annotationName: "nap-crd", annotationNamespace: namespace},
			"has the release's annotations, and not the label app.kubernetes.io/managed-by=Helm"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := clusterWith(t, tt.labels, tt.annotations)
			before := copies(t, c)
			i := c.installer(t, 0)
			_, err := i.Install(t.Context(), definitions())
			want := "release nap-crd would take over what is not its own: CustomResourceDefinition nodepools.karpenter.sh " + tt.owner +
				". Nothing was written to the cluster. Uninstall what it belongs to, or hand it over:\n" +
				"  kubectl label --overwrite customresourcedefinition/nodepools.karpenter.sh app.kubernetes.io/managed-by=Helm && " +
				"kubectl annotate --overwrite customresourcedefinition/nodepools.karpenter.sh " +
				"meta.helm.sh/release-name=nap-crd meta.helm.sh/release-namespace=nap-system"
			if err == nil || err.Error() != want {
				t.Errorf("%v\nwant %s", err, want)
			}
			if checked := i.Check(t.Context(), definitions()); checked == nil || checked.Error() != want {
				t.Errorf("checked: %v\nwant %s", checked, want)
			}
			if diff := cmp.Diff(before, copies(t, c)); diff != "" || c.writes > 0 {
				t.Errorf("%d writes: %s", c.writes, diff)
			}
		})
	}
}

// copies are the objects of a cluster as JSON.
func copies(t *testing.T, c *cluster) map[string]string {
	t.Helper()
	out := map[string]string{}
	for path, o := range c.objects {
		raw, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out[path] = string(raw)
	}
	return out
}

// TestDefinitionsOfTheReleaseAreTaken: those that were handed over, and at the next
// installation those that the release has.
func TestDefinitionsOfTheReleaseAreTaken(t *testing.T) {
	c, objects := clusterWith(t, map[string]string{labelManagedBy: "Helm"},
		map[string]string{annotationName: "nap-crd", annotationNamespace: namespace})
	if err := c.installer(t, 0).Check(t.Context(), definitions()); err != nil || c.writes > 0 {
		t.Errorf("checked: %v, %d writes", err, c.writes)
	}
	for _, want := range []Outcome{Installed, Unchanged} {
		got, err := c.installer(t, 0).Install(t.Context(), definitions())
		if got != want || err != nil {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	there := 0
	for path, o := range c.objects {
		if strings.HasPrefix(path, definitionsPath) {
			there++
			if whose := owner(o, "nap-crd", namespace); whose != "" {
				t.Errorf("%s %s", path, whose)
			}
		}
	}
	if there != len(objects) {
		t.Errorf("%d definitions, want %d", there, len(objects))
	}
}

// TestDefinitionsBeingDeletedAreRefused: also the release's own, and before anything is written.
func TestDefinitionsBeingDeletedAreRefused(t *testing.T) {
	c, _ := clusterWith(t, map[string]string{labelManagedBy: "Helm"},
		map[string]string{annotationName: "nap-crd", annotationNamespace: namespace})
	i := c.installer(t, 0)
	if _, err := i.Install(t.Context(), definitions()); err != nil {
		t.Fatal(err)
	}
	c.objects[definitionsPath+"aksnodeclasses.karpenter.azure.com"].SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1_700_000_000, 0)})
	c.writes = 0
	const want = "the definition aksnodeclasses.karpenter.azure.com is being deleted since 2023-11-14T22:13:20Z, and would vanish under nap. "
	_, err := i.Install(t.Context(), definitions())
	if refused, is := errors.AsType[*RefusedError](err); !is || !strings.HasPrefix(refused.Why, want) || c.writes > 0 {
		t.Errorf("%d writes, %v", c.writes, err)
	}
	if err := i.Check(t.Context(), definitions()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("checked: %v", err)
	}
}
