package kube

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/model"
)

func TestExpectedSavingReadFromReplacement(t *testing.T) {
	for text, want := range map[string]model.Money{"0.25": model.USD(0.25), "": 0, "much": 0, "-1": 0, "NaN": 0, "Inf": 0, "1e300": 0} {
		c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.AnnotationExpectedSaving: text}}}
		if got := claim(c).ExpectedSaving; got != want {
			t.Errorf("%q reads as %s, want %s", text, got, want)
		}
	}
}
