package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// podScope are the pods of which an answer tells, chosen as kubectl does. All pods are planned
// for whatever it says, since they share nodes, limits and quota.
type podScope struct {
	namespace, selector string
	all                 bool
	wanted              labels.Selector
}

func (s *podScope) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&s.namespace, "namespace", "n", "", "show only what concerns pods of this namespace; all pods are planned for")
	flags.BoolVarP(&s.all, "all-namespaces", "A", false, "show pods of all namespaces, which is the default")
	flags.StringVarP(&s.selector, "selector", "l", "", "show only what concerns pods with these labels, such as app=web")
}

// check reads the selector. As with kubectl, --all-namespaces wins over --namespace.
func (s *podScope) check() error {
	var err error
	if s.wanted, err = labels.Parse(s.selector); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	if s.all {
		s.namespace = ""
	}
	return checkNamespace(s.namespace)
}

// checkNamespace refuses what cannot be the name of a namespace; empty stands for none.
func checkNamespace(name string) error {
	if name != "" && len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("--namespace: got %q, must be the name of a namespace: lower case letters, digits and -, such as shop", name)
	}
	return nil
}

// narrow reports whether not all pods are shown.
func (s *podScope) narrow() bool { return s.namespace != "" || s.selector != "" }

// words name the pods.
func (s *podScope) words() string {
	var words []string
	if s.namespace != "" {
		words = append(words, "of namespace "+s.namespace)
	}
	if s.selector != "" {
		words = append(words, "with "+s.selector)
	}
	return strings.Join(words, " ")
}

// keep leaves only those entries of a plan's report that have one of the pods; the summary stays
// that of all. A namespace without a pod is mistyped: that all its pods have a place is no answer.
func (s *podScope) keep(m *madePlan) error {
	shown, namespaces := map[string]bool{}, map[string]bool{}
	for o := range m.read.objects.All() {
		pod, is := o.(*corev1.Pod)
		if is {
			namespaces[pod.Namespace] = true
		}
		if is && (s.namespace == "" || s.namespace == pod.Namespace) && s.wanted.Matches(labels.Set(pod.Labels)) {
			shown[pod.Namespace+"/"+pod.Name] = true
		}
	}
	if s.namespace != "" && !namespaces[s.namespace] {
		return fmt.Errorf("--namespace: the input has no pod in namespace %s; it has pods in %s", s.namespace,
			cmp.Or(strings.Join(slices.Sorted(maps.Keys(namespaces)), ", "), "none"))
	}
	none := func(pods []string) bool { return !slices.ContainsFunc(pods, func(p string) bool { return shown[p] }) }
	count := func(pods []string) (n int) {
		for _, p := range pods {
			if shown[p] {
				n++
			}
		}
		return n
	}
	r := m.report
	nodes, placed := len(r.Nodes), 0
	r.Nodes = slices.DeleteFunc(r.Nodes, func(n reportNode) bool { return none(n.Pods) })
	r.Existing = slices.DeleteFunc(r.Existing, func(e reportExisting) bool { return none(e.Pods) })
	r.Unschedulable = slices.DeleteFunc(r.Unschedulable, func(p reportPending) bool { return !shown[p.Pod] })
	for i := range r.Nodes {
		placed += count(r.Nodes[i].Pods)
	}
	for i := range r.Existing {
		placed += count(r.Existing[i].Pods)
	}
	pending := len(r.Unschedulable)
	r.scope = fmt.Sprintf("Pods %s: %s a place, %s pending.", s.words(), get(placed), plural(pending, "pod")+" "+verbFor(pending, "stays"))
	if len(r.Nodes) > 0 {
		r.scope += fmt.Sprintf("\n%d of %s take some of them.", len(r.Nodes), plural(nodes, "new node"))
	}
	return nil
}
