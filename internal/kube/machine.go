package kube

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

func node(n *corev1.Node) *fleet.Node {
	out := &fleet.Node{
		Name:        n.Name,
		ProviderID:  n.Spec.ProviderID,
		Labels:      nodeLabels(n.Labels),
		Taints:      taints(n.Spec.Taints),
		Capacity:    amounts(n.Status.Capacity),
		Allocatable: amounts(n.Status.Allocatable),
		Registered:  n.Labels[v1.NodeRegisteredLabelKey] == "true",
		Initialized: n.Labels[v1.NodeInitializedLabelKey] == "true",
		Deleting:    n.DeletionTimestamp != nil,
		Features:    n.Status.DeclaredFeatures,
		Created:     n.CreationTimestamp.Time,

		DoNotDisrupt: n.Annotations[v1.DoNotDisruptAnnotationKey] == "true",
	}
	for i := range n.OwnerReferences {
		if n.OwnerReferences[i].Kind == "NodeClaim" {
			out.Claim = n.OwnerReferences[i].Name
		}
	}
	for _, t := range out.Taints {
		if t.Key == v1.DisruptedTaintKey && t.Effect == model.NoSchedule {
			out.Disrupted = true
		}
	}
	if cordon := (model.Taint{Key: corev1.TaintNodeUnschedulable, Effect: model.NoSchedule}); n.Spec.Unschedulable &&
		!slices.Contains(out.Taints, cordon) {
		out.Taints = append(out.Taints, cordon)
	}
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			out.Ready, out.Unready = c.Status == corev1.ConditionTrue, c.Status != corev1.ConditionTrue
		} else if c.Type == conditionEvicted {
			out.Evicted = c.Status == corev1.ConditionTrue
		}
	}
	return out
}

func claim(c *v1.NodeClaim) *fleet.Claim {
	out := &fleet.Claim{
		Name:           c.Name,
		Pool:           c.Labels[v1.NodePoolLabelKey],
		ProviderID:     c.Status.ProviderID,
		NodeName:       c.Status.NodeName,
		Labels:         nodeLabels(c.Labels),
		Requirements:   poolRequirements(c.Spec.Requirements),
		Taints:         taints(c.Spec.Taints),
		StartupTaints:  taints(c.Spec.StartupTaints),
		Capacity:       amounts(c.Status.Capacity),
		Allocatable:    amounts(c.Status.Allocatable),
		Leaving:        c.DeletionTimestamp != nil,
		Created:        c.CreationTimestamp.Time,
		LastPodEvent:   c.Status.LastPodEventTime.Time,
		ExpectedSaving: dollars(c, v1beta1.AnnotationExpectedSaving),
		Requests:       amounts(c.Spec.Resources.Requests),
		Plan:           c.Annotations[v1beta1.AnnotationPlan],
		GracePeriod:    c.Spec.TerminationGracePeriod != nil,
	}
	if c.DeletionTimestamp != nil {
		out.LeavingSince = c.DeletionTimestamp.Time
	}
	out.Launched, out.Planned = billedSince(c), dollars(c, v1beta1.AnnotationPlannedPrice)
	out.Paid, out.DiskPrice = dollars(c, v1beta1.AnnotationPaidPrice), DiskPrice(c)
	out.Replaces, out.Command = c.Annotations[v1beta1.AnnotationReplaces], commandOf(c)
	out.Repair = RepairOf(c)
	if workloads := c.Annotations[v1beta1.AnnotationBoughtFor]; workloads != "" {
		out.BoughtFor = strings.Split(workloads, v1beta1.WorkloadSeparator)
	}
	if d := c.Spec.ExpireAfter.Duration; d != nil {
		out.ExpireAfter = *d
	}
	for i := range c.Status.Conditions {
		cond := &c.Status.Conditions[i]
		if cond.Type == v1beta1.ConditionBooted && string(cond.Status) == "False" {
			out.BootFailed = true
			out.Leaving = true // it is given up, and its pods are planned elsewhere at once
		}
		awaited(out, cond)
		if cond.Type == v1.ConditionTypeVolumesDetached && string(cond.Status) == "Unknown" && cond.Reason == awaitingVolumes {
			out.Detaching, out.DetachingSince = true, cond.LastTransitionTime.Time
		}
		if string(cond.Status) != "True" {
			continue
		}
		switch cond.Type {
		case v1.ConditionTypeLaunched:
			if out.Launched.IsZero() {
				out.Launched = cond.LastTransitionTime.Time
			}
		case v1.ConditionTypeInstanceTerminating:
			out.Leaving, out.Terminating = true, true
		case v1.ConditionTypeInitialized:
			out.Initialized = cond.LastTransitionTime.Time
		case v1.ConditionTypeRebooting:
			out.Rebooting = true
		case v1.ConditionTypeDrifted:
			out.Drift, out.DriftSince = cond.Reason, cond.LastTransitionTime.Time
		}
	}
	if asked, retired := c.Annotations[v1beta1.AnnotationRetire]; retired && out.Drift == "" {
		out.Drift, out.DriftSince = driftRetired, c.CreationTimestamp.Time
		if since, err := time.Parse(time.RFC3339, asked); err == nil {
			out.DriftSince = since
		}
	}
	return out
}

