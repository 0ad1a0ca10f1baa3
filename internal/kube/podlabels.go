package kube

import (
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels of Jobs' pods from before those with the prefix of their group.
const (
	oldJobName       = "job-name"
	oldControllerUID = "controller-uid"
)

// perPodLabels are the labels by which the pods of one workload differ and which some rule names.
type perPodLabels map[string]bool

// label gives a template the labels that the controller of its workload, or the API server
// for it, gives all pods of it. The template must be the expander's own.
func (e *expander) label(o client.Object, template *corev1.PodTemplateSpec) {
	add := map[string]string{}
	switch o := o.(type) {
	case *appsv1.Deployment:
		add[appsv1.DefaultDeploymentUniqueLabelKey] = e.living.revision(o, "Deployment")
	case *appsv1.StatefulSet:
		add[appsv1.ControllerRevisionHashLabelKey] = e.living.revision(o, "StatefulSet")
	case *batchv1.Job:
		if isTrue(o.Spec.ManualSelector) {
			return
		}
		add[batchv1.JobNameLabel], add[oldJobName] = o.Name, o.Name
		if o.UID != "" {
			add[batchv1.ControllerUidLabel], add[oldControllerUID] = string(o.UID), string(o.UID)
		}
	}
	if template.Labels == nil {
		template.Labels = map[string]string{}
	}
	maps.Copy(template.Labels, add)
}

// revision is the label that tells the template of a workload from others: that of the pods
// which it has, or else one that no other workload has. What Kubernetes makes of a template
// cannot be known, since defaults and admission change it first.
func (p *livingPods) revision(o client.Object, kind string) string {
	if of := p.revisions[ownerKey{o.GetNamespace(), kind, o.GetName()}]; of != "" {
		return of
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "%s %s/%s", kind, o.GetNamespace(), o.GetName())
	hash := rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
	if kind == "StatefulSet" {
		return o.GetName() + "-" + hash
	}
	return hash
}

// noteRevision notes by which label a pod tells the template of its workload.
func (p *livingPods) noteRevision(key ownerKey, pod *corev1.Pod) {
	label := appsv1.DefaultDeploymentUniqueLabelKey
	switch key.kind {
	case "Deployment":
	case "StatefulSet":
		label = appsv1.ControllerRevisionHashLabelKey
	default:
		return
	}
	if value := pod.Labels[label]; value != "" {
		p.revisions[key] = value
	}
}

// ofOrdinal are the labels of a StatefulSet's pod. What tells it from the others is there
// only where some rule names it: a file can ask for very many pods, which are planned at once
// as long as they are alike.
func (l perPodLabels) ofOrdinal(o *appsv1.StatefulSet, name string, labels map[string]string) map[string]string {
	if !l[appsv1.StatefulSetPodNameLabel] && !l[appsv1.PodIndexLabel] {
		return labels
	}
	labels = maps.Clone(labels)
	labels[appsv1.StatefulSetPodNameLabel] = name
	labels[appsv1.PodIndexLabel] = strings.TrimPrefix(name, o.Name+"-")
	return labels
}

// isIndexed reports whether each of a Job's completions has a number.
func isIndexed(job *batchv1.Job) bool {
	return job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion && job.Spec.Completions != nil
}

// addIndexed adds the pods of an Indexed Job, which runs n at a time, with the labels of their
// indices: the lowest ones that neither have a pod nor have ended.
func (e *expander) addIndexed(job *batchv1.Job, n int) error {
	template, err := e.admission.admitted(job.Namespace, &job.Spec.Template)
	if err != nil {
		return err
	}
	e.label(job, template)
	key := ownerKey{job.Namespace, "Job", job.Name}
	taken := indices(job.Status.CompletedIndexes)
	if job.Status.FailedIndexes != nil {
		maps.Copy(taken, indices(*job.Status.FailedIndexes))
	}
	for _, pod := range e.living.of[key] {
		taken[pod.Labels[batchv1.JobCompletionIndexAnnotation]] = true
	}
	numbers, index := numbersTo(len(e.living.of[key]), n), 0
	for _, number := range numbers[:e.withinTemplate(job, "Job", template, len(numbers))] {
		for taken[strconv.Itoa(index)] {
			index++
		}
		one := *template
		one.Labels = maps.Clone(template.Labels)
		one.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(index)
		index++
		if err := e.addNumbered(job, "Job", []string{number}, &one); err != nil {
			return err
		}
	}
	return nil
}

// indices are those of a text such as 1,3-5, in which they ascend. No more are read than pods may be
// asked for.
func indices(text string) map[string]bool {
	out, next := map[string]bool{}, 0
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || first < next {
			continue
		}
		for i := first; i <= last && len(out) < MaxExpandedPods; i++ {
			out[strconv.Itoa(i)] = true
		}
		next = last
	}
	return out
}

// survey notes which of the labels that differ per pod the rules of an object name.
func (l perPodLabels) survey(o client.Object) {
	switch o := o.(type) {
	case *policyv1.PodDisruptionBudget:
		l.selector(o.Spec.Selector)
	case *corev1.Service:
		l.selector(&metav1.LabelSelector{MatchLabels: o.Spec.Selector})
	case *unstructured.Unstructured:
		l.words(o.Object["spec"])
	}
	spec := podSpecOf(o)
	if spec == nil {
		return
	}
	for i := range spec.TopologySpreadConstraints {
		l.selector(spec.TopologySpreadConstraints[i].LabelSelector)
		l.word(spec.TopologySpreadConstraints[i].MatchLabelKeys...)
	}
	for _, term := range podTermsOf(spec.Affinity) {
		l.selector(term.LabelSelector)
		l.word(term.MatchLabelKeys...)
		l.word(term.MismatchLabelKeys...)
	}
}

func (l perPodLabels) selector(s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	for key := range s.MatchLabels {
		l.word(key)
	}
	for i := range s.MatchExpressions {
		l.word(s.MatchExpressions[i].Key)
	}
}

func (l perPodLabels) word(words ...string) {
	for _, word := range words {
		switch word {
		case appsv1.StatefulSetPodNameLabel, appsv1.PodIndexLabel, batchv1.JobCompletionIndexAnnotation:
			l[word] = true
		}
	}
}

// words looks at all words of an object of a kind that nap does not know: a label too
// many costs time, and one that is missing makes a wrong plan.
func (l perPodLabels) words(value any) {
	switch value := value.(type) {
	case string:
		l.word(value)
	case []any:
		for _, v := range value {
			l.words(v)
		}
	case map[string]any:
		for key, v := range value {
			l.word(key)
			l.words(v)
		}
	}
}

// podSpecOf is what an object says of its pods, or a pod of itself; nil for all others.
func podSpecOf(o client.Object) *corev1.PodSpec {
	switch o := o.(type) {
	case *corev1.Pod:
		return &o.Spec
	case *corev1.PodTemplate:
		return &o.Template.Spec
	case *corev1.ReplicationController:
		if o.Spec.Template != nil {
			return &o.Spec.Template.Spec
		}
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec
	case *appsv1.ReplicaSet:
		return &o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec
	case *appsv1.DaemonSet:
		return &o.Spec.Template.Spec
	case *batchv1.Job:
		return &o.Spec.Template.Spec
	}
	return nil
}
