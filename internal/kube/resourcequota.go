package kube

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	resourcehelper "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// Quotas are the ResourceQuotas of files and of the cluster that these are for; nil holds
// nothing back. They keep pods which do not exist yet from being created, as the API server
// does by k8s.io/kubernetes/pkg/quota/v1/evaluator/core. Pods that exist count, unless the
// status of a quota says how much of it is used.
type Quotas struct {
	// of has the quotas by namespace and name, room is what they leave.
	of   map[client.ObjectKey]*corev1.ResourceQuota
	room fleet.QuotaRoom
	// byDefault is the PriorityClass of pods that name none; empty for none.
	byDefault string
	held      []HeldBack
}

// HeldBack are pods of a workload that ResourceQuotas, LimitRanges or the node selector of their
// namespace keep from being created.
type HeldBack struct {
	// Workload is the kind, the namespace and the name.
	Workload string `json:"workload"`
	// Pods is how many are held back, Of how many the workload lacks.
	Pods int `json:"pods"`
	Of   int `json:"of"`
	// Quota is the namespace and the name of the one that leaves room for the fewest; empty where
	// a LimitRange or the namespace refuses them.
	Quota string `json:"quota,omitempty"`
	// Message says why, and what would admit them all.
	Message string `json:"message"`
}

// String is a sentence about the workload.
func (h *HeldBack) String() string {
	which := fmt.Sprintf("%d of the %d pods that it lacks are", h.Pods, h.Of)
	switch {
	case strings.HasPrefix(h.Workload, "Pod "):
		which = "is"
	case h.Of == 1:
		which = "the pod that it lacks is"
	case h.Pods == h.Of:
		which = fmt.Sprintf("the %d pods that it lacks are", h.Of)
	}
	return fmt.Sprintf("%s: %s held back: %s", h.Workload, which, h.Message)
}

func newQuotas() *Quotas {
	return &Quotas{of: map[client.ObjectKey]*corev1.ResourceQuota{}, room: fleet.QuotaRoom{}}
}

// Held are the pods that were held back, in the order in which they were asked for.
func (q *Quotas) Held() []HeldBack {
	if q == nil {
		return nil
	}
	return q.held
}

// open counts the pods that exist, and gives back what the status says of those that are
// replaced; byDefault is as in Quotas.
func (q *Quotas) open(pods podNames, replaced map[client.Object]bool, byDefault string) {
	q.byDefault = byDefault
	told := map[*corev1.ResourceQuota]map[string]int64{}
	for _, key := range slices.SortedFunc(maps.Keys(q.of), func(a, b client.ObjectKey) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}) {
		counted := quota(q.of[key])
		told[q.of[key]] = used(q.of[key])
		for i := range counted.Hard {
			counted.Hard[i].Value -= told[q.of[key]][counted.Hard[i].Name]
		}
		q.room.Add(counted)
	}
	use := func(pod *corev1.Pod, n int, toldOf bool) {
		ended := podEnded(pod)
		if len(q.room[pod.Namespace]) == 0 || !isThere(pod) || hasGone(pod) && !ended {
			return
		}
		pod = pod.DeepCopy()
		requestLimits(&pod.Spec)
		one := q.charge(pod)
		q.room.Use(pod.Namespace, func(of *fleet.Quota, resource string) int64 {
			if _, known := told[q.source(of)][resource]; known != toldOf || ended && resource != fleet.CountPods {
				return 0
			}
			return one(of, resource)
		}, n)
	}
	for _, pod := range pods {
		if pod != nil {
			use(pod, 1, false)
		}
	}
	for pod := range replaced {
		use(pod.(*corev1.Pod), -1, true)
	}
}

// used is how much the status of a quota says is used, by what [quotaResource] names.
func used(q *corev1.ResourceQuota) map[string]int64 {
	out := map[string]int64{}
	for name, amount := range q.Status.Used {
		if counted := quotaResource(name); counted != "" {
			out[counted] = quotaAmount(counted, amount)
		}
	}
	return out
}

// isThere reports whether a pod of a file is one that a cluster has, or had when the file was
// written, and not one that is to be created.
func isThere(pod *corev1.Pod) bool {
	return pod.UID != "" || pod.Spec.NodeName != "" || len(pod.OwnerReferences) > 0 || pod.Status.Phase != ""
}

// source is the object that a quota was converted from.
func (q *Quotas) source(of *fleet.Quota) *corev1.ResourceQuota {
	return q.of[client.ObjectKey{Namespace: of.Namespace, Name: of.Name}]
}

// limits reports whether some quota limits pods of a namespace.
func (q *Quotas) limits(namespace string) bool { return q != nil && len(q.room[namespace]) > 0 }

