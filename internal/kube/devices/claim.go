package devices

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// claim converts a ResourceClaim.
func claim(c *resourcev1.ResourceClaim) *fleet.DeviceClaim {
	out := &fleet.DeviceClaim{
		Namespace: c.Namespace, Name: c.Name, Demand: demand(&c.Spec.Devices), Deleting: c.DeletionTimestamp != nil,
	}
	for i := range c.OwnerReferences {
		if o := &c.OwnerReferences[i]; o.Kind == "Pod" && o.Controller != nil && *o.Controller {
			out.PodUID = string(o.UID)
		}
	}
	if c.Status.Allocation != nil {
		out.Allocation = allocation(c.Status.Allocation)
	}
	return out
}

// allocation converts what the scheduler chose. With administrative access devices are used
// beside those who hold them.
func allocation(a *resourcev1.AllocationResult) *fleet.DeviceAllocation {
	out := &fleet.DeviceAllocation{}
	for i := range a.Devices.Results {
		if r := &a.Devices.Results[i]; r.AdminAccess == nil || !*r.AdminAccess {
			out.Devices = append(out.Devices, fleet.DeviceID{Driver: r.Driver, Pool: r.Pool, Device: r.Device})
		}
	}
	switch {
	case a.NodeSelector == nil:
	case len(a.NodeSelector.NodeSelectorTerms) != 1:
		out.Unplanned = fmt.Sprintf("it is allocated to nodes of %d kinds, of which nap plans one", len(a.NodeSelector.NodeSelectorTerms))
	default:
		term := &a.NodeSelector.NodeSelectorTerms[0]
		for _, list := range [][]corev1.NodeSelectorRequirement{term.MatchExpressions, term.MatchFields} {
			for _, r := range list {
				out.Where = append(out.Where, model.Requirement{Key: r.Key, Operator: model.Operator(r.Operator), Values: r.Values})
			}
		}
	}
	return out
}

// demand converts what a claim asks for.
func demand(d *resourcev1.DeviceClaim) fleet.DeviceDemand {
	out := fleet.DeviceDemand{}
	for i := range d.Requests {
		request, unplanned := request(&d.Requests[i])
		out.Requests = append(out.Requests, request)
		out.Unplanned = cmp.Or(out.Unplanned, unplanned)
	}
	if len(d.Constraints) > 0 {
		out.Unplanned = cmp.Or(out.Unplanned, "nap does not plan its constraints between devices")
	}
	return out
}

// request converts one request; unplanned says what of it nap does not plan, or is empty.
func request(r *resourcev1.DeviceRequest) (out fleet.DeviceRequest, unplanned string) {
	out.Name = r.Name
	add := func(name string, e *resourcev1.ExactDeviceRequest) {
		option := fleet.DeviceOption{
			Class: e.DeviceClassName, Selectors: expressions(e.Selectors),
			All: e.AllocationMode == resourcev1.DeviceAllocationModeAll, Count: max(1, e.Count),
		}
		out.Options = append(out.Options, option)
		why := ""
		switch {
		case e.AdminAccess != nil && *e.AdminAccess:
			why = "administrative access to devices that others have"
		case e.Capacity != nil && len(e.Capacity.Requests) > 0:
			why = "a part of a device's capacity"
		case e.AllocationMode != "" && e.AllocationMode != resourcev1.DeviceAllocationModeExactCount && !option.All:
			why = "the allocation mode " + string(e.AllocationMode)
		}
		if why != "" {
			unplanned = cmp.Or(unplanned, fmt.Sprintf("request %q asks for %s, which nap does not plan", name, why))
		}
	}
	if r.Exactly != nil {
		add(r.Name, r.Exactly)
	}
	for i := range r.FirstAvailable {
		s := &r.FirstAvailable[i]
		if i > 0 && s.AllocationMode == resourcev1.DeviceAllocationModeAll {
			// After the first device, the scheduler's allocator goes on with the first option.
			unplanned = cmp.Or(unplanned, fmt.Sprintf("request %q asks for all devices after another option, "+
				"which nap does not plan", r.Name+"/"+s.Name))
		}
		add(r.Name+"/"+s.Name, &resourcev1.ExactDeviceRequest{
			DeviceClassName: s.DeviceClassName, Selectors: s.Selectors, AllocationMode: s.AllocationMode, Count: s.Count, Capacity: s.Capacity,
		})
	}
	if len(out.Options) == 0 {
		unplanned = fmt.Sprintf("request %q is of a kind that nap does not know", r.Name)
	}
	return out, unplanned
}

// expressions are the CEL expressions of selectors, which are of no other kind.
func expressions(selectors []resourcev1.DeviceSelector) []string {
	var out []string
	for i := range selectors {
		if cel := selectors[i].CEL; cel != nil {
			out = append(out, cel.Expression)
		}
	}
	return out
}
