package convert

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// ClassSetting is a setting of the kubelet that was a NodePool's before v1, and is its
// AKSNodeClass's today.
type ClassSetting struct {
	// Pool is the NodePool, Class its AKSNodeClass, Object what had the setting.
	Pool, Class, Object string
	// Field is where it was, and Today where it is in the class.
	Field, Today string
	Value        any
}

// kubelet finds the settings of a NodePool's kubelets that belong to its AKSNodeClass, and
// refuses those which that has not.
func (c *converter) kubelet(path string, settings, pool map[string]any) {
	today := map[string]string{
		"maxPods": "spec.maxPods", "cpuCFSQuota": "spec.kubelet.cpuCFSQuota",
		"imageGCHighThresholdPercent": "spec.kubelet.imageGCHighThresholdPercent",
		"imageGCLowThresholdPercent":  "spec.kubelet.imageGCLowThresholdPercent",
	}
	for field, value := range ordered(settings) {
		switch {
		case value == nil, field == "containerRuntime" && value == "containerd":
		case today[field] == "":
			c.refuse("%s.%s: got %s: an AKSNodeClass has no field for it; remove it to go without", path, field, written(value))
		default:
			c.forClass = append(c.forClass, ClassSetting{
				Pool: text(pool, "metadata", "name"), Class: text(pool, "spec", "template", "spec", "nodeClassRef", "name"),
				Object: c.name, Field: path + "." + field, Today: today[field], Value: value,
			})
		}
	}
}

// IntoClasses writes settings of kubelets into the AKSNodeClasses among objects that have
// them today. The error joins one for each that no class can take: because it is not there,
// has another value, or is also that of a NodePool without the setting.
func IntoClasses(objects []map[string]any, settings []ClassSetting) (notes []string, err error) {
	var errs []error
	for _, s := range settings {
		if why := s.into(objects, settings); why != "" {
			errs = append(errs, fmt.Errorf("%s: %s: got %s: it is %s of AKSNodeClass %s today, %s",
				s.Object, s.Field, written(s.Value), s.Today, s.Class, why))
			continue
		}
		notes = append(notes, fmt.Sprintf("%s: %s %s is %s of AKSNodeClass %s today, and written there",
			s.Object, s.Field, written(s.Value), s.Today, s.Class))
	}
	return notes, errors.Join(errs...)
}

// into writes a setting into its class, or says why it cannot, and what to do.
func (s *ClassSetting) into(objects []map[string]any, settings []ClassSetting) string {
	var class map[string]any
	for _, o := range objects {
		switch {
		case text(o, "kind") == kindClass && text(o, "metadata", "name") == s.Class:
			class = o
		case text(o, "kind") == kindNodePool && text(o, "spec", "template", "spec", "nodeClassRef", "name") == s.Class:
			if name := text(o, "metadata", "name"); !s.agreed(name, settings) {
				return "which NodePool " + name + " has without it: give each a class of its own"
			}
		}
	}
	if class == nil {
		return "which is not in the input: add the class to it, and the setting is written there"
	}
	path := strings.Split(s.Today, ".")
	for _, name := range path[:len(path)-1] {
		class = section(class, name)
	}
	field := path[len(path)-1]
	if has := class[field]; has != nil && !same(has, s.Value) {
		return fmt.Sprintf("which has %s: decide for one of them", written(has))
	}
	class[field] = s.Value
	return ""
}

// agreed reports whether a NodePool has the setting, too.
func (s *ClassSetting) agreed(pool string, settings []ClassSetting) bool {
	for i := range settings {
		if o := &settings[i]; o.Pool == pool && o.Class == s.Class && o.Today == s.Today && same(o.Value, s.Value) {
			return true
		}
	}
	return false
}

// same compares values, numbers by what they are.
func same(a, b any) bool {
	m, isNumber := number(a)
	n, both := number(b)
	if isNumber && both {
		return m == n
	}
	return reflect.DeepEqual(a, b)
}
