package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeautoprovision/nap/internal/lab/metricsapi"
)

// load sets what the pods of a selector use together, as the Metrics API tells it.
func (r *runner) load(ctx context.Context, args []string) error {
	client, err := kubernetes.NewForConfig(r.Kubernetes)
	if err != nil {
		return err
	}
	return metricsapi.Set(ctx, client, metav1.NamespaceDefault, strings.Join(args, " "))
}

// resize changes what the first container of each running pod of a selector asks for, in
// place, as a vertical autoscaler does.
func (r *runner) resize(ctx context.Context, args []string) error {
	to, err := metricsapi.ParseLoad(strings.Join(args, " "))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(r.Kubernetes)
	if err != nil {
		return err
	}
	pods, err := r.world.pods.Pods(metav1.NamespaceDefault).List(to.Selector)
	if err != nil {
		return err
	}
	changed := 0
	for _, p := range pods {
		if p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning {
			continue
		}
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
			"name": p.Spec.Containers[0].Name, "resources": map[string]any{"requests": to.Usage},
		}}}})
		if err != nil {
			return err
		}
		_, err = client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "resize")
		if apierrors.IsNotFound(err) {
			continue // it has gone since
		}
		if err != nil {
			return fmt.Errorf("resize pod %s: %w", p.Name, err)
		}
		changed++
	}
	if changed == 0 {
		return fmt.Errorf("no such pod runs")
	}
	return nil
}

// resizing reports whether a pod's containers do not hold yet what it asks for.
func resizing(p *corev1.Pod) bool {
	for _, c := range p.Spec.Containers {
		for _, s := range p.Status.ContainerStatuses {
			if s.Name == c.Name && s.Resources != nil && !equality.Semantic.DeepEqual(s.Resources.Requests, c.Resources.Requests) {
				return true
			}
		}
	}
	return false
}
