package objects

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// apps is how many workloads the pods belong to.
const apps = 200

// fleetLabel is on the pods of the fleet, and not on those that wait.
const fleetLabel = "fleet"

// podImage is of every pod.
const podImage = "mcr.microsoft.com/oss/kubernetes/pause:3.9"

// pods creates the pods as running ones, the same number on every node. Their owners are
// ConfigMaps, which no controller of the control plane scales.
func (f *fleet) pods(ctx context.Context, nodes []string) error {
	owners := make([]*corev1.ConfigMap, min(apps, f.size.Pods))
	for i := range owners {
		owners[i] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("app-%03d", i)}}
		if err := f.kube.Create(ctx, owners[i]); err != nil {
			return fmt.Errorf("create the owner of pods: %w", err)
		}
	}
	err := each(ctx, f.size.Pods, func(ctx context.Context, i int) error {
		p := pod(i, owners[i%len(owners)], nodes[i%len(nodes)])
		if err := f.kube.Create(ctx, p); err != nil {
			return err
		}
		now := metav1.Now()
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, PodIP: "10.2.3.4", PodIPs: []corev1.PodIP{{IP: "10.2.3.4"}}}
		for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.PodInitialized, corev1.ContainersReady, corev1.PodScheduled} {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		return f.kube.Status().Update(ctx, p)
	})
	if err != nil {
		return fmt.Errorf("create pods: %w", err)
	}
	return nil
}

// complete fails where a pod of the fleet, or more than a hundredth of its nodes, is gone or
// not ready: figures would then be those of another cluster.
func (f *fleet) complete(ctx context.Context) error {
	pods := metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := f.kube.List(ctx, &pods, client.HasLabels{fleetLabel}); err != nil {
		return fmt.Errorf("list the pods of the fleet: %w", err)
	}
	var nodes corev1.NodeList
	if err := f.seen.List(ctx, &nodes); err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	there := 0
	for i := range nodes.Items {
		if ready(&nodes.Items[i]) {
			there++
		}
	}
	if len(pods.Items) < f.size.Pods || there*100 < enough(f.size.Nodes)*99 {
		return fmt.Errorf("%d of %d pods are there, and %d of %d nodes ready: a machine with more cores may keep them",
			len(pods.Items), f.size.Pods, there, f.size.Nodes)
	}
	return nil
}

func podName(i int) string { return fmt.Sprintf("pod-%06d", i) }

// pod asks for a tenth to a quarter of a vCPU, so that nodes are used by less than half.
func pod(i int, owner *corev1.ConfigMap, node string) *corev1.Pod {
	yes, no, grace := true, false, int64(1)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.Namespace, Name: podName(i), Labels: map[string]string{"app": owner.Name, fleetLabel: "pods"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: &yes}},
		},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &grace,
			// A node whose lease is late keeps its pods.
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			},
			Containers: []corev1.Container{container(fmt.Sprintf("%dm", 100+i%apps%4*50), fmt.Sprintf("%dMi", 128<<(i%apps%3)))},
		},
	}
	main := &p.Spec.Containers[0]
	for v := range 8 { // as much as a pod of a small service has
		main.Env = append(main.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", v), Value: "a value of common length"})
	}
	return p
}

func container(cpu, memory string) corev1.Container {
	return corev1.Container{
		Name: "main", Image: podImage,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		}},
	}
}

// latePods is how many pods wait for a controller that starts.
const latePods = 50

// late is a Deployment whose pods fit on no node that there is.
func late(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{v1.NodePoolLabelKey: latePool}, Containers: []corev1.Container{container("1", "1Gi")},
			}},
		},
	}
}
