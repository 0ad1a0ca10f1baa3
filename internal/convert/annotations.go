package convert

// The annotations of Karpenter before v1beta1, and what says the same today.
const (
	doNotConsolidate = groupKarpenter + "/do-not-consolidate" // on nodes
	doNotEvict       = groupKarpenter + "/do-not-evict"       // on pods
	doNotDisrupt     = groupKarpenter + "/do-not-disrupt"
)

// nodeAnnotations brings the annotations that nodes get to today's.
func (c *converter) nodeAnnotations(metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	value, has := annotations[doNotConsolidate]
	if !has {
		return
	}
	delete(annotations, doNotConsolidate)
	annotations[doNotDisrupt] = value
	c.note("annotation %s is %s today, which keeps nodes from drift, too", doNotConsolidate, doNotDisrupt)
}

// formerAnnotations says of an object which is not converted that an annotation of it, or
// of its pods, has no effect any more.
func (c *converter) formerAnnotations(o map[string]any) {
	for _, path := range [][]string{
		{}, {"spec", "template"}, {"spec", "jobTemplate", "spec", "template"},
	} {
		part := o
		for _, name := range path {
			part, _ = part[name].(map[string]any)
		}
		metadata, _ := part["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		for _, former := range []string{doNotConsolidate, doNotEvict} {
			if _, has := annotations[former]; has {
				c.note("annotation %s has no effect any more: write %s", former, doNotDisrupt)
			}
		}
	}
}
