package kube

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// vpaUpdates is the annotation of pods to which a VerticalPodAutoscaler has given requests.
const vpaUpdates = "vpaUpdates"

// livingPods are the pods that the input holds, without those that have gone.
type livingPods struct {
	// of has them by every name of their workload.
	of map[ownerKey][]*corev1.Pod
	// revisions are the labels that tell the templates of workloads apart, as pods have them.
	revisions map[ownerKey]string
	// sets are the ReplicaSets by name, and released how many pods a workload replaces.
	sets     map[client.ObjectKey]*appsv1.ReplicaSet
	released map[ownerKey]int
}

func newLivingPods() livingPods {
	return livingPods{
		of: map[ownerKey][]*corev1.Pod{}, revisions: map[ownerKey]string{}, sets: map[client.ObjectKey]*appsv1.ReplicaSet{},
		released: map[ownerKey]int{},
	}
}

// release finds the pods that run with another template than a workload has in the files, and
// those that it has more than the files want: its controller replaces the first and deletes the
// second. They count as gone, and what the workload then lacks is planned: a user wants to know
// which nodes a release needs at its end.
func (e *expander) release(o client.Object) {
	switch o := o.(type) {
	case *appsv1.Deployment:
		all := func(*corev1.Pod) bool { return !o.Spec.Paused }
		e.change(o, "Deployment", o.Spec.Replicas, &o.Spec.Template, all)
	case *appsv1.StatefulSet:
		strategy, first := o.Spec.UpdateStrategy, 0
		if strategy.RollingUpdate != nil && strategy.RollingUpdate.Partition != nil {
			first = int(*strategy.RollingUpdate.Partition)
		}
		e.change(o, "StatefulSet", o.Spec.Replicas, &o.Spec.Template, func(pod *corev1.Pod) bool {
			return strategy.Type != appsv1.OnDeleteStatefulSetStrategyType && ordinal(pod, o.Name) >= max(0, first)
		})
	case *appsv1.ReplicaSet:
		if !e.hasController(o) {
			e.change(o, "ReplicaSet", o.Spec.Replicas, &o.Spec.Template, func(*corev1.Pod) bool { return false })
		}
	case *corev1.ReplicationController:
		e.change(o, "ReplicationController", o.Spec.Replicas, o.Spec.Template, func(*corev1.Pod) bool { return false })
	}
}

// change takes the pods from a workload which its controller replaces or deletes: those of another
// template that may go by its strategy, and those beyond its replicas.
func (e *expander) change(o client.Object, kind string, replicas *int32, template *corev1.PodTemplateSpec,
	replaces func(*corev1.Pod) bool,
) {
	key := ownerKey{o.GetNamespace(), kind, o.GetName()}
	had := len(e.living.of[key])
	if had == 0 || template == nil {
		return
	}
	scaler, scaled := e.scalers[key]
	extra := surplus(had, replicas, scaler, scaled)
	var gone []*corev1.Pod
	if kind == "StatefulSet" { // the highest ordinals go, whatever they run with
		gone = e.living.shrink(key, extra)
	}
	other, why := e.living.replace(key, template, replaces)
	gone = append(gone, other...)
	replaced := len(gone) - extra
	gone = append(gone, e.living.shrink(key, extra-len(gone))...)
	for _, pod := range gone {
		e.names[client.ObjectKeyFromObject(pod)], e.out.Replaced[pod] = nil, true
	}
	if extra > 0 {
		e.note("%s %s/%s: has %s where the file wants %d: planned without the %s", kind, o.GetNamespace(), o.GetName(),
			counted(had, "pod", "pods"), *replicas, counted(extra, "pod that goes", "pods that go"))
	}
	if replaced > 0 {
		e.note("%s %s/%s: replaces %s of another template (%s): planned as it ends%s", kind, o.GetNamespace(), o.GetName(),
			counted(replaced, "pod", "pods"), why, surge(o, had-extra))
	}
}

// replace takes the pods of another template from a workload, if they may go. It returns them, and
// in what the first differs.
func (p *livingPods) replace(key ownerKey, template *corev1.PodTemplateSpec, goes func(*corev1.Pod) bool) (gone []*corev1.Pod, why string) {
	differs := p.differing(key, template)
	var stay []*corev1.Pod
	for _, pod := range p.of[key] {
		if what := differs[pod]; what == "" || !goes(pod) {
			stay = append(stay, pod)
		} else {
			gone, why = append(gone, pod), cmp.Or(why, what)
		}
	}
	if len(gone) == 0 {
		return nil, ""
	}
	p.of[key], p.released[key] = stay, len(gone)
	delete(p.revisions, key)
	for _, pod := range stay {
		p.noteRevision(key, pod)
	}
	return gone, why
}

// counted is a number with what it counts.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// surge says how many pods a Deployment has beyond its own while it replaces them.
func surge(o client.Object, pods int) string {
	d, is := o.(*appsv1.Deployment)
	if !is || d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return ""
	}
	most := intstr.FromString("25%")
	if r := d.Spec.Strategy.RollingUpdate; r != nil && r.MaxSurge != nil {
		most = *r.MaxSurge
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&most, pods, true)
	if err != nil || n <= 0 {
		return ""
	}
	return fmt.Sprintf(", meanwhile it takes room for %s", counted(n, "pod more", "pods more"))
}

