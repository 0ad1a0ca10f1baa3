package helmrelease

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/nodeautoprovision/nap/charts"
	"github.com/nodeautoprovision/nap/internal/kube/manifest"
)

// What Helm marks the objects of a release with.
const (
	labelManagedBy      = "app.kubernetes.io/managed-by"
	annotationName      = "meta.helm.sh/release-name"
	annotationNamespace = "meta.helm.sh/release-namespace"
)

// own marks an object as a release's.
func own(o *unstructured.Unstructured, name, namespace string) {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[labelManagedBy], annotations[annotationName], annotations[annotationNamespace] = "Helm", name, namespace
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}

// owner says whose an object is that a release has not made; empty where it is the
// release's.
func owner(o *unstructured.Unstructured, name, namespace string) string {
	annotations, by := o.GetAnnotations(), o.GetLabels()[labelManagedBy]
	mine := annotations[annotationName] == name && annotations[annotationNamespace] == namespace
	switch {
	case mine && by == "Helm":
		return ""
	case by != "" && by != "Helm":
		return "is managed by " + by
	case mine:
		return "has the release's annotations, and not the label " + labelManagedBy + "=Helm"
	case annotations[annotationName] != "":
		return fmt.Sprintf("belongs to release %s in namespace %s", annotations[annotationName], annotations[annotationNamespace])
	}
	return "belongs to no release of Helm"
}

// RefusedError says what has to be done before a release can be installed.
type RefusedError struct {
	// Why says what is in the way, and what to do about it.
	Why string
	// Namespace is another one, for which a release of the same name has made the objects.
	Namespace string
}

func (r *RefusedError) Error() string { return r.Why }

// Elsewhere are the other namespaces that have a release of the name, of the chart of that
// name, in order.
func (i *Installer) Elsewhere(ctx context.Context, name string) ([]string, error) {
	everywhere := i.store
	everywhere.namespace = ""
	all, err := everywhere.history(ctx, name)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range all {
		gone := r.Info.Status == common.StatusUninstalled || r.Info.Status == common.StatusSuperseded
		if !gone && r.Namespace != i.store.namespace && r.Chart != nil && r.Chart.Name() == name {
			out = append(out, r.Namespace)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// checkDeleted refuses definitions that are being deleted: they vanish once their last object does,
// and what was installed on them stays without.
func (i *Installer) checkDeleted(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		found, err := i.applier.Get(ctx, o)
		if err != nil {
			return err
		}
		if found == nil || found.GetDeletionTimestamp() == nil {
			continue
		}
		return &RefusedError{Why: fmt.Sprintf("the definition %[1]s is being deleted since %[2]s, and would vanish under nap. "+
			"Nothing was written to the cluster. Wait until it is gone. Its objects keep it; where nothing takes their finalizers off "+
			"any more, and no machine is left (kubectl get nodeclaims), do so:\n"+
			"  kubectl get %[1]s --output name | xargs -I{} kubectl patch {} --type merge --patch '{\"metadata\":{\"finalizers\":null}}'",
			o.GetName(), found.GetDeletionTimestamp().UTC().Format(time.RFC3339))}
	}
	return nil
}

// checkOwners refuses objects of another owner.
func (i *Installer) checkOwners(ctx context.Context, objects []*unstructured.Unstructured, want charts.Release,
	last *releasev1.Release) error {
	if last != nil {
		had, err := manifest.Parse([]byte(last.Manifest))
		if err != nil {
			return err
		}
		objects = manifest.Others(objects, had)
	}
	var foreign, adopt []string
	namespace := ""
	for _, o := range objects {
		found, err := i.applier.Get(ctx, o)
		if err != nil {
			return err
		}
		if found == nil {
			continue
		}
		whose := owner(found, want.Name, want.Namespace)
		if whose == "" {
			continue
		}
		if annotations := found.GetAnnotations(); annotations[annotationName] == want.Name && annotations[annotationNamespace] != want.Namespace {
			namespace = annotations[annotationNamespace]
		}
		foreign = append(foreign, o.GetKind()+" "+o.GetName()+" "+whose)
		object := strings.ToLower(o.GetKind()) + "/" + o.GetName()
		if o.GetNamespace() != "" {
			object += " --namespace " + o.GetNamespace()
		}
		adopt = append(adopt, fmt.Sprintf("kubectl label --overwrite %s %s=Helm && kubectl annotate --overwrite %s %s=%s %s=%s",
			object, labelManagedBy, object, annotationName, want.Name, annotationNamespace, want.Namespace))
	}
	if len(foreign) == 0 {
		return nil
	}
	return &RefusedError{Namespace: namespace, Why: fmt.Sprintf(
		"release %s would take over what is not its own: %s. Nothing was written to the cluster. "+
			"Uninstall what it belongs to, or hand it over:\n  %s",
		want.Name, strings.Join(foreign, "; "), strings.Join(adopt, "\n  "))}
}
