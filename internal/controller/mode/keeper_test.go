package mode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/cloudprovider"
	"github.com/nodeautoprovision/nap/internal/controller/outage"
	"github.com/nodeautoprovision/nap/internal/controller/prerequisitewatch"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// world is a keeper in a cluster of its own.
type world struct {
	*Keeper
	t             *testing.T
	said          []string
	prerequisites outage.Finding
	checks        prerequisitewatch.Report
}

func (w *world) Publish(evs ...events.Event) {
	for _, e := range evs {
		w.said = append(w.said, e.Reason)
	}
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	if err := errors.Join(v1alpha1.AddToScheme(scheme.Scheme), v1beta1.AddToScheme(scheme.Scheme)); err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.NodeAutoProvisioning{}).Build()
	w := &world{t: t}
	w.Keeper = &Keeper{
		Kube: kube, Recorder: w, Clock: clocktesting.NewFakeClock(time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC)),
		Prerequisites: func() outage.Finding { return w.prerequisites }, Token: func() outage.Finding { return outage.Finding{} },
		Checks: func() prerequisitewatch.Report { return w.checks }, OutboundType: "loadBalancer",
	}
	return w
}

// looks lets the keeper look twice, since it acts on what it reads, and returns the object.
func (w *world) looks() *v1alpha1.NodeAutoProvisioning {
	w.t.Helper()
	for range 2 {
		if err := w.look(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	object := &v1alpha1.NodeAutoProvisioning{}
	if err := w.Kube.Get(w.t.Context(), client.ObjectKey{Name: "default"}, object); err != nil {
		w.t.Fatal(err)
	}
	return object
}

func (w *world) change(o client.Object, change func()) {
	w.t.Helper()
	if err := w.Kube.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Fatal(err)
	}
	change()
	if err := w.Kube.Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func condition(t *testing.T, o *v1alpha1.NodeAutoProvisioning, name string) string {
	t.Helper()
	c := meta.FindStatusCondition(o.Status.Conditions, name)
	if c == nil {
		t.Fatalf("no condition %s in %v", name, o.Status.Conditions)
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

func pool(name string, limits corev1.ResourceList) *karpv1.NodePool {
	return &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: karpv1.NodePoolSpec{Limits: karpv1.Limits(limits)}}
}

func claim(name, node string) *karpv1.NodeClaim {
	return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: karpv1.NodeClaimStatus{NodeName: node}}
}

func none() corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse("0")} }

// TestObjectIsMadeAndSaysWhatBlocksManual: the controller makes the object, and its status
// names nodes and NodePools until none is left.
func TestObjectIsMadeAndSaysWhatBlocksManual(t *testing.T) {
	open, machine := pool("general", corev1.ResourceList{"cpu": resource.MustParse("10")}), claim("general-abc", "aks-general-abc")
	w := newWorld(t, open, pool("closed", none()), machine)
	got := w.looks()
	if got.Spec.Mode != v1alpha1.ModeAuto || got.Status.Nodes != 1 || got.Status.NodePools != 2 {
		t.Errorf("got %+v", got)
	}
	const want = "1 node aks-general-abc, 1 NodePool general may buy (spec.limits.cpu is not 0)"
	if got.Status.DisableBlockedBy != want {
		t.Errorf("blocked by %q, want %q", got.Status.DisableBlockedBy, want)
	}
	if c := condition(t, got, v1alpha1.ConditionDisableBlocked); c != "True NodesOrLimitsRemain: Mode Manual would leave machines behind: "+want {
		t.Error(c)
	}
	w.change(open, func() { open.Spec.Limits = karpv1.Limits(none()) })
	if got := w.looks().Status.DisableBlockedBy; got != "1 node aks-general-abc" {
		t.Errorf("blocked by %q", got)
	}
	if err := w.Kube.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	got = w.looks()
	if c := condition(t, got, v1alpha1.ConditionDisableBlocked); got.Status.DisableBlockedBy != "" || !strings.HasPrefix(c, "False NothingBlocks") {
		t.Errorf("%q, %s", got.Status.DisableBlockedBy, c)
	}
}

// TestModeManualStopsBuying: from the first reading on, and not before Auto is known.
func TestModeManualStopsBuying(t *testing.T) {
	w := newWorld(t)
	if f := w.Finding(); f.Reason != ReasonUnknown {
		t.Errorf("before the mode is read nap may buy: %v", f)
	}
	object := w.looks()
	if f := w.Finding(); f != (outage.Finding{}) {
		t.Errorf("mode Auto does not buy: %v", f)
	}
	if c := condition(t, object, v1alpha1.ConditionProvisioning); !strings.HasPrefix(c, "True ModeAuto") {
		t.Error(c)
	}
	w.change(object, func() { object.Spec.Mode = v1alpha1.ModeManual })
	object = w.looks()
	if f := w.Finding(); f.Reason != v1alpha1.ReasonManual {
		t.Errorf("mode Manual buys: %v", f)
	}
	if c := condition(t, object, v1alpha1.ConditionProvisioning); !strings.HasPrefix(c, "False ModeManual") {
		t.Error(c)
	}
	w.change(object, func() { object.Spec.Mode = v1alpha1.ModeAuto })
	w.looks()
	if got := fmt.Sprint(w.said); got != "[SwitchedOff SwitchedOn]" {
		t.Errorf("events %s", got)
	}
}

