package fleet

import (
	"maps"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// perPod reports whether the pods of one workload differ in a label: by pod, or by revision.
func perPod(label string) bool {
	switch label {
	case "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name", "batch.kubernetes.io/job-completion-index",
		"controller-revision-hash", "pod-template-hash", "pod-template-generation":
		return true
	}
	return false
}

// workloadShares caps how many pods of a workload one node may hold. A workload is the pods
// of a namespace with equal labels, but for those that Kubernetes sets by pod or revision.
type workloadShares struct {
	share float64
	// counts are the pods by namespace and workload: those that live, and those that are
	// planned before they exist.
	counts map[shareKey]int
	// names are the workloads by their labels, once asked for, and labelled the labels
	// with the name.
	names    map[*Labels]string
	labelled map[*Labels]map[string]string
}

// shareKey is a workload.
type shareKey struct{ namespace, workload string }

// newWorkloadShares counts the pods of all workloads; it is nil where nothing is capped.
func newWorkloadShares(share float64, pods map[model.PodRef]*Pod, announced []*Pod) *workloadShares {
	if share <= 0 {
		return nil
	}
	s := &workloadShares{
		share: share, counts: map[shareKey]int{}, names: map[*Labels]string{}, labelled: map[*Labels]map[string]string{},
	}
	count := func(p *Pod) {
		if name := s.workload(p.Labels); name != "" && !p.Terminal && !p.Terminating && !p.Daemon && !p.Static {
			s.counts[shareKey{p.Ref.Namespace, name}]++
		}
	}
	for _, p := range pods { // sums: order does not matter
		count(p)
	}
	for _, p := range announced {
		count(p)
	}
	return s
}

// workload names the workload of pods with these labels; empty for pods without any.
func (s *workloadShares) workload(labels *Labels) string {
	name, known := s.names[labels]
	if known {
		return name
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels.Values)) {
		if !perPod(k) {
			parts = append(parts, k+"="+labels.Values[k])
		}
	}
	name = strings.Join(parts, ",")
	s.names[labels] = name
	return name
}

// values are the labels of pods as terms see them: with the name of their workload where
// workloads are capped.
func (s *workloadShares) values(labels *Labels) map[string]string {
	if s == nil {
		return labels.Values
	}
	known, ok := s.labelled[labels]
	if ok {
		return known
	}
	out := labels.Values
	if name := s.workload(labels); name != "" {
		out = maps.Clone(labels.Values)
		out[model.LabelWorkload] = name
	}
	s.labelled[labels] = out
	return out
}

// of is the cap for pods with these labels, or nil where one node may hold all of them.
func (s *workloadShares) of(namespace string, labels *Labels) *model.SpreadConstraint {
	if s == nil {
		return nil
	}
	name := s.workload(labels)
	replicas := s.counts[shareKey{namespace, name}]
	most := max(1, int(s.share*float64(replicas)+1e-9))
	if name == "" || most >= replicas {
		return nil
	}
	return &model.SpreadConstraint{
		TopologyKey: model.LabelHostname, MaxSkew: int32(most), Share: true, Selector: &model.Selector{
			Requirements: model.Requirements{{Key: model.LabelWorkload, Operator: model.In, Values: []string{name}}},
		},
	}
}

// fleetShare is the most CPU, in thousandths of a core, that pods and DaemonSets may ask
// for on one node; 0 for no cap.
func (a *assembly) fleetShare(p *model.Problem) int64 {
	share := a.policy.Share.Fleet
	if share <= 0 {
		return 0
	}
	var sum, largest, daemons int64
	for _, c := range p.Classes {
		largest = max(largest, c.Requests.Get(model.CPU))
		sum += c.Requests.Get(model.CPU) * int64(len(c.Pods))
	}
	for _, n := range p.Nodes {
		sum += n.Used.Get(model.CPU)
	}
	for _, n := range a.nodes.list {
		for _, pod := range n.pods {
			if !pod.Daemon && !pod.Static {
				largest = max(largest, pod.Spec.Requests.CPU)
			}
		}
	}
	for _, pool := range p.Pools {
		var here int64
		for _, d := range pool.Daemons {
			here += d.Requests.Get(model.CPU)
		}
		daemons = max(daemons, here)
	}
	return max(int64(share*float64(sum)), largest+daemons)
}

// capShares lets no machine that could be bought hold more than the cap of the fleet.
func (a *assembly) capShares(p *model.Problem) {
	most := a.fleetShare(p)
	if most == 0 {
		return
	}
	for i := range p.Catalogs {
		types := slices.Clone(p.Catalogs[i].InstanceTypes)
		for t := range types {
			if over := types[t].Allocatable().Get(model.CPU) - most; over > 0 {
				withhold := make(model.Resources, len(p.Axes))
				withhold[model.CPU] = over
				types[t].Overhead = types[t].Overhead.Add(withhold)
			}
		}
		p.Catalogs[i].InstanceTypes = types
	}
}

// capNodes lets no node that runs take more than the cap of the fleet, for moves: where
// pods that wait go, the scheduler decides.
func (a *assembly) capNodes(p *model.Problem) {
	most := a.fleetShare(p)
	if most == 0 {
		return
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if room := max(most, n.Used.Get(model.CPU)); n.Allocatable.Get(model.CPU) > room {
			n.Allocatable = slices.Clone(n.Allocatable)
			n.Allocatable[model.CPU] = room
		}
	}
}
