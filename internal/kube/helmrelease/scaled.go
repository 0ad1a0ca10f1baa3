package helmrelease

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// kindDeployment is the kind of what a HorizontalPodAutoscaler may scale here.
const kindDeployment = "Deployment"

// Autoscaled reports whether a HorizontalPodAutoscaler sets the replicas of a Deployment.
func Autoscaled(ctx context.Context, kube kubernetes.Interface, namespace, deployment string) (bool, error) {
	scalers, err := kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil // the API server does not serve them
	}
	if err != nil {
		return false, fmt.Errorf("list the HorizontalPodAutoscalers in namespace %s: %w", namespace, err)
	}
	for s := range scalers.Items {
		if of := scalers.Items[s].Spec.ScaleTargetRef; of.Kind == kindDeployment && of.Name == deployment {
			return true, nil
		}
	}
	return false, nil
}

// keepScaled leaves Deployments the replicas that a HorizontalPodAutoscaler has given them: it would
// set them again. One that was scaled to zero it does not scale any more, so that gets the chart's.
func (i *Installer) keepScaled(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if o.GetKind() != kindDeployment {
			continue
		}
		scaled, err := Autoscaled(ctx, i.store.kube, o.GetNamespace(), o.GetName())
		if err != nil {
			return err
		}
		if !scaled {
			continue
		}
		found, err := i.applier.Get(ctx, o)
		if err != nil {
			return err
		}
		if found == nil {
			continue
		}
		if has, _, _ := unstructured.NestedInt64(found.Object, "spec", "replicas"); has > 0 {
			if err := unstructured.SetNestedField(o.Object, has, "spec", "replicas"); err != nil {
				return err
			}
		}
	}
	return nil
}
