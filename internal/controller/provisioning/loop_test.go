package provisioning

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/model"
)

func objects(pool *karpv1.NodePool, pods []client.Object, more ...client.Object) []client.Object {
	return slices.Concat([]client.Object{pool}, pods, more)
}

func TestClaimFieldsMatchKarpenter(t *testing.T) {
	w := newWorld(t, objects(nodePool(), waitingPods(3, "1"))...)
	w.solve = func(*model.Problem) *model.Plan {
		return &model.Plan{NewNodes: []model.NewNode{{
			Requirements: model.Requirements{{Key: corev1.LabelTopologyZone, Operator: model.In, Values: []string{"eastus-1", "eastus-3"}}},
			// Spot in two zones, then the larger size on demand.
			Offerings: []model.OfferingRef{{InstanceType: 1, Offering: 1}, {InstanceType: 1, Offering: 3}, {InstanceType: 2, Offering: 0}},
			Requests:  model.Resources{3000, 3 << 30, 0, 3},
			Daemons:   model.Resources{250, 64 << 20, 0, 1},
			Pods:      []model.ClassPods{{Class: 0, Pods: []int{0, 1, 2}}},
		}}}
	}
	w.plan()
	w.wantClaims(1)
	claim := w.claims()[0]
	claim.ResourceVersion = ""
	got, err := yaml.Marshal(struct {
		Metadata metav1.ObjectMeta    `json:"metadata"`
		Spec     karpv1.NodeClaimSpec `json:"spec"`
	}{claim.ObjectMeta, claim.Spec})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/claim.yaml", string(got))
}

var rewrite = flag.Bool("rewrite", false, "write golden files instead of comparing with them")

// golden compares with a file, or writes it with -rewrite.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestUnobservedClaimsAreNotCreatedAgain(t *testing.T) {
	w := newWorld(t, objects(nodePool(), waitingPods(10, "1"))...)
	w.plan()
	bought := len(w.claims())
	w.plan()
	w.wantClaims(bought)
	w.sync()
	w.plan()
	w.wantClaims(bought)
}

func TestRestartCountsPendingClaims(t *testing.T) {
	w := newWorld(t, objects(nodePool(), waitingPods(10, "1"))...)
	w.plan()
	bought := len(w.claims())
	w.restart()
	w.plan()
	w.wantClaims(bought)
}

func TestPodsWaitForStartingNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Two machines of four cores, each for three pods of one core, next to a
		// third one that takes the seventh pod.
		w := newWorld(t, objects(nodePool(func(np *karpv1.NodePool) {
			np.Spec.Template.Spec.Requirements = append(np.Spec.Template.Spec.Requirements,
				karpv1.NodeSelectorRequirementWithMinValues{
					Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"Standard_D4s_v5"},
				})
		}), waitingPods(7, "1"))...)
		w.plan()
		w.wantClaims(3)
		// One arrives with less room than the catalogue says: a pod is left over.
		node := w.join(w.claims()[0], "2")
		w.bind("web-00", node.Name)
		w.bind("web-01", node.Name)
		w.sync()
		w.plan()
		w.wantClaims(3)
		for _, claim := range w.claims()[1:] {
			w.join(claim, "2")
		}
		for i, claim := range w.claims()[1:] {
			w.bind(fmt.Sprintf("web-%02d", 2+2*i), "node-"+claim.Name)
			w.bind(fmt.Sprintf("web-%02d", 3+2*i), "node-"+claim.Name)
		}
		w.sync()
		w.plan()
		w.wantClaims(3) // the scheduler may not be done
		time.Sleep(settleAtLeast)
		w.plan()
		w.wantClaims(4)
	})
}

// A node whose kubelet stops reporting has the taints of Kubernetes for that, with which
// its room counts for nothing, as in Karpenter; when they are gone, it is used again.
func TestFlappingNodeIsUsedWhenItIsBack(t *testing.T) {
	for state, c := range map[string]struct {
		taints []corev1.Taint
		claims int
	}{
		"not ready": {[]corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}, 1},
		"unreachable": {[]corev1.Taint{
			{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
			{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
		}, 1},
		"back": {nil, 0},
	} {
		for _, initialized := range []bool{true, false} {
			node := readyNode("node-1")
			node.Spec.Taints = c.taints
			node.Labels[karpv1.NodePoolLabelKey], node.Labels[karpv1.NodeRegisteredLabelKey] = "general", "true"
			claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "general-1", Labels: map[string]string{karpv1.NodePoolLabelKey: "general"}}}
			claim.Status.NodeName, claim.Status.ProviderID = node.Name, node.Spec.ProviderID
			if initialized {
				node.Labels[karpv1.NodeInitializedLabelKey] = "true"
				claim.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized)
			}
			w := newWorld(t, nodePool(), claim, node, waitingPods(1, "1")[0])
			w.plan()
			bought := len(w.claims()) - 1
			want := c.claims
			if !initialized && state == "not ready" {
				want = 0 // every node has this taint while it starts
			}
			if bought != want {
				t.Errorf("%s, initialized %v: %d machines were bought, want %d", state, initialized, bought, want)
			}
		}
	}
}

