package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Workload is an owner that creates pods of one template by itself: a ReplicaSet, a
// StatefulSet, a Job. Only those are kept that want pods.
type Workload struct {
	UID, Namespace, Name string
	// Pods is how many living pods it wants now.
	Pods int
	// Left is how many pods of it may still succeed, those that are [Pod.Uncounted] among them;
	// 0 for no bound.
	Left int
	// OneByOne workloads create a pod once all those before it have been ready for ReadyFor.
	OneByOne bool
	ReadyFor time.Duration
	// Silent workloads do not say when they are refused a pod.
	Silent bool
	// Since is when it began to create the pods that it wants now: when it was made or started,
	// or was seen to want more.
	Since time.Time
	WorkloadSet
}

// Quota is a ResourceQuota: what the pods of a namespace may ask for together.
type Quota struct {
	Namespace, Name string
	// Hard are the limits that pods count against, by the name of the resource.
	Hard []Amount
	// Objects are how many more owners of pods there may be, by the kind and group in the words of
	// quotas, such as jobs.batch.
	Objects []Amount
	// Opaque quotas limit what is not known of pods here, or pods of which it is not known here
	// whether they count.
	Opaque bool
}

func (w *Workload) put(t *tables) bool {
	if w.Pods <= 0 && w.Set == "" {
		return w.drop(t)
	}
	if old := t.workloads.rows[w.UID]; old != nil && old.Since.Equal(w.Since) {
		before := *old
		before.Since = w.Since // there is more than one way to write a time
		if before == *w {
			return false
		}
	}
	t.workloads.put(w.UID, w)
	return true
}
func (w *Workload) drop(t *tables) bool { return t.workloads.remove(w.UID) }

// put changes nothing where only what pods use of the quota has changed, as with every pod
// that comes or goes.
func (q *Quota) put(t *tables) bool {
	key := objectKey{q.Namespace, q.Name}
	if old := t.quotas.rows[key]; old != nil && old.Opaque == q.Opaque &&
		slices.Equal(old.Hard, q.Hard) && slices.Equal(old.Objects, q.Objects) {
		return false
	}
	t.quotas.put(key, q)
	return true
}
func (q *Quota) drop(t *tables) bool { return t.quotas.remove(objectKey{q.Namespace, q.Name}) }

// Wants is how many living pods the workload with this UID wants now, or those of the set
// with this name together, or for how many the CapacityBuffer with this UID wants room; 0
// when it wants none, or is gone.
func (s *Store) Wants(uid string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.tables.workloads.rows[uid]; w != nil {
		return w.Pods
	}
	if set := setsOf(s.tables.workloads.rows)[uid]; set != nil {
		return set.size() * set.each()
	}
	for _, b := range s.tables.buffers.rows {
		if b.UID == uid {
			return b.Pods
		}
	}
	return 0
}

// Announces reports whether the further pods of workloads in a namespace are planned
// before they exist: it stays, and no quota there limits what is not known of them.
func (s *Store) Announces(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if space := s.tables.spaces.rows[namespace]; space != nil && space.Deleting {
		return false
	}
	return !opaqueIn(s.tables.quotas.rows)[namespace]
}

// opaqueIn are the namespaces with a quota that is opaque.
func opaqueIn(quotas map[objectKey]*Quota) map[string]bool {
	in := map[string]bool{}
	for _, q := range quotas {
		if q.Opaque {
			in[q.Namespace] = true
		}
	}
	return in
}

// Announcing are the workloads, by UID, whose further pods are planned now before they exist,
// less what quotas keep back. Of others that lack pods it is not known what is to come. It looks
// at all pods.
func (s *Store) Announcing(now time.Time) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.tables // as they are: a snapshot would have them copied at the next write
	state := &Snapshot{
		pods: t.pods.rows, nodes: t.nodes.rows, spaces: t.spaces.rows, coming: comingPods{workloads: t.workloads.rows, quotas: t.quotas.rows},
	}
	opaque, out := opaqueIn(t.quotas.rows), map[string]bool{}
	for _, a := range state.due(now) {
		if a.workload != nil && !opaque[a.namespace] {
			out[a.uid] = true
		}
	}
	return out
}

// mostAhead is how many pods of one workload are announced at a time, and mostAnnounced how many
// of all. Controllers create a few hundred pods in a second at most, and the next are announced
// as they come: a number of replicas that was mistyped is neither bought for at once nor kept in
// memory.
const mostAhead, mostAnnounced = 5_000, 50_000

// announcement is what is known of the pods of a workload, or of those of a set that none
// of its workloads announces.
type announcement struct {
	uid, namespace, name string
	// workload is nil for a set.
	workload *Workload
	// living counts its pods that are not terminal, those that are going too: their
	// successors come when they are gone.
	living int
	// uncounted is how many of its pods have succeeded without being counted.
	uncounted int
	// newest is the pattern of the pods to come: the last one created.
	newest *Pod
	// gated is whether some of its pods wait for a gate.
	gated bool
	// mixed is whether its pods differ.
	mixed bool
	// since is for a set: when the newest of its workloads began to create pods.
	since time.Time
	// inSet is how many pods the workloads of the set have, or of the workload's set.
	inSet int
	// missing is how many pods are still to come; dueOf sets it.
	missing int
}

