// Package convert writes objects of older versions of Karpenter's and AKS's API as
// today's: NodePools of v1beta1 and v1alpha5, Provisioners, NodePools of v1 with fields
// or label keys of before, AKSNodeClasses of v1alpha2, and agent pools of an AKS cluster.
// It is pure: what it cannot know, such as the region, comes in [Options].
//
// Start with [Object] and [AgentPools].
package convert

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Options is what objects do not tell.
type Options struct {
	// Region completes zones that are written as 1, 2 and 3; empty where it is not known.
	Region string
	// Series are the values that the label of series can have, such as Ds_v3.
	Series []string
}

// Converted is what became of one object.
type Converted struct {
	// Objects are today's; one that needed no change is there as it was.
	Objects []map[string]any
	// Notes say what a reader should know of it, one sentence each.
	Notes []string
	// ForClass are settings of the object that its AKSNodeClass has today: see [IntoClasses].
	ForClass []ClassSetting
}

// The API groups and kinds that are converted.
const (
	groupKarpenter = "karpenter.sh"
	groupAzure     = "karpenter.azure.com"
	kindNodePool   = "NodePool"
	kindClass      = "AKSNodeClass"
	versionPools   = groupKarpenter + "/v1"
	versionClasses = groupAzure + "/v1beta1"
)

// Object converts one object. Other kinds stay as they are. The error joins one for every
// field whose meaning cannot be carried over, with what to do.
func Object(o map[string]any, opts Options) (Converted, error) {
	group, _, _ := strings.Cut(text(o, "apiVersion"), "/")
	c := &converter{opts: opts, machines: "spec.template.spec", name: text(o, "kind") + " " + text(o, "metadata", "name")}
	o = clone(o)
	switch {
	case group == groupKarpenter && text(o, "kind") == kindNodePool:
		c.nodePool(o)
	case group == groupKarpenter && text(o, "kind") == "Provisioner":
		o = c.provisioner(o)
	case group == groupKarpenter && (text(o, "kind") == "Machine" || text(o, "kind") == "NodeClaim"):
		return Converted{Notes: []string{c.name + " is left out: controllers make those"}}, nil
	case group == groupAzure && text(o, "kind") == kindClass:
		c.class(o)
	case model.ForeignDomain(group) && describesMachines(text(o, "kind")):
		c.refuse("apiVersion: got %q, which Azure does not have: %s", text(o, "apiVersion"), classInstead)
	default:
		c.formerAnnotations(o)
	}
	if len(c.errs) > 0 {
		return Converted{}, errors.Join(c.errs...)
	}
	return Converted{Objects: []map[string]any{o}, Notes: c.notes, ForClass: c.forClass}, nil
}

// classInstead is what to write in place of another cloud's description of machines.
const classInstead = "write an AKSNodeClass of " + groupAzure + " in its place (docs/aksnodeclass.md)"

// describesMachines reports whether a kind is one by which Karpenter's providers describe
// machines, such as EC2NodeClass or AWSNodeTemplate.
func describesMachines(kind string) bool {
	return strings.HasSuffix(kind, "NodeClass") || strings.HasSuffix(kind, "NodeTemplate")
}

// converter converts one object.
type converter struct {
	opts  Options
	name  string
	notes []string
	errs  []error
	// machines is the field of the object under which it describes machines.
	machines string
	// forClass are settings that the AKSNodeClass of a NodePool has today.
	forClass []ClassSetting
}

func (c *converter) note(format string, args ...any) {
	c.notes = append(c.notes, c.name+": "+fmt.Sprintf(format, args...))
}

func (c *converter) refuse(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(c.name+": "+format, args...))
}

// serverFields are those of metadata that an API server writes.
func serverFields() []string {
	return []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}
}

// tidy drops what belongs to another cluster's API server.
func tidy(o map[string]any) {
	delete(o, "status")
	if meta, is := o["metadata"].(map[string]any); is {
		for _, field := range serverFields() {
			delete(meta, field)
		}
	}
}

