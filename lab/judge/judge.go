// Package judge asks the real kube-scheduler whether a pod may be where a plan put
// it. It knows nothing of nap: it reads Kubernetes objects, takes one planned pod
// out of the cluster, and runs the scheduler's own default filters for the pod and
// its node.
//
//	cluster after the plan ── without the pod ──> PreFilter, Filter ──> allowed, or why not
//
// Every pod is judged against all the others in their places, so the order in which
// they come does not matter: a spread that is even at the end passes for each. A pod on
// a node that exists is allowed there, too, if it is before the first of the machines that
// have yet to start is there: its place is free, and it does not wait for them.
package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// AnnotationPlanned is on the pods that are to be judged, and on the nodes that have yet
// to start.
const AnnotationPlanned = "nap.azure.com/planned"

// Refusal is a pod that the scheduler does not allow where it is.
type Refusal struct {
	Pod, Node string
	// Plugin is the filter that objects, Why its words.
	Plugin, Why string
}

// String names the pod, the node and the reason.
func (r Refusal) String() string {
	return fmt.Sprintf("pod %s on node %s: %s: %s", r.Pod, r.Node, r.Plugin, r.Why)
}

// Judge judges every planned pod of a cluster, given as a Kubernetes List in JSON.
// It returns how many pods it judged and those that are refused.
func Judge(ctx context.Context, list []byte) (int, []Refusal, error) {
	c, err := read(list)
	if err != nil {
		return 0, nil, err
	}
	bench, err := c.bench(ctx)
	if err != nil {
		return 0, nil, err
	}
	before := c.before()
	var refused []Refusal
	judged := 0
	for i, pod := range c.pods {
		if pod.Annotations[AnnotationPlanned] == "" {
			continue
		}
		judged++
		r := bench.judge(ctx, c, i)
		if r != nil && !c.starting[pod.Spec.NodeName] && bench.judge(ctx, before, slices.Index(before.pods, pod)) == nil {
			continue
		}
		if r != nil {
			refused = append(refused, *r)
		}
	}
	return judged, refused, nil
}

// cluster is what a List holds.
type cluster struct {
	pods   []*corev1.Pod
	nodes  []*corev1.Node
	others []runtime.Object
	// starting are the names of nodes that have yet to start.
	starting map[string]bool
}

// before is the cluster with none of the nodes that have yet to start, and of the pods
// only those on other nodes.
func (c *cluster) before() *cluster {
	out := &cluster{others: c.others}
	for _, n := range c.nodes {
		if !c.starting[n.Name] {
			out.nodes = append(out.nodes, n)
		}
	}
	for _, p := range c.pods {
		if !c.starting[p.Spec.NodeName] {
			out.pods = append(out.pods, p)
		}
	}
	return out
}

func read(text []byte) (*cluster, error) {
	var list metav1.List
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	c := &cluster{starting: map[string]bool{}}
	for i := range list.Items {
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(list.Items[i].Raw, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("read object %d of the cluster: %w", i, err)
		}
		switch o := o.(type) {
		case *corev1.Pod:
			c.pods = append(c.pods, o)
		case *corev1.Node:
			c.nodes = append(c.nodes, o)
			c.starting[o.Name] = o.Annotations[AnnotationPlanned] != ""
		default:
			c.others = append(c.others, o)
		}
	}
	// A pod on a node that is gone takes nothing from other pods.
	known := map[string]bool{}
	for _, n := range c.nodes {
		known[n.Name] = true
	}
	c.pods = slices.DeleteFunc(c.pods, func(p *corev1.Pod) bool { return !known[p.Spec.NodeName] && p.Annotations[AnnotationPlanned] == "" })
	return c, nil
}

// bench are the scheduler's filters on a cluster that can be exchanged.
type bench struct {
	filters framework.Framework
	now     *moment
}

// moment is the cluster that the filters see.
type moment struct{ fwk.SharedLister }

// bench sets the filters up. Filters read pods and nodes from the moment, all else
// from informers.
func (c *cluster) bench(ctx context.Context) (*bench, error) {
	metrics.Register()
	profile, err := filtersAlone()
	if err != nil {
		return nil, err
	}
	client := fake.NewClientset(c.others...)
	factory := informers.NewSharedInformerFactory(client, 0)
	now := &moment{cache.NewEmptySnapshot()}
	filters, err := frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(factory), frameworkruntime.WithSnapshotSharedLister(now),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())))
	if err != nil {
		return nil, fmt.Errorf("set the scheduler's filters up: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return &bench{filters, now}, nil
}

// filtersAlone is the default profile without what needs more of a control plane
// than filters: devices are not planned.
func filtersAlone() (*config.KubeSchedulerProfile, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("read the scheduler's default profile: %w", err)
	}
	profile := &defaults.Profiles[0]
	profile.Plugins.MultiPoint.Enabled = slices.DeleteFunc(profile.Plugins.MultiPoint.Enabled, func(p config.Plugin) bool {
		return p.Name == names.DynamicResources
	})
	return profile, nil
}

// judge judges one pod against all others.
func (b *bench) judge(ctx context.Context, c *cluster, i int) *Refusal {
	pod := c.pods[i].DeepCopy()
	node := pod.Spec.NodeName
	pod.Spec.NodeName = ""
	if !slices.ContainsFunc(c.nodes, func(n *corev1.Node) bool { return n.Name == node }) {
		return &Refusal{Pod: pod.Namespace + "/" + pod.Name, Node: node, Plugin: "none", Why: "there is no such node"}
	}
	b.now.SharedLister = cache.NewSnapshot(slices.Delete(slices.Clone(c.pods), i, i+1), c.nodes)
	refusal := func(s *fwk.Status) *Refusal {
		return &Refusal{Pod: pod.Namespace + "/" + pod.Name, Node: node, Plugin: s.Plugin(), Why: strings.Join(s.Reasons(), ", ")}
	}
	info, err := b.now.NodeInfos().Get(node)
	if err != nil {
		return &Refusal{Pod: pod.Namespace + "/" + pod.Name, Node: node, Plugin: "none", Why: err.Error()}
	}
	state := framework.NewCycleState()
	narrowed, status, _ := b.filters.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		return refusal(status)
	}
	if !narrowed.AllNodes() && !narrowed.NodeNames.Has(node) {
		return &Refusal{Pod: pod.Namespace + "/" + pod.Name, Node: node, Plugin: "PreFilter",
			Why: "only these nodes are left: " + strings.Join(narrowed.NodeNames.UnsortedList(), ", ")}
	}
	if status := b.filters.RunFilterPlugins(ctx, state, pod, info); !status.IsSuccess() {
		return refusal(status)
	}
	return nil
}
