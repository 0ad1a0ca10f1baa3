package purchasebackoff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// comparison is a node beside what was promised of it.
type comparison struct {
	// differences say in words what is other than promised.
	differences []string
	// takers say what the DaemonSet pods on the node take, and what those pods take that
	// were created for it; without those of which there are none.
	takers []string
	// others is the number of ordinary pods on the node that are older than it. Those
	// that are not may have been created for it, as some operators create a pod for every
	// node without a DaemonSet: the next node would get one, too.
	others int
}

// compareWithPromise holds the node of a claim, which must exist, against the claim:
// what its pods may use, its taints and its labels.
func compareWithPromise(s *fleet.Snapshot, claim *fleet.Claim) comparison {
	node := s.Node(claim.NodeName)
	var c comparison
	for _, name := range claim.Allocatable.Names() {
		if promised, has := claim.Allocatable.Get(name), node.Allocatable.Get(name); has < promised {
			c.differences = append(c.differences, fmt.Sprintf("%s is %s and not %s", name, quantity(name, has), quantity(name, promised)))
		}
	}
	for _, t := range StrayTaints(claim, node) {
		c.differences = append(c.differences, fmt.Sprintf("it has the taint %s, which NodePool %s does not name", t, claim.Pool))
	}
	promised := promisedLabels(claim)
	for _, key := range slices.Sorted(maps.Keys(promised)) {
		switch has, there := node.Labels[key]; {
		case !there:
			c.differences = append(c.differences, fmt.Sprintf("it lacks the label %s=%s", key, promised[key]))
		case has != promised[key]:
			c.differences = append(c.differences, fmt.Sprintf("its label %s is %s and not %s", key, has, promised[key]))
		}
	}
	var daemons, made takers
	for pod := range s.Pods() {
		switch {
		case pod.Node != node.Name || pod.Terminal:
		case pod.Daemon:
			daemons.add(pod, pod.Owner.Name)
		case pod.Static:
		case pod.Created.Before(node.Created):
			c.others++
		default:
			made.add(pod, pod.Ref.Name)
		}
	}
	c.takers = append(daemons.text("its DaemonSet pods"), made.text("pods that came with it")...)
	return c
}

// takers are pods which take room on a node.
type takers struct {
	names       []string
	cpu, memory int64
}

func (t *takers) add(pod *fleet.Pod, name string) {
	t.names = append(t.names, pod.Ref.Namespace+"/"+name)
	t.cpu += pod.Spec.Requests.CPU
	t.memory += pod.Spec.Requests.Memory
}

// text says what the pods take, which are called what; empty without any.
func (t *takers) text(what string) []string {
	if len(t.names) == 0 {
		return nil
	}
	slices.Sort(t.names)
	return []string{fmt.Sprintf("%s (%s) take cpu %s, memory %s", what, listed(t.names), quantity("cpu", t.cpu), quantity("memory", t.memory))}
}

// text is the comparison as a sentence about a node that took no pod; explained is
// what else is known of the reason, or "".
func (c *comparison) text(node, explained string) string {
	parts := slices.Concat(c.differences, c.takers)
	if explained != "" {
		parts = append(parts, explained) // the consequence comes after the cause
	}
	if len(parts) == 0 {
		parts = append(parts, "nothing is known that speaks against it")
	}
	return fmt.Sprintf("node %s came and took none of its pods: %s", node, strings.Join(parts, "; "))
}

// StrayTaints are the taints of an initialized node which keep pods away and which
// its claim does not name.
func StrayTaints(claim *fleet.Claim, node *fleet.Node) []model.Taint {
	var out []model.Taint
	for _, t := range node.Taints {
		if t.Effect == model.PreferNoSchedule {
			continue
		}
		named := func(c model.Taint) bool { return c.Key == t.Key && c.Effect == t.Effect }
		if !slices.ContainsFunc(claim.Taints, named) {
			out = append(out, t)
		}
	}
	return out
}

// promisedLabels are the labels that a claim says its node will have.
func promisedLabels(claim *fleet.Claim) map[string]string {
	out := maps.Clone(claim.Labels)
	if out == nil {
		out = map[string]string{}
	}
	for _, r := range claim.Requirements {
		if r.Operator == model.In && len(r.Values) == 1 {
			out[r.Key] = r.Values[0]
		}
	}
	return out
}

// quantity writes an amount of a resource as Kubernetes does.
func quantity(resource string, value int64) string {
	return model.FormatAmount(model.NewAxes(resource).Index(resource), value)
}

// mostListed is how many names a sentence has.
const mostListed = 3

func listed(names []string) string {
	if len(names) > mostListed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostListed], ", "), len(names)-mostListed)
	}
	return strings.Join(names, ", ")
}
