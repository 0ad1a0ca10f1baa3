package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Boots counts machines that did not become nodes.
type Boots struct {
	failed *prometheus.CounterVec
}

// bootFailed is Karpenter's reason label of claims that are given up.
const bootFailed = "boot_failed"

// NewBoots registers the metrics.
func NewBoots(reg prometheus.Registerer) (*Boots, error) {
	var err error
	b := &Boots{failed: register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "nap_boot_failures_total",
		Help: "Machines that were made and did not become nodes, by NodePool and exit code of their provisioning; " +
			"without one the code is empty.",
	}, []string{"nodepool", "exit_code"}), &err)}
	return b, err
}

// Failed counts a machine whose provisioning failed; exitCode is 0 where it is not
// known.
func (b *Boots) Failed(nodePool string, exitCode int) {
	code := ""
	if exitCode != 0 {
		code = strconv.Itoa(exitCode)
	}
	b.failed.WithLabelValues(nodePool, code).Inc()
}

// asyncProvisioning is the reason label by which users of Karpenter on Azure know claims
// whose machine failed after Azure had accepted it.
const asyncProvisioning = "async_provisioning"

// AsyncProvisioningFailed counts a NodeClaim that was deleted since Azure gave its machine
// up after it had accepted it.
func AsyncProvisioningFailed(claim *karpv1.NodeClaim) {
	claimDisrupted(claim, asyncProvisioning, "", 0)
}

// GaveUp counts a NodeClaim that was deleted because its machine did not become a node.
func (b *Boots) GaveUp(claim *karpv1.NodeClaim) { claimDisrupted(claim, bootFailed, "", 0) }
