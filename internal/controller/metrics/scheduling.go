package metrics

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	karpmetrics "sigs.k8s.io/karpenter/pkg/metrics"

	"github.com/nodeautoprovision/nap/internal/model"
)

// schedulingIDLabel is the label of Karpenter's metrics that tells plans apart.
const schedulingIDLabel = "scheduling_id"

// unfinishedEvery is how often it is told how long the present plan has taken.
const unfinishedEvery = time.Second

// Planning tells of a plan that is being made for the pods of a problem, until done is
// called with the number of pods that it has no place for.
func (m *Provisioning) Planning(clk clock.Clock, plan string, p *model.Problem) (done func(unschedulable int)) {
	own := map[string]string{scheduling.ControllerLabel: provisioner}
	labels := map[string]string{scheduling.ControllerLabel: provisioner, schedulingIDLabel: plan}
	scheduling.PendingPodsByEffectiveZone.DeletePartialMatch(own)
	for zone, pods := range podsByZone(p) {
		scheduling.PendingPodsByEffectiveZone.Set(float64(pods), map[string]string{
			scheduling.ControllerLabel: provisioner, karpmetrics.ZoneLabel: zone,
		})
	}
	scheduling.QueueDepth.DeletePartialMatch(own)
	scheduling.QueueDepth.Set(float64(p.PodCount()), labels)
	begun, over, quiet := clk.Now(), make(chan struct{}), make(chan struct{})
	scheduling.UnfinishedWorkSeconds.Set(0, labels)
	go func() {
		defer close(quiet)
		for {
			select {
			case <-over:
				return
			case <-clk.After(unfinishedEvery):
				scheduling.UnfinishedWorkSeconds.Set(clk.Since(begun).Seconds(), labels)
			}
		}
	}()
	return func(unschedulable int) {
		close(over)
		<-quiet
		scheduling.UnfinishedWorkSeconds.Delete(labels)
		scheduling.QueueDepth.Set(float64(unschedulable), labels)
	}
}

// NothingToPlan tells that no pods wait for a plan.
func (m *Provisioning) NothingToPlan() {
	own := map[string]string{scheduling.ControllerLabel: provisioner}
	scheduling.PendingPodsByEffectiveZone.DeletePartialMatch(own)
	scheduling.QueueDepth.DeletePartialMatch(own)
}

// Karpenter's words for pods that may go to several zones, and to none.
const (
	zoneFlexible = "flexible"
	zoneNone     = "none"
)

// podsByZone counts the pods by the zone in which they have to be: its name, flexible
// where there are several, or none where their rules leave no zone.
func podsByZone(p *model.Problem) map[string]int {
	out := map[string]int{}
	for i := range p.Classes {
		c := &p.Classes[i]
		out[effectiveZone(c)] += len(c.Pods)
	}
	return out
}

// effectiveZone is the zone that the node selector, the required node affinity and the
// volumes of a class leave. As in Karpenter, exclusions alone leave several.
func effectiveZone(c *model.PodClass) string {
	named := map[string]bool{}
	for _, rs := range append([]model.Requirements{c.NodeRequirements}, append(c.NodeAlternatives, c.VolumeAlternatives...)...) {
		for _, r := range rs {
			if r.Key == model.LabelZone && r.Operator == model.In {
				for _, zone := range r.Values {
					named[zone] = true
				}
			}
		}
	}
	if len(named) == 0 {
		return zoneFlexible
	}
	left, found := 0, zoneNone
	for zone := range named {
		if allows(c.NodeRequirements, zone) && anyAllows(c.NodeAlternatives, zone) && anyAllows(c.VolumeAlternatives, zone) {
			left++
			found = zone
		}
	}
	if left > 1 || openEnded(c) {
		return zoneFlexible
	}
	return found
}

// openEnded reports whether a class may be in zones that none of its rules names.
func openEnded(c *model.PodClass) bool {
	const unnamed = "\x00"
	return allows(c.NodeRequirements, unnamed) && anyAllows(c.NodeAlternatives, unnamed) && anyAllows(c.VolumeAlternatives, unnamed)
}

func anyAllows(alternatives []model.Requirements, zone string) bool {
	if len(alternatives) == 0 {
		return true
	}
	for _, rs := range alternatives {
		if allows(rs, zone) {
			return true
		}
	}
	return false
}

// allows reports whether requirements let a pod be in a zone.
func allows(rs model.Requirements, zone string) bool {
	for _, r := range rs {
		if r.Key == model.LabelZone && !r.Matches(zone, true) {
			return false
		}
	}
	return true
}
