package kube

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// podTemplate is a template of pods in an object of a kind that nap does not know, such as
// those of operators.
type podTemplate struct {
	// path is where it is, such as spec.template or spec.workers[0].template.
	path string
	// pods is how many pods the fields beside the templates ask for.
	pods     int
	template *corev1.PodTemplateSpec
}

// podTemplates are what an object of any kind says of its pods.
type podTemplates struct {
	found []podTemplate
	// unclear are fields which mean pods in a way that nap cannot count.
	unclear []string
}

// templatesOf finds the templates of pods in an object's spec: every field "template"
// with containers, as often as the fields beside it say ([copies]), and those beside the
// templates around it.
func templatesOf(u *unstructured.Unstructured) (podTemplates, error) {
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	if u.GetKind() == kindLeaderSet && u.GroupVersionKind().Group == "leaderworkerset.x-k8s.io" {
		return leadersAndWorkers(spec)
	}
	if u.GetKind() == "DaemonSet" { // of another group than that of Kubernetes
		return podTemplates{unclear: []string{"spec.template, which is for one pod on each node"}}, nil
	}
	w := &templateWalk{}
	if suspended, _ := spec["suspend"].(bool); suspended {
		return w.out, nil
	}
	w.walk(spec, "spec", 1)
	replicas, counted := integer(spec["replicas"])
	group := u.GroupVersionKind().Group
	// A template without containers is no template of pods, such as that of a KafkaNodePool of Strimzi,
	// which says what the pods have beside their container.
	if len(w.out.found)+len(w.out.unclear) == 0 && counted && replicas > 0 &&
		spec["workloadRef"] == nil && !ofMachines(group) {
		w.out.unclear = append(w.out.unclear, fmt.Sprintf("spec.replicas: %d", replicas))
	}
	return w.out, w.err
}

// ofMachines reports whether the replicas of objects of a group are machines and no pods.
func ofMachines(group string) bool {
	return strings.HasSuffix(group, "cluster.x-k8s.io") || group == "machine.openshift.io"
}

// borrowed is the workload from which an object with replicas has its template, as Argo's Rollouts may,
// or "".
func borrowed(u *unstructured.Unstructured) string {
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	replicas, counted := integer(spec["replicas"])
	if counted && replicas <= 0 {
		return ""
	}
	kind, _, _ := unstructured.NestedString(spec, "workloadRef", "kind")
	name, _, _ := unstructured.NestedString(spec, "workloadRef", "name")
	return strings.TrimSpace(kind + " " + name)
}

// leadersAndWorkers are the templates of a LeaderWorkerSet: in each of its groups one pod
// leads, by default like the others, which are spec.leaderWorkerTemplate.size less one
// (leaderworkerset.x-k8s.io/v1).
func leadersAndWorkers(spec map[string]any) (podTemplates, error) {
	const path = "spec.leaderWorkerTemplate"
	groups, err := copies(map[string]any{"replicas": spec["replicas"]}, "spec")
	if err != nil {
		return podTemplates{}, err
	}
	group, _, _ := unstructured.NestedMap(spec, "leaderWorkerTemplate")
	size := int64(1)
	if n, set := integer(group["size"]); set {
		size = n
	}
	if size < 1 || size > MaxExpandedPods || int64(groups)*size > MaxExpandedPods {
		return podTemplates{}, fmt.Errorf("%s.size: got %d, allowed: 1 to %d pods in all groups together", path, size, MaxExpandedPods)
	}
	worker, _ := group["workerTemplate"].(map[string]any)
	if !hasContainers(worker) {
		return podTemplates{unclear: []string{path + ".workerTemplate"}}, nil
	}
	leader, at := worker, path+".workerTemplate"
	if own, _ := group["leaderTemplate"].(map[string]any); hasContainers(own) {
		leader, at = own, path+".leaderTemplate"
	}
	w := &templateWalk{}
	w.add(leader, at, groups)
	w.add(worker, path+".workerTemplate", groups*int(size-1))
	return w.out, w.err
}

type templateWalk struct {
	out podTemplates
	err error
}

func (w *templateWalk) walk(v any, path string, times int) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			w.walk(v[i], fmt.Sprintf("%s[%d]", path, i), times)
		}
	case map[string]any:
		if _, counts := v["template"]; counts {
			n, err := copies(v, path)
			if err != nil {
				w.err = err
				return
			}
			times = min(times*n, MaxExpandedPods+1)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := path + "." + key
			switch child, _ := v[key].(map[string]any); {
			case !strings.HasSuffix(strings.ToLower(key), "template") || !hasContainers(child):
				w.walk(v[key], at, times)
			case key == "template":
				w.add(child, at, times)
			default:
				w.out.unclear = append(w.out.unclear, at)
			}
		}
	}
}

func (w *templateWalk) add(raw map[string]any, path string, pods int) {
	t := podTemplate{path: path, pods: pods, template: &corev1.PodTemplateSpec{}}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, t.template); err != nil {
		w.err = fmt.Errorf("%s: is no template of pods: %w", path, err)
		return
	}
	w.out.found = append(w.out.found, t)
}

// copies is how many of its template a map asks for: replicas within minReplicas and
// maxReplicas, each of numOfHosts pods (a group of workers of a RayCluster, ray.io/v1), the
// smaller of parallelism and completions (a Job), minRunners (an AutoscalingRunnerSet,
// actions.github.com/v1alpha1), or what annotations of Knative's say that a revision begins
// with. It is none where the map is suspended.
func copies(m map[string]any, path string) (int, error) {
	if suspended, _ := m["suspend"].(bool); suspended {
		return 0, nil
	}
	n := int64(1)
	if parallelism, set := integer(m["parallelism"]); set {
		n = parallelism
		if completions, set := integer(m["completions"]); set {
			n = min(n, completions)
		}
	}
	if _, runners := m["maxRunners"]; runners || m["minRunners"] != nil {
		n, _ = integer(m["minRunners"])
	}
	if scale, told := initialScale(m); told {
		n = scale
	}
	replicas, set := integer(m["replicas"])
	least, bounded := integer(m["minReplicas"])
	switch {
	case set && bounded && replicas >= 0:
		n = max(replicas, least)
	case set:
		n = replicas
	case bounded:
		n = least
	}
	if most, set := integer(m["maxReplicas"]); set {
		n = min(n, most)
	}
	if hosts, set := integer(m["numOfHosts"]); set && n > 0 && hosts > 0 {
		n *= min(hosts, MaxExpandedPods+1)
	}
	if n < 0 || n > MaxExpandedPods {
		return 0, fmt.Errorf("%s.replicas: got %d, allowed: 0 to %d", path, n, MaxExpandedPods)
	}
	return int(n), nil
}

// initialScale is how many pods a revision of Knative's has at first by the annotations of
// its template, and whether they say so.
func initialScale(m map[string]any) (pods int64, told bool) {
	scale := func(keys ...string) (int64, bool) {
		for _, key := range keys {
			text, _, _ := unstructured.NestedString(m, "template", "metadata", "annotations", "autoscaling.knative.dev/"+key)
			if n, err := strconv.ParseInt(text, 10, 32); err == nil {
				return n, true
			}
		}
		return 0, false
	}
	least, bounded := scale("min-scale", "minScale")
	first, begun := scale("initial-scale", "initialScale")
	if !begun {
		first = 1
	}
	return max(least, first), bounded || begun
}

// integer reads a whole number of a document.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	}
	return 0, false
}

func hasContainers(template map[string]any) bool {
	containers, found, err := unstructured.NestedSlice(template, "spec", "containers")
	return err == nil && found && len(containers) > 0
}
