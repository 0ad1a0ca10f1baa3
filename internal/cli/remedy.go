package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/decompose"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
)

// mostRemedies is how many remedies an explanation offers.
const mostRemedies = 3

// remedy is a change after which a pod that waits gets a place: a plan with the change gave it
// one, unless only Azure can tell.
type remedy struct {
	// Change is what changes, in words.
	Change string `json:"change"`
	// HourlyCost is what the machines for one such pod cost in dollars per hour, zero where it
	// fits on what exists or is planned, or that is not known.
	HourlyCost float64 `json:"hourlyCost,omitempty"`
	// Command makes the change.
	Command string `json:"command"`

	// price orders remedies.
	price model.Money
}

// lines are the remedy as the n-th of a list: what it changes, and its command.
func (r *remedy) lines(n int) (change, command []string) {
	text := fmt.Sprintf("  %d. %s", n, r.Change)
	if r.HourlyCost > 0 {
		text += fmt.Sprintf(": %s/h", dollars(r.HourlyCost))
	}
	for _, line := range breakCommand(r.Command) {
		command = append(command, commandIndent+line)
	}
	return wrapIndented(text), command
}

// commandIndent stands before the lines of a command.
const commandIndent = "     "

// adviser looks for what gives one pod of a class a place.
type adviser struct {
	made  *madePlan
	class *model.PodClass
	ref   model.PodRef
	// owner is the kind, namespace and name of what controls the pod; the pod's own where it is
	// bare, or controlled by another pod.
	owner string
	// ofPod is set where another pod controls the pod.
	ofPod bool
	// waiting are all pods of the class that wait for the same reason.
	waiting []model.PodRef
	// left is the problem that the plan leaves, once a change was tried.
	left *model.Problem
}

// remedies are the changes that give the pod a place, the cheapest first.
func (m *madePlan) remedies(ref model.PodRef, u *model.Unschedulable) []remedy {
	nearest := m.missed(u)
	if nearest == nil {
		return nil
	}
	a := m.adviserOf(ref, &m.input.Problem.Classes[u.Class])
	for _, pod := range u.Pods {
		a.waiting = append(a.waiting, a.class.Pods[pod])
	}
	return a.advise(u.Reason, nearest)
}

// missed is what came nearest to hold pods: an offering or node, or just a NodePool that would
// take them and buys nothing. It is nil where nothing did.
func (m *madePlan) missed(u *model.Unschedulable) *model.NearestMiss {
	switch p := m.input.Problem; {
	case u.Nearest != nil:
		return u.Nearest
	case len(u.LeftOut) > 0:
		return &model.NearestMiss{Pool: p.LeftOut[u.LeftOut[0]].Pool}
	case u.Reason == model.ReasonPoolRequirement && len(u.Pools) > 0:
		return &model.NearestMiss{Pool: p.Pools[u.Pools[0].Pool].Name}
	default:
		return nil
	}
}

// decidedRemedies are those for a pod on which the controller has decided. Nothing is planned
// for it, so that what is in its way is asked again, of what the controller tells; where that is
// nothing any more, there is nothing to change.
func (m *madePlan) decidedRemedies(ref model.PodRef, d *decided) []remedy {
	if len(d.class.Pods) == 0 {
		return nil
	}
	a := m.adviserOf(ref, &d.class)
	plan := a.plan(func(*model.Problem, *model.PodClass) {})
	if len(plan.Unschedulable) == 0 {
		return nil
	}
	nearest := m.missed(&plan.Unschedulable[0])
	if nearest == nil {
		return nil
	}
	a.waiting = d.refs
	return a.advise(model.Reason(d.verdict.Reason), nearest)
}

// adviserOf looks for what gives a pod of a class a place.
func (m *madePlan) adviserOf(ref model.PodRef, class *model.PodClass) *adviser {
	a := &adviser{made: m, class: class, ref: ref, owner: "Pod " + ref.String()}
	if record := m.input.Record(ref); record != nil {
		a.owner, a.ofPod = fleet.ShownName(record), record.Owner.Kind == "Pod"
	}
	if name, is := strings.CutPrefix(a.owner, "Job "); is && m.read.added.due[name] {
		a.owner = cronJob + " " + name // the Job is still to be made from it
	}
	return a
}

