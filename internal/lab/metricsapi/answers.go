package metricsapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The group and version that are served.
const (
	group   = "metrics.k8s.io"
	version = group + "/v1beta1"
)

// window is over how long a use was measured. The HorizontalPodAutoscaler controller
// disregards what was measured before a pod was ready.
const window = time.Second

// measured is PodMetrics or NodeMetrics.
type measured struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Timestamp         metav1.Time         `json:"timestamp"`
	Window            metav1.Duration     `json:"window"`
	Usage             corev1.ResourceList `json:"usage,omitempty"`
	Containers        []containerUsage    `json:"containers,omitempty"`
}

type containerUsage struct {
	Name  string              `json:"name"`
	Usage corev1.ResourceList `json:"usage"`
}

type measuredList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []measured `json:"items"`
}

// answers reads pods and loads again for each request: requests are rare, and a mirror of
// all pods would cost more.
type answers struct {
	client kubernetes.Interface
	now    func() time.Time
}

// handler are the paths of the API.
func (a *answers) handler() http.Handler {
	mux := http.NewServeMux()
	say := func(pattern string, answer func(r *http.Request) (any, error)) {
		mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
			body, err := answer(r)
			write(w, body, err)
		})
	}
	say("/apis/"+group, func(*http.Request) (any, error) { return discoveredGroup(), nil })
	say("/apis/"+version, func(*http.Request) (any, error) { return discoveredKinds(), nil })
	say("/apis/"+version+"/pods", func(r *http.Request) (any, error) { return a.podList(r, metav1.NamespaceAll) })
	say("/apis/"+version+"/namespaces/{namespace}/pods", func(r *http.Request) (any, error) { return a.podList(r, r.PathValue("namespace")) })
	say("/apis/"+version+"/namespaces/{namespace}/pods/{name}", func(r *http.Request) (any, error) {
		items, err := a.pods(r.Context(), r.PathValue("namespace"), metav1.ListOptions{FieldSelector: "metadata.name=" + r.PathValue("name")})
		return only(items, err)
	})
	say("/apis/"+version+"/nodes", func(r *http.Request) (any, error) {
		items, err := a.nodes(r.Context(), metav1.ListOptions{LabelSelector: r.FormValue("labelSelector")})
		return list("NodeMetricsList", items), err
	})
	say("/apis/"+version+"/nodes/{name}", func(r *http.Request) (any, error) {
		items, err := a.nodes(r.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + r.PathValue("name")})
		return only(items, err)
	})
	return mux
}

func (a *answers) podList(r *http.Request, namespace string) (any, error) {
	items, err := a.pods(r.Context(), namespace, metav1.ListOptions{
		LabelSelector: r.FormValue("labelSelector"), FieldSelector: r.FormValue("fieldSelector"),
	})
	return list("PodMetricsList", items), err
}

// pods are the uses of the pods that the options choose. What a pod uses depends on all
// others of its namespace.
func (a *answers) pods(ctx context.Context, namespace string, chosen metav1.ListOptions) ([]measured, error) {
	wanted, err := a.client.CoreV1().Pods(namespace).List(ctx, chosen)
	if err != nil {
		return nil, err
	}
	used := map[string]map[string]corev1.ResourceList{}
	var out []measured
	for i := range wanted.Items {
		p := &wanted.Items[i]
		if used[p.Namespace] == nil {
			if used[p.Namespace], err = a.usageOf(ctx, p.Namespace); err != nil {
				return nil, err
			}
		}
		all, works := used[p.Namespace][p.Name]
		if !works {
			continue
		}
		m := a.measure("PodMetrics", p.Name, p.Namespace, p.Labels)
		for n, c := range p.Spec.Containers {
			of := corev1.ResourceList{corev1.ResourceCPU: {}, corev1.ResourceMemory: {}}
			if n == 0 {
				of = all // the first container does the work
			}
			m.Containers = append(m.Containers, containerUsage{c.Name, of})
		}
		out = append(out, m)
	}
	return out, nil
}

func (a *answers) usageOf(ctx context.Context, namespace string) (map[string]corev1.ResourceList, error) {
	all, err := a.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	of, err := loads(ctx, a.client, namespace)
	return usage(all.Items, of), err
}

// nodes are the uses of nodes: those of their pods.
func (a *answers) nodes(ctx context.Context, chosen metav1.ListOptions) ([]measured, error) {
	nodes, err := a.client.CoreV1().Nodes().List(ctx, chosen)
	if err != nil {
		return nil, err
	}
	all, err := a.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	byNamespace := map[string][]corev1.Pod{}
	for _, p := range all.Items {
		byNamespace[p.Namespace] = append(byNamespace[p.Namespace], p)
	}
	sums := map[string]corev1.ResourceList{}
	for namespace, pods := range byNamespace {
		of, err := loads(ctx, a.client, namespace)
		if err != nil {
			return nil, err
		}
		used := usage(pods, of)
		for i := range pods {
			sums[pods[i].Spec.NodeName] = plus(sums[pods[i].Spec.NodeName], used[pods[i].Name])
		}
	}
	var out []measured
	for i := range nodes.Items {
		m := a.measure("NodeMetrics", nodes.Items[i].Name, "", nodes.Items[i].Labels)
		m.Usage = plus(sums[m.Name], corev1.ResourceList{corev1.ResourceCPU: {}, corev1.ResourceMemory: {}})
		out = append(out, m)
	}
	return out, nil
}

func plus(a, b corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, list := range []corev1.ResourceList{a, b} {
		for name, amount := range list {
			sum := out[name]
			sum.Add(amount)
			out[name] = sum
		}
	}
	return out
}

func (a *answers) measure(kind, name, namespace string, labels map[string]string) measured {
	return measured{
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}, Timestamp: metav1.NewTime(a.now()), Window: metav1.Duration{Duration: window},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
	}
}

func list(kind string, items []measured) measuredList {
	if items == nil {
		items = []measured{}
	}
	return measuredList{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}, Items: items}
}

// only is the one object of that name.
func only(items []measured, err error) (any, error) {
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return items[0], nil
}

func discoveredGroup() metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: "v1beta1"}
	return metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: group,
		Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v,
	}
}

func discoveredKinds() metav1.APIResourceList {
	verbs := metav1.Verbs{"get", "list"}
	return metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: version,
		APIResources: []metav1.APIResource{
			{Name: "nodes", Kind: "NodeMetrics", Verbs: verbs}, {Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: verbs},
		},
	}
}

// write answers with an object; nil is one that there is not.
func write(w http.ResponseWriter, body any, err error) {
	status := http.StatusOK
	switch {
	case err != nil:
		status = http.StatusInternalServerError
		body = failure(status, metav1.StatusReasonInternalError, err.Error())
	case body == nil:
		status = http.StatusNotFound
		body = failure(status, metav1.StatusReasonNotFound, "there is no measurement of it: it does not run, or is not there")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone
}

func failure(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message, //nolint:gosec // an HTTP status
	}
}
