package cloudprovider

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/awslabs/operatorpkg/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/controller/metrics/metricstest"
)

// A condition's message is not longer than an API server and a person can take, and is text.
func TestConditionSaysTheBeginningOfALongError(t *testing.T) {
	exact := strings.Repeat("x", longestMessage)
	for _, long := range []string{exact, exact + "x", "x" + strings.Repeat("ä", longestMessage)} {
		var e *karpcloud.CreateError
		if !errors.As(createError(errors.New(long)), &e) {
			t.Fatal("no error for the claim")
		}
		n := len(e.ConditionMessage)
		if n > longestMessage || n < longestMessage-1 || !utf8.ValidString(e.ConditionMessage) || !strings.HasPrefix(long, e.ConditionMessage) {
			t.Errorf("of %d bytes %d are said, want %d at most", len(long), n, longestMessage)
		}
	}
}

// The condition that sums the others up says nothing of its own.
func TestClassSaysWhatIsWrongWithIt(t *testing.T) {
	class := &v1beta1.AKSNodeClass{Status: v1beta1.AKSNodeClassStatus{Conditions: []status.Condition{
		{Type: v1beta1.ConditionImagesReady, Status: metav1.ConditionTrue, Message: "found"},
		{Type: v1beta1.ConditionSubnetsReady, Status: metav1.ConditionFalse, Message: "full"},
		{Type: v1beta1.ConditionValidationSucceeded, Status: metav1.ConditionUnknown, Message: "no answer"},
		{Type: status.ConditionReady, Status: metav1.ConditionFalse, Message: "SubnetsReady=False"},
	}}}
	for is, want := range map[metav1.ConditionStatus]string{
		metav1.ConditionFalse:   v1beta1.ConditionSubnetsReady + ": full",
		metav1.ConditionUnknown: v1beta1.ConditionValidationSucceeded + ": no answer",
	} {
		if got := messages(class, is); got != want {
			t.Errorf("%s: %q, want %q", is, got, want)
		}
	}
}

// A claim that is gone already is not one more that was disrupted.
func TestClaimThatGoesByItselfIsNotGivenUpTwice(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		fails  bool
	}{
		"gone":      {apierrors.NewNotFound(schema.GroupResource{Resource: "nodeclaims"}, "general-a"), false},
		"no answer": {errors.New("timeout"), true},
	} {
		kube := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(claim("general-a")).WithInterceptorFuncs(interceptor.Funcs{
			Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return c.answer },
		}).Build()
		p := &Port{kube: kube, recorder: &laterRecorder{}}
		const disrupted = "karpenter_nodeclaims_disrupted_total"
		before := metricstest.Value(t, ctrlmetrics.Registry, disrupted, "async_provisioning")
		_, err := p.failedLate(t.Context(), "general-a", unavailable.NewFailure("AllocationFailed", "No capacity.", nil))
		if (err != nil) != c.fails || c.fails && !strings.Contains(err.Error(), "general-a") {
			t.Errorf("%s: %v", name, err)
		}
		if n := metricstest.Value(t, ctrlmetrics.Registry, disrupted, "async_provisioning") - before; n != 0 {
			t.Errorf("%s: %v disrupted claims are counted, want none", name, n)
		}
	}
}

// A machine that is a node works, whatever Azure says of its making. One whose claim knows it
// goes with its claim, which drains it; another one has to be removed.
func TestLateFailureSparesNodesAndLeavesMachinesToClaims(t *testing.T) {
	for name, c := range map[string]struct {
		exists, registered bool
		providerID         string
		want               launch.Fate
	}{
		"it is a node":                      {true, true, "azure:///a", launch.Keep},
		"its claim knows it":                {true, false, "azure:///a", launch.Leave},
		"its claim does not know of it yet": {true, false, "", launch.Remove},
		"its claim is gone":                 {false, false, "azure:///a", launch.Remove},
	} {
		x := claim("general-a")
		x.Status.ProviderID = c.providerID
		if c.registered {
			x.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
		}
		b := fake.NewClientBuilder().WithScheme(scheme(t))
		if c.exists {
			b = b.WithObjects(x)
		}
		kube := b.Build()
		p := &Port{kube: kube, recorder: &laterRecorder{}}
		timeout := unavailable.NewFailure("OSProvisioningTimedOut", "The VM may still finish provisioning.", nil)
		if fate, err := p.failedLate(t.Context(), "general-a", timeout); err != nil || fate != c.want {
			t.Errorf("%s: fate %v, %v, want %v", name, fate, err, c.want)
		}
		err := kube.Get(t.Context(), client.ObjectKey{Name: "general-a"}, claim("general-a"))
		if (err == nil) != c.registered {
			t.Errorf("%s: the claim afterwards: %v", name, err)
		}
	}
}

// What Azure would sell never is no reason to plan again.
func TestSoldOutIsARefusalForCapacity(t *testing.T) {
	for code, want := range map[string]bool{"AllocationFailed": true, "SubnetIsFull": false} {
		err := &launch.Refused{Failure: unavailable.NewFailure(code, "No.", nil)}
		if soldOut(err) != want {
			t.Errorf("%s counts as sold out: %t", code, !want)
		}
	}
	if soldOut(errors.New("timeout")) || !soldOut(launch.ErrNoCandidate) || !soldOut(&launch.TooDear{}) {
		t.Error("no answer is nothing to plan for; that nothing is left, or what is left is dear, is")
	}
}
