package differential

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// widenPods changes the apps that wait. Pods of an app stay copies of each other but
// for their revision and their disks.
func (w *wide) widenPods(has map[string]bool) {
	w.apps = w.owners()
	for i, pods := range w.apps {
		spec := pods[0].Spec.DeepCopy()
		self := &metav1.LabelSelector{MatchLabels: pods[0].Labels}
		namespace := pods[0].Namespace
		w.widenRules(spec, self, has)
		if has["priorities"] {
			priority := pick(w.drawer, int32(0), 0, -10, 100, 1000)
			spec.Priority = &priority
		}
		if has["namespaces"] {
			if spec.Volumes == nil {
				namespace = pick(w.drawer, "default", "east", "west")
			}
			w.lookAround(spec)
		}
		if has["containers"] && w.maybe(0.6) {
			w.containers(spec)
		}
		if has["devices"] && w.maybe(0.3) {
			spec.Containers[0].Resources.Requests[gpuResource] = *resource.NewQuantity(int64(1+w.IntN(2)), resource.DecimalSI)
		}
		if has["ports"] && w.maybe(0.4) {
			w.ports(spec)
		}
		disk := has["disks"] && w.maybe(0.6)
		kind := w.IntN(7)
		for j, p := range pods {
			p.Spec = *spec.DeepCopy()
			p.Namespace = namespace
			if has["revisions"] {
				w.revise(p, pick(w.drawer, "v1", "v2"))
			}
			if disk {
				w.disk(p, i, j, kind)
			}
		}
	}
	if has["namespaces"] {
		w.spaces()
	}
	if has["disks"] {
		w.storageClasses()
	}
}

func (w *wide) widenRules(spec *corev1.PodSpec, self *metav1.LabelSelector, has map[string]bool) {
	if has["preferences"] {
		for range 1 + w.IntN(2) {
			w.prefer(spec, self)
		}
		if w.maybe(0.2) {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: "rather-not", Operator: corev1.TolerationOpExists})
		}
	}
	if has["operators"] && w.maybe(0.5) {
		w.mustHave(spec, w.rule(spec, w.podRule))
	}
	if has["choices"] && w.maybe(0.3) {
		w.mustHave(spec, corev1.NodeSelectorRequirement{Key: diskLabel, Operator: pick(w.drawer, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{pick(w.drawer, "premium", "ultra")}})
	}
	if has["topologies"] && w.maybe(0.5) {
		w.topology(spec, self)
	}
	if has["taints"] && w.maybe(0.5) {
		spec.Tolerations = append(spec.Tolerations, pick(w.drawer,
			corev1.Toleration{Key: "special", Operator: corev1.TolerationOpEqual, Value: "a"},
			corev1.Toleration{Key: "special", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			corev1.Toleration{Key: "special", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			corev1.Toleration{Operator: corev1.TolerationOpExists},
		))
	}
	if has["reservations"] && w.maybe(0.15) {
		w.mustHave(spec, corev1.NodeSelectorRequirement{Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{v1.CapacityTypeReserved}})
	}
}

// mustHave adds a condition to each alternative of the pod's node affinity.
func (w *wide) mustHave(spec *corev1.PodSpec, r corev1.NodeSelectorRequirement) {
	a := affinity(spec)
	if a.NodeAffinity == nil {
		a.NodeAffinity = &corev1.NodeAffinity{}
	}
	if a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = append(terms[i].MatchExpressions, r)
	}
}

// rule draws what a pod wants of its node besides.
//
// "Contradictions place nobody": of a label that the pod asks for already, nothing
// else is asked.
func (w *wide) rule(spec *corev1.PodSpec, draw func() corev1.NodeSelectorRequirement) corev1.NodeSelectorRequirement {
	for {
		r := draw()
		_, asked := spec.NodeSelector[r.Key]
		if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				asked = asked || slices.ContainsFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return e.Key == r.Key })
			}
		}
		if !asked || r.Key != teamLabel {
			return r
		}
	}
}

func (w *wide) podRule() corev1.NodeSelectorRequirement {
	rule := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	return pick(w.drawer,
		w.nodeRule(),
		rule(cpuLabel, corev1.NodeSelectorOpNotIn, "2", "4"),
		rule(cpuLabel, corev1.NodeSelectorOpIn, "8", "16"),
		rule(teamLabel, corev1.NodeSelectorOpNotIn, "red"),
		rule(teamLabel, corev1.NodeSelectorOpIn, "red", "blue"),
		rule(familyLabel, corev1.NodeSelectorOpExists),
		rule(corev1.LabelArchStable, corev1.NodeSelectorOpIn, pick(w.drawer, "amd64", "arm64")),
		rule(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpNotIn, pick(w.drawer, w.catalog.InstanceTypes...).Name),
		rule(v1.NodePoolLabelKey, corev1.NodeSelectorOpIn, "pool-0", "pool-1"),
		rule(v1.NodePoolLabelKey, corev1.NodeSelectorOpNotIn, "pool-0"),
		rule(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpNotIn, "spot"),
		rule("example.com/nobody", corev1.NodeSelectorOpDoesNotExist),
		rule("example.com/nobody", corev1.NodeSelectorOpNotIn, "x"),
	)
}

