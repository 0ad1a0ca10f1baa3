package kube

import (
	"encoding/binary"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
)

// keyWriter writes the scheduling fields of a pod as it comes from the API server,
// without allocating once its buffers have grown: a cluster has many pods and few
// templates, and only new ones are converted. Two pods with equal bytes convert to
// equal specs; everything that readSpec looks at must be written here, which
// TestPodKeyCoversEveryConvertedField checks field by field.
//
// All other keys are written by [model.AppendKey], which forgets no field, also that of
// what a pod is converted to ([fleet.PodSpec.SetKey]). Here it would not do: a spec
// depends on parts of the pod's labels, annotations and status, too; most fields of a
// pod, such as images and the names of volumes, do not matter and would tell pods
// apart; and the key has to cost little beside the conversion that it saves, of which
// it takes a quarter by hand and four fifths by reflection (BenchmarkPodKey).
type keyWriter struct {
	buf  []byte
	keys []string
}

func (w *keyWriter) num(v int64)  { w.buf = binary.AppendVarint(w.buf, v) }
func (w *keyWriter) str(s string) { w.num(int64(len(s))); w.buf = append(w.buf, s...) }

func (w *keyWriter) flag(b bool) {
	if b {
		w.buf = append(w.buf, 1)
		return
	}
	w.buf = append(w.buf, 0)
}

func (w *keyWriter) strs(list []string) {
	w.num(int64(len(list)))
	for _, s := range list {
		w.str(s)
	}
}

func (w *keyWriter) stringMap(m map[string]string) {
	w.num(int64(len(m)))
	if len(m) == 1 {
		for k, v := range m {
			w.str(k)
			w.str(v)
		}
		return
	}
	start := len(w.keys)
	for k := range m {
		w.keys = append(w.keys, k)
	}
	slices.Sort(w.keys[start:])
	for _, k := range w.keys[start:] {
		w.str(k)
		w.str(m[k])
	}
	w.keys = w.keys[:start]
}

func (w *keyWriter) amounts(list corev1.ResourceList) {
	w.num(int64(len(list)))
	// Nearly all lists are of cpu and memory, which need no sorting.
	cpu, hasCPU := list[corev1.ResourceCPU]
	memory, hasMemory := list[corev1.ResourceMemory]
	if len(list) == 2 && hasCPU && hasMemory {
		w.buf = append(w.buf, 1)
		w.num(amount(corev1.ResourceCPU, cpu))
		w.num(amount(corev1.ResourceMemory, memory))
		return
	}
	w.buf = append(w.buf, 0)
	start := len(w.keys)
	for name := range list {
		w.keys = append(w.keys, string(name))
	}
	slices.Sort(w.keys[start:])
	for _, k := range w.keys[start:] {
		name := corev1.ResourceName(k)
		w.str(k)
		w.num(amount(name, list[name]))
	}
	w.keys = w.keys[:start]
}

// spec writes everything that readSpec reads. What readRules reads comes first and
// ends where the result says.
func (w *keyWriter) spec(pod *corev1.Pod) (rules int) {
	s := &pod.Spec
	w.affinity(pod)
	w.spread(pod)
	rules = len(w.buf)
	w.flag(s.HostNetwork)
	w.flag(s.HostUsers != nil && !*s.HostUsers)
	w.containers(s.Containers)
	w.containers(s.InitContainers)
	w.amounts(s.Overhead)
	w.flag(s.Resources != nil)
	if s.Resources != nil {
		w.amounts(s.Resources.Requests)
		w.amounts(s.Resources.Limits)
		w.flag(pod.Status.Resources != nil)
		if has := pod.Status.Resources; has != nil {
			w.amounts(has.Requests)
			w.amounts(pod.Status.AllocatedResources)
		}
	}
	w.resizing(pod)
	w.stringMap(s.NodeSelector)
	w.flag(s.OS != nil && s.OS.Name == corev1.Windows)
	w.num(int64(len(s.Tolerations)))
	for i := range s.Tolerations {
		t := &s.Tolerations[i]
		w.str(t.Key)
		w.str(string(t.Operator))
		w.str(t.Value)
		w.str(string(t.Effect))
	}
	w.flag(s.Priority != nil)
	if s.Priority != nil {
		w.num(int64(*s.Priority))
	}
	w.num(int64(len(s.ResourceClaims)))
	for i := range s.ResourceClaims {
		c := &s.ResourceClaims[i]
		w.str(c.Name)
		w.str(ptr.Deref(c.ResourceClaimName, ""))
		w.str(ptr.Deref(c.ResourceClaimTemplateName, ""))
	}
	w.annotations(pod.Annotations)
	return rules
}

func (w *keyWriter) containers(list []corev1.Container) {
	w.num(int64(len(list)))
	for i := range list {
		c := &list[i]
		w.flag(restarts(c))
		w.num(int64(len(c.RestartPolicyRules)))
		for j := range c.RestartPolicyRules {
			w.str(string(c.RestartPolicyRules[j].Action))
		}
		w.amounts(c.Resources.Requests)
		w.num(int64(len(c.Ports)))
		for j := range c.Ports {
			p := &c.Ports[j]
			w.num(int64(p.HostPort))
			w.num(int64(p.ContainerPort))
			w.str(p.HostIP)
			w.str(string(p.Protocol))
		}
	}
}