// How long Karpenter's controller of NodeClaims waits for a machine to be launched, and for
// its node, before it gives the NodeClaim up.
const (
	launchWithin   = 5 * time.Minute
	registerWithin = 15 * time.Minute
)

// awaitingVolumes is the reason of the condition VolumesDetached while a drained node waits for its
// VolumeAttachments.
const awaitingVolumes = "AwaitingVolumeDetachment"

// notLookedAt is the reason of a condition of which nothing is known yet.
const notLookedAt = "AwaitingReconciliation"

// mostTrouble is how much of what the cloud says of a machine is kept, in characters.
const mostTrouble = 300

// awaited reads of a condition that is not True why the machine of a claim is not there, and when
// the claim is given up for it.
func awaited(out *fleet.Claim, cond *status.Condition) {
	within := map[string]time.Duration{v1.ConditionTypeLaunched: launchWithin, v1.ConditionTypeRegistered: registerWithin}[cond.Type]
	if within == 0 || cond.IsTrue() {
		return
	}
	if at := cond.LastTransitionTime.Add(within); out.GivenUp.IsZero() || at.Before(out.GivenUp) {
		out.GivenUp = at
	}
	if cond.Type == v1.ConditionTypeLaunched && cond.Reason != notLookedAt && cond.Message != "" {
		out.Trouble = model.Sentence(cond.Reason+": "+cond.Message, mostTrouble)
	}
}

// conditionEvicted is the condition by which AKS's nodes say that Azure takes their spot
// machine back.
const conditionEvicted = "PreemptionScheduled"

// driftRetired is the reason of drift of machines that a user wants replaced.
const driftRetired = "Retired"

// dollars reads an annotation in dollars per hour; what is no such number counts as nothing.
func dollars(c *v1.NodeClaim, annotation string) model.Money {
	v, err := strconv.ParseFloat(c.Annotations[annotation], 64)
	if err != nil || !(v > 0) || v > mostEarned {
		return 0
	}
	return model.USD(v)
}

// DiskPrice is what the disk costs per hour that the machine of a NodeClaim was made with, nil
// where the NodeClaim does not say.
func DiskPrice(c *v1.NodeClaim) *model.Money {
	v, err := strconv.ParseFloat(c.Annotations[v1beta1.AnnotationDiskPrice], 64)
	if err != nil || !(v >= 0) || v > mostEarned {
		return nil
	}
	price := model.USD(v)
	return &price
}

// mostEarned is more dollars per hour than any machine costs.
const mostEarned = 1e6

// budget converts a PodDisruptionBudget. One whose selector cannot be read
// selects nothing.
func budget(b *policyv1.PodDisruptionBudget) *fleet.Budget {
	out := &fleet.Budget{Namespace: b.Namespace, Name: b.Name, Allowed: b.Status.DisruptionsAllowed}
	if s, err := selector(b.Spec.Selector, func() string { return "spec.selector" }); err == nil {
		out.Selector = s
	}
	out.FreesUnready = b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
	is := func(v *intstr.IntOrString, text string) bool { return v != nil && v.String() == text }
	out.Blocking = is(b.Spec.MaxUnavailable, "0") || is(b.Spec.MaxUnavailable, "0%") || is(b.Spec.MinAvailable, "100%")
	if !out.Blocking {
		out.Blocking, out.BlockingFrom = needsAll(b)
	}
	return out
}

// allNeeded is how long a PodDisruptionBudget with a number in minAvailable has to allow nothing
// before it counts as one that needs every pod: its status counts the pods that exist, of which a
// StatefulSet has one less for the moment between the end of a pod and its successor.
const allNeeded = 5 * time.Minute

// needsAll reports whether the workloads of a PodDisruptionBudget have no pod more than have to
// stay, by its status, so that none may ever go before they want more; or from when on it counts
// as such.
func needsAll(b *policyv1.PodDisruptionBudget) (now bool, from time.Time) {
	s := &b.Status
	if s.ObservedGeneration != b.Generation || s.ExpectedPods <= 0 || s.DesiredHealthy < s.ExpectedPods {
		return false, time.Time{}
	}
	if b.Spec.MinAvailable == nil || b.Spec.MinAvailable.Type != intstr.Int {
		return true, time.Time{} // its status counts the pods that workloads want
	}
	allowed := meta.FindStatusCondition(s.Conditions, policyv1.DisruptionAllowedCondition)
	if allowed == nil || allowed.Status != metav1.ConditionFalse {
		return allowed == nil, time.Time{} // nothing changes in a file
	}
	return false, allowed.LastTransitionTime.Add(allNeeded)
}
