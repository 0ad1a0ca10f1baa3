package event_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
	"github.com/nodeautoprovision/nap/internal/poollint"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// sent is what a function of the package makes of the worst values.
type sent struct {
	// verdict is how every message begins, keeps what is in all of them whatever is cut off.
	verdict string
	keeps   []string
	// numbers are those that were given and may be in a message.
	numbers string
	events  []events.Event
}

// worst is a name that is as long as the API server takes it.
func worst(letters int) string {
	return "worst" + strings.Repeat("-x", (letters-len("worstend"))/2) + strings.Repeat("y", (letters-len("worstend"))%2) + "end"
}

// The longest names that there are, and prices which rounding would make others.
var (
	poolName    = worst(63)
	nodeName    = worst(253)
	podName     = worst(63) + "/" + worst(253)
	taint       = worst(253) + "/" + worst(63) + "=" + worst(63) + ":NoSchedule"
	size        = "Standard_worst_ND96isrf_MI300X_v5_end"
	zone        = "australiacentral2-3"
	high, small = model.USD(123456.789), model.USD(0.004321)
	at          = time.Date(2026, 11, 24, 15, 4, 5, 0, time.UTC)
)

// azure is what Azure says at length: sentences, lines, quotes, and a secret.
func azure() string {
	return "Code=\"OperationNotAllowed\" Message=\"Operation could not be completed as it results in exceeding approved quota.\n" +
		"\tAdditional details - Deployment Model: Resource Manager, client_secret=swordfish, {\"password\":\"a swordfish\"}. Please read " +
		strings.Repeat("/subscriptions/worst-0b1f6471-0000-4000-8000-000000000002/resourceGroups/end. And ", 20)
}

func objects() (*corev1.Pod, *corev1.Node, *karpv1.NodeClaim, *karpv1.NodePool, *v1beta1.AKSNodeClass, *v1alpha1.NodeAutoProvisioning) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: "7"}
	}
	return &corev1.Pod{ObjectMeta: meta(worst(253))}, &corev1.Node{ObjectMeta: meta(nodeName)}, &karpv1.NodeClaim{ObjectMeta: meta(poolName)},
		&karpv1.NodePool{ObjectMeta: meta(poolName)}, &v1beta1.AKSNodeClass{ObjectMeta: meta(poolName)},
		&v1alpha1.NodeAutoProvisioning{ObjectMeta: meta("default")}
}

// worstEvents are the events of every function of the package with the worst values, by its name.
func worstEvents() map[string]sent {
	out := map[string]sent{}
	for _, part := range []map[string]sent{onPods(), onClaims(), onNodes(), onPools(), onClasses(), onCluster()} {
		for name, s := range part {
			out[name] = s
		}
	}
	return out
}

func one(e events.Event) []events.Event { return []events.Event{e} }

func onPods() map[string]sent {
	pod, node, claim, _, _, _ := objects()
	var waiting []events.Event
	for _, r := range model.Reasons() {
		for _, why := range []string{strings.TrimSuffix(r.Meaning, "."), "NodePool " + poolName + " matches none of 3 offerings with " + azure()} {
			words := explain.Pending{Reason: r.Reason, Why: why, Nearest: size + ", " + zone + ", NodePool " + poolName, Fix: r.Fix}
			waiting = append(waiting, event.Waiting(pod, words.Reason, words.Short(event.MostWaiting)))
		}
	}
	return map[string]sent{
		"Waiting":        {verdict: "Failed to schedule pod, ", keeps: []string{"("}, numbers: "3 15", events: waiting},
		"Nominated":      {verdict: "Pod should schedule on: nodeclaim/worst", events: one(event.Nominated(pod, node, claim))},
		"PurchaseFailed": {verdict: "Bought in vain: Code", events: one(event.PurchaseFailed(pod, azure()))},
		"WaitingForMachine": {verdict: "Its machine is not there yet: CreateInstanceFailed: Code", keeps: []string{"; given up at 15:04:05Z (NodeClaim " + poolName + ")"},
			numbers: "15:04:05", events: one(event.WaitingForMachine(pod, poolName, "CreateInstanceFailed: "+azure(), at))},
		"WaitingForNode": {verdict: "Its node is not initialized, and nothing else is bought meanwhile: it",
			events: one(event.WaitingForNode(pod, nodeName, []string{"its kubelet is not Ready", "it still has the startup taint " + taint}))},
	}
}

