package command

import (
	"github.com/spf13/pflag"

	"github.com/nodeautoprovision/nap/internal/model"
)

// AddNodeShare adds the flags that cap what one node may hold.
func AddNodeShare(flags *pflag.FlagSet, s *model.NodeShare) {
	flags.Float64Var(&s.Workload, "workload-share-per-node", 0,
		"most of a workload's replicas that one node may hold, as a share of them, 0.25 for a quarter; 0 for no cap (engine nap)")
	flags.Float64Var(&s.Fleet, "fleet-share-per-node", 0,
		"most CPU that pods may ask for on one node, as a share of what all pods ask for; 0 for no cap (engine nap)")
}
