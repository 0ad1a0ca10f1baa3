package fleet

import (
	"fmt"

	"github.com/nodeautoprovision/nap/internal/model"
)

// mostUnknown is how many extended resources that can be had nowhere have an axis. Pods which ask
// for further ones are refused before planning: each axis makes all vectors longer, and who may
// create pods may name as many resources as they like.
const mostUnknown = 32

// extendedResources are the extended resources that have an axis of the problem where pods ask for them.
type extendedResources struct {
	// known are those that an instance type, a node or a driver has, a NodePool limits or a
	// DaemonSet asks for.
	known map[string]bool
	// unknown are those that pods ask for and that can be had nowhere, mostUnknown at most.
	unknown map[string]bool
}

func (a *assembly) newExtendedResources() *extendedResources {
	r := &extendedResources{known: map[string]bool{}, unknown: map[string]bool{}}
	for _, catalog := range a.catalogs.byPool {
		r.know(catalog.Axes...)
	}
	for _, n := range a.nodes.list {
		for _, e := range n.allocatable.Extended {
			r.known[e.Name] = true
		}
	}
	r.know(a.snapshot.devices.resources()...)
	r.know(a.bounded()...)
	return r
}

func (r *extendedResources) know(names ...string) {
	for _, name := range names {
		r.known[name] = true
	}
}

// bounded are the resources that decide something without any pod that asks for them: those
// that DaemonSets take and NodePools limit.
func (a *assembly) bounded() []string {
	var names []string
	for _, requests := range a.daemons.requests {
		for _, e := range requests.Extended {
			names = append(names, e.Name)
		}
	}
	for _, p := range a.snapshot.pools {
		for _, l := range p.Limits {
			names = append(names, l.Name)
		}
	}
	return names
}

// admit gives the resources that pods ask for an axis. It returns the first for which there is
// none, in which case none of the others gets one for these pods; empty if all have one.
func (r *extendedResources) admit(requests *Amounts) string {
	var further []string
	for _, e := range requests.Extended {
		if !r.known[e.Name] && !r.unknown[e.Name] {
			further = append(further, e.Name)
		}
	}
	if len(r.unknown)+len(further) > mostUnknown {
		return further[0]
	}
	for _, name := range further {
		r.unknown[name] = true
	}
	return ""
}

// refusal says why a pod cannot be planned for the resources that it asks for; empty if it can.
func (r *extendedResources) refusal(p *Pod) string {
	if resource := r.admit(&p.Spec.Requests); resource != "" {
		return withoutAxis(resource)
	}
	return ""
}

// withoutAxis says that a resource for which a pod asks can be had nowhere.
func withoutAxis(resource string) string {
	return fmt.Sprintf("the pod asks for %s, which no instance type, node or driver has", resource)
}

// pendingClasses are the classes of the pods that need a place. Pods are refused which ask
// for resources that can be had nowhere and have no axis; those of the oldest pods have one.
func (a *assembly) pendingClasses() []*podClass {
	all := a.pending.classes(a.volumes, a.claims)
	classes := all[:0]
	for _, c := range all {
		resource := a.extended.admit(&c.spec.Requests)
		if resource == "" {
			classes = append(classes, c)
			continue
		}
		for _, p := range c.pods {
			a.pending.reject(p, Rejection{
				Reason: model.ReasonResources, Message: withoutAxis(resource),
				Fix: model.ResourceAdvice(resource),
			})
		}
	}
	return classes
}

// axes keeps the extended resources that decide anything: what pods or daemons ask
// for and NodePools limit.
func (a *assembly) axes(placed []*podClass) model.Axes {
	names := a.bounded()
	for _, c := range placed {
		for _, e := range c.spec.Requests.Extended {
			names = append(names, e.Name)
		}
		names = append(names, c.devices.axes()...)
	}
	return model.NewAxes(names...)
}
