package cli

import (
	"encoding/csv"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/model"
)

// The names of the options that nap savings compares.
const (
	optionNap       = "nap"
	optionSpot      = "nap+spot"
	optionKarpenter = "karpenter"
)

// leastReplicas is how many pods a workload must have, so that one of them may lose its
// machine at any time.
const leastReplicas = 2

// spotSafe are the pods which look as if a spot machine would do: of a ReplicaSet with at
// least two pods, with a PodDisruptionBudget, and free to be disrupted.
func spotSafe(objects []client.Object) map[model.PodRef]bool {
	type owner struct{ namespace, name string }
	replicas := map[owner]int{}
	var pods []*corev1.Pod
	var budgets []*policyv1.PodDisruptionBudget
	of := func(p *corev1.Pod) (owner, bool) {
		ref := metav1.GetControllerOf(p)
		if ref == nil || ref.Kind != "ReplicaSet" {
			return owner{}, false
		}
		return owner{p.Namespace, ref.Name}, true
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Pod:
			if at, is := of(o); is {
				replicas[at]++
				pods = append(pods, o)
			}
		case *policyv1.PodDisruptionBudget:
			budgets = append(budgets, o)
		}
	}
	out := map[model.PodRef]bool{}
	for _, p := range pods {
		at, _ := of(p)
		if replicas[at] >= leastReplicas && p.Annotations[v1.DoNotDisruptAnnotationKey] == "" && guarded(budgets, p) != nil {
			out[model.PodRef{Namespace: p.Namespace, Name: p.Name}] = true
		}
	}
	return out
}

// guarded is the first budget that selects a pod, or nil.
func guarded(budgets []*policyv1.PodDisruptionBudget, p *corev1.Pod) *policyv1.PodDisruptionBudget {
	for _, b := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && b.Namespace == p.Namespace && selector.Matches(labels.Set(p.Labels)) {
			return b
		}
	}
	return nil
}

// withSpot lets NodePools buy spot machines for the pods that are safe, and for no others.
func withSpot(objects []client.Object, safe map[model.PodRef]bool) []client.Object {
	out := make([]client.Object, 0, len(objects))
	for _, o := range objects {
		switch o := o.(type) {
		case *v1.NodePool:
			pool := o.DeepCopy()
			for i := range pool.Spec.Template.Spec.Requirements {
				r := &pool.Spec.Template.Spec.Requirements[i]
				if r.Key == v1.CapacityTypeLabelKey && r.Operator == corev1.NodeSelectorOpIn && !slices.Contains(r.Values, v1.CapacityTypeSpot) {
					r.Values = append(slices.Clone(r.Values), v1.CapacityTypeSpot)
				}
			}
			out = append(out, pool)
		case *corev1.Pod:
			if safe[model.PodRef{Namespace: o.Namespace, Name: o.Name}] {
				out = append(out, o)
				continue
			}
			pod := o.DeepCopy()
			if pod.Spec.NodeSelector == nil {
				pod.Spec.NodeSelector = map[string]string{}
			}
			if pod.Spec.NodeSelector[v1.CapacityTypeLabelKey] == "" {
				pod.Spec.NodeSelector[v1.CapacityTypeLabelKey] = v1.CapacityTypeOnDemand
			}
			out = append(out, pod)
		default:
			out = append(out, o)
		}
	}
	return out
}

// inTheWay counts the pods that would move and whose PodDisruptionBudget allows no eviction
// now, and those that request neither cpu nor memory.
func inTheWay(objects []client.Object) (blocked, free int) {
	var budgets []*policyv1.PodDisruptionBudget
	for _, o := range objects {
		if b, is := o.(*policyv1.PodDisruptionBudget); is && b.Status.DisruptionsAllowed == 0 {
			budgets = append(budgets, b)
		}
	}
	for _, o := range objects {
		p, is := o.(*corev1.Pod)
		if !is {
			continue
		}
		if ref := metav1.GetControllerOf(p); ref != nil && ref.Kind == "DaemonSet" {
			continue
		}
		if guarded(budgets, p) != nil {
			blocked++
		}
		requests := false
		for i := range p.Spec.Containers {
			r := p.Spec.Containers[i].Resources.Requests
			requests = requests || !r.Cpu().IsZero() || !r.Memory().IsZero()
		}
		if !requests {
			free++
		}
	}
	return blocked, free
}

// writeCSV prints one line for each option, the first for the nodes of today.
func (s *savingsReport) writeCSV(w io.Writer) error {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	rows := [][]string{
		{"option", "nodes", "hourlyCost", "monthlyCost", "savedPercent", "evictions", "pending"},
		{"now", strconv.Itoa(s.Nodes), number(s.Now), fmt.Sprintf("%.2f", s.Now*model.HoursPerMonth), "0", "0", "0"},
	}
	for i := range s.Options {
		o := &s.Options[i]
		rows = append(rows, []string{
			o.Name, strconv.Itoa(o.Nodes), number(o.HourlyCost), fmt.Sprintf("%.2f", o.HourlyCost*model.HoursPerMonth),
			number(o.SavedPercent), strconv.Itoa(o.Evictions), strconv.Itoa(o.Pending),
		})
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// savingsPage is the answer as a page of its own, which loads nothing.
var savingsPage = template.Must(template.New("savings").Funcs(template.FuncMap{
	"month": func(hourly float64) string { return cents(hourly * model.HoursPerMonth) },
}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>nap savings, {{.Region}}</title>
<style>body{font:16px sans-serif;margin:2em}table{border-collapse:collapse}td,th{border:1px solid #999;padding:.4em .8em;text-align:right}
td:first-child,th:first-child{text-align:left}</style></head><body>
<h1>What {{.Nodes}} nodes for {{.Pods}} pods cost in {{.Region}}</h1>
<table><tr><th>option</th><th>nodes</th><th>per month</th><th>saved</th><th>evictions</th><th>pods without a place</th></tr>
<tr><td>now</td><td>{{.Nodes}}</td><td>{{month .Now}}</td><td></td><td></td><td></td></tr>
{{range .Options}}<tr><td>{{.Name}}</td><td>{{.Nodes}}</td><td>{{month .HourlyCost}}</td><td>{{printf "%.0f" .SavedPercent}} %</td>` +
	`<td>{{.Evictions}}</td><td>{{.Pending}}</td></tr>
{{end}}</table>
<p>No nodes for the same requests cost less than {{month .LowerBound}} a month. {{.SpotSafe}} of
{{.Pods}} pods look safe on spot machines.
Of the pods that would move, {{.BlockedByBudget}} have a PodDisruptionBudget that allows no eviction now,
and {{.WithoutRequests}} request neither cpu nor memory and are packed as if free. Not counted: {{.Stay}} nodes of mode system or
without a price, network traffic, data disks, the fee of
AKS.</p>
{{range .Notes}}<p>{{.}}</p>
{{end}}</body></html>
`))