// advise are the remedies for a reason and the offering or node that came nearest.
func (a *adviser) advise(reason model.Reason, nearest *model.NearestMiss) []remedy {
	m := a.made
	var out []remedy
	if raised := a.raise(reason, nearest); raised != nil {
		out = append(out, remedy{Change: raised.change(nearest.Pool), Command: raised.command})
	}
	if command := m.pendingCommand(reason, nearest); command != "" {
		out = append(out, remedy{Change: supplyChange(reason, nearest), Command: command})
	}
	for pool := range m.input.Problem.Pools {
		out = append(out, a.widen(pool)...)
		out = append(out, a.tolerate(pool)...)
	}
	out = append(out, a.dropSelectors()...)
	slices.SortStableFunc(out, func(x, y remedy) int { return cmp.Compare(x.price, y.price) })
	out = slices.CompactFunc(out, func(x, y remedy) bool { return x.Command == y.Command })
	return out[:min(len(out), mostRemedies)]
}

// supplyChange says what the command of [madePlan.pendingCommand] does.
func supplyChange(reason model.Reason, nearest *model.NearestMiss) string {
	if reason == model.ReasonQuota {
		return "see which quota is short, and ask for more"
	}
	return "ask Azure again for " + nearest.InstanceType
}

// try plans one pod of the class with a change, on what the plan leaves, and returns the cost
// of the machines that it takes.
func (a *adviser) try(change func(p *model.Problem, class *model.PodClass)) (model.Money, bool) {
	plan := a.plan(change)
	return plan.Cost, len(plan.Unschedulable) == 0
}

// plan plans one pod of the class with a change, on what the plan leaves.
func (a *adviser) plan(change func(p *model.Problem, class *model.PodClass)) *model.Plan {
	if a.left == nil {
		a.left = decompose.After(a.made.input.Problem, a.made.plan)
	}
	p := *a.left
	p.Pools = slices.Clone(p.Pools)
	class := *a.class
	class.Pods = class.Pods[:1]
	change(&p, &class)
	p.Classes = []model.PodClass{class}
	p.Policy.Budget, p.Policy.Replay = 0, nil
	return planner.Solve(&p)
}

// widen lets a NodePool buy the cheapest size that holds the pod, by the values which its
// requirements lack.
func (a *adviser) widen(pool int) []remedy {
	target := &a.made.input.Problem.Pools[pool]
	object := a.made.read.pools[target.Name]
	t, o, unmet := a.nearestOutside(target)
	if t == nil || object == nil || len(unmet) == 0 {
		return nil
	}
	var patch []map[string]any
	var words []string
	changed := slices.Clone(target.Requirements)
	for _, at := range unmet {
		r := target.Requirements[at]
		value := explainedValue(t, o, r, a.class)
		if r.Key == model.LabelMode {
			value = "system"
		}
		index := slices.IndexFunc(object.Spec.Template.Spec.Requirements, func(own v1.NodeSelectorRequirementWithMinValues) bool {
			return own.Key == r.Key && string(own.Operator) == string(r.Operator)
		})
		switch {
		case value == "":
			return nil
		case index >= 0 && r.Operator == model.In:
			patch = append(patch, map[string]any{
				"op": "add", "path": fmt.Sprintf("/spec/template/spec/requirements/%d/values/-", index), "value": value,
			})
			changed[at].Values = append(slices.Clone(r.Values), value)
		case index < 0 && r.Key == model.LabelMode && len(object.Spec.Template.Spec.Requirements) > 0:
			patch = append(patch, map[string]any{"op": "add", "path": "/spec/template/spec/requirements/-", "value": map[string]any{
				"key": r.Key, "operator": "In", "values": []string{"system", "user"},
			}})
			changed[at] = model.Requirement{Key: r.Key, Operator: model.In, Values: []string{"system", "user"}}
		default:
			return nil
		}
		words = append(words, r.Key+"="+value)
	}
	cost, ok := a.try(func(p *model.Problem, _ *model.PodClass) { p.Pools[pool].Requirements = changed })
	text, err := json.Marshal(patch)
	if !ok || err != nil {
		return nil
	}
	return []remedy{{
		Change:     fmt.Sprintf("let NodePool %s buy %s", target.Name, strings.Join(words, ", ")),
		HourlyCost: cost.Dollars(), price: cost,
		Command: fmt.Sprintf("kubectl patch nodepool %s --type json -p '%s'", target.Name, text),
	}}
}

