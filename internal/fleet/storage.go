package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// disks are what a pod's volume claims mean for its place.
type disks struct {
	// volumes need a slot of their CSI driver, sorted by driver and ID. A volume has
	// an ID only where several pods share it.
	volumes []model.Volume
	// alternatives are where all of them can be attached, OR-ed; empty means
	// anywhere.
	alternatives []model.Requirements
	// key is equal for pods whose disks planning cannot tell apart.
	key string
}

// volumeResolver says where the volumes of pods can be attached.
type volumeResolver struct {
	claims  map[objectKey]*VolumeClaim
	volumes map[string]*Volume
	classes map[string]*StorageClass
	nodes   *clusterNodes
	// attachments are those of each node, by its name.
	attachments map[string][]*Attachment
	// users counts the pods that name each volume claim and have not ended. It is
	// complete once pendingPods.sort has run.
	users map[objectKey]int
	// holders are the pods that keep all others off the claims which one pod may use at a
	// time: they have a node, or are expected on one. firsts are the oldest of the pods that
	// wait for such a claim and that one owner made of one template. Both are complete when
	// users is.
	holders map[objectKey]*Pod
	firsts  map[waitingFor]*Pod
}

// waitingFor is a claim which one pod may use at a time, and pods that wait for it and can be
// placed equally well.
type waitingFor struct {
	claim          objectKey
	owner          Owner
	ownerUID, spec string
}

func newVolumeResolver(s *Snapshot, nodes *clusterNodes) *volumeResolver {
	attachments := map[string][]*Attachment{}
	for _, a := range s.attaching.attached {
		attachments[a.Node] = append(attachments[a.Node], a)
	}
	return &volumeResolver{
		attachments: attachments, claims: s.vclaims, volumes: s.volumes, classes: s.classes, nodes: nodes,
		users: map[objectKey]int{}, holders: map[objectKey]*Pod{}, firsts: map[waitingFor]*Pod{},
	}
}

// use counts the pod as a user of its volume claims. An expected pod has no node yet, but room
// on one.
func (r *volumeResolver) use(p *Pod, expected bool) {
	for _, name := range p.Claims {
		if p.Terminal {
			continue
		}
		key := objectKey{p.Ref.Namespace, name}
		r.users[key]++
		if c := r.claims[key]; c == nil || !c.OnePod {
			continue
		}
		// Like the scheduler, a pod that only waits keeps no other pod off: it may wait for
		// ever, too large for any machine or behind a gate, and the others would with it.
		// Pods of one template are an exception, since a machine for each is never needed.
		switch wait := waitsFor(key, p); {
		case p.Node != "" || expected:
			if precedes(p, r.holders[key]) {
				r.holders[key] = p
			}
		case p.Wanted && precedes(p, r.firsts[wait]):
			r.firsts[wait] = p
		}
	}
}

func waitsFor(claim objectKey, p *Pod) waitingFor {
	return waitingFor{claim: claim, owner: p.Owner, ownerUID: p.OwnerUID, spec: p.Spec.Key}
}

// precedes reports whether a pod uses a claim before another one, which may be nil.
func precedes(p, other *Pod) bool {
	if other == nil || (p.Node != "") != (other.Node != "") {
		return other == nil || p.Node != ""
	}
	return older(p, other) < 0
}

// taken says which pod keeps another one off a claim, or "".
func (r *volumeResolver) taken(claim objectKey, p *Pod) string {
	if !r.claims[claim].OnePod {
		return ""
	}
	other := cmp.Or(r.holders[claim], r.firsts[waitsFor(claim, p)], p)
	switch {
	case other == p:
		return ""
	case other.Node == "":
		return fmt.Sprintf("is ReadWriteOncePod, and pod %s waits for it, too", other.Ref)
	}
	return fmt.Sprintf("is ReadWriteOncePod, and pod %s uses it", other.Ref)
}

// disksOf resolves the claims of a pod, or says why the pod cannot be placed
// until they are mended; nil where it can.
func (r *volumeResolver) disksOf(p *Pod) (disks, *Rejection) { return r.resolve(p, r.places) }

// disksElsewhere is disksOf for a pod that has to leave its node: as in Karpenter, a
// volume of that host does not keep it there.
func (r *volumeResolver) disksElsewhere(p *Pod) (disks, *Rejection) {
	return r.resolve(p, placesElsewhere)
}

// mostPlaces is the most alternatives that the volumes of one pod may have together, as many as
// terms of its node affinity (internal/kube): volumes of two places each double them.
const mostPlaces = 128

// unplaced is the rejection of a pod whose volume claims are the reason.
func unplaced(format string, args ...any) *Rejection {
	return &Rejection{
		Reason: model.ReasonVolumeTopology, Message: fmt.Sprintf(format, args...),
		Fix: "Correct the volume claim, or create what it names; while it is being bound or deleted, or another pod uses it, wait.",
	}
}