func onClaims() map[string]sent {
	_, node, claim, _, _, _ := objects()
	bought := event.Bought{Size: size, CapacityType: model.OnDemand, Zone: zone, Paid: high}
	undeletable, unrestartable := sent{verdict: "The machine cannot be deleted and is paid for ("}, sent{verdict: "The machine cannot be restarted ("}
	for _, r := range unavailable.Refusals() {
		if r.Advice == "" {
			continue
		}
		code := strings.Repeat("worst", 8) + "end"
		undeletable.events = append(undeletable.events, event.Undeletable(claim, r.Reason, code, r.Advice))
		unrestartable.events = append(unrestartable.events, event.Unrestartable(claim, r.Reason, code, r.Advice))
		undeletable.numbers += r.Advice
	}
	unrestartable.numbers = undeletable.numbers
	refusal := unavailable.NewFailure("ScopeLocked", azure(), nil)
	return map[string]sent{
		"Provisioned": {verdict: size + " on-demand in " + zone + " was bought at $123456.789/h", numbers: "123456.789",
			events: one(event.Provisioned(claim, bought))},
		"PriceDiffers": {verdict: size + " on-demand was bought at $123456.789/h instead of the planned $0.004321/h (+2857134568%)",
			keeps: []string{"prices have changed"}, numbers: "123456.789 0.004321 2857134568", events: one(event.PriceDiffers(claim, bought, small))},
		"ClassMissing": {verdict: "No machine is bought: AKSNodeClass", keeps: []string{"does not exist"},
			events: one(event.ClassMissing(claim, fmt.Errorf("AKSNodeClass %q does not exist or is being deleted", poolName)))},
		"LimitOfClaim": {verdict: "No machine is bought: the limit of $123456.789/h", keeps: []string{"leaves $0.004321/h"}, numbers: "123456.789 0.004321",
			events: one(event.LimitOfClaim(claim, fmt.Sprintf("the limit of %s of NodePool %s leaves %s, too little for the machine, which costs %s",
				high, poolName, small, high)))},
		"GivenUpByAzure": {verdict: "Azure accepted the machine and then gave it up: ScopeLocked", events: one(event.GivenUpByAzure(claim, refusal))},
		"Undeletable":    undeletable,
		"Unrestartable":  unrestartable,
		"BootFailed": {verdict: "The machine does not become a node: provisioning of the node ended with exit code 51", numbers: "51",
			events: one(event.BootFailed(claim, "provisioning of the node ended with exit code 51: "+azure()))},
		"SpotEviction": {verdict: "Azure takes the spot machine back", events: event.SpotEviction(claim, node)},
	}
}

