package kube

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	resourcehelper "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	autoscalingv1beta1 "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// MaxExpandedPods is the most pods that Expand makes of all workloads together: more is a
// mistake in the files, since Kubernetes says that clusters have 150,000 pods at most
// (Considerations for large clusters).
const MaxExpandedPods = 200_000

// Expanded are the objects of files as a cluster would hold them.
type Expanded struct {
	Objects Objects
	// Problems are workloads that cannot be expanded, by source and name.
	Problems []error
	// Notes say where the objects alone do not tell what was made of them.
	Notes []string
	// Replaced are pods of the input that are not among the objects, since their workloads
	// replace them: they run with another template.
	Replaced map[client.Object]bool
	// Quotas are the ResourceQuotas, and what they have held back.
	Quotas *Quotas
}

// Expand does to the objects of files what a control plane would have done:
// workloads become the pods that they lack, objects of any kind with templates of
// pods included, HorizontalPodAutoscalers and ScaledObjects of KEDA hold their number,
// volume claim templates become claims, limits become requests where there are none,
// LimitRanges give what is still unset, namespaces and RuntimeClasses add their node
// selectors, extended resources their tolerations, priority classes become priorities,
// namespaces get their name as a label, and NodePools without a status are ready. CapacityBuffers become the virtual pods that they
// ask room for, of lowest priority. Pods that do not exist yet and that a ResourceQuota does
// not let in are left out. A CronJob has no pods, see [Due]. Input that already
// holds a workload's pods (kubectl get of a live cluster) is not counted twice; neither
// are pods that run already in the cluster that the files are for. Pods that run with another
// template than the files have are replaced. The cluster's ResourceQuotas hold back
// as those of the files do.
func Expand(manifests []Manifest, running ...client.Object) Expanded {
	e := &expander{
		living:     newLivingPods(),
		names:      podNames{},
		admission:  newPodAdmission(),
		quotas:     newQuotas(),
		claims:     map[client.ObjectKey]bool{},
		spaces:     map[string]bool{},
		controlled: map[ownerKey]bool{},
		scalers:    map[ownerKey]scaler{},
		parents:    map[ownerKey]bool{},
		perPod:     perPodLabels{},
		out:        Expanded{Replaced: map[client.Object]bool{}},
	}
	e.budgets = budgetStatuses{given: map[client.ObjectKey]*policyv1.PodDisruptionBudget{}, names: e.names, living: &e.living}
	for _, o := range running {
		e.survey(o)
	}
	for i := range manifests {
		e.survey(manifests[i].Object)
	}
	for i := range manifests {
		e.release(manifests[i].Object)
	}
	for i := range manifests {
		if s, is := manifests[i].Object.(*appsv1.StatefulSet); is {
			e.reserve(s)
		}
	}
	e.buffers = newBufferExpander(e, manifests)
	e.budgets.shapes = e.buffers.shapes
	e.quotas.open(e.names, e.out.Replaced, e.admission.priorities.byDefault)
	for i := range manifests {
		if err := e.add(manifests[i].Object); err != nil {
			e.out.Problems = append(e.out.Problems, fmt.Errorf("%s: %s: %w", manifests[i].Source, manifests[i].Name(), err))
		}
	}
	e.dropReplaced()
	for _, name := range slices.Sorted(maps.Keys(e.admission.unknown)) {
		e.note("%s is not in the input: planned without what it adds to pods", name)
	}
	e.out.Quotas = e.quotas
	return e.out
}

// Due is a CronJob as the Job that it starts when its time comes, and nil for all other
// objects, and for CronJobs that start none: they are suspended, or would be refused.
func Due(o client.Object) client.Object {
	cron, is := o.(*batchv1.CronJob)
	if !is || isTrue(cron.Spec.Suspend) || refusedWorkload(cron) != nil {
		return nil
	}
	job := &batchv1.Job{Spec: *cron.Spec.JobTemplate.Spec.DeepCopy()}
	job.Name, job.Namespace = cron.Name, cron.Namespace
	job.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	return job
}

type ownerKey struct{ namespace, kind, name string }

type expander struct {
	out Expanded
	// living are the pods that the input holds.
	living     livingPods
	names      podNames
	controlled map[ownerKey]bool
	admission  podAdmission
	quotas     *Quotas
	claims     map[client.ObjectKey]bool
	spaces     map[string]bool
	// scalers are the autoscalers by what they scale.
	scalers map[ownerKey]scaler
	// parents are the workloads that control another object than a pod.
	parents map[ownerKey]bool
	buffers *bufferExpander
	// perPod are the labels by which the pods of one workload differ and which rules name.
	perPod  perPodLabels
	budgets budgetStatuses
	counts  expandedCounts
}