// Take returns how many of n pods of a workload, which are like one and do not exist yet, the
// quotas of its namespace admit, and counts these; held tells of the others, nil for none.
func (q *Quotas) Take(workload string, pod *corev1.Pod, n int) (admitted int, held *HeldBack) {
	if n <= 0 || !q.limits(pod.Namespace) {
		return max(n, 0), nil
	}
	held = &HeldBack{Workload: workload, Of: n}
	if of, message := q.unsaid(pod); of != "" {
		held.Quota, held.Message = of, message
	} else {
		one := q.charge(pod)
		short := q.room.Short(pod.Namespace, one, n)
		if admitted = q.room.Take(pod.Namespace, one, n); admitted == n {
			return n, nil
		}
		held.Quota, held.Message = q.tell(short, n)
	}
	held.Pods = n - admitted
	return admitted, q.hold(*held)
}

// hold notes pods that are held back.
func (q *Quotas) hold(held HeldBack) *HeldBack {
	q.held = append(q.held, held)
	return &held
}

// tell says which limit leaves room for the fewest of n pods, and what would admit all.
func (q *Quotas) tell(short []fleet.Shortage, n int) (of, message string) {
	first := slices.MinFunc(short, func(a, b fleet.Shortage) int { return cmp.Compare(a.Pods(), b.Pods()) })
	of = qualified(first.Quota.Namespace, first.Quota.Name)
	name, hard := q.limit(&first)
	var needs []string
	for i := range short {
		s := &short[i]
		name, hard := q.limit(s)
		need := fmt.Sprintf("%s %s", name, quotaText(s.Resource, saturatedSum(hard-s.Left, n, s.Each)))
		if s.Quota != first.Quota {
			need += " in ResourceQuota " + s.Quota.Name
		}
		needs = append(needs, need)
	}
	return of, fmt.Sprintf("ResourceQuota %s has %s of %s %s left, and each pod takes %s; all of them need %s", of,
		quotaText(first.Resource, max(0, first.Left)), name, quotaText(first.Resource, hard), quotaText(first.Resource, first.Each),
		strings.Join(slices.Compact(needs), ", "))
}

// limit is the limit of a quota that is short, and its name there.
func (q *Quotas) limit(s *fleet.Shortage) (name corev1.ResourceName, hard int64) {
	spec := &q.source(s.Quota).Spec
	hard = math.MaxInt64
	for _, n := range slices.Sorted(maps.Keys(spec.Hard)) {
		if v := quotaAmount(s.Resource, spec.Hard[n]); quotaResource(n) == s.Resource && v < hard {
			name, hard = n, v
		}
	}
	return name, hard
}

// saturatedSum is what is used and n times what is asked for.
func saturatedSum(used int64, n int, each int64) int64 {
	if each > (math.MaxInt64-max(0, used))/int64(n) {
		return math.MaxInt64
	}
	return used + int64(n)*each
}

// quotaText is an amount of what [quotaResource] names, as a quantity.
func quotaText(name string, v int64) string {
	switch bare := corev1.ResourceName(strings.TrimPrefix(name, limitsPrefix)); {
	case bare == corev1.ResourceCPU:
		return resource.NewMilliQuantity(v, resource.DecimalSI).String()
	case bare == corev1.ResourceMemory, bare == corev1.ResourceEphemeralStorage, isHugePages(bare):
		return resource.NewQuantity(v, resource.BinarySI).String()
	}
	return resource.NewQuantity(v, resource.DecimalSI).String()
}

// charge is what a pod counts against the quotas whose scopes it is in.
func (q *Quotas) charge(pod *corev1.Pod) fleet.Charge {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
	return func(of *fleet.Quota, name string) int64 {
		if !q.inScopes(q.source(of), pod) {
			return 0
		}
		if name == string(corev1.ResourcePods) || name == fleet.CountPods {
			return 1
		}
		if bare, limited := strings.CutPrefix(name, limitsPrefix); limited {
			return quotaAmount(name, limits[corev1.ResourceName(bare)])
		}
		return quotaAmount(name, requests[corev1.ResourceName(name)])
	}
}

// inScopes reports whether a pod is in all scopes of a quota.
func (q *Quotas) inScopes(of *corev1.ResourceQuota, pod *corev1.Pod) bool {
	for _, scope := range of.Spec.Scopes {
		if !q.inScope(&corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}, pod) {
			return false
		}
	}
	if of.Spec.ScopeSelector == nil {
		return true
	}
	for i := range of.Spec.ScopeSelector.MatchExpressions {
		if !q.inScope(&of.Spec.ScopeSelector.MatchExpressions[i], pod) {
			return false
		}
	}
	return true
}