func onNodes() map[string]sent {
	_, node, claim, pool, _, _ := objects()
	held := fmt.Sprintf("PodDisruptionBudget %s allows no eviction of pod %s on %s now.", podName, podName, nodeName)
	command := fmt.Sprintf("replace: [%s] (part of 100-node consolidation)", worst(63))
	score := &model.BalancedScore{Saving: 0.1234, Disruption: 0.0456}
	var kept, worthKeeping []events.Event
	for _, r := range model.Reasons() {
		kept = append(kept, event.KeptBlocked(node, claim, r.Reason, held)...)
		worthKeeping = append(worthKeeping, event.Unconsolidatable(node, claim, r.Reason, held)...)
	}
	of := func(code model.Reason) sent {
		meaning := strings.TrimSuffix(explain.Meaning(code), ".")
		return sent{verdict: meaning + ": PodDisruptionBudget", events: event.KeptBlocked(node, claim, code, held)}
	}
	return map[string]sent{
		"Blocked":          {verdict: "PodDisruptionBudget", events: event.Blocked(node, claim, held)},
		"KeptBlocked":      of(model.ReasonPodBudget),
		"KeptBlocked/all":  {numbers: "15", events: kept},
		"Unconsolidatable": {numbers: "15", events: worthKeeping}, // 15 spot types, in the reason's meaning
		"NodePoolBlocked": {verdict: "No allowed disruptions for disruption reason Underutilized",
			events: one(event.NodePoolBlocked(pool, model.DisruptUnderutilized))},
		"RepairBlocked":      {verdict: "Repair is blocked by the budgets of NodePool " + poolName, events: event.RepairBlocked(node, claim, "the budgets of NodePool "+poolName)},
		"TooManyUnhealthy":   {verdict: "more than 20% nodes are unhealthy", numbers: "20", events: event.TooManyUnhealthy(node, claim, "20%")},
		"RolledBack":         {verdict: "Disruption was rolled back: ", events: event.RolledBack(node, claim, "replacement "+poolName+": "+azure())},
		"Replacing":          {verdict: "Launching NodeClaim: Underutilized", events: one(event.Replacing(claim, model.DisruptUnderutilized))},
		"WaitingOnReadiness": {verdict: "Waiting on readiness", events: one(event.WaitingOnReadiness(claim))},
		"Terminating":        {verdict: "Disrupting Node", events: event.Terminating(node, claim, model.DisruptUnderutilized)},
		"Candidate": {verdict: "Consolidation candidate: replace: [" + worst(63) + "]", keeps: []string{"(savings: $0.004321/h)"}, numbers: "100 0.004321",
			events: event.Candidate(node, claim, command, small)},
		"Rejected": {verdict: "Consolidation rejected: replace: [" + worst(63) + "]", numbers: "100 0.004321",
			events: event.Rejected(node, claim, command, held, small)},
		"Approved":         {verdict: "score 2.71 >= threshold 0.50", numbers: "2.71 0.50 2 12.3 4.6", events: event.Approved(node, claim, score, 2)},
		"ApprovedTogether": {verdict: "score 2.71 >= threshold 0.50", numbers: "2.71 0.50 2 12.3 4.6", events: one(event.ApprovedTogether(pool, score, 2))},
	}
}

func onPools() map[string]sent {
	_, _, _, pool, _, _ := objects()
	var unwise []events.Event
	for _, code := range []poollint.Code{
		poollint.NothingToBuy, poollint.SizeCannotBeBought, poollint.OneSize, poollint.SpotWithoutFallback, poollint.NoLimit,
		poollint.LimitAboveQuota, poollint.LimitBelowMachine, poollint.UnknownLimit, poollint.Overlap, poollint.PinnedForEver, poollint.UnreadableBudget,
		poollint.ManagedGPUNotRegistered,
	} {
		many := strings.TrimSuffix(strings.Repeat(poolName+", ", 99), ", ")
		unwise = append(unwise, event.Unwise(pool, &poollint.Finding{NodePool: poolName, Code: code,
			Message: "buys the same machines for the same pods as NodePool " + many, Fix: "Give them different weights."}))
	}
	return map[string]sent{
		"LimitReached": {verdict: "Pods wait: the limit of $123456.789/h leaves $0.004321/h", numbers: "123456.789 0.004321", events: one(event.LimitReached(pool,
			fmt.Sprintf("Pods wait: the limit of %s leaves %s, too little for a machine for them", high, small)))},
		"LimitInvalid": {verdict: "Nothing is bought: metadata.annotations", events: one(event.LimitInvalid(pool,
			fmt.Sprintf("Nothing is bought: metadata.annotations[%s]: got %q, allowed: dollars", v1beta1.AnnotationMaxHourlyCost, worst(900))))},
		"LimitLeavesRoom": {verdict: "No limit keeps", events: one(event.LimitLeavesRoom(pool, "No limit keeps a machine from being bought that pods wait for"))},
		"Frozen": {verdict: "No node is removed voluntarily until ", numbers: "2026-11-24T15:04:05Z", events: one(event.Frozen(pool,
			"No node is removed voluntarily until 2026-11-24T15:04:05Z: "+azure()))},
		"Thawed": {verdict: "Nodes may be removed", events: one(event.Thawed(pool, "Nodes may be removed voluntarily"))},
		"Unwise": {verdict: "buys the same machines for the same pods as NodePool " + poolName, events: unwise},
		"Sound":  {verdict: "Nothing about", events: one(event.Sound(pool, "Nothing about the NodePool is unwise"))},
	}
}

