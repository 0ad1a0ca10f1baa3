package compute

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// books decide whether a machine gets its place: quota and capacity.
type books struct {
	sub      *arm.Subscription
	cfg      Supply
	sizes    *sizes
	machines *table
	quota    *quotaBook
}

// Supply is what limits the machines of the subscription.
type Supply struct {
	// Quota maps a usage name ("cores", "lowPriorityCores", "standardDSv5Family")
	// to its limit in vCPUs. Families that are missing get QuotaDefault.
	Quota        map[string]int64
	QuotaDefault int64
	UsageLag     time.Duration // how long the usages API takes to show what is in use; negative none
	// Capacity limits how many machines of a size exist; the first rule that
	// matches counts. Without a match DefaultCapacity applies to each size, zone
	// and priority.
	Capacity        []CapacityRule
	DefaultCapacity int
}

// CapacityRule limits the machines that match it, all of them together.
// Patterns are names with * for any run of characters; empty matches all.
type CapacityRule struct {
	Size     string // VM size, as Standard_D*s_v5
	Zone     string // "1", or "0" for machines without a zone
	Priority string // Regular or Spot
	Machines int    // how many may run at once
}

// quotaBook counts the vCPUs in use, truly and as the usages API shows them
// after its lag.
type quotaBook struct {
	used    map[string]int64 // vCPUs by usage name, as they are
	shown   map[string]int64 // as the usages API shows them
	pending []usageChange    // what is not shown yet, oldest first
	lag     time.Duration    // after the time scale
	running map[slot]int     // machines by what capacity depends on
}

type usageChange struct {
	at    time.Time
	usage string
	delta int64
}

// slot is what capacity depends on.
type slot struct{ size, zone, priority string }

func newQuotaBook(lag time.Duration) *quotaBook {
	return &quotaBook{used: map[string]int64{}, shown: map[string]int64{}, lag: lag, running: map[slot]int{}}
}

// add books vCPUs under a usage.
func (q *quotaBook) add(now time.Time, usage string, delta int64) {
	q.used[usage] += delta
	q.pending = append(q.pending, usageChange{at: now, usage: usage, delta: delta})
}

// visible is what the usages API shows.
func (q *quotaBook) visible(now time.Time) map[string]int64 {
	i := 0
	for ; i < len(q.pending) && now.Sub(q.pending[i].at) >= q.lag; i++ {
		q.shown[q.pending[i].usage] += q.pending[i].delta
	}
	q.pending = slices.Delete(q.pending, 0, i)
	return q.shown
}

// settle makes the usages API show the truth at once.
func (q *quotaBook) settle() {
	q.pending = nil
	q.shown = maps.Clone(q.used)
}

// usagesOf lists the usages that a machine counts under. Spot machines count
// under the spot quota alone.
func (s *books) usagesOf(m Spec) []string {
	if m.Priority == arm.Spot {
		return []string{usageSpot}
	}
	size, _ := s.sub.SKUTable.Size(m.Size)
	return []string{size.QuotaFamily(), usageCores}
}

// count enters a machine into the books (1) or takes it out (-1), once.
func (s *books) count(v *VM, sign int) {
	if v.Fixed || v.Counted == (sign > 0) {
		return
	}
	v.Counted = sign > 0
	m := v.Spec
	size, _ := s.sub.SKUTable.Size(m.Size)
	for _, u := range s.usagesOf(m) {
		s.quota.add(s.sub.Clock.Now(), u, int64(sign*size.VCPUs))
	}
	s.quota.running[slot{size.Name, m.Zone, m.Priority}] += sign
}

// limit is the quota under a name, with faults.
func (s *books) limit(usage string) int64 {
	limit, ok := s.cfg.Quota[usage]
	if !ok {
		limit = s.cfg.QuotaDefault
		if usage == usageCores || usage == usageSpot {
			limit *= 10
		}
	}
	for _, f := range s.sub.Faults.OfKind(arm.FaultQuota) {
		if arm.Matches(f.Family, usage) {
			limit = min(limit, *f.Limit)
		}
	}
	return limit
}

// allocate decides whether a machine gets its place: nil when it does. A
// failure is told either at once, as an answer to the request, or at the end
// of the operation.
func (s *books) allocate(id string, m Spec) (failure *arm.Error, now bool) {
	size, _ := s.sub.SKUTable.Size(m.Size)
	target := s.machines.target(id, actionVMWrite, m)
	if f := s.sub.Faults.Strike(target, arm.FaultPolicy); f != nil {
		return errDisallowed(arm.LastSegment(id), m.Size, f.Size), true
	}
	for _, u := range s.usagesOf(m) {
		limit, used := s.limit(u), s.quota.used[u]
		if used+int64(size.VCPUs) > limit {
			for _, f := range s.sub.Faults.OfKind(arm.FaultQuota) {
				if arm.Matches(f.Family, u) {
					f.Hits++
				}
			}
			return errQuota(u, s.sub.Region, limit, used, int64(size.VCPUs)), true
		}
	}
	if f := s.sub.Faults.Strike(target, arm.FaultFail); f != nil {
		return arm.NewError(http.StatusConflict, f.Code, "%s", cmp.Or(f.Message, "The simulated fault "+f.ID+" ended the creation.")), false
	}
	if f := s.sub.Faults.Strike(target, arm.FaultCapacity); f != nil {
		return s.noCapacity(m, f.Code)
	}
	if !s.hasRoom(size.Name, m) {
		return s.noCapacity(m, "")
	}
	return nil, false
}