// expandedCounts count pods: order those without a time of creation, made those that were made, and
// reserved those of StatefulSets whose names are kept for them.
type expandedCounts struct{ order, made, reserved int }

// countMade counts pods that are about to be made, unless they are too many.
func (e *expander) countMade(n int) error {
	err := e.mayMake(n)
	if err == nil {
		e.counts.made += n
	}
	return err
}

// mayMake says that so many pods more are too many. It is asked before these have names: thousands
// of workloads may ask for as many pods each.
func (e *expander) mayMake(n int) error {
	if e.counts.made+n > MaxExpandedPods {
		return fmt.Errorf("asks for %d pods beside the %d of other workloads, allowed: %d of all workloads together",
			n, e.counts.made, MaxExpandedPods)
	}
	return nil
}

func (e *expander) survey(o client.Object) {
	e.perPod.survey(o)
	e.admission.survey(o)
	if _, pod := o.(*corev1.Pod); !pod {
		for _, r := range o.GetOwnerReferences() {
			e.parents[ownerKey{o.GetNamespace(), r.Kind, r.Name}] = true
		}
	}
	switch o := o.(type) {
	case *corev1.Pod:
		e.surveyPod(o)
	case *corev1.PersistentVolumeClaim:
		e.claims[client.ObjectKeyFromObject(o)] = true
	case *corev1.Namespace:
		e.spaces[o.Name] = true
	case *corev1.ResourceQuota:
		if refusedWorkload(o) == nil {
			e.quotas.of[client.ObjectKeyFromObject(o)] = o
		}
	case *appsv1.Deployment:
		e.controlled[ownerKey{o.Namespace, "Deployment", o.Name}] = true
	case *policyv1.PodDisruptionBudget:
		if hasStatus(o) {
			e.budgets.given[client.ObjectKeyFromObject(o)] = o
		}
	case *appsv1.ReplicaSet:
		e.living.sets[client.ObjectKeyFromObject(o)] = o
	case *unstructured.Unstructured:
		if target, s, is := scalerOf(o); is && refusedWorkload(o) == nil {
			e.scalers[target] = s
		}
	}
}

// rolloutHash is the label by which Argo Rollouts tells the ReplicaSets of a Rollout
// apart, as pod-template-hash does for Deployments.
const rolloutHash = "rollouts-pod-template-hash"

// surveyPod notes the name of a pod, and counts it for the workloads that it belongs to.
func (e *expander) surveyPod(o *corev1.Pod) {
	e.names[client.ObjectKeyFromObject(o)] = o
	if hasGone(o) {
		return
	}
	owners := map[ownerKey]bool{}
	if w := ownerOf(o); w.Kind != "" {
		owners[ownerKey{o.Namespace, w.Kind, w.Name}] = true
	}
	for _, r := range o.OwnerReferences {
		owners[ownerKey{o.Namespace, r.Kind, r.Name}] = true
		if hash := o.Labels[rolloutHash]; hash != "" && r.Kind == "ReplicaSet" && strings.HasSuffix(r.Name, "-"+hash) {
			owners[ownerKey{o.Namespace, "Rollout", strings.TrimSuffix(r.Name, "-"+hash)}] = true
		}
	}
	for key := range owners {
		e.living.of[key] = append(e.living.of[key], o)
		e.living.noteRevision(key, o)
	}
}

