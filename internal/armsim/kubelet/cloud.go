package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// initializeNode does the cloud node manager's part: labels that say where and
// on what the node runs, and the removal of the taint that waits for them.
func (f *Fleet) initializeNode(ctx context.Context, v *vm) error {
	nodes, name := f.client.CoreV1().Nodes(), v.NodeName()
	if v.boot.Flags.ExternalCloud {
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return ignoreNotFound(fmt.Errorf("reading node %s: %w", name, err))
		}
		kept := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Key == cloudTaint.Key })
		if len(kept) < len(node.Spec.Taints) {
			// Taints are replaced as a whole; the resource version guards
			// those that others add meanwhile.
			node.Spec.Taints = kept
			for key, value := range cloudLabels(v.Machine) {
				node.Labels[key] = value
			}
			if _, err := nodes.Update(ctx, node, metav1.UpdateOptions{}); err != nil {
				return ignoreNotFound(fmt.Errorf("initializing node %s: %w", name, err))
			}
			return nil
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": cloudLabels(v.Machine)}})
	if err != nil {
		return fmt.Errorf("encoding labels of node %s: %w", name, err)
	}
	if _, err := nodes.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return ignoreNotFound(fmt.Errorf("labelling node %s: %w", name, err))
	}
	return nil
}

// cloudLabels are the labels of the cloud node manager and of the disk driver.
func cloudLabels(m Machine) map[string]string {
	region := strings.ToLower(m.Region)
	return map[string]string{
		corev1.LabelInstanceTypeStable:      m.Size,
		corev1.LabelInstanceType:            m.Size,
		corev1.LabelTopologyRegion:          region,
		corev1.LabelFailureDomainBetaRegion: region,
		corev1.LabelTopologyZone:            m.zoneLabel(),
		corev1.LabelFailureDomainBetaZone:   m.zoneLabel(),
		diskTopology:                        m.diskZoneLabel(),
	}
}

// ignoreNotFound drops the error of an object that is gone: the watch or the
// next write deals with that.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