// noCapacity is the error of a machine that finds no place. Azure says at once
// that a size is not available, as it does for spot, and finds out during the
// operation that an allocation fails. A machine that asks for more than size
// and zone is told that it is overconstrained.
func (s *books) noCapacity(m Spec, code string) (*arm.Error, bool) {
	zonal := m.Zone != "0"
	if code == "" {
		switch constrained := m.UltraSSD || m.Reservation != ""; {
		case m.Priority == arm.Spot && !constrained:
			code = codeSkuNotAvailable
		case constrained && zonal:
			code = codeOverconstrainedZonal
		case constrained:
			code = codeOverconstrained
		case zonal:
			code = codeZonalAllocation
		default:
			code = codeAllocation
		}
	}
	return errAllocation(code, m, s.sub.Region), code == codeSkuNotAvailable
}

// hasRoom looks at the capacity table.
func (s *books) hasRoom(size string, m Spec) bool {
	for _, rule := range s.cfg.Capacity {
		if !arm.Matches(rule.Size, size) || !arm.Matches(rule.Zone, m.Zone) || !arm.Matches(rule.Priority, m.Priority) {
			continue
		}
		running := 0
		for at, n := range s.quota.running {
			if arm.Matches(rule.Size, at.size) && arm.Matches(rule.Zone, at.zone) && arm.Matches(rule.Priority, at.priority) {
				running += n
			}
		}
		return running < rule.Machines
	}
	return s.quota.running[slot{size, m.Zone, m.Priority}] < s.cfg.DefaultCapacity
}

// listUsages answers the compute usages of the region.
func (s *books) listUsages(c *arm.Call) (arm.Reply, error) {
	if !strings.EqualFold(c.Path.Names[0], s.sub.Region) {
		return arm.Reply{Status: http.StatusOK, Body: arm.Document{"value": []any{}}}, nil
	}
	shown := s.quota.visible(s.sub.Clock.Now())
	entry := func(name, local string) arm.Document {
		return arm.Document{"unit": "Count", "currentValue": shown[name], "limit": s.limit(name),
			"name": arm.Document{"value": name, "localizedValue": local}}
	}
	values := []any{
		arm.Document{"unit": "Count", "currentValue": s.sub.Resources.Count(TypeVM), "limit": 25000,
			"name": arm.Document{"value": "virtualMachines", "localizedValue": "Virtual Machines"}},
		entry(usageCores, "Total Regional vCPUs"),
		entry(usageSpot, "Total Regional Spot vCPUs"),
	}
	for _, f := range s.families() {
		values = append(values, entry(f, strings.TrimSuffix(f, "Family")+" Family vCPUs"))
	}
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{"value": values}}, nil
}

// families lists the quota families of the region, sorted.
func (s *books) families() []string {
	set := map[string]bool{}
	for _, size := range s.sizes.listed() {
		if _, sold := s.sub.SKUTable.Price(size.Name, s.sub.Region); sold {
			set[size.QuotaFamily()] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// Unsound names what does not fit together: a machine whose transition nothing will
// end, one that is counted wrongly, a disk without its machine, or a quota that is
// not the sum of its machines. It is empty when all does.
func (p *Provider) Unsound() string {
	used := map[string]int64{}
	for _, v := range p.machines.byKey {
		size, _ := p.sub.SKUTable.Size(v.Spec.Size)
		if v.Counted {
			for _, u := range p.books.usagesOf(v.Spec) {
				used[u] += int64(size.VCPUs)
			}
		}
		k := arm.Key(v.ID)
		switch moving := v.Phase == phaseCreating || v.Phase == phaseDeleting; {
		case moving && !p.sub.Tasks.Has(k) && !p.sub.Faults.Holds(k):
			return v.ID + " is " + v.State() + " and nothing will end it"
		case v.Counted == (v.Phase == phaseFailed || v.Phase == phaseDeallocated) && !v.Fixed && v.Phase != phaseDeleting:
			return v.ID + " is " + v.State() + " and counted wrongly"
		}
	}
	for _, d := range p.sub.Resources.Sorted(TypeDisk) {
		if p.sub.Resources.Find(arm.Text(d.Doc, "managedBy")) == nil {
			return d.ID + " belongs to a machine that is gone"
		}
	}
	for u, n := range p.books.quota.used {
		if used[u] != n {
			return fmt.Sprintf("%s counts %d, its machines have %d", u, n, used[u])
		}
	}
	return ""
}

// errDisallowed is the answer to a machine of a size which a policy denies, in the form that users
// have seen: https://github.com/Azure/karpenter-provider-azure/issues/794.
func errDisallowed(name, size, pattern string) *arm.Error {
	const policy, definition = "Denied sizes of virtual machines", "/providers/Microsoft.Authorization/policyDefinitions/"
	expression := func(field, path, value, target, operator string) any {
		return arm.Document{"result": "True", "expressionKind": "Field", "expression": field, "path": path,
			"expressionValue": value, "targetValue": target, "operator": operator}
	}
	const vmType = "Microsoft.Compute/virtualMachines"
	e := arm.NewError(http.StatusForbidden, "RequestDisallowedByPolicy", "Resource '%s' was disallowed by policy. Reasons: "+
		"'The selected virtual machine size is not allowed.'. See error details for policy resource IDs.", name)
	e.Target = name
	e.AdditionalInfo = []any{arm.Document{"type": "PolicyViolation", "info": arm.Document{
		"policyDefinitionDisplayName": policy, "policyDefinitionId": definition + "denied-sizes", "policyDefinitionName": "denied-sizes",
		"policyDefinitionEffect": "deny", "policyAssignmentName": "denied-sizes", "policyAssignmentDisplayName": policy,
		"evaluationDetails": arm.Document{"evaluatedExpressions": []any{
			expression("type", "type", vmType, vmType, "Equals"),
			expression(vmType+"/sku.name", "properties.hardwareProfile.vmSize", size, pattern, "Like"),
		}},
	}}}
	return e
}
