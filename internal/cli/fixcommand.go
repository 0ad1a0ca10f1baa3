package cli

import (
	"fmt"

	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/model"
)

// pendingCommand is a command that gives a pod which waits for this reason a place, as far as only
// Azure can tell; or "".
func (m *madePlan) pendingCommand(reason model.Reason, nearest *model.NearestMiss) string {
	if nearest == nil {
		return ""
	}
	switch reason {
	case model.ReasonUnavailable:
		return "nap retry " + nearest.InstanceType
	case model.ReasonQuota:
		short := nearest.Quota // which may be that of the region, or of spot
		if short == "" {
			_, short, _ = offline.SizeAndFamily(nearest.InstanceType)
		}
		if short != "" {
			return fmt.Sprintf("az vm list-usage --location %s --query \"[?name.value=='%s']\"", m.source.Region, short)
		}
	default:
	}
	return ""
}