// resizing writes what the status says of containers that hold other resources
// than they ask for.
func (w *keyWriter) resizing(pod *corev1.Pod) {
	w.flag(resourcehelper.IsPodResizeInfeasible(pod))
	w.statuses(pod.Status.ContainerStatuses, pod.Spec.Containers)
	w.statuses(pod.Status.InitContainerStatuses, pod.Spec.InitContainers)
}

func (w *keyWriter) statuses(list []corev1.ContainerStatus, containers []corev1.Container) {
	for i := range list {
		s := &list[i]
		if s.Resources == nil {
			continue
		}
		w.num(int64(slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == s.Name })))
		w.amounts(s.Resources.Requests)
		w.amounts(s.AllocatedResources)
	}
	w.num(-2)
}

func (w *keyWriter) affinity(pod *corev1.Pod) {
	a := pod.Spec.Affinity
	w.flag(a != nil)
	if a == nil {
		return
	}
	w.flag(a.NodeAffinity != nil)
	if n := a.NodeAffinity; n != nil {
		w.flag(n.RequiredDuringSchedulingIgnoredDuringExecution != nil)
		if r := n.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
			w.num(int64(len(r.NodeSelectorTerms)))
			for i := range r.NodeSelectorTerms {
				w.nodeTerm(&r.NodeSelectorTerms[i])
			}
		}
		w.num(int64(len(n.PreferredDuringSchedulingIgnoredDuringExecution)))
		for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			p := &n.PreferredDuringSchedulingIgnoredDuringExecution[i]
			w.num(int64(p.Weight))
			w.nodeTerm(&p.Preference)
		}
	}
	w.flag(a.PodAffinity != nil)
	if p := a.PodAffinity; p != nil {
		w.podTerms(pod, p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	w.flag(a.PodAntiAffinity != nil)
	if p := a.PodAntiAffinity; p != nil {
		w.podTerms(pod, p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (w *keyWriter) nodeTerm(t *corev1.NodeSelectorTerm) {
	for _, list := range [2][]corev1.NodeSelectorRequirement{t.MatchExpressions, t.MatchFields} {
		w.num(int64(len(list)))
		for i := range list {
			w.str(list[i].Key)
			w.str(string(list[i].Operator))
			w.strs(list[i].Values)
		}
	}
}

func (w *keyWriter) podTerms(pod *corev1.Pod, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	w.num(int64(len(required)))
	for i := range required {
		w.podTerm(pod, &required[i])
	}
	w.num(int64(len(preferred)))
	for i := range preferred {
		w.num(int64(preferred[i].Weight))
		w.podTerm(pod, &preferred[i].PodAffinityTerm)
	}
}

func (w *keyWriter) podTerm(pod *corev1.Pod, t *corev1.PodAffinityTerm) {
	w.str(t.TopologyKey)
	w.selector(t.LabelSelector)
	w.strs(t.Namespaces)
	w.selector(t.NamespaceSelector)
	w.ownLabels(pod, t.MatchLabelKeys)
	w.ownLabels(pod, t.MismatchLabelKeys)
}

func (w *keyWriter) spread(pod *corev1.Pod) {
	list := pod.Spec.TopologySpreadConstraints
	w.num(int64(len(list)))
	for i := range list {
		c := &list[i]
		w.str(c.TopologyKey)
		w.num(int64(c.MaxSkew))
		w.str(string(c.WhenUnsatisfiable))
		w.selector(c.LabelSelector)
		w.ownLabels(pod, c.MatchLabelKeys)
		w.flag(c.MinDomains != nil)
		if c.MinDomains != nil {
			w.num(int64(*c.MinDomains))
		}
		w.policy(c.NodeAffinityPolicy)
		w.policy(c.NodeTaintsPolicy)
	}
}

func (w *keyWriter) policy(p *corev1.NodeInclusionPolicy) {
	w.flag(p != nil)
	if p != nil {
		w.str(string(*p))
	}
}

func (w *keyWriter) selector(s *metav1.LabelSelector) {
	w.flag(s != nil)
	if s == nil {
		return
	}
	w.stringMap(s.MatchLabels)
	w.num(int64(len(s.MatchExpressions)))
	for i := range s.MatchExpressions {
		e := &s.MatchExpressions[i]
		w.str(e.Key)
		w.str(string(e.Operator))
		w.strs(e.Values)
	}
}

// ownLabels writes the pod's own values under keys: the only labels that a spec
// depends on.
func (w *keyWriter) ownLabels(pod *corev1.Pod, keys []string) {
	w.num(int64(len(keys)))
	for _, k := range keys {
		value, ok := pod.Labels[k]
		w.str(k)
		w.flag(ok)
		w.str(value)
	}
}
