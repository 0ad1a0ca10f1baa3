package event

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/model"
)

// The reasons of events on NodeClaims that Karpenter does not have. That a NodePool may cost no
// more has the reason ReasonLimitReached.
const (
	ReasonProvisioned    = "Provisioned"
	ReasonPriceDiffers   = "PriceDiffers"
	ReasonClassMissing   = "NodeClassResolutionError"
	ReasonGivenUpByAzure = "AsyncProvisioningError"
	ReasonBootFailed     = v1beta1.ReasonBootFailed
	ReasonSpotEviction   = "SpotEviction"
)

// Bought is a machine that was bought.
type Bought struct {
	Size         string
	CapacityType model.CapacityType
	// Zone is empty for a machine without one.
	Zone string
	// Paid is what it costs per hour, with its disk and what was added per node.
	Paid model.Money
}

// Provisioned says on a NodeClaim which machine it has, where, and what that costs.
func Provisioned(claim *karpv1.NodeClaim, b Bought) events.Event {
	where := ""
	if b.Zone != "" {
		where = " in " + b.Zone
	}
	return normal(claim, ReasonProvisioned, fmt.Sprintf("%s %s%s was bought at %s", b.Size, b.CapacityType, where, b.Paid))
}

// PriceDiffers says on a NodeClaim that its machine costs another price than was planned.
// Precondition: planned is not zero.
func PriceDiffers(claim *karpv1.NodeClaim, b Bought, planned model.Money) events.Event {
	return warning(claim, ReasonPriceDiffers, fmt.Sprintf(
		"%s %s was bought at %s instead of the planned %s (%+.0f%%): Azure refused what was cheaper, or prices have changed",
		b.Size, b.CapacityType, b.Paid, planned, 100*(b.Paid.Dollars()/planned.Dollars()-1)))
}

// ClassMissing says on a NodeClaim that its AKSNodeClass is not there, or goes.
func ClassMissing(claim *karpv1.NodeClaim, why error) events.Event {
	return warning(claim, ReasonClassMissing, "No machine is bought: "+why.Error())
}

// LimitOfClaim says on a NodeClaim that its NodePool would cost more than its limit.
func LimitOfClaim(claim *karpv1.NodeClaim, what string) events.Event {
	return warning(claim, ReasonLimitReached, "No machine is bought: "+what)
}

// GivenUpByAzure says on a NodeClaim that Azure has given up a machine that it had accepted.
func GivenUpByAzure(claim *karpv1.NodeClaim, why error) events.Event {
	return warning(claim, ReasonGivenUpByAzure, fmt.Sprintf("Azure accepted the machine and then gave it up: %v", why))
}

// Undeletable says on a NodeClaim that Azure refuses to delete its machine, and what a person has
// to do. The reason is that of Azure's refusal, see [Reasons].
func Undeletable(claim *karpv1.NodeClaim, reason, code, advice string) events.Event {
	return warning(claim, reason, fmt.Sprintf("The machine cannot be deleted and is paid for (%s): %s", code, advice))
}

// Unrestartable says on a NodeClaim that Azure refuses to restart its machine, and what a person
// has to do.
func Unrestartable(claim *karpv1.NodeClaim, reason, code, advice string) events.Event {
	return warning(claim, reason, fmt.Sprintf("The machine cannot be restarted (%s): %s", code, advice))
}

// BootFailed says on a NodeClaim why its machine does not become a node.
func BootFailed(claim *karpv1.NodeClaim, why string) events.Event {
	return warning(claim, ReasonBootFailed, "The machine does not become a node: "+strings.TrimSuffix(why, "."))
}

// SpotEviction says on a NodeClaim and its node that Azure takes the machine back.
func SpotEviction(claim *karpv1.NodeClaim, node *corev1.Node) []events.Event {
	var out []events.Event
	for _, o := range []client.Object{claim, node} {
		out = append(out, warning(o, ReasonSpotEviction, "Azure takes the spot machine back within seconds; its pods are moved", o.GetName()))
	}
	return out
}
