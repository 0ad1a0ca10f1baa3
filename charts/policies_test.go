package charts

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/kube/manifest"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
)

// warnings collects what the API server warns of.
type warnings struct {
	mu   sync.Mutex
	text []string
}

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

// take returns the warnings since it was last called.
func (w *warnings) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := strings.Join(w.text, "\n")
	w.text = nil
	return out
}

const requestsLabel = "nap.azure.com/resource-requests"

// policed is a cluster with the policies of the chart as values set them.
type policed struct {
	t     *testing.T
	kube  kubernetes.Interface
	pools dynamic.NamespaceableResourceInterface
	// ofNap writes NodePools as the ServiceAccount of the chart.
	ofNap  dynamic.NamespaceableResourceInterface
	warned *warnings
}

func newPoliced(t *testing.T, values ...string) *policed {
	t.Helper()
	l := labtest.Start(t, lab.Config{})
	for _, chart := range []string{"nap-crd", "nap"} {
		args := []string{"template", chart, chart, "--namespace", "nap-system", "--kube-version", "1.37.1"}
		if chart == "nap" {
			for _, v := range append(least(), values...) {
				args = append(args, "--set", v)
			}
		}
		text, err := command(args...)
		if err != nil {
			t.Fatal(err)
		}
		if chart == "nap" {
			text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: nap-system}\n---\n" + text
		}
		if err := lab.Apply(t.Context(), l.Config(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	config, warned := rest.CopyConfig(l.Config()), &warnings{}
	config.WarningHandlerWithContext = warned
	own := rest.CopyConfig(config)
	own.Impersonate.UserName = "system:serviceaccount:nap-system:nap"
	pools := schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	return &policed{
		t: t, kube: kubernetes.NewForConfigOrDie(config), warned: warned,
		pools: dynamic.NewForConfigOrDie(config).Resource(pools), ofNap: dynamic.NewForConfigOrDie(own).Resource(pools),
	}
}

// namespace makes one, with a label unless it is empty.
func (p *policed) namespace(name, label string) {
	p.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if label != "" {
		ns.Labels = map[string]string{requestsLabel: label}
	}
	if _, err := p.kube.CoreV1().Namespaces().Create(p.t.Context(), ns, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// pod tries a pod, and returns what would be stored, what was warned of, and the refusal.
func (p *policed) pod(namespace string, change ...func(*corev1.Pod)) (*corev1.Pod, string, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "trial-", Namespace: namespace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
	for _, c := range change {
		c(pod)
	}
	p.warned.take()
	got, err := p.kube.CoreV1().Pods(namespace).Create(p.t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return got, p.warned.take(), err
}

func amounts(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for pair := range slices.Chunk(pairs, 2) {
		out[corev1.ResourceName(pair[0])] = resource.MustParse(pair[1])
	}
	return out
}

func requests(pairs ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = amounts(pairs...) }
}

func limits(pairs ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = amounts(pairs...) }
}

func ofDaemonSet(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "1"}}
}

func labelledOff(p *corev1.Pod) { p.Labels = map[string]string{requestsLabel: "Off"} }

// await returns when all policies of requests are in force: the API server takes each one up
// some time after it was written, and not in the order in which they were written.
func (p *policed) await() {
	p.t.Helper()
	p.namespace("denying", "Deny")
	p.namespace("defaulting", "Default")
	labtest.Await(p.t, "pods without requests refused", func() bool {
		_, _, err := p.pod("denying")
		return err != nil
	})
	labtest.Await(p.t, "requests added to pods", func() bool {
		pod, _, err := p.pod("defaulting")
		return err == nil && len(pod.Spec.Containers[0].Resources.Requests) > 0
	})
	labtest.Await(p.t, "wrong labels refused", func() bool { return p.wrongLabel() != nil })
	labtest.Await(p.t, "Deployments warned of", func() bool {
		warned, err := p.deployment("denying")
		return err == nil && warned != ""
	})
}

// wrongLabel tries a namespace whose label has a value that is not allowed.
func (p *policed) wrongLabel() error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "wrong", Labels: map[string]string{requestsLabel: "deny"}}}
	_, err := p.kube.CoreV1().Namespaces().Create(p.t.Context(), ns, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func TestRequestsAreHeldByNamespace(t *testing.T) {
	p := newPoliced(t)
	p.await()
	p.namespace("plain", "")
	p.namespace("warning", "Warn")

	if _, warned, err := p.pod("plain"); err != nil || warned != "" {
		t.Errorf("a namespace without the label, admission.requests=Off: %v %q", err, warned)
	}
	if _, warned, err := p.pod("warning"); err != nil || !strings.Contains(warned, "container web: resources.requests must have cpu and memory") {
		t.Errorf("Warn: %v, warned %q", err, warned)
	}
	for name, c := range map[string]struct {
		change []func(*corev1.Pod)
		denied bool
	}{
		"nothing stated":      {nil, true},
		"cpu alone":           {[]func(*corev1.Pod){requests("cpu", "1")}, true},
		"requests":            {[]func(*corev1.Pod){requests("cpu", "1", "memory", "1Gi")}, false},
		"limits":              {[]func(*corev1.Pod){limits("cpu", "1", "memory", "1Gi")}, false},
		"requests and limits": {[]func(*corev1.Pod){requests("cpu", "1"), limits("memory", "1Gi")}, false},
		"exempt by label":     {[]func(*corev1.Pod){labelledOff}, false},
		"DaemonSet":           {[]func(*corev1.Pod){ofDaemonSet}, false},
		"of the pod": {[]func(*corev1.Pod){func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu", "1", "memory", "1Gi")}
		}}, false},
		"sidecar states nothing":   {[]func(*corev1.Pod){requests("cpu", "1", "memory", "1Gi"), initContainer(corev1.ContainerRestartPolicyAlways)}, true},
		"init container is passed": {[]func(*corev1.Pod){requests("cpu", "1", "memory", "1Gi"), initContainer("")}, false},
	} {
		_, _, err := p.pod("denying", c.change...)
		if denied := err != nil; denied != c.denied {
			t.Errorf("Deny, %s: %v", name, err)
		}
		if c.denied && !strings.Contains(err.Error(), "label the pod "+requestsLabel+"=Off to exempt it") {
			t.Errorf("Deny, %s: the message does not say what to do: %v", name, err)
		}
	}
	p.defaults()
	p.deployments()
	if err := p.wrongLabel(); err == nil || !strings.Contains(err.Error(), "is deny, allowed are Off, Warn, Default, Deny") {
		t.Errorf("a wrong label: %v", err)
	}
	p.nodePools()
	p.previewSelectors()
	p.dollars()
}