// class brings an AKSNodeClass to today's version, whose fields are the same.
func (c *converter) class(o map[string]any) {
	tidy(o)
	o["apiVersion"] = versionClasses
}

// policy is today's name of a consolidation policy, empty where it is none.
func policy(written string) string {
	if strings.EqualFold(written, "WhenUnderutilized") { // until v1
		return string(model.WhenEmptyOrUnderutilized)
	}
	for _, today := range model.ConsolidationPolicies() {
		if strings.EqualFold(written, today) {
			return today
		}
	}
	return ""
}

// nodePool brings a NodePool to v1 in place.
func (c *converter) nodePool(o map[string]any) {
	tidy(o)
	o["apiVersion"] = versionPools
	spec := section(o, "spec")
	template := section(section(spec, "template"), "spec")
	disruption, _ := spec["disruption"].(map[string]any)
	if disruption != nil {
		if after, has := disruption["expireAfter"]; has {
			if _, already := template["expireAfter"]; !already {
				template["expireAfter"] = after
			}
			delete(disruption, "expireAfter")
		}
		if written := text(disruption, "consolidationPolicy"); written != "" {
			today := policy(written)
			if today == "" {
				c.refuse("spec.disruption.consolidationPolicy: got %q, allowed: %s", written, strings.Join(model.ConsolidationPolicies(), ", "))
			}
			disruption["consolidationPolicy"] = today
		}
		if _, has := disruption["consolidateAfter"]; !has {
			disruption["consolidateAfter"] = "0s"
		}
	}
	c.classRef(template)
	if kubelet, has := template["kubelet"].(map[string]any); has {
		c.kubelet("spec.template.spec.kubelet", kubelet, o)
	}
	delete(template, "kubelet")
	if annotations, has := section(spec, "template")["metadata"].(map[string]any); has {
		c.nodeAnnotations(annotations)
	}
	c.requirements(template)
	c.advise(spec)
}

// advise notes what is often misunderstood.
func (c *converter) advise(spec map[string]any) {
	if weight, has := spec["weight"]; has {
		c.note("weight %v: NodePools of a higher weight are tried first, and those without one last", weight)
	}
	if limits, _ := spec["limits"].(map[string]any); len(limits) == 0 {
		c.note("has no spec.limits: nothing but the subscription's quota keeps it from growing")
	}
}

// classRef completes the reference to a node class.
func (c *converter) classRef(template map[string]any) {
	ref, is := template["nodeClassRef"].(map[string]any)
	if !is {
		ref = map[string]any{"name": "default"}
		c.note("spec.template.spec.nodeClassRef is missing, AKSNodeClass default is taken")
	}
	group, _, _ := strings.Cut(text(ref, "apiVersion"), "/")
	group = cmp.Or(text(ref, "group"), group, groupAzure)
	if kind := cmp.Or(text(ref, "kind"), kindClass); group != groupAzure || kind != kindClass {
		c.refuse("spec.template.spec.nodeClassRef: got %s of %s, which Azure does not have: %s", kind, group, classInstead)
	}
	delete(ref, "apiVersion")
	ref["group"], ref["kind"] = groupAzure, kindClass
	template["nodeClassRef"] = ref
}

// section is a part of a document, which is made where it is missing.
func section(o map[string]any, name string) map[string]any {
	part, is := o[name].(map[string]any)
	if !is {
		part = map[string]any{}
		o[name] = part
	}
	return part
}

// text is a field of a document, empty where it is none.
func text(o map[string]any, path ...string) string {
	for _, name := range path[:len(path)-1] {
		o, _ = o[name].(map[string]any)
	}
	s, _ := o[path[len(path)-1]].(string)
	return s
}

// number reads a whole number as YAML and JSON have it.
func number(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	case int:
		return int64(n), true
	}
	return 0, false
}

// clone copies a document.
func clone[T any](v T) T {
	out, _ := cloneAny(v).(T)
	return out
}

func cloneAny(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out[k] = cloneAny(v[k])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = cloneAny(v[i])
		}
		return out
	}
	return v
}
