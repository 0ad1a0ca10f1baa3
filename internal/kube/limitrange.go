package kube

import (
	"cmp"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// containerDefaults is what the LimitRanges of a namespace give containers which
// leave something unset, in the order in which admission applies them.
type containerDefaults []corev1.LimitRangeItem

// defaultsOf collects the items for containers of a namespace's LimitRanges. The API
// server applies them in no stated order; here the name decides. What an item leaves
// out is filled as the API server fills it when it stores a LimitRange: defaults from
// the maximum, default requests from the defaults, then from the minimum.
func defaultsOf(ranges map[string]*corev1.LimitRange) containerDefaults {
	var out containerDefaults
	for _, name := range slices.Sorted(maps.Keys(ranges)) {
		for i := range ranges[name].Spec.Limits {
			if item := completed(&ranges[name].Spec.Limits[i]); item.Type == corev1.LimitTypeContainer && out.addedTo(item) {
				out = append(out, *item)
			}
		}
	}
	return out
}

// completed is a copy of an item with what the API server fills in.
func completed(stored *corev1.LimitRangeItem) *corev1.LimitRangeItem {
	item := stored.DeepCopy()
	if item.Type == corev1.LimitTypeContainer {
		item.Default = fill(item.Default, item.Max)
		item.DefaultRequest = fill(fill(item.DefaultRequest, item.Default), item.Min)
	}
	return item
}

// addedTo reports whether an item may give containers what those before it never do: a default
// request of a resource for which they have none, or a default limit above theirs, which a request
// may exceed.
func (d containerDefaults) addedTo(item *corev1.LimitRangeItem) bool {
	for name := range item.DefaultRequest {
		if !slices.ContainsFunc(d, func(before corev1.LimitRangeItem) bool {
			_, has := before.DefaultRequest[name]
			return has
		}) {
			return true
		}
	}
	for name, limit := range item.Default {
		if !slices.ContainsFunc(d, func(before corev1.LimitRangeItem) bool {
			most, has := before.Default[name]
			return has && most.Cmp(limit) >= 0
		}) {
			return true
		}
	}
	return false
}

// fill returns list with the amounts of from that it lacks. It may write to list.
func fill(list, from corev1.ResourceList) corev1.ResourceList {
	for name, amount := range from {
		if _, set := list[name]; set {
			continue
		}
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = amount
	}
	return list
}

// admit gives the containers of a pod, which limits have been made requests of
// already, what admission gives them. It writes to the pod's lists.
func (d containerDefaults) admit(s *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range containers {
			r := &containers[i].Resources
			for j := range d {
				r.Limits, r.Requests = fill(r.Limits, limitsFor(r.Requests, d[j].Default)), fill(r.Requests, d[j].DefaultRequest)
			}
		}
	}
}

// limitsFor are default limits without those below a request. With them the API server would
// refuse the pod, and what helps is another limit: what it asks for is counted all the same.
func limitsFor(requests, limits corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(limits)
	maps.DeleteFunc(out, func(name corev1.ResourceName, limit resource.Quantity) bool {
		request, set := requests[name]
		return set && request.Cmp(limit) > 0
	})
	return out
}

// admission knows the LimitRanges of a live cluster, and the DaemonSets, which have to
// be read again when a LimitRange of their namespace changes: their templates are what
// nap has before the first pod exists. Its owner serialises all calls.
type admission struct {
	// ranges has the LimitRanges by namespace and name, without empty namespaces.
	ranges map[string]map[string]*corev1.LimitRange
	// runtimes are the RuntimeClasses by name.
	runtimes map[string]*nodev1.RuntimeClass
	// daemons are the DaemonSets as they were last seen.
	daemons map[client.ObjectKey]*appsv1.DaemonSet
}

func newAdmission() *admission {
	return &admission{
		ranges:   map[string]map[string]*corev1.LimitRange{},
		runtimes: map[string]*nodev1.RuntimeClass{},
		daemons:  map[client.ObjectKey]*appsv1.DaemonSet{},
	}
}

// putRange remembers a LimitRange and returns the DaemonSets of its namespace, read
// with it.
func (a *admission) putRange(r *corev1.LimitRange) []fleet.Record {
	if a.ranges[r.Namespace] == nil {
		a.ranges[r.Namespace] = map[string]*corev1.LimitRange{}
	}
	a.ranges[r.Namespace][r.Name] = r
	return a.daemonsIn(r.Namespace)
}

// dropRange forgets a LimitRange and returns the DaemonSets of its namespace, read
// without it.
func (a *admission) dropRange(r *corev1.LimitRange) []fleet.Record {
	delete(a.ranges[r.Namespace], r.Name)
	if len(a.ranges[r.Namespace]) == 0 {
		delete(a.ranges, r.Namespace)
	}
	return a.daemonsIn(r.Namespace)
}

// putRuntime remembers a RuntimeClass and returns the DaemonSets that name it, read with
// it.
func (a *admission) putRuntime(c *nodev1.RuntimeClass) []fleet.Record {
	a.runtimes[c.Name] = c
	return a.daemonsOf(c.Name)
}

// dropRuntime forgets a RuntimeClass and returns the DaemonSets that name it, read without
// it.
func (a *admission) dropRuntime(c *nodev1.RuntimeClass) []fleet.Record {
	delete(a.runtimes, c.Name)
	return a.daemonsOf(c.Name)
}

// daemonsOf reads the DaemonSets that name a RuntimeClass.
func (a *admission) daemonsOf(runtime string) []fleet.Record {
	return a.reread(func(d *appsv1.DaemonSet) bool {
		name := d.Spec.Template.Spec.RuntimeClassName
		return name != nil && *name == runtime
	})
}

// daemonsIn reads the DaemonSets of a namespace.
func (a *admission) daemonsIn(namespace string) []fleet.Record {
	return a.reread(func(d *appsv1.DaemonSet) bool { return d.Namespace == namespace })
}

// reread reads some DaemonSets, ordered by name.
func (a *admission) reread(which func(*appsv1.DaemonSet) bool) []fleet.Record {
	var sets []*appsv1.DaemonSet
	for _, d := range a.daemons {
		if which(d) {
			sets = append(sets, d)
		}
	}
	slices.SortFunc(sets, func(x, y *appsv1.DaemonSet) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	out := make([]fleet.Record, len(sets))
	for i, d := range sets {
		out[i] = a.read(d)
	}
	return out
}

// addsTo is what admission does to the pods of a DaemonSet.
func (a *admission) addsTo(d *appsv1.DaemonSet) admitted {
	out := admitted{defaults: defaultsOf(a.ranges[d.Namespace])}
	if name := d.Spec.Template.Spec.RuntimeClassName; name != nil {
		out.runtime = a.runtimes[*name]
	}
	return out
}

// admitted is what admission adds to the pods of a DaemonSet; runtime is their
// RuntimeClass, nil without one.
type admitted struct {
	defaults containerDefaults
	runtime  *nodev1.RuntimeClass
}

// daemon remembers a DaemonSet and reads it.
func (a *admission) daemon(d *appsv1.DaemonSet) *fleet.Daemon {
	a.daemons[client.ObjectKeyFromObject(d)] = d
	return a.read(d)
}

func (a *admission) read(d *appsv1.DaemonSet) *fleet.Daemon {
	return &fleet.Daemon{Namespace: d.Namespace, Name: d.Name, Spec: readDaemon(&d.Spec.Template, a.addsTo(d))}
}
