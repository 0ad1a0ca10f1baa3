package armsim

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// quotaBook counts the vCPUs in use, truly and as the usages API shows them
// after its lag.
type quotaBook struct {
	used    map[string]int64 // by usage name
	shown   map[string]int64
	pending []usageChange
	lag     time.Duration
	running map[slot]int // machines by what capacity depends on
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
func (s *Server) usagesOf(m vmSpec) []string {
	if m.Priority == prioritySpot {
		return []string{usageSpot}
	}
	size, _ := s.cat.Size(m.Size)
	return []string{size.QuotaFamily(), usageCores}
}

// count enters a machine into the books (1) or takes it out (-1), once.
func (s *Server) count(r *resource, sign int) {
	if r.Fixed || r.VM.Counted == (sign > 0) {
		return
	}
	r.VM.Counted = sign > 0
	m := r.VM.Spec
	size, _ := s.cat.Size(m.Size)
	for _, u := range s.usagesOf(m) {
		s.quota.add(s.now(), u, int64(sign*size.VCPUs))
	}
	s.quota.running[slot{size.Name, m.Zone, m.Priority}] += sign
}

// limit is the quota under a name, with faults.
func (s *Server) limit(usage string) int64 {
	limit, ok := s.cfg.Quota[usage]
	if !ok {
		limit = s.cfg.QuotaDefault
		if usage == usageCores || usage == usageSpot {
			limit *= 10
		}
	}
	for _, f := range s.st.Faults {
		if f.Kind == FaultQuota && matches(f.Family, usage) {
			limit = min(limit, *f.Limit)
		}
	}
	return limit
}

// allocate decides whether a machine gets its place: nil when it does. A
// failure is told either at once, as an answer to the request, or at the end
// of the operation.
func (s *Server) allocate(id string, m vmSpec) (failure *apiError, now bool) {
	size, _ := s.cat.Size(m.Size)
	for _, u := range s.usagesOf(m) {
		limit, used := s.limit(u), s.quota.used[u]
		if used+int64(size.VCPUs) > limit {
			for _, f := range s.st.Faults {
				if f.Kind == FaultQuota && matches(f.Family, u) {
					f.Hits++
				}
			}
			return errQuota(u, s.cfg.Region, limit, used, int64(size.VCPUs)), true
		}
	}
	target := s.target(id, actionVMWrite, m)
	if f := s.strike(target, FaultFail); f != nil {
		message := f.Message
		setDefault(&message, "The simulated fault "+f.ID+" ended the creation.")
		return newError(409, f.Code, "%s", message), false
	}
	if f := s.strike(target, FaultCapacity); f != nil {
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
func (s *Server) noCapacity(m vmSpec, code string) (*apiError, bool) {
	zonal := m.Zone != "0"
	if code == "" {
		switch constrained := m.UltraSSD || m.Reservation != ""; {
		case m.Priority == prioritySpot && !constrained:
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
	return errAllocation(code, m, s.cfg.Region), code == codeSkuNotAvailable
}

// hasRoom looks at the capacity table.
func (s *Server) hasRoom(size string, m vmSpec) bool {
	for _, rule := range s.cfg.Capacity {
		if !matches(rule.Size, size) || !matches(rule.Zone, m.Zone) || !matches(rule.Priority, m.Priority) {
			continue
		}
		running := 0
		for at, n := range s.quota.running {
			if matches(rule.Size, at.size) && matches(rule.Zone, at.zone) && matches(rule.Priority, at.priority) {
				running += n
			}
		}
		return running < rule.Machines
	}
	return s.quota.running[slot{size, m.Zone, m.Priority}] < s.cfg.DefaultCapacity
}

// restricted says whether the subscription may not use a size in a zone.
func (s *Server) restricted(size, zone string) bool {
	for _, r := range s.cfg.Restrictions {
		if matches(r.Size, size) && (len(r.Zones) == 0 || slices.Contains(r.Zones, zone)) {
			return true
		}
	}
	return false
}

// listUsages answers the compute usages of the region.
func (s *Server) listUsages(c *call) (reply, error) {
	if !strings.EqualFold(c.path.names[0], s.cfg.Region) {
		return reply{status: 200, body: document{"value": []any{}}}, nil
	}
	shown := s.quota.visible(s.now())
	entry := func(name, local string) document {
		return document{"unit": "Count", "currentValue": shown[name], "limit": s.limit(name),
			"name": document{"value": name, "localizedValue": local}}
	}
	values := []any{
		document{"unit": "Count", "currentValue": len(s.st.byType[typeVM]), "limit": 25000,
			"name": document{"value": "virtualMachines", "localizedValue": "Virtual Machines"}},
		entry(usageCores, "Total Regional vCPUs"),
		entry(usageSpot, "Total Regional Spot vCPUs"),
	}
	for _, f := range s.families() {
		values = append(values, entry(f, strings.TrimSuffix(f, "Family")+" Family vCPUs"))
	}
	return reply{status: 200, body: document{"value": values}}, nil
}

// families lists the quota families of the region, sorted.
func (s *Server) families() []string {
	set := map[string]bool{}
	for _, size := range s.listed() {
		if _, sold := s.cat.Price(size.Name, s.cfg.Region); sold {
			set[size.QuotaFamily()] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