// TestDeletedObjectComesBackInItsMode: nap does not start to buy because the object is
// gone that switched it off.
func TestDeletedObjectComesBackInItsMode(t *testing.T) {
	w := newWorld(t, &v1alpha1.NodeAutoProvisioning{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec:       v1alpha1.NodeAutoProvisioningSpec{Mode: v1alpha1.ModeManual, DefaultNodePools: v1alpha1.DefaultNodePoolsNone},
	})
	object := w.looks()
	if err := w.Kube.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if got := w.looks().Spec; got != object.Spec {
		t.Errorf("got %v, want %v", got, object.Spec)
	}
}

// TestConditionsTellWhyNothingIsBought: what else keeps nap from buying is told in its own
// condition and in Provisioning.
func TestConditionsTellWhyNothingIsBought(t *testing.T) {
	w := newWorld(t)
	w.prerequisites = outage.Finding{Reason: "ClusterStopped", Message: "the cluster is stopped"}
	got := w.looks()
	for _, name := range []string{v1alpha1.ConditionPrerequisites, v1alpha1.ConditionProvisioning} {
		if c := condition(t, got, name); c != "False ClusterStopped: the cluster is stopped" {
			t.Errorf("%s: %s", name, c)
		}
	}
	w.prerequisites = outage.Finding{}
	if c := condition(t, w.looks(), v1alpha1.ConditionProvisioning); !strings.HasPrefix(c, "True") {
		t.Error(c)
	}
}

// TestNothingIsWrittenWithoutChange: the status is written when it differs, not each second.
func TestNothingIsWrittenWithoutChange(t *testing.T) {
	w := newWorld(t, claim("a", ""))
	w.looks() // makes the default NodePools, which it counts when it looks again
	before := w.looks().ResourceVersion
	if after := w.looks().ResourceVersion; after != before {
		t.Errorf("resource version %s became %s", before, after)
	}
}

