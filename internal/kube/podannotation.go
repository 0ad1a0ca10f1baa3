package kube

import (
	"regexp"
	"strconv"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// podAnnotation is an annotation of pods that planning obeys.
type podAnnotation struct {
	name string
	// allowed says which values there are, for messages.
	allowed string
	// read writes what a value means, and reports whether it is one of the allowed.
	read func(value string, out *fleet.PodSpec) bool
}

// podAnnotations are all of them. The key of a pod and its conversion go by this
// list.
var podAnnotations = [...]podAnnotation{
	{"karpenter.azure.com/max-price", `dollars per hour above 0, such as "0.30"`, readMaxPrice},
}

var decimal = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// readMaxPrice reads the most that a node bought for the pod may cost per hour.
func readMaxPrice(value string, out *fleet.PodSpec) bool {
	dollars, err := strconv.ParseFloat(value, 64)
	if err != nil || !decimal.MatchString(value) {
		return false
	}
	out.MaxPrice = model.USD(dollars)
	return out.MaxPrice > 0
}

// annotations writes the values of the annotations that planning obeys.
func (w *keyWriter) annotations(values map[string]string) {
	for i := range podAnnotations {
		value, ok := values[podAnnotations[i].name]
		w.flag(ok)
		if ok {
			w.str(value)
		}
	}
}

// annotations converts them.
func (c *specReader) annotations() {
	for i := range podAnnotations {
		a := &podAnnotations[i]
		if value, ok := c.pod.Annotations[a.name]; ok && !a.read(value, c.out) {
			c.fail("metadata.annotations[%s]: got %q, allowed: %s", a.name, value, a.allowed)
		}
	}
}