// differing says of the pods of a workload which run with another template in what they differ.
// Pods of one revision have one template: where one of them is as the template says, others
// were changed since, such as by a resize.
func (p *livingPods) differing(key ownerKey, template *corev1.PodTemplateSpec) map[*corev1.Pod]string {
	label := appsv1.DefaultDeploymentUniqueLabelKey
	if key.kind == "StatefulSet" {
		label = appsv1.ControllerRevisionHashLabelKey
	}
	out, same := map[*corev1.Pod]string{}, map[string]bool{}
	for _, pod := range p.of[key] {
		why := p.difference(pod, &template.Spec)
		if why != "" {
			out[pod] = why
		} else if revision := pod.Labels[label]; revision != "" {
			same[revision] = true
		}
	}
	maps.DeleteFunc(out, func(pod *corev1.Pod, _ string) bool { return same[pod.Labels[label]] })
	return out
}

// difference says what a template states that a pod, or the template of its ReplicaSet where the
// input has it, lacks; "" where the pod can be of the template. What the template does not state
// tells nothing: admission adds to pods.
func (p *livingPods) difference(pod *corev1.Pod, template *corev1.PodSpec) string {
	has, ofTemplate := &pod.Spec, false
	for _, r := range pod.OwnerReferences {
		if set := p.sets[client.ObjectKey{Namespace: pod.Namespace, Name: r.Name}]; set != nil && r.Kind == "ReplicaSet" {
			has, ofTemplate = &set.Spec.Template.Spec, true
		}
	}
	if _, sized := pod.Annotations[vpaUpdates]; !sized || ofTemplate {
		if why := otherRequests(has, template); why != "" {
			return why
		}
	}
	for _, name := range slices.Sorted(maps.Keys(template.NodeSelector)) {
		if want := template.NodeSelector[name]; has.NodeSelector[name] != want {
			return fmt.Sprintf("without %s=%s in the nodeSelector", name, want)
		}
	}
	for i := range template.Tolerations {
		t := &template.Tolerations[i]
		if !slices.ContainsFunc(has.Tolerations, func(h corev1.Toleration) bool { return equalToleration(&h, t) }) {
			return fmt.Sprintf("without the toleration of %q", cmp.Or(t.Key, "everything"))
		}
	}
	switch {
	case template.PriorityClassName != "" && template.PriorityClassName != has.PriorityClassName:
		return "not of PriorityClass " + template.PriorityClassName
	case !ofTemplate: // the API server adds to the rules on pods
	case template.Affinity != nil && !equality.Semantic.DeepEqual(template.Affinity, has.Affinity):
		return "another affinity"
	case len(template.TopologySpreadConstraints) > 0 &&
		!equality.Semantic.DeepEqual(template.TopologySpreadConstraints, has.TopologySpreadConstraints):
		return "other topologySpreadConstraints"
	}
	return ""
}

// equalToleration reports whether two tolerations are one, with their defaults.
func equalToleration(a, b *corev1.Toleration) bool {
	operator := func(t *corev1.Toleration) corev1.TolerationOperator {
		return cmp.Or(t.Operator, corev1.TolerationOpEqual)
	}
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && operator(a) == operator(b)
}

// otherRequests says which request of a template pods do not have; "" for none.
func otherRequests(has, template *corev1.PodSpec) string {
	has, template = has.DeepCopy(), template.DeepCopy()
	requestLimits(has)
	requestLimits(template)
	for _, lists := range [][2][]corev1.Container{{has.Containers, template.Containers}, {has.InitContainers, template.InitContainers}} {
		for i := range lists[1] {
			want := &lists[1][i]
			at := slices.IndexFunc(lists[0], func(c corev1.Container) bool { return c.Name == want.Name })
			if at < 0 {
				return fmt.Sprintf("without container %s", want.Name)
			}
			if why := otherAmounts(lists[0][at].Resources.Requests, want.Resources.Requests); why != "" {
				return fmt.Sprintf("container %s with %s", want.Name, why)
			}
		}
	}
	if template.Resources == nil {
		return ""
	}
	var whole corev1.ResourceList
	if has.Resources != nil {
		whole = has.Resources.Requests
	}
	return otherAmounts(whole, template.Resources.Requests)
}

func otherAmounts(has, want corev1.ResourceList) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		wanted := want[name]
		if now := has[name]; wanted.Cmp(now) != 0 {
			return fmt.Sprintf("%s %s instead of %s", name, now.String(), wanted.String())
		}
	}
	return ""
}

// replicasOf is how many pods a workload wants. Where its file does not say, or an autoscaler
// does, a release has as many pods at its end as before.
func (e *expander) replicasOf(o client.Object, kind string, replicas *int32) int {
	key, n := ownerKey{o.GetNamespace(), kind, o.GetName()}, count(replicas)
	if _, scaled := e.scalers[key]; e.living.released[key] > 0 && n >= 0 && (replicas == nil || scaled) {
		return max(n, len(e.living.of[key])+e.living.released[key])
	}
	return n
}
