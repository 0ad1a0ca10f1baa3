package purchasebackoff

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/fleet"
)

// Workload names the pods of one owner that planning cannot tell apart by their
// template, as in "Deployment default/web 1f3a9c04".
type Workload string

// Name is the owner alone, as in "Deployment default/web".
func (w Workload) Name() string {
	name, _, found := cutLast(string(w), " ")
	if !found {
		return string(w)
	}
	return name
}

// virtual reports whether the pods are those of a CapacityBuffer, which never run: a plan says
// where they have room.
func (w Workload) virtual() bool { return strings.HasPrefix(string(w), fleet.BufferKind+" ") }

func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// Workloads derives workloads from pods. It keeps what it has derived of the specs
// that pods share, and is meant for one look at the cluster.
type Workloads map[*fleet.PodSpec]string

// Of returns the workload of a pod.
func (w Workloads) Of(p *fleet.Pod) Workload {
	template, known := w[p.Spec]
	if !known {
		h := fnv.New32a()
		if p.Spec != nil {
			h.Write([]byte(p.Spec.Key))
		}
		template = fmt.Sprintf("%08x", h.Sum32())
		w[p.Spec] = template
	}
	return Workload(p.OwnerName() + " " + template)
}

// MostWorkloads is how many workloads a NodeClaim names; those beyond are not
// followed.
const MostWorkloads = 32

// Annotation is what a NodeClaim says of the workloads that it was bought for.
func Annotation(workloads []Workload) string {
	names := make([]string, len(workloads))
	for i, w := range workloads {
		names[i] = string(w)
	}
	return strings.Join(names, v1beta1.WorkloadSeparator)
}
