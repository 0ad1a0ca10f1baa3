package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// devices are what a pod's resource claims mean for its place.
type devices struct {
	// amounts are numbers of devices, by axis.
	amounts []Amount
	// requirements are those of model.PodClass.Devices.
	requirements model.Requirements
	// key is equal for pods whose devices planning cannot tell apart.
	key string
	// follows is the pod that comes first to a claim which both share. It is not nil where that
	// is why the pod cannot be planned.
	follows *Pod
	// ignored is whether resource claims are left alone here. The pod cannot be planned then.
	ignored bool
}

// addTo adds the numbers of devices to a vector in place.
func (d *devices) addTo(v model.Resources, axes model.Axes) {
	for _, a := range d.amounts {
		if i := axes.Index(a.Name); i >= 0 {
			v[i] = saturatingAdd(v[i], a.Value)
		}
	}
}

// fix is what to do about the problem of the claims; empty stands for what helps in general.
func (d *devices) fix() string {
	switch {
	case d.ignored:
		return "Let nap plan resource claims, with --ignore-dra-requests=false (chart: settings.ignoreDraRequests: false), " +
			"or request an extended resource such as nvidia.com/gpu."
	case d.follows == nil:
		return ""
	}
	return fmt.Sprintf("Wait until pod %s has a node; where it gets none, change or delete it, or give each pod a ResourceClaim "+
		"of its own by resourceClaimTemplateName.", d.follows.Ref)
}

// axes are those that the devices need. The one by which a pod takes all devices of a driver
// decides nothing where no pod does.
func (d *devices) axes() []string {
	var names []string
	for _, a := range d.amounts {
		if a.Value >= model.WholeDevices || a.Name == model.DeviceAxis(model.DeviceDriver(a.Name)) {
			names = append(names, a.Name)
		}
	}
	return names
}

// take asks for devices of a driver.
func (d *devices) take(driver string, o *DeviceOption) {
	if o.All {
		d.add(model.WholeDeviceAxis(driver), model.WholeDevices)
		return
	}
	d.add(model.DeviceAxis(driver), o.Count)
	d.add(model.WholeDeviceAxis(driver), o.Count)
}

func (d *devices) add(axis string, n int64) {
	if i := slices.IndexFunc(d.amounts, func(a Amount) bool { return a.Name == axis }); i >= 0 {
		d.amounts[i].Value = saturatingAdd(d.amounts[i].Value, n)
		return
	}
	d.amounts = append(d.amounts, Amount{axis, n})
}

// deviceResolver says what the resource claims of pods need.
type deviceResolver struct {
	deviceTables
	users *claimUsers
	kinds *deviceKinds
}

func newDeviceResolver(s *Snapshot, nodes *clusterNodes, catalogs *poolCatalogs) *deviceResolver {
	return &deviceResolver{
		deviceTables: s.devices, users: newClaimUsers(nodes, catalogs), kinds: newDeviceKinds(s, nodes, catalogs),
	}
}

// use counts the pod as a user of its ResourceClaims. An expected pod has no node yet, but room
// on one.
func (r *deviceResolver) use(p *Pod, expected bool) {
	for i := range p.Spec.DeviceClaims {
		if name := claimName(p, &p.Spec.DeviceClaims[i]); name != "" {
			r.users.add(objectKey{p.Ref.Namespace, name}, p, expected)
		}
	}
}

// claimName is the name of the ResourceClaim behind a reference; empty while there is none.
func claimName(p *Pod, ref *DeviceClaimRef) string {
	return cmp.Or(ref.Claim, p.OwnDeviceClaims[ref.Name])
}

// devicesOf resolves the claims of a pod, or says why the pod cannot be planned.
func (r *deviceResolver) devicesOf(p *Pod) (devices, string) { return r.resolve(p, r.here) }

// devicesElsewhere is devicesOf for a pod that has to leave its node: a claim that was made
// for it is made again for its successor.
func (r *deviceResolver) devicesElsewhere(p *Pod) (devices, string) { return r.resolve(p, r.elsewhere) }

// resolve adds up what the claims need. The function answers for a claim which is there.
func (r *deviceResolver) resolve(p *Pod, of func(*Pod, *DeviceClaim) (claimed, string)) (devices, string) {
	var d devices
	if len(p.Spec.DeviceClaims) == 0 {
		return d, ""
	}
	if r.ofGPU == nil {
		return devices{ignored: true}, "spec.resourceClaims: nap leaves pods with resource claims alone here (--ignore-dra-requests)"
	}
	for i := range p.Spec.DeviceClaims {
		ref := &p.Spec.DeviceClaims[i]
		c, problem := r.claimedBy(p, ref, of)
		if problem == "" {
			problem = r.meet(&d, c)
		}
		if problem != "" {
			return devices{follows: c.follows}, fmt.Sprintf("resource claim %q: %s", ref.Name, problem)
		}
	}
	slices.SortFunc(d.amounts, func(x, y Amount) int { return strings.Compare(x.Name, y.Name) })
	d.key = fmt.Sprintf("%v%q", d.amounts, d.requirements)
	return d, ""
}

