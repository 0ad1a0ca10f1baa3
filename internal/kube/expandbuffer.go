package kube

import (
	"errors"
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	api "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	"sigs.k8s.io/karpenter/pkg/utils/resources"
)

// bufferKind is the kind of CapacityBuffers.
const bufferKind = "CapacityBuffer"

// bufferExpander makes the virtual pods of CapacityBuffers, as Karpenter's controller
// resolves them in a cluster.
type bufferExpander struct {
	e *expander
	// templates are PodTemplates, shapes what a buffer may refer to by scalableRef.
	templates map[client.ObjectKey]*corev1.PodTemplateSpec
	shapes    map[ownerKey]bufferShape
}

// bufferShape is the template of a workload and how many pods it wants.
type bufferShape struct {
	template *corev1.PodTemplateSpec
	replicas int
}

func newBufferExpander(e *expander, manifests []Manifest) *bufferExpander {
	b := &bufferExpander{e: e, templates: map[client.ObjectKey]*corev1.PodTemplateSpec{}, shapes: map[ownerKey]bufferShape{}}
	for i := range manifests {
		b.survey(manifests[i].Object)
	}
	return b
}

func (b *bufferExpander) survey(o client.Object) {
	shape := func(kind string, replicas *int32, template *corev1.PodTemplateSpec) {
		b.shapes[ownerKey{o.GetNamespace(), kind, o.GetName()}] = bufferShape{
			template, b.e.wants(o.GetNamespace(), kind, o.GetName(), count(replicas)),
		}
	}
	switch o := o.(type) {
	case *appsv1.Deployment:
		shape(api.KindDeployment, o.Spec.Replicas, &o.Spec.Template)
	case *appsv1.StatefulSet:
		shape(api.KindStatefulSet, o.Spec.Replicas, &o.Spec.Template)
	case *appsv1.ReplicaSet:
		shape(api.KindReplicaSet, o.Spec.Replicas, &o.Spec.Template)
	case *corev1.PodTemplate:
		b.templates[client.ObjectKeyFromObject(o)] = &o.Template
	}
}

// add adds the virtual pods of one buffer.
func (b *bufferExpander) add(buffer *api.CapacityBuffer) error {
	template, running, err := b.shape(buffer)
	if err != nil {
		return err
	}
	template, err = b.e.admission.admitted(buffer.Namespace, template)
	if err != nil {
		return err
	}
	lowest := int32(math.MinInt32)
	template.Spec.Priority, template.Annotations = &lowest, nil
	template.Spec.NodeName, template.Spec.Volumes = "", nil // volumes are bound to pods that exist
	n := bufferPods(buffer, &template.Spec, running)
	if n < 0 || n > MaxExpandedPods {
		return fmt.Errorf("asks for room for %d pods, allowed: 0 to %d", n, MaxExpandedPods)
	}
	numbers := make([]string, n)
	for i := range numbers {
		numbers[i] = fmt.Sprintf("buffer-%d", i+1)
	}
	return b.e.addNumbered(buffer, bufferKind, numbers, template)
}

// shape is what a buffer's pods are like, and how many pods the workload wants that it
// refers to.
func (b *bufferExpander) shape(buffer *api.CapacityBuffer) (template *corev1.PodTemplateSpec, running int, err error) {
	if s := buffer.Spec.ProvisioningStrategy; s != nil && *s != "" && *s != api.ActiveProvisioningStrategy {
		return nil, 0, fmt.Errorf("spec.provisioningStrategy %q: allowed is %s", *s, api.ActiveProvisioningStrategy)
	}
	switch {
	case buffer.Spec.PodTemplateRef != nil:
		name := buffer.Spec.PodTemplateRef.Name
		t := b.templates[client.ObjectKey{Namespace: buffer.Namespace, Name: name}]
		if t == nil {
			return nil, 0, fmt.Errorf("spec.podTemplateRef: PodTemplate %s/%s is not in the input", buffer.Namespace, name)
		}
		return t, 0, nil
	case buffer.Spec.ScalableRef != nil:
		ref := buffer.Spec.ScalableRef
		shape, known := b.shapes[ownerKey{buffer.Namespace, ref.Kind, ref.Name}]
		if !known {
			return nil, 0, fmt.Errorf("spec.scalableRef: %s %s/%s is not in the input", ref.Kind, buffer.Namespace, ref.Name)
		}
		return shape.template, shape.replicas, nil
	}
	return nil, 0, errors.New("neither spec.podTemplateRef nor spec.scalableRef is set")
}

// bufferPods is for how many pods a buffer wants room: the larger of its replicas and its
// percentage of a workload, at least one of these, and no more than its limits allow.
// Limits alone are used up.
func bufferPods(b *api.CapacityBuffer, spec *corev1.PodSpec, running int) int {
	n, sized := 0, false
	if b.Spec.Replicas != nil {
		n, sized = int(*b.Spec.Replicas), true
	}
	if p := b.Spec.Percentage; p != nil && running > 0 {
		n, sized = max(n, (running*int(*p)+99)/100), true
	}
	requests := resources.RequestsForSpec(spec)
	for name, limit := range b.Spec.Limits {
		one := requests[name]
		if one.IsZero() {
			continue
		}
		fits := int(limit.MilliValue() / one.MilliValue())
		if !sized {
			n, sized = fits, true
		}
		n = min(n, fits)
	}
	return n
}