func onClasses() map[string]sent {
	_, _, _, pool, class, _ := objects()
	claims := slices.Repeat([]string{worst(63)}, 2000)
	outage := "Azure does not answer, no machine is launched: Microsoft.Compute has failed since 2026-11-24T15:04:05Z (" + azure() + ")"
	const resumed = "Azure answers again; machines are launched"
	return map[string]sent{
		"PurchasesPaused": {verdict: "12 machines in a row did not register as nodes; nothing is bought before 2026-11-24T15:04:05Z",
			numbers: "12 2026-11-24T15:04:05Z", events: one(event.PurchasesPaused(class, purchasebackoff.Text(&purchasebackoff.Record{
				Key: "AKSNodeClass " + poolName, Count: 12, Until: at, Last: []purchasebackoff.Failure{{Why: azure()}},
			})))},
		"PurchasesResumed": {verdict: "Machines of this class register", events: one(event.PurchasesResumed(class))},
		"LaunchesPaused": {verdict: "Azure does not answer, no machine is launched: Microsoft.Compute has failed since 2026-11-24T15:04:05Z",
			numbers: "2026-11-24T15:04:05Z", events: []events.Event{event.LaunchesPaused(class, outage, "w", "f"), event.LaunchesPaused(pool, outage, "w", "f")}},
		"LaunchesResumed": {verdict: resumed, events: []events.Event{event.LaunchesResumed(class, resumed, "w"), event.LaunchesResumed(pool, resumed, "w")}},
		"WaitingOnClaims": {verdict: "Waiting on NodeClaim termination for " + worst(63), keeps: []string{" and 1998 more"}, numbers: "1998",
			events: one(event.WaitingOnClaims(class, claims))},
		"LocalDNSUnknown": {verdict: "spec.localDNS.mode Preferred counts as disabled: ", events: one(event.LocalDNSUnknown(class, errors.New(azure())))},
		"WindowUnknown": {verdict: "Machines are not replaced for a newer Kubernetes version: ",
			events: one(event.WindowUnknown(class, "a newer Kubernetes version", errors.New(azure())))},
	}
}

func onCluster() map[string]sent {
	_, _, _, _, _, whole := objects()
	manual := whole.DeepCopy()
	manual.Spec.Mode = v1alpha1.ModeManual
	var met, unmet sent
	unmet.keeps = []string{" is not met (failed): ", "nap doctor says how to mend it"}
	for _, row := range prerequisites.Table() {
		r := &prerequisites.Result{Number: row.Number, Name: row.Name, Verdict: prerequisites.Failed, Finding: azure(), Fix: azure()}
		met.events = append(met.events, event.PrerequisiteMet(whole, r, "now"))
		unmet.events = append(unmet.events, event.PrerequisiteNotMet(whole, r, "now"))
		met.numbers += fmt.Sprint(row.Number, " ", row.Name, " ")
	}
	met.verdict, unmet.verdict, unmet.numbers = "Prerequisite ", "Prerequisite ", met.numbers
	return map[string]sent{
		"Switched":           {events: []events.Event{event.Switched(whole), event.Switched(manual)}},
		"PrerequisiteMet":    met,
		"PrerequisiteNotMet": unmet,
	}
}
