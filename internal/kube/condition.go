package kube

import "github.com/awslabs/operatorpkg/status"

// Condition is a condition of an object as it stands, or nil. It only reads, so that the object
// may be the cache's own: StatusConditions adds the conditions that an object lacks.
func Condition(o status.Object, name string) *status.Condition {
	conditions := o.GetConditions()
	for i := range conditions {
		if conditions[i].Type == name {
			return &conditions[i]
		}
	}
	return nil
}