func initContainer(policy corev1.ContainerRestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.Container{Name: "first", Image: "first"}
		if policy != "" {
			c.RestartPolicy = &policy
		}
		p.Spec.InitContainers = []corev1.Container{c}
	}
}

// defaults: what is missing is added, what is stated stays.
func (p *policed) defaults() {
	p.t.Helper()
	for name, c := range map[string]struct {
		change      []func(*corev1.Pod)
		cpu, memory string
	}{
		"nothing stated": {nil, "500m", "2Gi"},
		"cpu alone":      {[]func(*corev1.Pod){requests("cpu", "1")}, "1", "2Gi"},
		"memory alone":   {[]func(*corev1.Pod){requests("memory", "1Gi")}, "500m", "1Gi"},
		"limits":         {[]func(*corev1.Pod){limits("cpu", "2", "memory", "3Gi")}, "2", "3Gi"},
		"exempt":         {[]func(*corev1.Pod){labelledOff}, "0", "0"},
	} {
		pod, _, err := p.pod("defaulting", c.change...)
		if err != nil {
			p.t.Errorf("Default, %s: %v", name, err)
			continue
		}
		r := pod.Spec.Containers[0].Resources.Requests
		if r.Cpu().Cmp(resource.MustParse(c.cpu)) != 0 || r.Memory().Cmp(resource.MustParse(c.memory)) != 0 {
			p.t.Errorf("Default, %s: the pod asks for %v, want cpu %s, memory %s", name, r, c.cpu, c.memory)
		}
	}
}

// deployment tries a Deployment of pods without requests, and returns what was warned of.
func (p *policed) deployment(namespace string) (string, error) {
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		},
	}}
	p.warned.take()
	_, err := p.kube.AppsV1().Deployments(namespace).Create(p.t.Context(), d, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return p.warned.take(), err
}

// deployments: people are warned where they write, not the controllers that make pods.
func (p *policed) deployments() {
	p.t.Helper()
	for namespace, want := range map[string]bool{"warning": true, "denying": true, "plain": false, "defaulting": false, "kube-system": false} {
		warned, err := p.deployment(namespace)
		if err != nil {
			p.t.Errorf("Deployment in %s: %v", namespace, err)
		}
		if strings.Contains(warned, "resources.requests") != want {
			p.t.Errorf("Deployment in %s: warned %q, want a warning: %v", namespace, warned, want)
		}
	}
}

