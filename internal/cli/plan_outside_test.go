package cli

import (
	"strings"
	"testing"
)

// Pods that keep off the nodes of every NodePool are no work of nap's, and are told all the same.
func TestPodsOutsideEveryNodePoolAreTold(t *testing.T) {
	const outside = "{containers: [{name: c, resources: {requests: {cpu: 1}}}], affinity: {nodeAffinity: " +
		"{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: " +
		"[{key: karpenter.sh/nodepool, operator: DoesNotExist}]}]}}}}"
	_, errs, code := nap.Run(t, "plan", "-f", writeInput(t, poolWith("weight: 1", "requirements: []")+"---\n"+podWith(outside)), "--budget", "0")
	if text := strings.Join(strings.Fields(errs), " "); code != 0 || !strings.Contains(text, "1 pod with rules that keep it off the nodes of every NodePool, "+
		"the first is default/p") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}