func (e *expander) add(o client.Object) error {
	if err := refusedWorkload(o); err != nil {
		return err
	}
	switch o := o.(type) {
	case *corev1.Pod:
		if e.out.Replaced[o] {
			return nil
		}
		return e.addGiven(o.DeepCopy())
	case *corev1.Namespace:
		e.out.Objects.Add(withNameLabel(o.DeepCopy()))
		return nil
	case *policyv1.PodDisruptionBudget:
		e.out.Objects.Add(e.budgets.complete(o))
		return nil
	case *appsv1.Deployment:
		return e.addReplicas(o, "Deployment", e.replicasOf(o, "Deployment", o.Spec.Replicas), &o.Spec.Template)
	case *corev1.ReplicationController:
		template := o.Spec.Template
		if template == nil {
			return errors.New("spec.template: is missing")
		}
		return e.addReplicas(o, "ReplicationController", count(o.Spec.Replicas), template)
	case *appsv1.ReplicaSet:
		if e.hasController(o) {
			return nil
		}
		return e.addReplicas(o, "ReplicaSet", count(o.Spec.Replicas), &o.Spec.Template)
	case *appsv1.StatefulSet:
		return e.addStatefulSet(o)
	case *batchv1.Job:
		return e.addJob(o)
	case *batchv1.CronJob:
		e.noteCronJob(o)
		return nil
	case *v1.NodePool:
		p := o.DeepCopy()
		if len(p.Status.Conditions) == 0 {
			p.Status.Conditions = []status.Condition{{Type: status.ConditionReady, Status: metav1.ConditionTrue}}
		}
		e.out.Objects.Add(p)
		return nil
	case *appsv1.DaemonSet:
		d := o.DeepCopy()
		if err := e.admission.admitNew(d.Namespace, &d.Spec.Template.Spec); err != nil {
			return err
		}
		e.out.Objects.Add(d)
		return nil
	case *autoscalingv1beta1.CapacityBuffer:
		e.out.Objects.Add(o)
		return e.buffers.add(o)
	case *unstructured.Unstructured:
		e.out.Objects.Add(o)
		return e.addForeign(o)
	}
	e.out.Objects.Add(o)
	return nil
}

// addGiven adds a pod of the input, if it is there, or if quotas let it in.
func (e *expander) addGiven(pod *corev1.Pod) error {
	admit, there := e.admission.admit, isThere(pod)
	if !there {
		admit = e.admission.admitNew
	}
	if err := admit(pod.Namespace, &pod.Spec); err != nil {
		return err
	}
	if there || e.within(pod, "Pod", pod, 1) == 1 {
		e.addPod(pod)
	}
	return nil
}

// noteCronJob says that the pods of a CronJob are not planned, and why.
func (e *expander) noteCronJob(o *batchv1.CronJob) {
	if isTrue(o.Spec.Suspend) {
		e.note("CronJob %s/%s: is suspended, its pods are not planned", o.Namespace, o.Name)
		return
	}
	n := jobPods(&o.Spec.JobTemplate.Spec, 0)
	pods := fmt.Sprintf("its %d pods are", n)
	if n == 1 {
		pods = "its pod is"
	}
	e.note("CronJob %s/%s: %s planned only when it is due (%s); --due does so now", o.Namespace, o.Name, pods, o.Spec.Schedule)
}

// within is how many of n pods of a workload, which are like one and do not exist yet, the
// node selector, LimitRanges and ResourceQuotas of their namespace admit. A note tells of the others.
func (e *expander) within(o client.Object, kind string, pod *corev1.Pod, n int) int {
	workload := fmt.Sprintf("%s %s/%s", kind, o.GetNamespace(), o.GetName())
	_, why := e.admission.selectorFor(pod.Namespace, &pod.Spec)
	if why = cmp.Or(why, outOfRange(e.admission.limitsIn(pod.Namespace).bounds, &pod.Spec)); why != "" && n > 0 {
		e.note("%s", e.quotas.hold(HeldBack{Workload: workload, Pods: n, Of: n, Message: why}))
		return 0
	}
	admitted, held := e.quotas.Take(workload, pod, n)
	if held != nil {
		e.note("%s", held)
	}
	return admitted
}

// withinTemplate is within for pods of a template.
func (e *expander) withinTemplate(o client.Object, kind string, template *corev1.PodTemplateSpec, n int) int {
	return e.within(o, kind, podFrom(o, kind, "", template), n)
}