// prefer adds a preference of some kind.
func (w *wide) prefer(spec *corev1.PodSpec, self *metav1.LabelSelector) {
	a := affinity(spec)
	weight := pick(w.drawer, int32(1), 10, 50, 100)
	term := corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{
		LabelSelector: pick(w.drawer, self, self, w.app()), TopologyKey: pick(w.drawer, corev1.LabelTopologyZone, corev1.LabelHostname),
	}}
	switch w.IntN(4) {
	case 0:
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		list := &a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{w.rule(spec, w.nodeRule)}}})
	case 1:
		if a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{}
		}
		list := &a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, term)
	case 2:
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		list := &a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, term)
	case 3:
		key := pick(w.drawer, corev1.LabelTopologyZone, corev1.LabelHostname)
		if slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return c.TopologyKey == key }) {
			return
		}
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: int32(1 + w.IntN(2)), TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: self,
		})
	}
}

// topology adds a rule over domains other than zones and hosts.
func (w *wide) topology(spec *corev1.PodSpec, self *metav1.LabelSelector) {
	key := pick(w.drawer, v1.CapacityTypeLabelKey, familyLabel, corev1.LabelArchStable, teamLabel, v1.NodePoolLabelKey)
	a := affinity(spec)
	switch w.IntN(4) {
	case 0, 1:
		w.spread(spec, key, self)
	case 2:
		if a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{}
		}
		list := &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, corev1.PodAffinityTerm{LabelSelector: self, TopologyKey: key})
	case 3:
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		list := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*list = append(*list, corev1.PodAffinityTerm{LabelSelector: w.app(), TopologyKey: key})
	}
}

// lookAround lets terms select pods of other namespaces.
func (w *wide) lookAround(spec *corev1.PodSpec) {
	if spec.Affinity == nil {
		return
	}
	change := func(t *corev1.PodAffinityTerm) {
		switch w.IntN(5) {
		case 0:
			t.Namespaces = []string{pick(w.drawer, "default", "east", "west")}
		case 1:
			t.NamespaceSelector = &metav1.LabelSelector{}
		case 2:
			t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"side": pick(w.drawer, "left", "right")}}
		case 3:
			t.Namespaces = []string{"default"}
			t.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "side", Operator: metav1.LabelSelectorOpExists}}}
		}
	}
	for _, t := range everyTerm(spec) {
		change(t)
	}
}

// everyTerm lists the terms of the pod's affinity to pods.
func everyTerm(spec *corev1.PodSpec) []*corev1.PodAffinityTerm {
	var out []*corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			out = append(out, &required[i])
		}
		for i := range preferred {
			out = append(out, &preferred[i].PodAffinityTerm)
		}
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		add(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		add(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return out
}

// containers gives a pod more than one container, or requests of its own.
func (w *wide) containers(spec *corev1.PodSpec) {
	size := func() corev1.ResourceRequirements {
		return podSpec(pick(w.drawer, 50, 200, 1000, 4000), pick(w.drawer, 64, 512, 3000)).Containers[0].Resources
	}
	always := corev1.ContainerRestartPolicyAlways
	for range 1 + w.IntN(2) {
		switch w.IntN(5) {
		case 0:
			spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("120Mi")}
		case 1:
			spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: fmt.Sprintf("init-%d", len(spec.InitContainers)), Image: "i", Resources: size()})
		case 2:
			spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: fmt.Sprintf("side-%d", len(spec.InitContainers)), Image: "i", Resources: size(), RestartPolicy: &always})
		case 3:
			spec.Containers = append(spec.Containers, corev1.Container{Name: fmt.Sprintf("more-%d", len(spec.Containers)), Image: "i", Resources: size()})
		case 4:
			all := size()
			all.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(6000+w.IntN(3)*1000), resource.DecimalSI)
			if w.maybe(0.5) {
				delete(all.Requests, corev1.ResourceMemory)
			} else {
				all.Requests[corev1.ResourceMemory] = resource.MustParse("10Gi")
			}
			spec.Resources = &all
		}
	}
}

func (w *wide) ports(spec *corev1.PodSpec) {
	spec.Containers[0].Ports = pick(w.drawer,
		[]corev1.ContainerPort{{ContainerPort: 80, HostPort: 8000, HostIP: "127.0.0.1", Protocol: corev1.ProtocolTCP}},
		[]corev1.ContainerPort{{ContainerPort: 80, HostPort: 8000, HostIP: "10.0.0.1", Protocol: corev1.ProtocolTCP}},
		[]corev1.ContainerPort{{ContainerPort: 80, HostPort: 8000, Protocol: corev1.ProtocolUDP}},
		[]corev1.ContainerPort{{ContainerPort: 80, HostPort: 9100, Protocol: corev1.ProtocolTCP}, {ContainerPort: 81, HostPort: 8001, Protocol: corev1.ProtocolTCP}},
	)
	if w.maybe(0.2) {
		spec.HostNetwork = true
		for i := range spec.Containers[0].Ports {
			port := &spec.Containers[0].Ports[i]
			port.ContainerPort = port.HostPort // as the API server asks for
		}
	}
}

// revise makes the pod one of a revision, which rules with label keys tell apart.
func (w *wide) revise(p *corev1.Pod, revision string) {
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
		t.LabelSelector.MatchExpressions = append(t.LabelSelector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: []string{revision}})
	}
}
