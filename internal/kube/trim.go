package kube

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Trim removes from an object what no controller of nap or of Karpenter reads, so that a
// cache does not keep it. It is a transform of caches: it changes the object in place and
// returns it, and leaves alone what is no object.
//
// Every kind loses its field ownership. Pods and nodes, of which there are most, lose more:
// see trimPod and trimNode. A trimmed object is written as a patch of what differs, never as
// a whole.
func Trim(object any) (any, error) {
	// An informer may read an object while it is resynced: what is trimmed is not written again.
	if o, err := meta.Accessor(object); err == nil && o.GetManagedFields() != nil {
		o.SetManagedFields(nil)
	}
	switch o := object.(type) {
	case *corev1.Pod:
		trimPod(o)
	case *corev1.Node:
		trimNode(o)
	}
	return object, nil
}

// trimNode drops the images that a node holds, which kubelets list up to 50 of with all
// their names, what volumes it has attached, and the configuration of its kubelet.
func trimNode(n *corev1.Node) {
	s := &n.Status
	if s.Images != nil {
		s.Images = nil
	}
	if s.VolumesInUse != nil || s.VolumesAttached != nil {
		s.VolumesInUse, s.VolumesAttached = nil, nil
	}
	if s.Config != nil {
		s.Config = nil
	}
	forgetApplied(n.Annotations)
}

// trimPod drops how the containers of a pod run and what became of them. What they ask for
// and hold, their ports and names, conditions, and volumes with a claim stay.
func trimPod(p *corev1.Pod) {
	forgetApplied(p.Annotations)
	trimContainers(p.Spec.InitContainers)
	trimContainers(p.Spec.Containers)
	if p.Spec.EphemeralContainers != nil {
		p.Spec.EphemeralContainers = nil
	}
	if p.Spec.DNSConfig != nil {
		p.Spec.DNSConfig = nil
	}
	if p.Spec.HostAliases != nil {
		p.Spec.HostAliases = nil
	}
	if hasContent(p.Spec.Volumes) {
		p.Spec.Volumes = withoutContent(p.Spec.Volumes)
	}
	trimStatuses(p.Status.InitContainerStatuses, p.Spec.InitContainers)
	trimStatuses(p.Status.ContainerStatuses, p.Spec.Containers)
	if p.Status.EphemeralContainerStatuses != nil {
		p.Status.EphemeralContainerStatuses = nil
	}
}

func trimContainers(list []corev1.Container) {
	for i := range list {
		c := &list[i]
		if c.TerminationMessagePolicy == "" && c.Env == nil && c.VolumeMounts == nil && c.Command == nil && c.Args == nil {
			continue // trimmed already: the API server gives every container a policy
		}
		list[i] = corev1.Container{
			Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources, ResizePolicy: c.ResizePolicy,
			RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules,
		}
	}
}

// trimStatuses keeps what containers hold where a resize has made it another amount than
// they ask for. Where it is the same, no status says the same thing, and each of up to five
// maps per container costs more than half a kilobyte.
func trimStatuses(list []corev1.ContainerStatus, containers []corev1.Container) {
	for i := range list {
		s := &list[i]
		if s.ImageID == "" && s.ContainerID == "" && s.Image == "" && s.State == (corev1.ContainerState{}) {
			continue // trimmed already
		}
		kept := corev1.ContainerStatus{Name: s.Name, AllocatedResourcesStatus: s.AllocatedResourcesStatus}
		if !holdsWhatItAsks(s, containers) {
			kept.Resources, kept.AllocatedResources = s.Resources, s.AllocatedResources
		}
		list[i] = kept
	}
}

// holdsWhatItAsks reports whether a status repeats what its container's spec says.
func holdsWhatItAsks(s *corev1.ContainerStatus, containers []corev1.Container) bool {
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == s.Name })
	if i < 0 || s.Resources == nil || len(s.Resources.Claims) > 0 {
		return false
	}
	asked := &containers[i].Resources
	return sameAmounts(s.Resources.Requests, asked.Requests) && sameAmounts(s.Resources.Limits, asked.Limits) &&
		sameAmounts(s.AllocatedResources, asked.Requests)
}

func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// isContent reports whether a volume only brings data of the cluster into a pod. Such
// volumes bind a pod to no node.
func isContent(v *corev1.Volume) bool {
	return v.Projected != nil || v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil
}

func hasContent(list []corev1.Volume) bool {
	for i := range list {
		if isContent(&list[i]) {
			return true
		}
	}
	return false
}

// withoutContent is a new list: the old one would keep the room of what is dropped.
func withoutContent(list []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	for i := range list {
		if !isContent(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// forgetApplied drops the copy of the whole object that kubectl keeps in an annotation.
func forgetApplied(annotations map[string]string) {
	// A map without it is not touched, for others may be reading it.
	if annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
}
