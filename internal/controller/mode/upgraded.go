package mode

import (
	"fmt"
	"slices"
	"strings"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
)

// oldness says in words what nodes lack that have drifted for an upgrade, by the reason of
// the condition Drifted.
func oldness() []struct{ reason, words string } {
	return []struct{ reason, words string }{
		{"ImageDrift", "an older image"}, {"K8sVersionDrift", "an older Kubernetes version"}, {"SSHKeyDrift", "another SSH key"},
	}
}

// upgraded is the condition that says how many nodes are still replaced for an upgrade.
func upgraded(claims []karpv1.NodeClaim) metav1.Condition {
	byReason := map[string]int{}
	for i := range claims {
		conditions := claims[i].Status.Conditions
		drifted := slices.IndexFunc(conditions, func(c status.Condition) bool { return c.Type == karpv1.ConditionTypeDrifted })
		if drifted >= 0 && conditions[drifted].Status == metav1.ConditionTrue {
			byReason[conditions[drifted].Reason]++
		}
	}
	var parts []string
	for _, o := range oldness() {
		if n := byReason[o.reason]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s of %d with %s", plural(n, "node"), len(claims), o.words))
		}
	}
	c := metav1.Condition{
		Type: v1alpha1.ConditionUpgraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllUpgraded,
		Message: "All nodes have the image and the Kubernetes version of new ones",
	}
	if len(parts) > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonNodesAreOld
		c.Message = "To be replaced within windows and budgets: " + strings.Join(parts, ", ")
	}
	return c
}
