package cloudprovider

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

// convertedTypes are the instance types of a catalogue as Karpenter wants them. It is
// immutable, but for shared, which only the next conversion uses.
type convertedTypes struct {
	from []model.InstanceType
	// out has one type for each of from, in the same order.
	out    []*karpcloud.InstanceType
	shared *sharedParts
}

// convert makes the conversion of types. Of the last one, nil the first time, it keeps the
// types whose offerings are the same ones.
func (last *convertedTypes) convert(types []model.InstanceType) *convertedTypes {
	if last != nil && sameArray(last.from, types) {
		return last
	}
	next := &convertedTypes{from: types, out: make([]*karpcloud.InstanceType, len(types)), shared: newSharedParts()}
	if last != nil && len(last.from) == len(types) {
		for i := range types {
			if sameArray(last.from[i].Offerings, types[i].Offerings) {
				// Otherwise the sizes of the region have been read again, and what is
				// shared may name some that are no more.
				next.out[i], next.shared = last.out[i], last.shared
			}
		}
	}
	known := instancetype.KnownLabels()
	for i, kept := range next.out {
		if kept == nil {
			next.out[i] = instanceType(&types[i], known, next.shared)
		}
	}
	return next
}

// sameArray reports whether both slices are the same memory and not empty.
func sameArray[T any](a, b []T) bool {
	return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
}

// sharedParts keeps one copy of what instance types have in common: a region has a thousand
// sizes, most of whose labels have a handful of values, and eight kinds of offerings.
// Karpenter does not change these parts.
type sharedParts struct {
	// single has requirements by label and values, sets those of offerings by their labels.
	single  map[string]*scheduling.Requirement
	sets    map[string]scheduling.Requirements
	evicted corev1.ResourceList
}

func newSharedParts() *sharedParts {
	return &sharedParts{single: map[string]*scheduling.Requirement{}, sets: map[string]scheduling.Requirements{}, evicted: eviction()}
}

// requirement is the one that the label has one of the values. Without values the label must
// not be there.
func (s *sharedParts) requirement(key string, values ...string) *scheduling.Requirement {
	slices.Sort(values)
	name := key + "\x00" + strings.Join(values, "\x00")
	r := s.single[name]
	if r == nil {
		operator := corev1.NodeSelectorOpIn
		if len(values) == 0 {
			operator = corev1.NodeSelectorOpDoesNotExist
		}
		r = scheduling.NewRequirement(key, operator, values...)
		s.single[name] = r
	}
	return r
}

// labels are the requirements that a node has the labels.
func (s *sharedParts) labels(labels map[string]string) scheduling.Requirements {
	pairs := make([]string, 0, len(labels))
	for key, value := range labels {
		pairs = append(pairs, key+"\x00"+value)
	}
	slices.Sort(pairs)
	name := strings.Join(pairs, "\x00")
	set := s.sets[name]
	if set == nil {
		set = make(scheduling.Requirements, len(labels))
		for key, value := range labels {
			r := s.requirement(key, value)
			set[r.Key] = r // which Karpenter may have normalized
		}
		s.sets[name] = set
	}
	return set
}

func instanceType(t *model.InstanceType, known map[string]bool, shared *sharedParts) *karpcloud.InstanceType {
	values := map[string][]string{}
	add := func(key, value string) {
		if !slices.Contains(values[key], value) {
			values[key] = append(values[key], value)
		}
	}
	for key, value := range t.Labels {
		add(key, value)
	}
	for key, choices := range t.Choices {
		values[key] = slices.Clone(choices)
	}
	offerings := make(karpcloud.Offerings, len(t.Offerings))
	for i := range t.Offerings {
		o := &t.Offerings[i]
		for key, value := range o.Labels {
			add(key, value)
		}
		offerings[i] = &karpcloud.Offering{
			Requirements: shared.labels(o.Labels), Available: o.Available,
			// Karpenter does not count how many machines are paid for in advance.
			Price: cmp.Or(o.Uncovered, o.Price).Dollars(),
		}
	}
	requirements := make(scheduling.Requirements, len(values)+len(known))
	for key, v := range values {
		r := shared.requirement(key, v...)
		requirements[r.Key] = r
	}
	// Every known label must be there: one that the size does not have excludes it
	// wherever a pod asks for the label.
	for key := range known {
		if _, ok := values[key]; !ok {
			requirements[key] = shared.requirement(key)
		}
	}
	return &karpcloud.InstanceType{
		Name: t.Name, Requirements: requirements, Offerings: offerings,
		Capacity: resourceList(t.Capacity, instancetype.Axes()), VolumeAttachmentLimits: t.VolumeSlots,
		Overhead: &karpcloud.InstanceTypeOverhead{KubeReserved: kubeReserved(t), EvictionThreshold: shared.evicted},
	}
}

// kubeReserved is the overhead without the eviction threshold.
func kubeReserved(t *model.InstanceType) corev1.ResourceList {
	reserved := slices.Clone(t.Overhead)
	reserved[model.Memory] -= evictionBytes()
	list := resourceList(reserved, instancetype.Axes())
	for name, quantity := range list {
		if quantity.IsZero() {
			delete(list, name)
		}
	}
	return list
}

func evictionBytes() int64 { return instancetype.EvictionMemoryMiB() << 20 }

func eviction() corev1.ResourceList {
	all := resourceList(model.Resources{0, evictionBytes()}, instancetype.Axes())
	return corev1.ResourceList{corev1.ResourceMemory: all[corev1.ResourceMemory]}
}
