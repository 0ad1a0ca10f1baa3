package outage

import (
	"errors"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
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
	ready := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "a"}}
	for _, c := range []string{v1beta1.ConditionKubernetesVersionReady, v1beta1.ConditionImagesReady,
		v1beta1.ConditionSubnetsReady, v1beta1.ConditionValidationSucceeded, v1beta1.ConditionLocalDNSReady} {
		ready.StatusConditions().SetTrue(c)
	}
	kube := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(ready).WithObjects(ready).Build()
	out, recorder := "", &told{}
	loop := &Loop{Kube: kube, Recorder: recorder, Clock: clock.RealClock{}, Watches: []Watch{{
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
}