// nodePool is one of a zone, without limits where they are nil.
func nodePool(zone string, limits map[string]any) *unstructured.Unstructured {
	spec := map[string]any{"template": map[string]any{"spec": map[string]any{
		"nodeClassRef": map[string]any{"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"},
		"requirements": []any{map[string]any{"key": "topology.kubernetes.io/zone", "operator": "In", "values": []any{zone}}},
	}}}
	if limits != nil {
		spec["limits"] = limits
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "web"}, "spec": spec,
	}}
}

func (p *policed) nodePools() {
	p.t.Helper()
	pool := func(zone string, limits map[string]any) string {
		p.warned.take()
		o := nodePool(zone, limits)
		if _, err := p.pools.Create(p.t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			p.t.Fatal(err)
		}
		return p.warned.take()
	}
	labtest.Await(p.t, "warnings of NodePools", func() bool { return pool("1", nil) != "" })
	if got := pool("1", nil); !strings.Contains(got, "spec.limits: is not set") || !strings.Contains(got, "zones are named REGION-NUMBER, for example eastus-1") {
		p.t.Errorf("a NodePool without limits in zone 1: warned %q", got)
	}
	if got := pool("eastus-1", map[string]any{"cpu": "10"}); got != "" {
		p.t.Errorf("a NodePool with limits in zone eastus-1: warned %q", got)
	}
	_, err := p.ofNap.Create(p.t.Context(), nodePool("eastus-1", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if got := p.warned.take(); err != nil || got != "" {
		p.t.Errorf("nap was warned of a NodePool of its own: %q, %v", got, err)
	}
}

// previewSelectors: a manifest of the preview is refused, with the key of today.
func (p *policed) previewSelectors() {
	p.t.Helper()
	text, err := os.ReadFile("../internal/cli/testdata/convert/preview-selectors.yaml")
	if err != nil {
		p.t.Fatal(err)
	}
	objects, err := manifest.Parse(text)
	if err != nil {
		p.t.Fatal(err)
	}
	labtest.Await(p.t, "selectors of the preview refused", func() bool {
		_, err = p.pools.Create(p.t.Context(), objects[0], metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
	if !strings.Contains(err.Error(), "instead of karpenter.k8s.azure/sku-series use karpenter.azure.com/sku-series") {
		p.t.Errorf("NodePool with a selector of the preview: %v", err)
	}
}

// dollars: annotations in dollars per hour are refused exactly where the controller cannot
// read them, in its words; one from before may stay.
func (p *policed) dollars() {
	p.t.Helper()
	pool := func(annotation, value string) *unstructured.Unstructured {
		o := nodePool("eastus-1", map[string]any{"cpu": "10"})
		o.SetAnnotations(map[string]string{annotation: value})
		return o
	}
	try := func(o *unstructured.Unstructured) error {
		_, err := p.pools.Create(p.t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	labtest.Await(p.t, "refusals of dollars", func() bool { return try(pool(v1beta1.AnnotationMaxHourlyCost, "much")) != nil })
	for annotation, read := range map[string]func(*karpv1.NodePool) error{
		v1beta1.AnnotationMaxHourlyCost: func(o *karpv1.NodePool) error { _, err := kube.CostLimit(o); return err },
		v1beta1.AnnotationNodeCost:      func(o *karpv1.NodePool) error { _, err := kube.NodeCost(o); return err },
	} {
		for _, value := range []string{
			"12.50", "0", "1000000", "1000000.01", "$12", "", "-1", "1e3", "0x10", "NaN", "12,50", ".5", "5.", " 5", "12.50 ", "1_000", "Inf",
		} {
			o := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotation: value}}}
			want, got := read(o), try(pool(annotation, value))
			if (want == nil) != (got == nil) || want != nil && !strings.Contains(got.Error(), want.Error()) {
				p.t.Errorf("%s: %q: the API server says %v, the controller %v", annotation, value, got, want)
			}
		}
	}
	p.keepsDollarsFromBefore(pool(v1beta1.AnnotationMaxHourlyCost, "12.50"))
}

// keepsDollarsFromBefore: the controller writes to NodePools whose annotation was wrong before
// the policy was there.
func (p *policed) keepsDollarsFromBefore(good *unstructured.Unstructured) {
	p.t.Helper()
	stored, err := p.pools.Create(p.t.Context(), good, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	policies := p.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	const name = "nap-nodepool-dollars"
	binding, err := policies.Get(p.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	change := func(value string, dry ...string) error {
		next := stored.DeepCopy()
		next.SetAnnotations(map[string]string{v1beta1.AnnotationMaxHourlyCost: value, "written": "by the controller"})
		next, err := p.pools.Update(p.t.Context(), next, metav1.UpdateOptions{DryRun: dry})
		if err == nil && len(dry) == 0 {
			stored = next
		}
		return err
	}
	if err := policies.Delete(p.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		p.t.Fatal(err)
	}
	labtest.Await(p.t, "the policy without effect", func() bool { return change("$12") == nil })
	binding.ResourceVersion, binding.UID = "", ""
	if _, err := policies.Create(p.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	labtest.Await(p.t, "the policy in force again", func() bool { return change("$13", metav1.DryRunAll) != nil })
	if err := change("$12"); err != nil {
		p.t.Errorf("a NodePool with a wrong value from before cannot be written to: %v", err)
	}
	if err := change("13"); err != nil {
		p.t.Errorf("a wrong value cannot be mended: %v", err)
	}
	if err := p.pools.Delete(p.t.Context(), stored.GetName(), metav1.DeleteOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

func TestRequestsOfTheClusterCountWithoutLabel(t *testing.T) {
	p := newPoliced(t, "admission.requests=Deny", "admission.defaultRequests.cpu=250m")
	p.await()
	p.namespace("plain", "")
	p.namespace("spared", "Off")
	if _, _, err := p.pod("plain"); err == nil {
		t.Error("Deny for the cluster admits a pod without requests")
	}
	for _, namespace := range []string{"spared", "kube-system", "nap-system"} {
		if _, _, err := p.pod(namespace); err != nil {
			t.Errorf("in %s: %v", namespace, err)
		}
	}
	if pod, _, err := p.pod("defaulting"); err != nil || pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() != 250 {
		t.Errorf("Default by label: %v", err)
	}
}

// With admission.limits they are held wherever requests are, and nowhere else.
func TestLimitsAreHeldWithRequests(t *testing.T) {
	p := newPoliced(t, "admission.limits=true")
	p.await()
	p.namespace("plain", "")
	p.namespace("warning", "Warn")
	asked := requests("cpu", "1", "memory", "1Gi")
	const lacks = "container web: resources.limits must have cpu and memory"
	labtest.Await(t, "pods without limits refused", func() bool {
		_, _, err := p.pod("denying", asked)
		return err != nil && strings.Contains(err.Error(), lacks+" in namespace denying; label the pod "+requestsLabel+"=Off to exempt it")
	})
	labtest.Await(t, "pods without limits warned of", func() bool {
		_, warned, err := p.pod("warning", asked)
		return err == nil && strings.Contains(warned, lacks)
	})
	for name, change := range map[string]func(*corev1.Pod){
		"limits":          limits("cpu", "1", "memory", "1Gi"),
		"exempt by label": labelledOff,
		"DaemonSet":       ofDaemonSet,
		"of the pod": func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu", "1", "memory", "1Gi"), Limits: amounts("cpu", "1", "memory", "1Gi")}
		},
	} {
		if _, _, err := p.pod("denying", change); err != nil {
			t.Errorf("Deny, %s: %v", name, err)
		}
	}
	if _, _, err := p.pod("denying", limits("memory", "1Gi"), asked); err == nil {
		t.Error("Deny admits a pod without a limit of CPU")
	}
	for _, namespace := range []string{"plain", "defaulting", "kube-system"} {
		if _, warned, err := p.pod(namespace, asked); err != nil || strings.Contains(warned, "resources.limits") {
			t.Errorf("in %s: %v, warned %q", namespace, err, warned)
		}
	}
}

func TestDefaultRequestsNeedKubernetesThatMutatesByPolicy(t *testing.T) {
	args := []string{"template", "nap", "nap", "--kube-version", "1.35.0", "--set", "admission.requests=Default"}
	for _, v := range least() {
		args = append(args, "--set", v)
	}
	if _, err := command(args...); err == nil || !strings.Contains(err.Error(), "admission.requests: Default needs Kubernetes 1.36") {
		t.Errorf("got %v", err)
	}
	args[6] = "admission.requests=Warn"
	text, err := command(args...)
	if err != nil || strings.Contains(text, "kind: MutatingAdmissionPolicy") || !strings.Contains(text, "Default needs Kubernetes 1.36") {
		t.Errorf("1.35 with Warn: %v", err)
	}
}
