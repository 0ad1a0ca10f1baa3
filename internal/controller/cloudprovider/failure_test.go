package cloudprovider

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
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