// addForeign adds the pods of an object of a kind that nap does not know, unless the
// input has the objects which make them.
func (e *expander) addForeign(u *unstructured.Unstructured) error {
	namespace, kind := cmp.Or(u.GetNamespace(), metav1.NamespaceDefault), u.GetKind()
	if e.parents[ownerKey{namespace, kind, u.GetName()}] || e.parents[ownerKey{u.GetNamespace(), kind, u.GetName()}] {
		return nil
	}
	templates, err := templatesOf(u)
	if err != nil {
		return err
	}
	u = u.DeepCopy()
	u.SetNamespace(namespace)
	key := ownerKey{namespace, kind, u.GetName()}
	have := len(e.living.of[key])
	for i := range templates.found {
		t := &templates.found[i]
		if len(templates.found) == 1 {
			if err := e.addReplicas(u, kind, t.pods, t.template); err != nil {
				return err
			}
			continue
		}
		template, err := e.admission.admitted(namespace, t.template)
		if err != nil {
			return fmt.Errorf("%s: %w", t.path, err)
		}
		var numbers []string
		for n := range t.pods {
			if have--; have < 0 {
				numbers = append(numbers, fmt.Sprintf("%d-%d", i, n))
			}
		}
		if err := e.addNumbered(u, kind, numbers[:e.withinTemplate(u, kind, template, len(numbers))], template); err != nil {
			return fmt.Errorf("%s: %w", t.path, err)
		}
	}
	if len(templates.unclear) > 0 {
		return fmt.Errorf("its pods are not planned for, as nap cannot tell them from %s; give the objects that it makes, or its pods",
			strings.Join(templates.unclear, " and "))
	}
	if of := borrowed(u); of != "" && len(templates.found) == 0 && have == 0 {
		e.note("%s %s/%s: its pods have the template of %s (spec.workloadRef), and only those that this asks for itself are planned for; "+
			"give it the replicas, or give the pods", kind, namespace, u.GetName(), of)
	}
	if at := podHint(u); at != "" && len(templates.found) == 0 && have == 0 {
		e.note("%s %s/%s: may make pods (%s), which are not planned for; give the objects that it makes, or its pods",
			kind, namespace, u.GetName(), at)
	}
	return nil
}

func (e *expander) hasController(o client.Object) bool {
	for _, r := range o.GetOwnerReferences() {
		if e.controlled[ownerKey{o.GetNamespace(), r.Kind, r.Name}] {
			return true
		}
	}
	return false
}

func count(replicas *int32) int {
	if replicas == nil {
		return 1
	}
	return int(*replicas)
}

// jobPods is how many pods a job runs at a time.
func jobPods(s *batchv1.JobSpec, succeeded int) int {
	n := count(s.Parallelism)
	if s.Completions != nil {
		n = min(n, int(*s.Completions)-succeeded)
	}
	return max(0, n)
}

func (e *expander) addReplicas(o client.Object, kind string, replicas int, template *corev1.PodTemplateSpec) error {
	if replicas < 0 || replicas > MaxExpandedPods {
		return fmt.Errorf("spec.replicas: got %d, allowed: 0 to %d", replicas, MaxExpandedPods)
	}
	have := len(e.living.of[ownerKey{o.GetNamespace(), kind, o.GetName()}])
	replicas = e.scaled(o.GetNamespace(), kind, o.GetName(), replicas)
	template, err := e.admission.admitted(o.GetNamespace(), template)
	if err != nil {
		return err
	}
	e.label(o, template)
	admitted := e.withinTemplate(o, kind, template, max(0, replicas-have))
	if err := e.mayMake(admitted); err != nil {
		return err
	}
	return e.addNumbered(o, kind, numbersTo(have, replicas)[:admitted], template)
}

func (e *expander) addStatefulSet(o *appsv1.StatefulSet) error {
	replicas := e.replicasOf(o, "StatefulSet", o.Spec.Replicas)
	if replicas < 0 || replicas > MaxExpandedPods {
		return fmt.Errorf("spec.replicas: got %d, allowed: 0 to %d", replicas, MaxExpandedPods)
	}
	replicas = e.scaled(o.Namespace, "StatefulSet", o.Name, replicas)
	template, err := e.admission.admitted(o.Namespace, &o.Spec.Template)
	if err != nil {
		return err
	}
	e.label(o, template)
	if !e.quotas.limits(o.Namespace) { // of more than are allowed a quota may admit a few
		if err := e.mayMake(replicas - len(e.living.of[ownerKey{o.Namespace, "StatefulSet", o.Name}])); err != nil {
			return err
		}
	}
	var names []string
	for i := range replicas {
		if name := ordinalName(o, i); e.lacksOrdinal(o, name) {
			names = append(names, name)
		}
	}
	names = names[:e.withinTemplate(o, "StatefulSet", template, len(names))]
	if err := e.countMade(len(names)); err != nil {
		return err
	}
	for _, name := range names {
		pod := podFrom(o, "StatefulSet", name, template)
		pod.Labels = e.perPod.ofOrdinal(o, name, template.Labels)
		pod.Spec.Volumes = slices.Clone(pod.Spec.Volumes)
		for j := range o.Spec.VolumeClaimTemplates {
			t := &o.Spec.VolumeClaimTemplates[j]
			name := t.Name + "-" + pod.Name
			e.addClaim(o.Namespace, name, &t.Spec)
			pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == t.Name })
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: t.Name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			}})
		}
		e.addPod(pod)
	}
	return nil
}

