package kubelet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	storageclient "k8s.io/client-go/kubernetes/typed/storage/v1"
)

// diskDriver is the CSI driver of Azure disks, diskTopology the label it spreads
// volumes by.
const (
	diskDriver   = "disk.csi.azure.com"
	diskTopology = "topology.disk.csi.azure.com/zone"
)

// register creates the Node and the CSINode with the node's own certificate.
func (f *Fleet) register(ctx context.Context, v *vm) error {
	config, httpClient, err := withCertificate(v.boot, v.join.cert)
	if err != nil {
		return err
	}
	defer httpClient.CloseIdleConnections()
	core, err := coreclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", v.boot.Server, err)
	}
	node, err := createNode(ctx, core.Nodes(), f.node(v))
	if err != nil {
		return err
	}
	storage, err := storageclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", v.boot.Server, err)
	}
	if _, err := storage.CSINodes().Create(ctx, csiNode(v, node), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering the disk driver in CSINode %s: %w", node.Name, err)
	}
	f.adopt(v, node)
	return nil
}

// createNode creates the Node, or takes the one that the same machine created
// before. A Node of another machine with this name has to be deleted first.
func createNode(ctx context.Context, nodes coreclient.NodeInterface, want *corev1.Node) (*corev1.Node, error) {
	node, err := nodes.Create(ctx, want, metav1.CreateOptions{})
	if err == nil {
		return node, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("registering node %s: %w", want.Name, err)
	}
	if node, err = nodes.Get(ctx, want.Name, metav1.GetOptions{}); err != nil {
		return nil, fmt.Errorf("reading node %s: %w", want.Name, err)
	}
	if node.Spec.ProviderID != want.Spec.ProviderID {
		return nil, fmt.Errorf("node %s exists already for another machine, %s; waiting until it is deleted", want.Name, node.Spec.ProviderID)
	}
	return node, nil
}

// adopt makes the machine the kubelet of its node.
func (f *Fleet) adopt(v *vm, node *corev1.Node) {
	v.nodeUID, v.join = node.UID, joinAttempt{}
	v.mu.Lock()
	troubled := v.reason != ""
	v.reason = ""
	v.mu.Unlock()
	if troubled {
		f.tell(v, "")
	}
	f.mu.Lock()
	current := f.byID[v.ID] == v // not gone or rebooted meanwhile
	if current {
		f.byNode[node.Name] = v
	}
	f.mu.Unlock()
	if !current {
		return
	}
	f.advance(v, NotReady)
	f.leases.queue.Add(v.ID)
	f.queuePodsOf(node.Name)
}

// node is the Node object as the kubelet registers it.
func (f *Fleet) node(v *vm) *corev1.Node {
	labels := map[string]string{}
	for key, value := range v.boot.Labels {
		labels[key] = value
	}
	labels[corev1.LabelHostname] = v.NodeName()
	for _, key := range []string{corev1.LabelOSStable, "beta.kubernetes.io/os"} {
		labels[key] = "linux"
	}
	for _, key := range []string{corev1.LabelArchStable, "beta.kubernetes.io/arch"} {
		labels[key] = v.Arch
	}
	providerID := v.ProviderID()
	if v.boot.Flags.ProviderID != "" {
		providerID = v.boot.Flags.ProviderID
	}
	taints := v.boot.Flags.Taints
	if v.boot.Flags.ExternalCloud {
		taints = append([]corev1.Taint{cloudTaint}, taints...)
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: v.NodeName(), Labels: labels,
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec:   corev1.NodeSpec{ProviderID: providerID, Taints: taints},
		Status: f.nodeStatus(v, nodeState{since: f.cfg.Clock.Now()}),
	}
}

// csiNode says how many data disks the disk driver can attach.
func csiNode(v *vm, node *corev1.Node) *storagev1.CSINode {
	return &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{
			Name:            node.Name,
			OwnerReferences: []metav1.OwnerReference{ownedBy(node.Name, node.UID)},
		},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
			Name: diskDriver, NodeID: node.Name, TopologyKeys: []string{diskTopology},
			Allocatable: &storagev1.VolumeNodeResources{Count: &v.MaxDataDisks},
		}}},
	}
}
