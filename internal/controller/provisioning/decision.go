package provisioning

import (
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
)

// verdicts collect what a round says about pods.
type verdicts struct {
	in  *fleet.Input
	all []snapshot.DecidedPods
	// limits are those of NodePools that keep machines from being bought.
	limits []snapshot.ReachedLimit
}

// wait says that pods wait. They are told apart by their workload.
func (v *verdicts) wait(refs []model.PodRef, words explain.Pending, event string) {
	v.add(refs, snapshot.DecidedPods{Event: event, Words: words})
}

// bound says that a machine is on its way for pods.
func (v *verdicts) bound(refs []model.PodRef, claim string) {
	v.add(refs, snapshot.DecidedPods{NodeClaim: claim})
}

func (v *verdicts) add(refs []model.PodRef, verdict snapshot.DecidedPods) {
	at := map[string]int{}
	for _, ref := range refs {
		if record := v.in.Record(ref); record != nil && record.Announced > 0 {
			continue
		}
		workload := v.in.Owner(ref)
		i, known := at[workload]
		if !known {
			i = len(v.all)
			at[workload] = i
			one := verdict
			one.Workload = workload
			v.all = append(v.all, one)
		}
		v.all[i].Pods = append(v.all[i].Pods, ref)
	}
}