// podFrom makes a pod of a template. Pods of one template share all that they
// have in common, since a file can ask for very many.
func podFrom(o client.Object, kind, name string, template *corev1.PodTemplateSpec) *corev1.Pod {
	controller := true
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.GenerateName, pod.Namespace = name, "", o.GetNamespace()
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: o.GetObjectKind().GroupVersionKind().GroupVersion().String(), Kind: kind, Name: o.GetName(), Controller: &controller,
	}}
	return pod
}

// addPod adds a pod that has been admitted.
func (e *expander) addPod(pod *corev1.Pod) { e.addPods(pod, nil) }

// addPods adds a pod that has been admitted, and others like it, by their names. Their time of
// creation, if they have none, is their place in the file's order, which is the order of planning
// among equals.
// Precondition: others have no ephemeral volumes, of which each pod has its own.
func (e *expander) addPods(pod *corev1.Pod, others []string) {
	of := podReplicas{names: others}
	if pod.CreationTimestamp.IsZero() {
		e.counts.order++
		pod.CreationTimestamp = metav1.NewTime(time.Unix(int64(e.counts.order), 0))
		e.counts.order += len(others)
		of.apart = time.Second
	}
	if !e.spaces[pod.Namespace] {
		e.spaces[pod.Namespace] = true
		e.out.Objects.Add(withNameLabel(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pod.Namespace}}))
	}
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
			e.addClaim(pod.Namespace, pod.Name+"-"+v.Name, &v.Ephemeral.VolumeClaimTemplate.Spec)
		}
	}
	e.out.Objects.addReplicas(pod, of)
}

func (e *expander) addClaim(namespace, name string, spec *corev1.PersistentVolumeClaimSpec) {
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if e.claims[key] {
		return
	}
	e.claims[key] = true
	e.out.Objects.Add(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: *spec.DeepCopy(),
	})
}

func (e *expander) addJob(job *batchv1.Job) error {
	if e.hasController(job) || startsNoMore(job) {
		return nil
	}
	if isTrue(job.Spec.Suspend) {
		e.note("Job %s/%s: is suspended, its pods are not planned", job.Namespace, job.Name)
		return nil
	}
	n := jobPods(&job.Spec, int(job.Status.Succeeded))
	if e.perPod[batchv1.JobCompletionIndexAnnotation] && isIndexed(job) && n <= MaxExpandedPods {
		return e.addIndexed(job, n)
	}
	return e.addReplicas(job, "Job", n, &job.Spec.Template)
}

func isTrue(set *bool) bool { return set != nil && *set }

// requestLimits makes a request of each limit that has none, as the API server does
// when it admits a pod.
func requestLimits(s *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			defaultRequests(&list[i].Resources)
		}
	}
	if s.Resources != nil {
		defaultPodResources(s)
	}
}

// defaultPodResources sets what a pod as a whole asks for, of each resource that it does not
// say itself: where it has a limit of any resource, what its containers ask for together, or
// else the limit of this resource. Huge pages cannot be shared, so that their limit is what
// the containers are limited to.
func defaultPodResources(s *corev1.PodSpec) {
	pod, whole := &corev1.Pod{Spec: *s}, s.Resources
	if len(whole.Limits)+len(whole.Requests) == 0 {
		return
	}
	limits := resourcehelper.AggregateContainerLimits(pod, resourcehelper.PodResourcesOptions{})
	for name := range limits {
		if _, requested := whole.Requests[name]; requested || !isHugePages(name) {
			delete(limits, name)
		}
	}
	whole.Limits = fill(whole.Limits, limits)
	if len(whole.Limits) == 0 {
		return
	}
	requests := resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
	for name := range requests {
		if !resourcehelper.IsSupportedPodLevelResource(name) || isHugePages(name) {
			delete(requests, name)
		}
	}
	whole.Requests = fill(whole.Requests, requests)
	defaultRequests(whole)
}

// isHugePages reports whether a resource is huge pages of some size.
func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func defaultRequests(r *corev1.ResourceRequirements) {
	r.Requests = fill(r.Requests, r.Limits)
}

func withNameLabel(n *corev1.Namespace) *corev1.Namespace {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
	return n
}
