package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// lookCommand is a command that begins to mend what is in the way of a pod, or shows it, where
// no change is known to be enough; empty where nothing can be done.
func (a *adviser) lookCommand(reason model.Reason, nearest *model.NearestMiss) string {
	switch reason {
	case model.ReasonPodRequirement:
		if a.namespaceFix(nearest) != "" {
			return fmt.Sprintf("kubectl get namespace %s -o yaml", a.ref.Namespace)
		}
		return a.lookAtOwner()
	case model.ReasonNoPool:
		return "nap get pools"
	case model.ReasonPoolInvalid:
		return "nap lint"
	case model.ReasonPlanningFailed:
		return "kubectl get pods -A -l app.kubernetes.io/name=nap"
	case model.ReasonResourceClaims:
		return "kubectl get resourceclaims -n " + a.ref.Namespace
	case model.ReasonVolumeTopology:
		return "kubectl get pvc -n " + a.ref.Namespace
	case model.ReasonDaemonOverhead:
		return "kubectl get daemonsets -A"
	case model.ReasonAffinity, model.ReasonAntiAffinity, model.ReasonSpread, model.ReasonHostPort:
		return "kubectl get pods -n " + a.ref.Namespace + " --show-labels -o wide"
	case model.ReasonReservation:
		return "nap get offers --filter capacity=reserved"
	case model.ReasonNothingCompatible:
		return fmt.Sprintf("nap explain pod %s -v", a.ref)
	case model.ReasonNodeLeaving:
		return ""
	case model.ReasonPoolPaused, model.ReasonTaint, model.ReasonPoolRequirement, model.ReasonMinValues, model.ReasonMaxPods,
		model.ReasonLimit, model.ReasonNodeLimit, model.ReasonCostLimit:
		return a.lookAtPool(reason, nearest)
	default:
		return a.lookAtOwner()
	}
}

// lookAtPool opens the NodePool of the nearest miss, or what it refers to.
func (a *adviser) lookAtPool(reason model.Reason, nearest *model.NearestMiss) string {
	if nearest == nil || nearest.Pool == "" {
		return "nap get pools"
	}
	pool := a.made.read.pools[nearest.Pool]
	switch {
	case reason == model.ReasonPoolPaused:
		return "kubectl describe nodepool " + nearest.Pool
	case reason == model.ReasonMaxPods && pool != nil && pool.Spec.Template.Spec.NodeClassRef != nil:
		return "kubectl edit aksnodeclass " + pool.Spec.Template.Spec.NodeClassRef.Name
	}
	return "kubectl edit nodepool " + nearest.Pool
}

// lookAtOwner opens what the pod is made from. Of a Pod or a Job little can be changed: they are
// shown.
func (a *adviser) lookAtOwner() string {
	kind, name, _ := strings.Cut(a.owner, " ")
	namespace, name, _ := strings.Cut(name, "/")
	kind = strings.ToLower(kind)
	if kind == "pod" || kind == "job" {
		return fmt.Sprintf("kubectl get %s %s -n %s -o yaml", kind, name, namespace)
	}
	return fmt.Sprintf("kubectl edit %s %s -n %s", kind, name, namespace)
}

// keptCommand is a command that lets a kept node go, or shows what keeps it; empty where
// nothing is to be done.
func (t *toldNode) keptCommand(kept *model.KeptNode) string {
	node := &t.input.Problem.Nodes[t.node]
	disruption := func(patch string) string {
		return fmt.Sprintf(`kubectl patch nodepool %s --type merge -p '{"spec":{"disruption":{%s}}}'`, node.Pool, patch)
	}
	switch kept.Reason {
	case model.ReasonFrozen:
		return "nap thaw " + node.Pool
	case model.ReasonNodeHeld:
		return fmt.Sprintf("nap protect %s --undo", node.Name)
	case model.ReasonPodHeld:
		return fmt.Sprintf("kubectl annotate pod %s -n %s karpenter.sh/do-not-disrupt-", kept.Pod.Name, kept.Pod.Namespace)
	case model.ReasonNeverConsolidate:
		return disruption(`"consolidateAfter":"1m"`)
	case model.ReasonNotQuiet:
		return disruption(`"consolidateAfter":"0s"`)
	case model.ReasonPodsEnding:
		return "" // they end and come by themselves
	case model.ReasonPolicy, model.ReasonUnbalanced:
		return disruption(`"consolidationPolicy":"WhenEmptyOrUnderutilized"`)
	case model.ReasonPodBudget, model.ReasonPodBudgets:
		return fmt.Sprintf("kubectl get pdb -n %s", kept.Pod.Namespace)
	case model.ReasonStaticPool:
		return fmt.Sprintf("kubectl scale nodepool %s --replicas=%d", node.Pool, t.nodesOf(node.Pool)-1)
	case model.ReasonPoolBudget:
		return fmt.Sprintf("kubectl get nodepool %s -o jsonpath='{.spec.disruption.budgets}'", node.Pool)
	case model.ReasonSpotTypes, model.ReasonPoolWeight:
		return "kubectl edit nodepool " + node.Pool
	default:
		return keptLook(kept.Reason, node)
	}
}

// keptLook is a command that shows more about a kept node.
func keptLook(reason model.Reason, node *model.Node) string {
	switch reason {
	case model.ReasonBeingDisrupted:
		return "nap get moves"
	case model.ReasonNotInitialized:
		return "kubectl describe node " + node.Name
	case model.ReasonMoveFailed:
		return "kubectl get events -A --field-selector involvedObject.name=" + node.Name
	case model.ReasonNominated:
		return "kubectl get pods -A --field-selector status.phase=Pending"
	case model.ReasonKeptForWaiting:
		return "nap plan --pending-only"
	case model.ReasonReceivesPods:
		return "nap plan --consolidate"
	case model.ReasonNoPlace:
		return "nap what-if --without-node " + node.Name
	case model.ReasonKeepsPreferences:
		return "nap plan --consolidate --preference-policy Ignore"
	case model.ReasonSpotToSpot:
		return "nap plan --consolidate --spot-to-spot"
	case model.ReasonPriceUnknown:
		return "kubectl get node " + node.Name + " --show-labels"
	case model.ReasonDoesNotPay:
		return "nap plan --consolidate --eviction-price 0"
	case model.ReasonSmallSaving:
		return "nap plan --consolidate --consolidation-minimum-saving 0"
	default:
		return ""
	}
}

// nodesOf is how many nodes a NodePool has.
func (t *toldNode) nodesOf(pool string) int {
	n := 0
	for i := range t.input.Problem.Nodes {
		if t.input.Problem.Nodes[i].Pool == pool {
			n++
		}
	}
	return n
}

// again is a command of nap that answers another question about the same input.
func (f *inputFlags) again(command string) string {
	words := strings.Fields(command)
	if len(words) < 2 || words[0] != "nap" || !slices.Contains([]string{"plan", "explain", "what-if", "get", "lint"}, words[1]) {
		return command
	}
	for _, flag := range []struct{ name, value string }{{"--region", f.region}, {"--catalog", f.file}, {"--prices-file", f.prices}} {
		if flag.value != "" {
			command += " " + flag.name + " " + quoted(flag.value)
		}
	}
	for _, file := range f.files {
		command += " -f " + quoted(file)
	}
	return command
}

// quoted is a word as a shell has to read it.
func quoted(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./:@%+=,", c)
	}
	if word != "" && strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