func TestBlockersNameTheFirstAndCountTheRest(t *testing.T) {
	var claims []karpv1.NodeClaim
	for i := range 8 {
		claims = append(claims, *claim(fmt.Sprintf("c%d", i), ""))
	}
	replicas := int64(2)
	static := pool("static", none())
	static.Spec.Replicas = &replicas
	gone := pool("gone", nil)
	gone.DeletionTimestamp = &metav1.Time{}
	got := Blockers(claims, []karpv1.NodePool{*static, *gone})
	if want := "8 nodes c0, c1, c2, c3, c4 and 3 more, 1 NodePool static may buy (spec.limits.cpu is not 0)"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// cloud counts what is launched.
type cloud struct {
	karpcloud.CloudProvider
	launched int
}

func (c *cloud) Create(context.Context, *karpv1.NodeClaim) (*karpv1.NodeClaim, error) {
	c.launched++
	return &karpv1.NodeClaim{}, nil
}

// TestGuardLaunchesNothingInModeManual: for no NodeClaim.
func TestGuardLaunchesNothingInModeManual(t *testing.T) {
	inner, finding := &cloud{}, outage.Finding{Reason: v1alpha1.ReasonManual, Message: "off"}
	g := Guard{CloudProvider: inner, Finding: func() outage.Finding { return finding }}
	if _, err := g.Create(t.Context(), claim("a", "")); err == nil || inner.launched > 0 {
		t.Errorf("launched %d, error %v", inner.launched, err)
	}
	finding = outage.Finding{}
	if _, err := g.Create(t.Context(), claim("a", "")); err != nil || inner.launched != 1 {
		t.Errorf("launched %d, error %v", inner.launched, err)
	}
}

// TestConditionNamesChecksThatAreNotMet: a row that fails makes the condition False and
// leaves Provisioning alone, a warning is in its message, and a refusal comes first.
func TestConditionNamesChecksThatAreNotMet(t *testing.T) {
	w := newWorld(t)
	if c := condition(t, w.looks(), v1alpha1.ConditionPrerequisites); !strings.HasPrefix(c, "Unknown NotChecked: ") {
		t.Error(c)
	}
	const doctor = "nap doctor --resource-group g --name n"
	fails := prerequisites.Result{Number: 23, Name: "outbound-path", Verdict: prerequisites.Failed, Finding: "no route"}
	warns := prerequisites.Result{Number: 35, Name: "quota", Verdict: prerequisites.Warning, Finding: "too little"}
	for _, tt := range []struct {
		results []prerequisites.Result
		refusal outage.Finding
		want    string
		unmet   []string
	}{
		{[]prerequisites.Result{{Verdict: prerequisites.OK}}, outage.Finding{}, "True Met: The cluster lets nap buy", nil},
		{[]prerequisites.Result{warns}, outage.Finding{}, "True Met: The cluster lets nap buy; 35 quota (warning): too little. What to do: " + doctor, []string{"quota"}},
		{[]prerequisites.Result{warns, fails}, outage.Finding{},
			"False NotMet: nap buys, and not all is well: 23 outbound-path (failed): no route; 35 quota (warning): too little. What to do: " + doctor,
			[]string{"outbound-path", "quota"}},
		{[]prerequisites.Result{fails}, outage.Finding{Reason: "ClusterStopped", Message: "stopped"}, "False ClusterStopped: stopped", []string{"outbound-path"}},
	} {
		w.checks, w.prerequisites = prerequisitewatch.Report{Results: tt.results, Doctor: doctor}, tt.refusal
		got := w.looks()
		if c := condition(t, got, v1alpha1.ConditionPrerequisites); c != tt.want || !slices.Equal(got.Status.UnmetPrerequisites, tt.unmet) {
			t.Errorf("%s, unmet %v, want %s, %v", c, got.Status.UnmetPrerequisites, tt.want, tt.unmet)
		}
		if c := condition(t, got, v1alpha1.ConditionProvisioning); tt.refusal == (outage.Finding{}) && !strings.HasPrefix(c, "True") {
			t.Error(c)
		}
	}
}

// TestChangeOfOutboundTypeIsNotedWhileOldMachinesRun: from the look that sees it until no
// machine is left that was made before.
func TestChangeOfOutboundTypeIsNotedWhileOldMachinesRun(t *testing.T) {
	old := claim("old", "")
	old.CreationTimestamp = metav1.NewTime(time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC))
	w := newWorld(t, old)
	if got := w.looks().Status.Outbound; got == nil || got.Type != "loadBalancer" || got.Before != "" {
		t.Errorf("first noted %+v", got)
	}
	w.OutboundType = "managedNATGateway"
	got := w.looks().Status.Outbound
	if got.Type != "managedNATGateway" || got.Before != "loadBalancer" || got.Changed == nil {
		t.Errorf("after the change %+v", got)
	}
	young := claim("young", "")
	young.CreationTimestamp = metav1.NewTime(w.Clock.Now().Add(time.Minute))
	if err := errors.Join(w.Kube.Create(t.Context(), young), w.Kube.Delete(t.Context(), old)); err != nil {
		t.Fatal(err)
	}
	if got := w.looks().Status.Outbound; got.Type != "managedNATGateway" || got.Before != "" || got.Changed != nil {
		t.Errorf("without old machines %+v", got)
	}
}

func TestConditionCountsNodesThatAreOld(t *testing.T) {
	drifted := func(name string, reason karpcloud.DriftReason, state metav1.ConditionStatus) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Conditions = []status.Condition{{Type: karpv1.ConditionTypeDrifted, Status: state, Reason: string(reason)}}
		return c
	}
	for want, claims := range map[string][]client.Object{
		"True AllUpgraded: All nodes have the image and the Kubernetes version of new ones": {
			&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, drifted("b", "NodePoolDrifted", metav1.ConditionTrue),
			drifted("c", cloudprovider.DriftImage, metav1.ConditionFalse),
		},
		"False NodesAreOld: To be replaced within windows and budgets: 2 nodes of 3 with an older image, " +
			"1 node of 3 with an older Kubernetes version": {
			drifted("a", cloudprovider.DriftImage, metav1.ConditionTrue), drifted("b", cloudprovider.DriftImage, metav1.ConditionTrue),
			drifted("c", cloudprovider.DriftVersion, metav1.ConditionTrue),
		},
	} {
		c := meta.FindStatusCondition(newWorld(t, claims...).looks().Status.Conditions, v1alpha1.ConditionUpgraded)
		if got := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

func TestNodeClaimsAreReadAgainOnlyAfterChanges(t *testing.T) {
	w := newWorld(t, claim("first", ""))
	var changes uint64
	w.Changes = func() uint64 { return changes }
	if got := w.looks().Status.Nodes; got != 1 {
		t.Fatalf("%d nodes are counted, want 1", got)
	}
	if err := w.Kube.Create(t.Context(), claim("second", "")); err != nil {
		t.Fatal(err)
	}
	if got := w.looks().Status.Nodes; got != 1 {
		t.Errorf("%d nodes are counted without a change, want the 1 of before", got)
	}
	changes++
	if got := w.looks().Status; got.Nodes != 2 || !strings.Contains(got.DisableBlockedBy, "second") {
		t.Errorf("%d nodes are counted after a change, and %q blocks, want 2 with second", got.Nodes, got.DisableBlockedBy)
	}
}