func (r *volumeResolver) resolve(p *Pod, places func(*Volume) []model.Requirements) (disks, *Rejection) {
	var d disks
	var nowhere []string
	for _, name := range p.Claims {
		key := objectKey{p.Ref.Namespace, name}
		driver, alternatives, problem := r.resolveClaim(key, places)
		if problem == "" {
			problem = r.taken(key, p)
		}
		if problem != "" {
			return disks{}, unplaced("volume claim %q %s", name, problem)
		}
		if driver != "" {
			v := model.Volume{Driver: driver}
			if r.users[key] > 1 {
				v.ID = key.namespace + "/" + key.name
			}
			d.volumes = append(d.volumes, v)
		}
		merged, possible := crossRequirements(d.alternatives, alternatives)
		if !possible {
			return disks{}, unplaced("volume claim %q is in another place than %s: no node can attach both", name, strings.Join(nowhere, ", "))
		}
		if len(merged) > mostPlaces {
			return disks{}, &Rejection{
				Reason:  model.ReasonAsksTooMuch,
				Message: fmt.Sprintf("the pod's volumes have more than %d alternative places together; at most %[1]d are planned", mostPlaces),
				Fix:     "Use fewer volumes in the pod, or fewer terms in the node affinity of their PersistentVolumes.",
			}
		}
		if len(alternatives) > 0 {
			nowhere = append(nowhere, fmt.Sprintf("%q", name))
		}
		d.alternatives = merged
	}
	slices.SortFunc(d.volumes, func(x, y model.Volume) int {
		return cmp.Or(cmp.Compare(x.Driver, y.Driver), cmp.Compare(x.ID, y.ID))
	})
	if len(p.Claims) > 0 {
		d.key = fmt.Sprintf("%q%q", d.volumes, d.alternatives)
	}
	return d, nil
}

// resolveClaim returns the driver that attaches a claim's disk and where that is
// possible, or what is wrong with the claim; places are those of a volume.
func (r *volumeResolver) resolveClaim(key objectKey, places func(*Volume) []model.Requirements) (
	driver string, alternatives []model.Requirements, problem string,
) {
	c := r.claims[key]
	switch {
	case c == nil:
		return "", nil, "does not exist"
	case c.Deleting:
		return "", nil, "is being deleted"
	case c.Lost:
		return "", nil, fmt.Sprintf("has lost its volume %q", c.Volume)
	case c.Volume != "":
		v, problem := r.boundVolume(c)
		if problem != "" {
			return "", nil, problem
		}
		return v.Driver, places(v), ""
	}
	class := r.storageClass(c)
	switch {
	case class == nil && c.NoClass:
		return "", nil, `is unbound, and storageClassName: "" waits for a volume without a class that is made by hand`
	case class == nil && c.Class == "":
		return "", nil, "is unbound and names no storage class, and there is no default one"
	case class == nil:
		return "", nil, fmt.Sprintf("asks for storage class %q, which does not exist", c.Class)
	// The claim of a file is bound within seconds of its creation, anywhere where the class
	// allows, without regard to its pod.
	case class.Immediate && !c.New:
		return "", nil, fmt.Sprintf("is not bound yet, and its storage class %q binds immediately", class.Name)
	}
	return class.Driver, r.unbound(c, class), ""
}

// unbound are where the volume of a claim can be that is to be made: while the scheduler's choice
// stands, on that node alone. The choice falls when the node goes.
func (r *volumeResolver) unbound(c *VolumeClaim, class *StorageClass) []model.Requirements {
	n := r.nodes.byNode[c.Node]
	if n == nil || n.state == model.NodeLeaving {
		return class.Alternatives
	}
	return []model.Requirements{{{Key: model.LabelHostname, Operator: model.In, Values: []string{n.labels[model.LabelHostname]}}}}
}

// boundVolume is the volume that a claim names, or what is wrong with it.
func (r *volumeResolver) boundVolume(c *VolumeClaim) (*Volume, string) {
	v := r.volumes[c.Volume]
	switch {
	case v == nil:
		return nil, fmt.Sprintf("names volume %q, which does not exist", c.Volume)
	case v.Deleting:
		return nil, fmt.Sprintf("names volume %q, which is being deleted", c.Volume)
	case !c.Bound:
		return nil, fmt.Sprintf("is not bound to its volume %q yet", c.Volume)
	}
	return v, ""
}

// places are where a volume can be attached. When the host of a local volume is gone or
// leaving, the pod waits for no node in particular.
func (r *volumeResolver) places(v *Volume) []model.Requirements {
	return without(v.Alternatives, func(q model.Requirement) bool {
		return q.Key == model.LabelHostname && q.Operator == model.In && !slices.ContainsFunc(q.Values, r.nodes.hostStays)
	})
}

