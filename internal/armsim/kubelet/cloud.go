package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
)

// ciliumTaint is the key of the taint of a node on which Cilium's program is not ready. A
// NodePool has it as a startup taint.
const ciliumTaint = "node.cilium.io/agent-not-ready"

// initializeNode does the cloud node manager's part: labels that say where and
// on what the node runs, and the removal of the taint that waits for them. The taint that
// waits for Cilium's agent, where there is one, goes with it: nothing of Cilium runs here.
func initializeNode(ctx context.Context, nodes coreclient.NodeInterface, v *vm, cilium bool) error {
	name := v.machine.NodeName()
	if v.boot.Flags.ExternalCloud {
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return ignoreNotFound(fmt.Errorf("reading node %s: %w", name, err))
		}
		kept := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
			return t.Key == cloudTaint.Key || cilium && t.Key == ciliumTaint
		})
		if len(kept) < len(node.Spec.Taints) {
			// Taints are replaced as a whole; the resource version guards
			// those that others add meanwhile.
			node.Spec.Taints = kept
			for key, value := range cloudLabels(v.machine) {
				node.Labels[key] = value
			}
			if _, err := nodes.Update(ctx, node, metav1.UpdateOptions{}); err != nil {
				return ignoreNotFound(fmt.Errorf("initializing node %s: %w", name, err))
			}
			return nil
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": cloudLabels(v.machine)}})
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

// orphans are the Node objects of machines that are gone.
type orphans struct {
	cfg    Config
	client kubernetes.Interface
	nodes  cache.SharedIndexInformer
	queue  *loop[string] // by node name
}

func newOrphans(cfg Config, client kubernetes.Interface) *orphans {
	o := &orphans{cfg: cfg, client: client}
	o.queue = newLoop("orphan", 1, cfg, o.sync)
	return o
}

// suspect has a node looked at that is not ready and has no kubelet here.
func (o *orphans) suspect(n *corev1.Node) {
	if o.cfg.VMExists != nil && strings.HasPrefix(n.Spec.ProviderID, providerScheme) && readiness(n) != corev1.ConditionTrue {
		o.queue.queue.Add(n.Name)
	}
}

// sync deletes the Node object of a machine that no longer exists, as the
// cloud node lifecycle controller does: only when the node is not ready, and
// only after asking the cloud. A node whose machine exists is asked about again.
func (o *orphans) sync(ctx context.Context, name string) (time.Duration, error) {
	found, ok, err := o.nodes.GetIndexer().GetByKey(name)
	if err != nil || !ok {
		return 0, err
	}
	n := found.(*corev1.Node)
	id, azure := strings.CutPrefix(n.Spec.ProviderID, providerScheme)
	if o.cfg.VMExists == nil || !azure || readiness(n) == corev1.ConditionTrue {
		return 0, nil // a change of the node brings it back
	}
	if o.cfg.VMExists(id) {
		return orphanCheckInterval, nil
	}
	err = o.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &n.UID}})
	if err != nil {
		return 0, ignoreNotFound(fmt.Errorf("deleting node %s, whose machine is gone: %w", name, err))
	}
	return 0, nil
}
