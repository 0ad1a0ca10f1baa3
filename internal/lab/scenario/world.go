package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// nodeClaims is Karpenter's record of a machine that was asked for.
func nodeClaims() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
}

// world is a local mirror of the cluster, kept by watches, so that waiting and
// telling cost the API server nothing.
type world struct {
	pods      corelisters.PodLister
	nodes     corelisters.NodeLister
	claims    cache.GenericLister
	informers map[string]cache.SharedIndexInformer
	boots     *bootsSeen
	kept      *keeping
}

// observe starts the watches and returns once the mirror is complete. It stops
// with ctx.
func observe(ctx context.Context, config *rest.Config) (*world, error) {
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	loose, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	factory := informers.NewSharedInformerFactory(typed, 0)
	claims := dynamicinformer.NewDynamicSharedInformerFactory(loose, 0)
	w := &world{
		pods:   factory.Core().V1().Pods().Lister(),
		nodes:  factory.Core().V1().Nodes().Lister(),
		claims: claims.ForResource(nodeClaims()).Lister(),
		informers: map[string]cache.SharedIndexInformer{
			"pods":    factory.Core().V1().Pods().Informer(),
			"nodes":   factory.Core().V1().Nodes().Informer(),
			"claims":  claims.ForResource(nodeClaims()).Informer(),
			"budgets": factory.Policy().V1().PodDisruptionBudgets().Informer(),
		},
		boots: newBootsSeen(),
		kept:  newKeeping(func() (map[string]bool, error) { return terminating(ctx, loose) }),
	}
	seen := func(obj any) { w.boots.changed(obj.(*unstructured.Unstructured)) }
	if _, err := w.informers["claims"].AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: seen, UpdateFunc: func(_, obj any) { seen(obj) },
	}); err != nil {
		return nil, fmt.Errorf("watch NodeClaims: %w", err)
	}
	if err := w.kept.follow(w.informers); err != nil {
		return nil, fmt.Errorf("watch pods, nodes and budgets: %w", err)
	}
	factory.Start(ctx.Done())
	claims.Start(ctx.Done())
	for name, informer := range w.informers {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return nil, fmt.Errorf("list %s: %w", name, context.Cause(ctx))
		}
	}
	return w, nil
}

// terminating are the nodes whose machines go, because their pods have.
func terminating(ctx context.Context, client dynamic.Interface) (map[string]bool, error) {
	list, err := client.Resource(nodeClaims()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list NodeClaims: %w", err)
	}
	out := map[string]bool{}
	for i := range list.Items {
		claim := &list.Items[i]
		if name, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName"); conditionTrue(claim, "InstanceTerminating") {
			out[name] = true
		}
	}
	return out, nil
}

// podCounts are the pods that a selector chooses, by what a person asks about.
type podCounts struct{ running, pending, leaving, resizing int }

func (w *world) countPods(selector labels.Selector) podCounts {
	var c podCounts
	pods, _ := w.pods.Pods(metav1.NamespaceDefault).List(selector) // a lister of a synced cache cannot fail
	for _, p := range pods {
		if resizing(p) {
			c.resizing++
		}
		switch {
		case p.DeletionTimestamp != nil:
			c.leaving++
		case p.Status.Phase == corev1.PodRunning && podReady(p):
			c.running++
		case p.Status.Phase == corev1.PodPending || p.Status.Phase == corev1.PodRunning:
			c.pending++
		}
	}
	return c
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func nodeReady(n *corev1.Node) bool {
	return n.DeletionTimestamp == nil && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// countNodes counts the ready ones among the nodes that nap made, or that the
// selector chooses; filters say which image and which kubelet they must have.
func (w *world) countNodes(selector labels.Selector, filters map[string]string) int {
	nodes, _ := w.nodes.List(selector)
	n := 0
	for _, node := range nodes {
		if nodeReady(node) && runs(node, filters) {
			n++
		}
	}
	return n
}

// runs says whether a node's image is of a version, such as 202606.09.0, and its kubelet.
func runs(node *corev1.Node, filters map[string]string) bool {
	if version, ok := filters["image"]; ok && !strings.HasSuffix(node.Labels["kubernetes.azure.com/node-image-version"], "-"+version) {
		return false
	}
	version, ok := filters["kubelet"]
	return !ok || strings.TrimPrefix(node.Status.NodeInfo.KubeletVersion, "v") == version
}

// disrupted says whether a node is being removed by nap's will.
func disrupted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "karpenter.sh/disrupted" })
}

func (w *world) allClaims() []*unstructured.Unstructured {
	objects, _ := w.claims.List(labels.Everything())
	claims := make([]*unstructured.Unstructured, 0, len(objects))
	for _, o := range objects {
		claims = append(claims, o.(*unstructured.Unstructured))
	}
	slices.SortFunc(claims, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return claims
}

// underWay counts what is in the midst of being removed or bought: nodes that
// are tainted for it, and claims that belong to a move, have no node yet, or are
// being deleted.
func (w *world) underWay() int {
	n := 0
	nodes, _ := w.nodes.List(labels.Everything())
	for _, node := range nodes {
		if disrupted(node) {
			n++
		}
	}
	for _, c := range w.allClaims() {
		ready, _, _ := unstructured.NestedString(c.Object, "status", "nodeName")
		if _, moving := c.GetAnnotations()[v1beta1.AnnotationCommand]; moving || c.GetDeletionTimestamp() != nil || ready == "" {
			n++
		}
	}
	return n
}
