package kube

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/lifecycle"
	"sigs.k8s.io/karpenter/pkg/utils/nodeclaim"
)

// A PodDisruptionBudget whose workloads have no pod more than have to stay never lets one go, until
// they want more. A StatefulSet has one pod less for the moment before a successor is made.
func TestBudgetThatNeedsEveryPodBlocks(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 11, 24, 15, 0, 0, 0, time.UTC))
	number, percent := intstr.FromInt32(1), intstr.FromString("75%")
	status := func(expected, desired int32, conditions ...metav1.Condition) policyv1.PodDisruptionBudgetStatus {
		return policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 2, ExpectedPods: expected, CurrentHealthy: expected, DesiredHealthy: desired,
			DisruptionsAllowed: max(0, expected-desired), Conditions: conditions,
		}
	}
	allowed := func(s metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: policyv1.DisruptionAllowedCondition, Status: s, LastTransitionTime: since}
	}
	stale := status(1, 1)
	stale.ObservedGeneration = 1
	for name, c := range map[string]struct {
		least  intstr.IntOrString
		status policyv1.PodDisruptionBudgetStatus
		blocks bool
		from   time.Time
	}{
		"no status":                  {number, policyv1.PodDisruptionBudgetStatus{}, false, time.Time{}},
		"status of an older spec":    {number, stale, false, time.Time{}},
		"no pods":                    {number, status(0, 1), false, time.Time{}},
		"all pods, in a file":        {number, status(1, 1), true, time.Time{}},
		"all pods":                   {number, status(1, 1, allowed(metav1.ConditionFalse)), false, since.Add(5 * time.Minute)},
		"all pods, not said so yet":  {number, status(1, 1, allowed(metav1.ConditionTrue)), false, time.Time{}},
		"one more, by a scale-up":    {number, status(2, 1, allowed(metav1.ConditionFalse)), false, time.Time{}},
		"a part that is every pod":   {percent, status(1, 1, allowed(metav1.ConditionFalse)), true, time.Time{}},
		"a part that is not":         {percent, status(4, 3, allowed(metav1.ConditionTrue)), false, time.Time{}},
		"more than the workload has": {number, status(1, 3), true, time.Time{}},
	} {
		b := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &c.least}, Status: c.status}
		b.Generation = 2
		if got := budget(b); got.Blocking != c.blocks || !got.BlockingFrom.Equal(c.from) {
			t.Errorf("%s: blocks %v, from %s; want %v, from %s", name, got.Blocking, got.BlockingFrom, c.blocks, c.from)
		}
	}
}

// A NodeClaim says when Karpenter gives it up, and what Azure says while it has no machine.
func TestClaimOnItsWaySaysWhatAzureSaidAndWhenItIsGivenUp(t *testing.T) {
	ordered := metav1.NewTime(time.Date(2026, 11, 24, 15, 0, 0, 0, time.UTC))
	c := &v1.NodeClaim{}
	c.Name, c.CreationTimestamp = "general-abc12", ordered
	c.StatusConditions() // both are Unknown since it was made
	if got := claim(c); got.Trouble != "" || !got.GivenUp.Equal(ordered.Add(5*time.Minute)) {
		t.Errorf("a new one: %q, given up at %s", got.Trouble, got.GivenUp)
	}
	c.StatusConditions().SetUnknownWithReason(v1.ConditionTypeLaunched, "AzureUnavailable", "Azure does not answer.\nThe next try is soon")
	if got := claim(c); got.Trouble != "AzureUnavailable: Azure does not answer; The next try is soon" || !got.GivenUp.Equal(ordered.Add(5*time.Minute)) {
		t.Errorf("in an outage: %q, given up at %s", got.Trouble, got.GivenUp)
	}
	c.StatusConditions().SetTrue(v1.ConditionTypeLaunched)
	if got := claim(c); got.Trouble != "" || !got.GivenUp.Equal(ordered.Add(15*time.Minute)) {
		t.Errorf("launched: %q, given up at %s", got.Trouble, got.GivenUp)
	}
	c.StatusConditions().SetTrue(v1.ConditionTypeRegistered)
	if got := claim(c); got.Trouble != "" || !got.GivenUp.IsZero() {
		t.Errorf("a node: %q, given up at %s", got.Trouble, got.GivenUp)
	}
}

// Since when volumes are waited for decides whether that is usual.
func TestClaimSaysSinceWhenItsVolumesAreDetached(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 11, 24, 15, 0, 0, 0, time.UTC))
	c := &v1.NodeClaim{}
	c.StatusConditions().SetUnknownWithReason(v1.ConditionTypeVolumesDetached, awaitingVolumes, awaitingVolumes)
	for i := range c.Status.Conditions {
		c.Status.Conditions[i].LastTransitionTime = since
	}
	if got := claim(c); !got.Detaching || !got.DetachingSince.Equal(since.Time) {
		t.Errorf("detaching: %t, since %s; want it since %s", got.Detaching, got.DetachingSince, since)
	}
}

// The times are those of Karpenter's controller.
func TestClaimsAreGivenUpWhenKarpenterDoes(t *testing.T) {
	if lifecycle.LaunchTimeout != launchWithin {
		t.Errorf("Karpenter waits %s for the launch, nap says %s", lifecycle.LaunchTimeout, launchWithin)
	}
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter").Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "pkg/controllers/nodeclaim/lifecycle/liveness.go"))
	if err != nil {
		t.Fatal(err)
	}
	if registerWithin != 15*time.Minute || !regexp.MustCompile(`registrationTimeout\s+= time\.Minute \* 15\n`).Match(source) {
		t.Errorf("nap says that a node is waited for %s, and Karpenter another time", registerWithin)
	}
}

// A node says whose it is as Karpenter has written it down, also as the caches keep it.
func TestNodeSaysItsClaim(t *testing.T) {
	owner := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "general-abc12", UID: "1"}}
	n := nodeclaim.UpdateNodeOwnerReferences(owner, &corev1.Node{})
	if _, err := Trim(n); err != nil {
		t.Fatal(err)
	}
	if got := node(n).Claim; got != owner.Name {
		t.Errorf("the node is of NodeClaim %q, want %q", got, owner.Name)
	}
	if got := node(&corev1.Node{}).Claim; got != "" {
		t.Errorf("a node of no owner is of NodeClaim %q", got)
	}
}