// A pod that needs a feature of kubelets (Kubernetes 1.36) waits for no node that lacks it:
// the scheduler never puts it there. Where no node declares any, the scheduler does not ask.
func TestNodeWithoutDeclaredFeatureIsNoPlace(t *testing.T) {
	const needed = "RestartAllContainersOnContainerExits"
	for name, c := range map[string]struct {
		nodes  [][]string // the features that each node declares
		claims int
	}{
		"declared":      {[][]string{{needed}}, 0},
		"another one":   {[][]string{{"ExtendWebSocketsToKubelet"}}, 1},
		"older kubelet": {[][]string{nil}, 0},
		"one of two":    {[][]string{nil, {needed}}, 1},
	} {
		list := []client.Object{nodePool()}
		for i, features := range c.nodes {
			node := readyNode(fmt.Sprintf("node-%d", i+1))
			node.Status.DeclaredFeatures = features
			list = append(list, node)
		}
		pods := len(c.nodes)
		for i := range pods {
			pod := waitingPods(1, "6")[0].(*corev1.Pod)
			pod.Name, pod.UID = fmt.Sprintf("pod-%d", i), types.UID(fmt.Sprint(i))
			pod.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{
				{Action: corev1.ContainerRestartRuleActionRestartAllContainers},
			}
			list = append(list, pod)
		}
		w := newWorld(t, list...)
		w.plan()
		claims := w.claims()
		if len(claims) != c.claims {
			t.Errorf("%s: %d machines were bought, want %d", name, len(claims), c.claims)
		}
		for _, claim := range claims {
			for _, r := range claim.Spec.Requirements {
				if strings.Contains(r.Key, needed) {
					t.Errorf("%s: the NodeClaim requires %q, which is no label", name, r.Key)
				}
			}
		}
	}
}

func TestReservedRoomIsNotGivenToOtherPods(t *testing.T) {
	w := newWorld(t, objects(nodePool(), waitingPods(3, "1"))...)
	w.plan()
	w.wantClaims(1)
	late := waitingPods(1, "1")[0].(*corev1.Pod)
	late.Name, late.UID = "late", "late"
	if err := w.kube.Create(w.ctx, late); err != nil {
		t.Fatal(err)
	}
	w.sync()
	w.plan()
	w.wantClaims(2)
}

func TestCrashDuringApplyIsCompletedAfterRestart(t *testing.T) {
	w := newWorld(t, objects(nodePool(), waitingPods(30, "1"))...)
	w.plan()
	want := len(w.claims())
	if want < 2 {
		t.Fatalf("the test needs a plan of several nodes, got %d", want)
	}

	w = newWorld(t, objects(nodePool(), waitingPods(30, "1"))...)
	crashed := false
	w.onCreate = func(ctx context.Context, c client.WithWatch, o client.Object) error {
		if crashed {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "nodeclaims"}, o.GetName(), errors.New("the process is gone"))
		}
		crashed = true
		return c.Create(ctx, o)
	}
	w.plan()
	w.wantClaims(1)
	w.onCreate = nil
	w.restart()
	w.plan()
	w.wantClaims(want)
}

func TestClaimDeletedUnobservedIsReplanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), waitingPods(3, "1"))...)
		w.plan()
		first := w.claims()[0]
		w.deleteClaim(&first)
		w.plan()
		w.wantClaims(0) // it may still be on its way to the mirror
		time.Sleep(observeWithin)
		w.plan()
		w.wantClaims(1)
		if w.claims()[0].Name == first.Name {
			t.Error("the dead claim's name was used again")
		}
		if !slices.Contains(w.cluster.deleted, first.Name) {
			t.Error("Karpenter's mirror was not told that the claim is gone")
		}
	})
}

func TestClaimCreatedOnceDespiteLostResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), waitingPods(3, "1"))...)
		lost := 0
		w.onCreate = func(ctx context.Context, c client.WithWatch, o client.Object) error {
			err := c.Create(ctx, o)
			if lost++; lost <= 2 && (err == nil || apierrors.IsAlreadyExists(err)) {
				return apierrors.NewTimeoutError("the answer was lost", 1)
			}
			return err
		}
		w.plan()
		w.wantClaims(1)
		if got := w.cluster.updated; len(got) != 1 || got[0] != w.claims()[0].Name {
			t.Errorf("Karpenter's mirror was told of %v", got)
		}
	})
}