// claimed is what a claim needs: demand, or nothing more than a place where its devices can
// be used.
type claimed struct {
	demand *DeviceDemand
	where  model.Requirements
	// follows is as in devices.
	follows *Pod
}

// claimedBy finds what a reference asks for.
func (r *deviceResolver) claimedBy(p *Pod, ref *DeviceClaimRef, of func(*Pod, *DeviceClaim) (claimed, string)) (claimed, string) {
	if name := claimName(p, ref); name != "" {
		c := r.claims[objectKey{p.Ref.Namespace, name}]
		if c != nil && !c.Deleting {
			return of(p, c)
		}
		if ref.Template == "" {
			return claimed{}, fmt.Sprintf("ResourceClaim %s/%s does not exist, or is being deleted", p.Ref.Namespace, name)
		}
	}
	if ref.Template == "" {
		return claimed{}, "names neither a ResourceClaim nor a ResourceClaimTemplate"
	}
	t := r.templates[objectKey{p.Ref.Namespace, ref.Template}]
	if t == nil {
		return claimed{}, fmt.Sprintf("ResourceClaimTemplate %s/%s does not exist", p.Ref.Namespace, ref.Template)
	}
	return claimed{demand: &t.Demand}, ""
}

// here is what a claim means for a pod that waits.
func (r *deviceResolver) here(p *Pod, c *DeviceClaim) (claimed, string) {
	if c.Allocation != nil {
		return claimed{where: c.Allocation.Where}, c.Allocation.Unplanned
	}
	if first := r.users.first(objectKey{c.Namespace, c.Name}); first != nil && first.Ref != p.Ref {
		return claimed{follows: first}, fmt.Sprintf("ResourceClaim %s is shared with pod %s, which is planned first; "+
			"this pod follows it to its node", c.Name, first.Ref)
	}
	return claimed{demand: &c.Demand}, ""
}

// elsewhere is what a claim means for a pod that has to leave its node.
func (r *deviceResolver) elsewhere(p *Pod, c *DeviceClaim) (claimed, string) {
	switch {
	case c.PodUID != "" && c.PodUID == p.UID:
		return claimed{demand: &c.Demand}, ""
	case c.Allocation == nil:
		return r.here(p, c)
	case len(c.Allocation.Where) > 0 || c.Allocation.Unplanned != "":
		return claimed{}, fmt.Sprintf("ResourceClaim %s holds devices of this node for as long as a pod uses it, "+
			"so that its pods cannot be moved one by one", c.Name)
	}
	return claimed{}, ""
}

// meet adds to the devices what a claim needs, or says what nap does not know of it.
func (r *deviceResolver) meet(d *devices, c claimed) string {
	for _, q := range c.where {
		if !slices.ContainsFunc(d.requirements, func(o model.Requirement) bool { return q.String() == o.String() }) {
			d.requirements = append(d.requirements, q)
		}
	}
	if c.demand == nil {
		return ""
	}
	if c.demand.Unplanned != "" {
		return c.demand.Unplanned
	}
	for i := range c.demand.Requests {
		q := &c.demand.Requests[i]
		k := r.kinds.of(q)
		if k.problem != "" {
			return fmt.Sprintf("request %q: %s", q.Name, k.problem)
		}
		d.take(k.driver, k.option)
		if marks := (model.Requirement{Key: k.label, Operator: model.Exists}); !slices.ContainsFunc(d.requirements,
			func(o model.Requirement) bool { return o.Key == k.label }) {
			d.requirements = append(d.requirements, marks)
		}
	}
	return ""
}

// addUsed adds to what is used of a node the devices that one of its pods will have there.
// Those that it has are allocated to its claims, of which the kinds know where the node
// lists its devices.
func (r *deviceResolver) addUsed(p *Pod, n *stateNode, used model.Resources, axes model.Axes) {
	if len(p.Spec.DeviceClaims) == 0 || r.ofGPU == nil {
		return
	}
	var d devices
	for i := range p.Spec.DeviceClaims {
		ref := &p.Spec.DeviceClaims[i]
		if c := r.claims[objectKey{p.Ref.Namespace, claimName(p, ref)}]; c != nil && c.Allocation != nil && n.runsPod(p) {
			if len(r.kinds.on(n).byDriver) == 0 {
				for _, id := range c.Allocation.Devices {
					d.take(id.Driver, &DeviceOption{Count: 1})
				}
			}
			continue
		}
		if c, problem := r.claimedBy(p, ref, r.elsewhere); problem == "" {
			r.meet(&d, c)
		}
	}
	d.addTo(used, axes)
}