// placesElsewhere are where a volume could be if it were not on its host.
func placesElsewhere(v *Volume) []model.Requirements {
	if !v.OfHost {
		return v.Alternatives
	}
	return without(v.Alternatives, func(q model.Requirement) bool { return q.Key == model.LabelHostname })
}

// without drops requirements from alternatives, which are OR-ed: where one of them has
// none left, anywhere will do.
func without(alternatives []model.Requirements, drop func(model.Requirement) bool) []model.Requirements {
	var out []model.Requirements
	for _, alternative := range alternatives {
		kept := slices.DeleteFunc(slices.Clone(alternative), drop)
		if len(kept) == 0 {
			return nil
		}
		out = append(out, kept)
	}
	return out
}

// storageClass is the class of an unbound claim, the default one where it names
// none, or nil. Of several default ones the newest counts, as in Kubernetes.
func (r *volumeResolver) storageClass(c *VolumeClaim) *StorageClass {
	if c.Class != "" || c.NoClass {
		return r.classes[c.Class]
	}
	var found *StorageClass
	for _, class := range r.classes {
		if class.Default && (found == nil || cmp.Or(found.Created.Compare(class.Created), cmp.Compare(class.Name, found.Name)) < 0) {
			found = class
		}
	}
	return found
}

// attached are the disks of a pod that is bound; claims that are gone are not
// attached.
func (r *volumeResolver) attached(p *Pod) []model.Volume {
	var volumes []model.Volume
	for _, name := range p.Claims {
		key := objectKey{p.Ref.Namespace, name}
		c := r.claims[key]
		if c == nil {
			continue
		}
		driver := ""
		if v := r.volumes[c.Volume]; v != nil {
			driver = v.Driver
		} else if class := r.storageClass(c); class != nil {
			driver = class.Driver
		}
		if driver != "" {
			volumes = append(volumes, model.Volume{ID: key.namespace + "/" + key.name, Driver: driver})
		}
	}
	return volumes
}

// left are the volumes that are attached to a node and that no pod there uses, as while they are
// detached. The scheduler counts them, too, as far as their PersistentVolumes are there and name a
// CSI driver. Their IDs are names of PersistentVolumes, those of volumes that pods use are
// namespaces and names of claims.
func (r *volumeResolver) left(n *stateNode) []model.Volume {
	if n.node == nil || len(r.attachments[n.node.Name]) == 0 {
		return nil
	}
	used := map[string]bool{}
	for _, p := range n.pods {
		for _, name := range p.Claims {
			if c := r.claims[objectKey{p.Ref.Namespace, name}]; c != nil {
				used[c.Volume] = true
			}
		}
	}
	var volumes []model.Volume
	for _, a := range r.attachments[n.node.Name] {
		if v := r.volumes[a.Volume]; v != nil && v.CSI && a.Driver != "" && !used[a.Volume] {
			volumes = append(volumes, model.Volume{ID: a.Volume, Driver: a.Driver})
		}
	}
	return volumes
}

// crossRequirements combines two sets of OR-ed alternatives into the ones that
// satisfy both; an empty set holds anywhere. It is false when no combination is
// possible, and stops beyond mostPlaces.
func crossRequirements(a, b []model.Requirements) ([]model.Requirements, bool) {
	if len(a) == 0 || len(b) == 0 {
		return append(slices.Clone(a), b...), true
	}
	var out []model.Requirements
	seen := map[string]bool{}
	for _, x := range a {
		for _, y := range b {
			merged, possible := both(x, y)
			if key := merged.String(); possible && !seen[key] {
				seen[key] = true
				out = append(out, merged)
			}
			if len(out) > mostPlaces {
				return out, true
			}
		}
	}
	return out, len(out) > 0
}

// both joins two lists of requirements, intersecting the In values of a key. What both lists
// say is said once.
func both(x, y model.Requirements) (model.Requirements, bool) {
	merged := slices.Clone(x)
	said := func(r model.Requirement) bool {
		return slices.ContainsFunc(x, func(m model.Requirement) bool {
			return m.Key == r.Key && m.Operator == r.Operator && slices.Equal(m.Values, r.Values)
		})
	}
	for _, r := range y {
		if said(r) {
			continue
		}
		i := slices.IndexFunc(merged, func(m model.Requirement) bool {
			return m.Key == r.Key && m.Operator == model.In && r.Operator == model.In
		})
		if i < 0 {
			merged = append(merged, r)
			continue
		}
		values := slices.DeleteFunc(slices.Clone(merged[i].Values), func(v string) bool { return !slices.Contains(r.Values, v) })
		if len(values) == 0 {
			return nil, false
		}
		merged[i].Values = values
	}
	return merged, true
}