// announced are the pods that workloads will create in a moment: what they want less
// what they have, each as its newest pod, as admission left it. They are ordered by
// namespace, workload, and number. living are the pods that each of these workloads had,
// by its UID; for a set, all pods of its workloads that have begun, by its name.
//
// Nothing is announced for a workload with pods which have volume claims (these decide where
// a pod may go, and do not exist yet), wait for gates, are left to another scheduler, or have
// rules that name labels in which they differ; nor in a namespace that is being deleted; nor
// what a ResourceQuota keeps back; nor for one that is not creating pods, since something keeps
// it from doing so; nor more than one pod of a workload that creates them one by one, mostAhead
// of any other, and mostAnnounced of all.
func (s *Snapshot) announced(now time.Time) (pods []*Pod, living map[string]int) {
	due := s.due(now)
	if len(due) == 0 {
		return nil, nil
	}
	slices.SortFunc(due, func(x, y *announcement) int {
		return cmp.Or(cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.name, y.name), cmp.Compare(x.uid, y.uid))
	})
	room := newQuotaRoom(s)
	living = make(map[string]int, len(due))
	for _, a := range due {
		living[a.uid] = a.living
		for i := range room.ahead(a.newest, min(a.missing, mostAhead, mostAnnounced-len(pods))) {
			pods = append(pods, a.pod(i))
		}
	}
	return pods, living
}

// due are the announcements of what workloads and their sets have still to create, in any order.
func (s *Snapshot) due(now time.Time) []*announcement {
	if len(s.coming.workloads) == 0 {
		return nil
	}
	of, uncounted := map[string]*announcement{}, map[string]int{}
	var unwanted []*Pod
	for _, p := range s.pods {
		w := s.coming.workloads[p.OwnerUID]
		if w != nil && p.Uncounted {
			uncounted[w.UID]++
		}
		if w == nil && p.Owner.Kind == deployment {
			unwanted = append(unwanted, p)
		}
		if w == nil || p.Terminal {
			continue
		}
		a := of[w.UID]
		if a == nil {
			a = &announcement{uid: w.UID, namespace: w.Namespace, name: w.Name, workload: w}
			of[w.UID] = a
		}
		a.living++
		a.gated = a.gated || p.Gated
		if newerPod(p, a.newest) {
			a.newest = p
		}
	}
	for uid, n := range uncounted {
		if a := of[uid]; a != nil {
			a.uncounted = n
		}
	}
	return s.dueOf(of, unwanted, now)
}

// dueOf are the announcements of what workloads and their sets have still to create, but for what
// finds room in that of pods which go; of has what is known of the pods of each workload, and
// unwanted are the pods whose ReplicaSets want none.
func (s *Snapshot) dueOf(of map[string]*announcement, unwanted []*Pod, now time.Time) []*announcement {
	var due []*announcement
	inSet := map[string]int{}
	for _, a := range of {
		inSet[a.workload.Set] += a.living
	}
	for _, a := range of {
		if a.workload.Set != "" {
			a.inSet = inSet[a.workload.Set]
		}
		a.missing = a.wants() - a.living
		if a.workload.OneByOne {
			a.missing = min(a.missing, 1)
		}
		due = append(due, a)
	}
	surplusOf(s, of, unwanted).cover(due)
	due = append(due, s.dueOfSets(of, now)...)
	due = slices.DeleteFunc(due, func(a *announcement) bool { return a.missing <= 0 || s.ending(a.namespace) || !a.serves(now) })
	return s.creating(due, now)
}

// wants is how many living pods the workload wants, when it has counted those that have succeeded.
// Without a number of them it wants no more once one has: the pods share a queue of work, which
// is empty then.
func (a *announcement) wants() int {
	w := a.workload
	switch {
	case a.uncounted == 0:
		return w.Pods
	case w.Left == 0:
		return 0
	}
	return min(w.Pods, w.Left-a.uncounted)
}

// serves reports whether the pods that are known show what those to come are like, and
// were created lately, or come when others are ready.
func (a *announcement) serves(now time.Time) bool {
	lately := a.oneByOne() || now.Sub(a.newest.Created) <= announceFor
	return lately && !a.gated && a.newest.Pattern && !rulesName(a.newest.Spec, podLabel)
}

// oneByOne reports whether it is of a workload that creates its pods one by one.
func (a *announcement) oneByOne() bool { return a.workload != nil && a.workload.OneByOne }

// ending reports whether a namespace is being deleted: nothing can be created there.
func (s *Snapshot) ending(namespace string) bool {
	space := s.spaces[namespace]
	return space != nil && space.Deleting
}