func TestClaimOfUnknownOutcomeCountsUntilKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), waitingPods(3, "1"))...)
		w.onCreate = func(context.Context, client.WithWatch, client.Object) error {
			return apierrors.NewInternalError(errors.New("etcd is electing"))
		}
		w.plan()
		w.wantClaims(0)
		w.onCreate = nil
		w.plan()
		w.wantClaims(0)
		time.Sleep(observeWithin)
		w.plan()
		w.wantClaims(1)
	})
}

func TestClaimNameCollisionIsNotAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), waitingPods(3, "1"))...)
		stranger := &karpv1.NodeClaim{}
		w.onCreate = func(ctx context.Context, c client.WithWatch, o client.Object) error {
			if stranger.Name == "" {
				stranger.Name = o.GetName()
				if err := c.Create(ctx, stranger); err != nil {
					return err
				}
			}
			return c.Create(ctx, o)
		}
		w.plan()
		w.wantClaims(2)
	})
}

func TestPlanInputsAreRecheckedBeforeApply(t *testing.T) {
	limited := func(np *karpv1.NodePool) {
		np.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("100")}
	}
	pool := types.NamespacedName{Name: "general"}
	for _, c := range []struct {
		name   string
		pool   *karpv1.NodePool
		change func(w *world)
		want   int
		reason string
	}{
		{"a pod is gone", nodePool(), func(w *world) { w.delete(waitingPods(1, "1")[0]) }, 1, RejectedPods},
		{"a pod is another of its name", nodePool(), func(w *world) {
			pod := waitingPods(1, "1")[0]
			w.delete(pod)
			pod.SetUID("new")
			if err := w.kube.Create(w.ctx, pod); err != nil {
				w.t.Fatal(err)
			}
		}, 1, RejectedPods},
		{"a pod has been bound", nodePool(), func(w *world) {
			pod := &corev1.Pod{}
			w.update(types.NamespacedName{Namespace: "default", Name: "web-00"}, pod, func() { pod.Spec.NodeName = "other" })
		}, 1, RejectedPods},
		{"the pool has been changed", nodePool(), func(w *world) {
			np := &karpv1.NodePool{}
			w.update(pool, np, func() { np.Generation, np.Spec.Template.Labels = 2, map[string]string{"team": "mobile"} })
		}, 1, RejectedPool},
		{"the pool is gone", nodePool(), func(w *world) { w.delete(nodePool()); w.mirror.feed.Delete(nodePool()) }, 0, RejectedPool},
		{"somebody else has bought from a pool with limits", nodePool(limited), func(w *world) {
			claim := &karpv1.NodeClaim{
				ObjectMeta: metav1.ObjectMeta{
					Name: "replacement", Labels: map[string]string{karpv1.NodePoolLabelKey: "general", corev1.LabelInstanceTypeStable: "Standard_D2s_v5"},
				},
				Status: karpv1.NodeClaimStatus{
					ProviderID: "azure:///replacement", Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
				},
			}
			if err := w.kube.Create(w.ctx, claim); err != nil {
				w.t.Fatal(err)
			}
		}, 2, RejectedLimits},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, objects(c.pool, waitingPods(3, "1"))...)
			plans := 0
			w.beforeApply = func() {
				if plans++; plans == 1 {
					c.change(w)
					return
				}
				w.beforeApply = nil
			}
			again, err := w.loop.round(w.ctx, 1)
			if err != nil {
				t.Fatal(err)
			}
			if !again {
				t.Error("the round did not ask to plan again")
			}
			if n := rejected(t, w, c.reason); n != 1 {
				t.Errorf("%s was counted %v times", c.reason, n)
			}
			w.sync()
			w.forgetGone()
			w.plan()
			w.wantClaims(c.want)
		})
	}
}

func TestLastRoundAppliesPlanWithOnePodGone(t *testing.T) {
	w := newWorld(t, objects(nodePool(), waitingPods(3, "1"))...)
	w.beforeApply = func() { w.beforeApply = nil; w.delete(waitingPods(1, "1")[0]) }
	if _, err := w.loop.round(w.ctx, maxRounds); err != nil {
		t.Fatal(err)
	}
	w.wantClaims(1)
}

func TestRefusedClaimDoesNotAffectOthers(t *testing.T) {
	w := newWorld(t, objects(nodePool(), waitingPods(30, "1"))...)
	refused := ""
	w.onCreate = func(ctx context.Context, c client.WithWatch, o client.Object) error {
		if refused == "" {
			refused = o.GetName()
		}
		if refused == o.GetName() {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "nodeclaims"}, refused, errors.New("quota"))
		}
		return c.Create(ctx, o)
	}
	w.plan()
	got := len(w.claims())
	if got == 0 {
		t.Fatal("nothing was bought")
	}
	w.sync()
	w.plan()
	w.wantClaims(got + 1)
}