// inScope reports whether a pod is in one scope. Those that are for other objects have no pods.
func (q *Quotas) inScope(scope *corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) bool {
	switch scope.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return pod.Spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return pod.Spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(pod)
	case corev1.ResourceQuotaScopePriorityClass:
		return ofPriorityClass(scope, cmp.Or(pod.Spec.PriorityClassName, q.byDefault))
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return crossesNamespaces(pod.Spec.Affinity)
	case corev1.ResourceQuotaScopeVolumeAttributesClass: // of volume claims
	}
	return false
}

// ofPriorityClass reports whether a scope selects the pods of a PriorityClass; empty for those
// without one.
func ofPriorityClass(scope *corev1.ScopedResourceSelectorRequirement, class string) bool {
	operators := map[corev1.ScopeSelectorOperator]selection.Operator{
		corev1.ScopeSelectorOpIn: selection.In, corev1.ScopeSelectorOpNotIn: selection.NotIn,
		corev1.ScopeSelectorOpExists: selection.Exists, corev1.ScopeSelectorOpDoesNotExist: selection.DoesNotExist,
	}
	wanted, err := labels.NewRequirement(string(scope.ScopeName), operators[scope.Operator], scope.Values)
	if err != nil {
		return false
	}
	set := labels.Set{}
	if class != "" {
		set[string(scope.ScopeName)] = class
	}
	return wanted.Matches(set)
}

// bestEffort reports whether a pod asks for neither cpu nor memory, and is limited in neither.
func bestEffort(pod *corev1.Pod) bool {
	if class := pod.Status.QOSClass; class != "" {
		return class == corev1.PodQOSBestEffort
	}
	says := func(r *corev1.ResourceRequirements) bool {
		for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if q := list[name]; q.Sign() > 0 {
					return true
				}
			}
		}
		return false
	}
	if resourcehelper.IsPodLevelResourcesSet(pod) {
		return !says(pod.Spec.Resources)
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			if says(&containers[i].Resources) {
				return false
			}
		}
	}
	return true
}

// crossesNamespaces reports whether rules on pods look at other namespaces.
func crossesNamespaces(a *corev1.Affinity) bool {
	return slices.ContainsFunc(podTermsOf(a), func(t corev1.PodAffinityTerm) bool {
		return len(t.Namespaces) > 0 || t.NamespaceSelector != nil
	})
}

// podTermsOf are the terms of affinity and anti-affinity to pods, required and preferred ones.
func podTermsOf(a *corev1.Affinity) []corev1.PodAffinityTerm {
	var terms []corev1.PodAffinityTerm
	var preferred []corev1.WeightedPodAffinityTerm
	if a != nil && a.PodAffinity != nil {
		terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		preferred = append(preferred, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if a != nil && a.PodAntiAffinity != nil {
		terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		preferred = append(preferred, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for i := range preferred {
		terms = append(terms, preferred[i].PodAffinityTerm)
	}
	return terms
}

// unsaid finds a quota of cpu or memory under which a pod is refused since one of its
// containers does not say how much it takes; of is empty where there is none.
func (q *Quotas) unsaid(pod *corev1.Pod) (of, message string) {
	if resourcehelper.IsPodLevelResourcesSet(pod) {
		return "", ""
	}
	for _, counted := range q.room[pod.Namespace] {
		source := q.source(counted)
		if !q.inScopes(source, pod) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(source.Spec.Hard)) {
			if container := lacking(pod, quotaResource(name)); container != "" {
				of = qualified(counted.Namespace, counted.Name)
				return of, fmt.Sprintf("ResourceQuota %s has %s, so that each container must say %s, and %s does not", of, name,
					saidBy(quotaResource(name)), container)
			}
		}
	}
	return "", ""
}

// lacking is a container which does not say what quotas of cpu and memory want to be said;
// empty for none, and for all else that quotas limit.
func lacking(pod *corev1.Pod, name string) string {
	bare, limited := strings.CutPrefix(name, limitsPrefix)
	if bare != string(corev1.ResourceCPU) && bare != string(corev1.ResourceMemory) {
		return ""
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			list := containers[i].Resources.Requests
			if limited {
				list = containers[i].Resources.Limits
			}
			if _, said := list[corev1.ResourceName(bare)]; !said {
				return containers[i].Name
			}
		}
	}
	return ""
}

// saidBy is the field of a container that says what counts against a limit of a quota.
func saidBy(name string) string {
	if bare, limited := strings.CutPrefix(name, limitsPrefix); limited {
		return "resources.limits." + bare
	}
	return "resources.requests." + name
}
