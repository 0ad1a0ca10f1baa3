package differential

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// widePods adds the traits of a cluster to the pods that wait.
type widePods struct {
	rng
	has   traits
	rules *wideRules
	disks *wideDisks
}

// widen changes the apps that wait. Pods of an app stay copies of each other but for
// their revision and their disks.
func (w *widePods) widen(apps [][]*corev1.Pod) {
	for i, pods := range apps {
		spec := pods[0].Spec.DeepCopy()
		self := &metav1.LabelSelector{MatchLabels: pods[0].Labels}
		namespace := pods[0].Namespace
		w.rules.widen(spec, self)
		if w.has["priorities"] {
			priority := pick(w.rng, int32(0), 0, -10, 100, 1000)
			spec.Priority = &priority
		}
		if w.has["namespaces"] {
			if spec.Volumes == nil {
				namespace = pick(w.rng, "default", "east", "west")
			}
			w.rules.lookAround(spec)
		}
		if w.has["containers"] && w.maybe(0.6) {
			moreContainers(w.rng, spec)
		}
		if w.has["devices"] && w.maybe(0.3) {
			spec.Containers[0].Resources.Requests[gpuResource] = *resource.NewQuantity(int64(1+w.IntN(2)), resource.DecimalSI)
		}
		if w.has["ports"] && w.maybe(0.4) {
			hostPorts(w.rng, spec)
		}
		disk := w.has["disks"] && w.maybe(0.6)
		kind := w.IntN(7)
		for j, p := range pods {
			p.Spec = *spec.DeepCopy()
			p.Namespace = namespace
			if w.has["revisions"] {
				revise(p, pick(w.rng, "v1", "v2"))
			}
			if disk {
				w.disks.disk(p, i, j, kind)
			}
		}
	}
}

// waitingApps groups pods that wait by the app that they are of, in order of its name.
func waitingApps(objects []client.Object) [][]*corev1.Pod {
	byApp := map[string][]*corev1.Pod{}
	for _, o := range objects {
		if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName == "" {
			byApp[p.Labels["app"]] = append(byApp[p.Labels["app"]], p)
		}
	}
	var out [][]*corev1.Pod
	for _, app := range slices.Sorted(maps.Keys(byApp)) {
		out = append(out, byApp[app])
	}
	return out
}

// namespaces are the namespaces that pods live in.
func namespaces() []client.Object {
	var out []client.Object
	for _, space := range [][2]string{{"default", ""}, {"east", "right"}, {"west", "left"}} {
		n := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: space[0]}}
		if space[1] != "" {
			n.Labels = map[string]string{"side": space[1]}
		}
		out = append(out, n)
	}
	return out
}

// moreContainers gives a pod more than one container, or requests of its own.
func moreContainers(r rng, spec *corev1.PodSpec) {
	size := func() corev1.ResourceRequirements {
		return podSpec(pick(r, 50, 200, 1000, 4000), pick(r, 64, 512, 3000)).Containers[0].Resources
	}
	always := corev1.ContainerRestartPolicyAlways
	for range 1 + r.IntN(2) {
		switch r.IntN(5) {
		case 0:
			spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("120Mi")}
		case 1:
			spec.InitContainers = append(spec.InitContainers,
				corev1.Container{Name: fmt.Sprintf("init-%d", len(spec.InitContainers)), Image: "i", Resources: size()})
		case 2:
			spec.InitContainers = append(spec.InitContainers,
				corev1.Container{Name: fmt.Sprintf("side-%d", len(spec.InitContainers)), Image: "i", Resources: size(), RestartPolicy: &always})
		case 3:
			spec.Containers = append(spec.Containers,
				corev1.Container{Name: fmt.Sprintf("more-%d", len(spec.Containers)), Image: "i", Resources: size()})
		case 4:
			all := size()
			all.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(6000+r.IntN(3)*1000), resource.DecimalSI)
			if r.maybe(0.5) {
				delete(all.Requests, corev1.ResourceMemory)
			} else {
				all.Requests[corev1.ResourceMemory] = resource.MustParse("10Gi")
			}
			spec.Resources = &all
		}
	}
}

func hostPorts(r rng, spec *corev1.PodSpec) {
	spec.Containers[0].Ports = pick(r,
		[]corev1.ContainerPort{{ContainerPort: 80, HostPort: 8000, HostIP: "127.0.0.1", Protocol: corev1.ProtocolTCP}},
		[]corev1.ContainerPort{{ContainerPort: 80, HostPort: 8000, HostIP: "10.0.0.1", Protocol: corev1.ProtocolTCP}},
		[]corev1.ContainerPort{{ContainerPort: 80, HostPort: 8000, Protocol: corev1.ProtocolUDP}},
		[]corev1.ContainerPort{{ContainerPort: 80, HostPort: 9100, Protocol: corev1.ProtocolTCP},
			{ContainerPort: 81, HostPort: 8001, Protocol: corev1.ProtocolTCP}},
	)
	if r.maybe(0.2) {
		spec.HostNetwork = true
		for i := range spec.Containers[0].Ports {
			port := &spec.Containers[0].Ports[i]
			port.ContainerPort = port.HostPort // as the API server asks for
		}
	}
}

// revise makes the pod one of a revision, which rules with label keys tell apart.
func revise(p *corev1.Pod, revision string) {
	const key = "pod-template-hash"
	p.Labels = map[string]string{"app": p.Labels["app"], key: revision}
	for i := range p.Spec.TopologySpreadConstraints {
		p.Spec.TopologySpreadConstraints[i].MatchLabelKeys = []string{key}
	}
	// For terms the API server merges the keys into the selector when a pod is made.
	for i, t := range everyTerm(&p.Spec) {
		op := metav1.LabelSelectorOpIn
		if i%2 == 0 {
			t.MatchLabelKeys = []string{key}
		} else {
			t.MismatchLabelKeys, op = []string{key}, metav1.LabelSelectorOpNotIn
		}
		t.LabelSelector = t.LabelSelector.DeepCopy()
		t.LabelSelector.MatchExpressions = append(t.LabelSelector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: []string{revision}})
	}
}