func TestLimitsHoldForEveryAlternative(t *testing.T) {
	// Two cores of limit are left for alternatives after the plan's own machine.
	pool := nodePool(func(np *karpv1.NodePool) {
		np.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("4")}
	})
	w := newWorld(t, objects(pool, waitingPods(1, "1"))...)
	w.plan()
	w.wantClaims(1)
	for _, r := range w.claims()[0].Spec.Requirements {
		if r.Key == corev1.LabelInstanceTypeStable && !slices.Equal(r.Values, []string{"Standard_D2s_v5", "Standard_D4s_v5"}) {
			t.Errorf("got %v: a machine of 8 cores would break the limit", r.Values)
		}
	}
}

func TestPodEventsForPlannedAndUnschedulable(t *testing.T) {
	big := waitingPods(1, "64")[0].(*corev1.Pod)
	big.Name, big.UID = "big", "big"
	w := newWorld(t, objects(nodePool(), waitingPods(2, "1"), big)...)
	w.plan()
	claim := w.claims()[0].Name
	want := []string{
		"Normal Nominated web-00: Pod should schedule on: nodeclaim/" + claim,
		"Normal Nominated web-01: Pod should schedule on: nodeclaim/" + claim,
	}
	if diff := cmp.Diff(want, w.recorder.of("Nominated")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := w.recorder.of("FailedScheduling"); len(got) != 1 ||
		!strings.HasPrefix(got[0], "Warning FailedScheduling big: Failed to schedule pod, ") {
		t.Errorf("got %q", got)
	}
	if _, told := w.cluster.failed["big"]; !told || len(w.cluster.failed) != 1 {
		t.Errorf("Karpenter's mirror was told of %v", w.cluster.failed)
	}
	if n := w.cluster.byClaim[claim]; n != 2 {
		t.Errorf("the claim is said to be for %d pods, want 2", n)
	}
}

func TestEventsReachEveryWorkloadFirst(t *testing.T) {
	var pods []client.Object
	for class := range 3 {
		for _, o := range waitingPods(2*explainedBurst, fmt.Sprint(60+class)) {
			pod := o.(*corev1.Pod)
			pod.Name = fmt.Sprintf("w%d-%s", class, pod.Name)
			pod.UID = types.UID(pod.Name)
			pods = append(pods, pod)
		}
	}
	w := newWorld(t, objects(nodePool(), pods)...)
	w.plan()
	told := map[string]int{}
	lines := w.recorder.of("FailedScheduling")
	for _, line := range lines {
		told[strings.Fields(line)[2][:2]]++
	}
	if len(lines) < explainedBurst || len(lines) > 2*explainedBurst {
		t.Errorf("%d events at once, want about %d", len(lines), explainedBurst)
	}
	for class := range 3 {
		if n := told[fmt.Sprint("w", class)]; n < len(lines)/3 {
			t.Errorf("workload %d got %d of %d events", class, n, len(lines))
		}
	}
}

func TestExistingNodesArePlannedAndNominated(t *testing.T) {
	w := newWorld(t, objects(nodePool(), waitingPods(2, "1"), readyNode("node-1"))...)
	w.plan()
	w.wantClaims(0)
	if !slices.Equal(w.cluster.nominated, []string{"azure:///node-1"}) {
		t.Errorf("nominated %v", w.cluster.nominated)
	}
	want := "Normal Nominated web-00: Pod should schedule on: node/node-1"
	if got := w.recorder.of("Nominated"); len(got) != 2 || got[0] != want {
		t.Errorf("got %v, want two like %q", got, want)
	}
}

func readyNode(name string) *corev1.Node {
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Spec:       corev1.NodeSpec{ProviderID: "azure:///" + name},
		Status: corev1.NodeStatus{
			Capacity: size, Allocatable: size,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func TestInvalidPodGetsEvent(t *testing.T) {
	bad := waitingPods(1, "1")[0].(*corev1.Pod)
	bad.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "Near", Values: []string{"a"}}}}},
	}}}
	w := newWorld(t, nodePool(), bad)
	w.plan()
	w.wantClaims(0)
	if got := w.recorder.of("FailedScheduling"); len(got) != 1 || !strings.Contains(got[0], `"Near"`) {
		t.Errorf("got %v", got)
	}
}

func TestActivityLastsAsLongAsPlanning(t *testing.T) {
	w := newWorld(t, objects(nodePool(), waitingPods(3, "1"))...)
	plan, busy := w.solve, false
	w.solve = func(p *model.Problem) *model.Plan {
		busy = !w.loop.Activity().Since().IsZero()
		return plan(p)
	}
	w.plan()
	if !busy || !w.loop.Activity().Since().IsZero() {
		t.Errorf("busy while it plans: %t; since %s when that is over", busy, w.loop.Activity().Since())
	}
}
