package scenario

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/model"
)

// story tells what happens, as it happens, one short line each: when, what kind
// of thing, and the sentence. Watch handlers and commands write to it at once.
type story struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
	pods  podCounts
	told  map[string]string // by object, the last thing told of it
}

func newStory(out io.Writer, began time.Time) *story {
	return &story{out: out, began: began, told: map[string]string{}}
}

func (s *story) line(kind, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(kind, text)
}

func (s *story) write(kind, text string) {
	fmt.Fprintf(s.out, "%7.1fs  %-8s %s\n", time.Since(s.began).Seconds(), kind, text)
}

func (s *story) heading(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "\n== %s\n", text)
}

func (s *story) say(words []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "          %s\n", strings.Join(words, " "))
}

// once writes a line about an object unless the same was said before.
func (s *story) once(object, kind, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told[object] != kind {
		s.told[object] = kind
		s.write(kind, text)
	}
}

// follow tells every change of pods, nodes and claims from now on.
func (s *story) follow(w *world) {
	watch := func(name string, changed func(obj any), gone func(obj any)) {
		_, _ = w.informers[name].AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only for a stopped informer
			AddFunc:    changed,
			UpdateFunc: func(_, obj any) { changed(obj) },
			DeleteFunc: func(obj any) {
				if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = lost.Obj
				}
				gone(obj)
			},
		})
	}
	watch("pods", func(any) { s.podsChanged(w) }, func(any) { s.podsChanged(w) })
	watch("nodes", func(obj any) { s.nodeChanged(obj.(*corev1.Node)) }, func(obj any) { s.nodeGone(obj.(*corev1.Node)) })
	watch("claims", func(obj any) { s.claimChanged(obj.(*unstructured.Unstructured)) }, func(obj any) {
		c := obj.(*unstructured.Unstructured)
		if conditionTrue(c, "Launched") {
			s.once("claim/"+c.GetName(), "returned", c.GetName()+": the machine is gone, nothing is paid any more")
		}
	})
}

// podsChanged tells the count of pods at most a few times a second, and always
// when nothing is pending or leaving any more.
func (s *story) podsChanged(w *world) {
	c := w.countPods(labels.Everything())
	s.mu.Lock()
	defer s.mu.Unlock()
	if c == s.pods {
		return
	}
	settled := c.pending == 0 && c.leaving == 0
	if !settled && time.Since(s.began).Truncate(podLinesEvery) == s.lastPods() {
		return
	}
	s.pods = c
	s.told["pods"] = time.Since(s.began).Truncate(podLinesEvery).String()
	parts := []string{fmt.Sprintf("%d running", c.running)}
	if c.pending > 0 {
		parts = append(parts, fmt.Sprintf("%d pending", c.pending))
	}
	if c.leaving > 0 {
		parts = append(parts, fmt.Sprintf("%d leaving", c.leaving))
	}
	s.write("pods", strings.Join(parts, ", "))
}

// podLinesEvery spaces the lines that only count pods.
const podLinesEvery = 500 * time.Millisecond

func (s *story) lastPods() time.Duration {
	d, _ := time.ParseDuration(s.told["pods"])
	return d
}

func (s *story) nodeChanged(n *corev1.Node) {
	if n.Labels[managed] == "" {
		return
	}
	switch {
	case disrupted(n):
		s.once("node/"+n.Name, "drain", n.Name+": pods move elsewhere, no new ones")
	case nodeReady(n):
		s.once("node/"+n.Name, "node", fmt.Sprintf("%s is Ready: %s CPU, %s memory for pods", n.Name,
			n.Status.Allocatable.Cpu(), shortMemory(n.Status.Allocatable.Memory().Value())))
	default:
		s.once("node/"+n.Name, "boot", n.Name+": the kubelet has joined with its own certificate")
	}
}

func (s *story) nodeGone(n *corev1.Node) {
	if n.Labels[managed] != "" {
		s.once("node/"+n.Name, "left", n.Name+" has left the cluster")
	}
}

func (s *story) claimChanged(c *unstructured.Unstructured) {
	name := c.GetName()
	switch {
	case c.GetDeletionTimestamp() != nil && conditionTrue(c, "Launched"):
		s.once("claim/"+name, "return", name+" goes back to Azure")
		return
	case c.GetDeletionTimestamp() != nil:
		s.once("claim/"+name, "refused", name+": Azure sells none of its offerings now; its pods are planned again")
		return
	}
	l := c.GetLabels()
	if size := l["node.kubernetes.io/instance-type"]; size != "" && conditionTrue(c, "Launched") {
		s.once("claim/"+name, "bought",
			fmt.Sprintf("%s: %s, %s, %s", name, size, l["karpenter.sh/capacity-type"], model.ZoneName(l["topology.kubernetes.io/zone"])))
		return
	}
	reason := c.GetAnnotations()[v1beta1.AnnotationWhy]
	if reason == "" {
		reason = "a machine is asked for"
	}
	s.once("claim/"+name, "buy", name+": "+reason)
}

func conditionTrue(c *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(c.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(x any) bool {
		m, _ := x.(map[string]any)
		return m["type"] == kind && m["status"] == string(metav1.ConditionTrue)
	})
}

func shortMemory(bytes int64) string { return fmt.Sprintf("%.1fGi", float64(bytes)/(1<<30)) }