// nearestOutside is the offering on sale which holds the pod and of whose labels the NodePool
// excludes the fewest, of those the cheapest, and the indexes of the requirements that do.
func (a *adviser) nearestOutside(pool *model.Pool) (*model.InstanceType, *model.Offering, []int) {
	types := a.made.input.Problem.Catalogs[pool.Catalog].InstanceTypes
	var bestType *model.InstanceType
	var best *model.Offering
	var least []int
	for i := range types {
		t := &types[i]
		if !a.class.Requests.Fits(t.Allocatable()) {
			continue
		}
		for j := range t.Offerings {
			o := &t.Offerings[j]
			if !o.Available || !a.wants(pool, t, o) {
				continue
			}
			unmet := a.excluded(pool, t, o)
			if best == nil || len(unmet) < len(least) || len(unmet) == len(least) && o.Price < best.Price {
				bestType, best, least = t, o, unmet
			}
		}
	}
	return bestType, best, least
}

// wants reports whether the offering, with the labels of the NodePool, has the labels that the
// pod asks for.
func (a *adviser) wants(pool *model.Pool, t *model.InstanceType, o *model.Offering) bool {
	meets := func(rs model.Requirements) bool {
		return !slices.ContainsFunc(rs, func(r model.Requirement) bool {
			if value, own := pool.Labels[r.Key]; own {
				return !r.Matches(value, true)
			}
			return !explain.Meets(t, o, r)
		})
	}
	return meets(a.class.NodeRequirements) &&
		(len(a.class.NodeAlternatives) == 0 || slices.ContainsFunc(a.class.NodeAlternatives, meets))
}

// excluded are the indexes of the NodePool's requirements which the offering does not meet, or
// not with the value that the pod asks for.
func (a *adviser) excluded(pool *model.Pool, t *model.InstanceType, o *model.Offering) []int {
	var out []int
	for i, r := range pool.Requirements {
		if _, own := pool.Labels[r.Key]; own {
			continue
		}
		value := explainedValue(t, o, r, a.class)
		if value == "" && !explain.Meets(t, o, r) || value != "" && !r.Matches(value, true) {
			out = append(out, i)
		}
	}
	return out
}

// explainedValue is the value of a label that a machine of the offering has, of those which the
// buyer picks the one that the pod asks for; empty where that is open.
func explainedValue(t *model.InstanceType, o *model.Offering, r model.Requirement, class *model.PodClass) string {
	if value, known := o.Labels[r.Key]; known {
		return value
	}
	if value, known := t.Labels[r.Key]; known {
		return value
	}
	for _, value := range t.Choices[r.Key] {
		asked := func(own model.Requirement) bool { return own.Key == r.Key && own.Matches(value, true) }
		if slices.ContainsFunc(class.NodeRequirements, asked) {
			return value
		}
	}
	return ""
}

// jobPatch changes the specification of a Job's pods, and takes away the selector and the labels
// by which the API server ties pods to this very Job.
func (a *adviser) jobPatch(spec map[string]any) []byte {
	own := map[string]any{batchv1.ControllerUidLabel: nil, "controller-uid": nil, batchv1.JobNameLabel: nil, "job-name": nil}
	text, err := json.Marshal(map[string]any{"spec": map[string]any{
		"selector": nil, "template": map[string]any{"metadata": map[string]any{"labels": own}, "spec": spec},
	}})
	if err != nil { // of maps of strings, there is none
		return nil
	}
	return text
}