// numberMark separates the UID and the name of a workload, or of a set, from the number of a
// pod that it has still to create. Neither can have it.
const numberMark = "#"

// AnnouncedFor returns the UID of the workload, or the name of the set of workloads, for
// which the pod with a UID is announced, and whether it is: such a pod does not exist.
func AnnouncedFor(uid string) (workload string, announced bool) {
	workload, _, announced = strings.Cut(uid, numberMark)
	return workload, announced
}

// pod is the pod with this number among those to come. Its name is one that no object
// can have. Of a workload that creates them one by one there is always one to come, which is
// another one after each that has come: its name counts those before it.
func (a *announcement) pod(i int) *Pod {
	p := *a.newest
	number := fmt.Sprint(numberMark, i)
	if a.oneByOne() {
		number = fmt.Sprint(numberMark, a.living)
	}
	p.Ref = model.PodRef{Namespace: a.namespace, Name: a.name + number}
	p.UID, p.OwnerUID, p.Revision = a.uid+number, a.uid, ""
	p.Node, p.Nominated, p.Terminating, p.Leaving, p.Unready, p.ReadyAfter = "", "", false, nil, false, 0
	p.Wanted, p.Unjudged, p.Announced = true, true, i+1
	return &p
}

// QuotaRoom is what ResourceQuotas leave, by namespace. Namespaces without one are
// absent.
type QuotaRoom map[string][]*Quota

// Charge is what one pod counts against the limit of a quota on a resource.
type Charge func(q *Quota, resource string) int64

// Shortage is a limit of a quota that leaves less than pods need.
type Shortage struct {
	Quota    *Quota
	Resource string
	// Left is what the quota leaves, below zero where it is exceeded, Each what one of the
	// pods counts against it.
	Left, Each int64
}

// Pods is for how many pods there is room.
func (s *Shortage) Pods() int { return int(max(s.Left, 0) / s.Each) }

// CountPods is the limit of a quota on pods that are there, those too which have ended. These
// count against no other limit.
const CountPods = "count/pods"

// newQuotaRoom charges the quotas for the pods that live, and for those that are there.
func newQuotaRoom(s *Snapshot) QuotaRoom {
	room := QuotaRoom{}
	for _, q := range s.coming.quotas {
		room.Add(q)
	}
	if len(room) == 0 {
		return room
	}
	for _, p := range s.pods {
		one := chargeOf(p)
		if p.Terminal {
			one = chargeOfEnded
		}
		room.Use(p.Ref.Namespace, one, 1)
	}
	return room
}

// Add adds a copy of a quota, whose limits are what it leaves.
func (r QuotaRoom) Add(q *Quota) {
	left := *q
	left.Hard = slices.Clone(q.Hard)
	r[q.Namespace] = append(r[q.Namespace], &left)
}

// Use counts n pods of a namespace.
func (r QuotaRoom) Use(namespace string, one Charge, n int) {
	for _, q := range r[namespace] {
		for i := range q.Hard {
			q.Hard[i].Value -= int64(n) * one(q, q.Hard[i].Name)
		}
	}
}

// Short are the limits that have no room for n further pods of a namespace.
func (r QuotaRoom) Short(namespace string, one Charge, n int) []Shortage {
	var out []Shortage
	for _, q := range r[namespace] {
		for _, hard := range q.Hard {
			s := Shortage{Quota: q, Resource: hard.Name, Left: hard.Value, Each: one(q, hard.Name)}
			if s.Each > 0 && s.Pods() < n {
				out = append(out, s)
			}
		}
	}
	return out
}

// Take returns how many of n pods of a namespace the quotas allow, and counts these.
func (r QuotaRoom) Take(namespace string, one Charge, n int) int {
	for _, s := range r.Short(namespace, one, n) {
		n = min(n, s.Pods())
	}
	r.Use(namespace, one, n)
	return n
}

// ahead returns how many of n pods like one may be planned before they exist, and counts
// these: none where a quota limits what is not known of them.
func (r QuotaRoom) ahead(p *Pod, n int) int {
	if slices.ContainsFunc(r[p.Ref.Namespace], func(q *Quota) bool { return q.Opaque }) {
		return 0
	}
	return r.Take(p.Ref.Namespace, chargeOf(p), n)
}

// chargeOf is what a pod counts: scopes of quotas are not looked at.
func chargeOf(p *Pod) Charge {
	return func(_ *Quota, resource string) int64 { return p.Spec.Requests.quota(resource) }
}

// chargeOfEnded is what a pod that has ended counts.
func chargeOfEnded(_ *Quota, resource string) int64 {
	if resource == CountPods {
		return 1
	}
	return 0
}

// quota is what a pod with these requests counts against a limit: every pod is one of
// the resource pods, whatever it asks for.
func (a *Amounts) quota(name string) int64 {
	if name == "pods" || name == CountPods {
		return 1
	}
	return a.Get(name)
}
