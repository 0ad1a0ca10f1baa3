package cli

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/model"
)

// tolerate adds tolerations for the taints of a NodePool to the pod.
func (a *adviser) tolerate(pool int) []remedy {
	target := &a.made.input.Problem.Pools[pool]
	tolerations := slices.Clone(a.class.Tolerations)
	var words []string
	var added []corev1.Toleration
	for _, taint := range target.Taints {
		if model.Untolerated([]model.Taint{taint}, tolerations) != nil {
			words = append(words, taint.String())
			tolerations = append(tolerations, model.Toleration{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
			added = append(added, corev1.Toleration{
				Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: corev1.TaintEffect(taint.Effect),
			})
		}
	}
	own, known := a.statedTolerations()
	if len(words) == 0 || !known {
		return nil
	}
	cost, ok := a.try(func(_ *model.Problem, class *model.PodClass) { class.Tolerations = tolerations })
	if !ok {
		return nil
	}
	return a.patched("tolerate "+strings.Join(words, ", "), map[string]any{"tolerations": slices.Concat(own, added)}, cost)
}

// statedTolerations are those which the pod's owner states, and whether they are known. A patch
// replaces the whole list, so that it has to repeat them with all their fields.
func (a *adviser) statedTolerations() ([]corev1.Toleration, bool) {
	for i := range a.made.read.manifests {
		if spec := a.ownerSpec(a.made.read.manifests[i].Object); spec != nil {
			return spec.Tolerations, true
		}
	}
	objects := a.made.read.objects.Distinct()
	for _, o := range objects {
		if spec := a.ownerSpec(o); spec != nil {
			return spec.Tolerations, true
		}
	}
	pod := podNamed(a.made.read.objects, a.ref)
	if pod == nil {
		return nil, false
	}
	return slices.DeleteFunc(slices.Clone(pod.Spec.Tolerations), func(t corev1.Toleration) bool {
		return admissionAdds(t, &pod.Spec, objects)
	}), true
}

// ownerSpec is what an object says of its pods; nil where it is not the owner of the pod.
func (a *adviser) ownerSpec(o client.Object) *corev1.PodSpec {
	var kind string
	var spec *corev1.PodSpec
	switch o := o.(type) {
	case *appsv1.Deployment:
		kind, spec = "Deployment", &o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		kind, spec = "StatefulSet", &o.Spec.Template.Spec
	case *appsv1.ReplicaSet:
		kind, spec = "ReplicaSet", &o.Spec.Template.Spec
	case *batchv1.Job:
		kind, spec = "Job", &o.Spec.Template.Spec
	default:
		return nil
	}
	name := o.GetNamespace() + "/" + o.GetName()
	if kind == "Job" && a.made.read.added.due[name] {
		kind = cronJob
	}
	if a.owner != kind+" "+name {
		return nil
	}
	return spec
}

// admissionAdds reports whether the API server gives a pod a toleration when it creates it, so that
// it need not be in the template: there it would stay even where admission adds it no more.
func admissionAdds(t corev1.Toleration, s *corev1.PodSpec, objects []client.Object) bool {
	seconds := int64(300) // DefaultTolerationSeconds
	exists := func(key string, effect corev1.TaintEffect, seconds *int64) bool {
		return equality.Semantic.DeepEqual(t, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: effect, TolerationSeconds: seconds,
		})
	}
	if exists(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute, &seconds) ||
		exists(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute, &seconds) ||
		exists(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule, nil) {
		return true
	}
	requests := func(c corev1.Container) bool { // ExtendedResourceToleration
		_, is := c.Resources.Requests[corev1.ResourceName(t.Key)]
		return is
	}
	if exists(t.Key, corev1.TaintEffectNoSchedule, nil) &&
		(slices.ContainsFunc(s.Containers, requests) || slices.ContainsFunc(s.InitContainers, requests)) {
		return true
	}
	return s.RuntimeClassName != nil && slices.ContainsFunc(objects, func(o client.Object) bool {
		class, is := o.(*nodev1.RuntimeClass)
		return is && class.Name == *s.RuntimeClassName && class.Scheduling != nil &&
			slices.ContainsFunc(class.Scheduling.Tolerations, func(of corev1.Toleration) bool { return equality.Semantic.DeepEqual(of, t) })
	})
}