// ofRuntimeClass reports whether a RuntimeClass adds the label to the selectors of its pods,
// which then do not state it themselves.
func (a *adviser) ofRuntimeClass(key string) bool {
	return slices.ContainsFunc(a.made.read.objects.Distinct(), func(o client.Object) bool {
		class, is := o.(*nodev1.RuntimeClass)
		return is && class.Scheduling != nil && class.Scheduling.NodeSelector[key] != ""
	})
}

// ofNamespace reports whether the pod's namespace adds the label to the selectors of its pods.
func (a *adviser) ofNamespace(key string) bool {
	return slices.ContainsFunc(a.made.read.objects.Distinct(), func(o client.Object) bool {
		space, is := o.(*corev1.Namespace)
		if !is || space.Name != a.ref.Namespace {
			return false
		}
		selector, err := labels.ConvertSelectorToLabelsMap(space.Annotations[kube.NamespaceNodeSelector])
		return err == nil && selector.Has(key)
	})
}

// namespaceFix is what to change where the nearest miss lacks a label that the pod's namespace
// selects nodes by; empty where it does not.
func (a *adviser) namespaceFix(nearest *model.NearestMiss) string {
	if nearest == nil || nearest.Reason != model.ReasonPodRequirement {
		return ""
	}
	for _, r := range a.class.NodeRequirements {
		if nearest.Want == r.String() && a.ofNamespace(r.Key) {
			return fmt.Sprintf("Change %s in the annotation %s of Namespace %s, from which its pods have it, "+
				"or create a NodePool whose template has this label.", r.Key, kube.NamespaceNodeSelector, a.ref.Namespace)
		}
	}
	return ""
}

// dropSelectors removes from the pod a label of its nodeSelector, if that alone helps.
func (a *adviser) dropSelectors() []remedy {
	var out []remedy
	for i, r := range a.class.NodeRequirements { // of node affinity are the NodeAlternatives
		if a.ofRuntimeClass(r.Key) || a.ofNamespace(r.Key) {
			continue
		}
		cost, ok := a.try(func(_ *model.Problem, class *model.PodClass) {
			class.NodeRequirements = slices.Delete(slices.Clone(class.NodeRequirements), i, i+1)
		})
		if ok {
			out = append(out, a.patched("drop "+r.Key+" from the nodeSelector", map[string]any{"nodeSelector": map[string]any{r.Key: nil}}, cost)...)
		}
	}
	return out
}

// patched is a remedy that patches the specification of the pod's owner; none where the owner
// cannot be changed so. What another pod makes, as the driver of Spark does its executors, is in no
// object that could be patched.
func (a *adviser) patched(change string, spec map[string]any, cost model.Money) []remedy {
	if a.ofPod {
		return nil
	}
	kind, name, _ := strings.Cut(a.owner, " ")
	namespace, name, _ := strings.Cut(name, "/")
	var patch any = map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}
	if kind == "Pod" {
		patch = map[string]any{"spec": spec}
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil
	}
	r := remedy{Change: change, HourlyCost: cost.Dollars(), price: cost}
	switch kind {
	case "Pod": // a pod that exists can hardly be changed: it is made again
		r.Command = fmt.Sprintf("kubectl get pod %s -n %s -o json | "+
			"kubectl patch --local -f - --type merge -p '%s' -o json | kubectl replace --force -f -",
			name, namespace, text)
	case "Job": // its template cannot be changed: it is made again, without what the API server adds
		r.Change += ", by making the Job again: its running pods and its completions are lost"
		r.Command = fmt.Sprintf("kubectl get job %s -n %s -o json | "+
			"kubectl patch --local -f - --type merge -p '%s' -o json | kubectl replace --force -f -", name, namespace, a.jobPatch(spec))
	case cronJob:
		job := map[string]any{"spec": map[string]any{"jobTemplate": patch}}
		if text, err = json.Marshal(job); err != nil {
			return nil
		}
		r.Command = fmt.Sprintf("kubectl patch cronjob %s -n %s --type merge -p '%s'", name, namespace, text)
	case "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet":
		r.Command = fmt.Sprintf("kubectl patch %s %s -n %s --type merge -p '%s'", strings.ToLower(kind), name, namespace, text)
	default:
		return nil
	}
	return []remedy{r}
}
