package outage

import (
	"errors"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
)

type told []string

func (r *told) Publish(evts ...events.Event) {
	for _, e := range evts {
		*r = append(*r, e.Type+" "+e.Reason+": "+e.Message)
	}
}

func TestOutageConditionOnEveryClassAndSingleEvent(t *testing.T) {
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), v1beta1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	gvk, _, err := scheme.Scheme.ObjectKinds(&karpv1.NodeClaim{})
	if err != nil {
		t.Fatal(err)
	}
	s.AddKnownTypes(gvk[0].GroupVersion(), &karpv1.NodeClaim{}, &karpv1.NodeClaimList{})
	ready := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "a"}}
	for _, c := range []string{v1beta1.ConditionKubernetesVersionReady, v1beta1.ConditionImagesReady,
		v1beta1.ConditionSubnetsReady, v1beta1.ConditionValidationSucceeded, v1beta1.ConditionLocalDNSReady} {
		ready.StatusConditions().SetTrue(c)
	}
	kube := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(ready, &karpv1.NodeClaim{}).WithObjects(ready,
		waiting("outage", v1beta1.ReasonAzureUnavailable), waiting("other", "QuotaExceeded"), launched("machine")).Build()
	out, recorder := "", &told{}
	pauses, err := metrics.NewPauses(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	loop := &Loop{Kube: kube, Recorder: recorder, Clock: clock.RealClock{}, Metrics: pauses, Watches: []Watch{{
		Condition: v1beta1.ConditionAzureAvailable, Resumed: "Azure answers again; machines are launched",
		Finding: func() Finding {
			if out == "" {
				return Finding{}
			}
			return Finding{v1beta1.ReasonAzureUnavailable, out}
		},
	}}}
	condition := func() *status.Condition {
		t.Helper()
		for range 2 { // the second look has nothing to do
			if err := loop.look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		c := &v1beta1.AKSNodeClass{}
		if err := kube.Get(t.Context(), client.ObjectKey{Name: "default"}, c); err != nil {
			t.Fatal(err)
		}
		if !c.StatusConditions().Get(status.ConditionReady).IsTrue() {
			t.Error("the class is not Ready any more: an outage must not stop planning")
		}
		return c.StatusConditions().Get(v1beta1.ConditionAzureAvailable)
	}

	if c := condition(); !c.IsTrue() || len(*recorder) != 0 {
		t.Errorf("at first: %+v, events %q", c, *recorder)
	}
	out = "Microsoft.Compute (writes) fails"
	if c := condition(); !c.IsFalse() || c.Reason != v1beta1.ReasonAzureUnavailable || c.Message != out {
		t.Errorf("during the outage: %+v", c)
	}
	out = ""
	if c := condition(); !c.IsTrue() {
		t.Errorf("afterwards: %+v", c)
	}
	want := "Warning LaunchesPaused: Microsoft.Compute (writes) fails; Normal LaunchesResumed: Azure answers again; machines are launched"
	if got := strings.Join(*recorder, "; "); got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	// The claim that waited is written to, so that its launch is tried again at once; no other is.
	for name, want := range map[string]string{
		"outage": "Unknown LaunchesResumed: Azure answers again; machines are launched", "other": "Unknown QuotaExceeded: no",
		"machine": "True Launched: ",
	} {
		claim := &karpv1.NodeClaim{}
		if err := kube.Get(t.Context(), client.ObjectKey{Name: name}, claim); err != nil {
			t.Fatal(err)
		}
		c := claim.StatusConditions().Get(karpv1.ConditionTypeLaunched)
		if got := string(c.Status) + " " + c.Reason + ": " + c.Message; got != want {
			t.Errorf("NodeClaim %s is %q, want %q", name, got, want)
		}
		if name == "outage" && !c.LastTransitionTime.Equal(&ordered) {
			t.Errorf("its time to be given up counts from %s, want %s", c.LastTransitionTime, ordered)
		}
	}
}

// ordered is since when the NodeClaims of the tests wait.
var ordered = metav1.Unix(1_700_000_000, 0)

// waiting is a NodeClaim without a machine.
func waiting(name, reason string) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ordered}}
	c.StatusConditions().SetUnknownWithReason(karpv1.ConditionTypeLaunched, reason, "no")
	for i := range c.Status.Conditions {
		c.Status.Conditions[i].LastTransitionTime = ordered
	}
	return c
}

func launched(name string) *karpv1.NodeClaim {
	c := waiting(name, "Launched")
	c.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
	return c
}

func TestPauseTellsClassesNodePoolsAndMetric(t *testing.T) {
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), v1beta1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	gvk, _, err := scheme.Scheme.ObjectKinds(&karpv1.NodePool{})
	if err != nil {
		t.Fatal(err)
	}
	s.AddKnownTypes(gvk[0].GroupVersion(), &karpv1.NodePool{}, &karpv1.NodePoolList{}, &karpv1.NodeClaim{}, &karpv1.NodeClaimList{})
	class := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "a"}}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "b"}}
	kube := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(class).WithObjects(class, pool).Build()
	registry := prometheus.NewRegistry()
	pauses, err := metrics.NewPauses(registry)
	if err != nil {
		t.Fatal(err)
	}
	finding, recorder := Finding{}, &told{}
	loop := &Loop{Kube: kube, Recorder: recorder, Clock: clock.RealClock{}, Metrics: pauses, Watches: []Watch{{
		Condition: v1beta1.ConditionLaunchesAllowed, Finding: func() Finding { return finding }, Resumed: "go on", NodePools: true,
	}}}
	for _, tt := range []struct {
		finding Finding
		status  metav1.ConditionStatus
		told    string
	}{
		{Finding{}, metav1.ConditionTrue, ""},
		{Finding{"NodeProvisioningAuto", "az aks update"}, metav1.ConditionFalse, "Warning LaunchesPaused: az aks update"},
		{Finding{"ClusterStopped", "az aks start"}, metav1.ConditionFalse, "Warning LaunchesPaused: az aks start"},
		{Finding{}, metav1.ConditionTrue, "Normal LaunchesResumed: go on"},
	} {
		finding, *recorder = tt.finding, nil
		for range 2 {
			if err := loop.look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got := &v1beta1.AKSNodeClass{}
		if err := kube.Get(t.Context(), client.ObjectKey{Name: "default"}, got); err != nil {
			t.Fatal(err)
		}
		if c := got.StatusConditions().Get(v1beta1.ConditionLaunchesAllowed); c.Status != tt.status || tt.finding.Reason != "" && c.Reason != tt.finding.Reason {
			t.Errorf("%+v: condition %+v", tt.finding, c)
		}
		want := ""
		if tt.told != "" { // once on the class, once on the NodePool
			want = tt.told + "; " + tt.told
		}
		if text := strings.Join(*recorder, "; "); text != want {
			t.Errorf("%+v: events %q, want %q", tt.finding, text, want)
		}
		expected := ""
		if tt.finding.Reason != "" {
			expected = "# HELP nap_launches_paused 1 while nothing is launched, by reason, as the conditions of AKSNodeClasses have it.\n" +
				"# TYPE nap_launches_paused gauge\nnap_launches_paused{reason=\"" + tt.finding.Reason + "\"} 1\n"
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(expected), "nap_launches_paused"); err != nil {
			t.Error(err)
		}
	}
}
