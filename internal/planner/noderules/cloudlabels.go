package noderules

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// CloudKeys are labels that the cloud always decides, even in a catalogue in which no type
// carries them.
func CloudKeys() []string {
	return []string{
		model.LabelZone, model.LabelCapacityType, model.LabelInstanceType,
		"kubernetes.io/arch", "kubernetes.io/os", "topology.kubernetes.io/region",
	}
}

// CloudLabels knows which labels the cloud gives to machines.
type CloudLabels struct {
	problem *model.Problem
	known   map[cloudLabel]bool
}

// cloudLabel is a label and a catalogue, by index in Problem.Catalogs.
type cloudLabel struct {
	catalog int
	key     string
}

// NewCloudLabels returns what is known of the catalogues of a problem.
func NewCloudLabels(p *model.Problem) *CloudLabels { return &CloudLabels{p, map[cloudLabel]bool{}} }

// Decides reports whether the cloud may give a label to machines of a pool, with whatever
// value.
func (c *CloudLabels) Decides(pool *model.Pool, key string) bool {
	if pool.Catalog < 0 || pool.Catalog >= len(c.problem.Catalogs) {
		return true
	}
	label := cloudLabel{pool.Catalog, key}
	found, known := c.known[label]
	if !known {
		catalog := &c.problem.Catalogs[pool.Catalog]
		found = slices.Contains(CloudKeys(), key) || slices.Contains(catalog.LabelKeys, key) ||
			slices.ContainsFunc(catalog.InstanceTypes, func(t model.InstanceType) bool { return carries(&t, key) })
		c.known[label] = found
	}
	return found
}

// carries reports whether a machine of a type may have a label.
func carries(t *model.InstanceType, key string) bool {
	_, set := t.Labels[key]
	_, left := t.Choices[key]
	return set || left || slices.ContainsFunc(t.Offerings, func(o model.Offering) bool {
		_, set := o.Labels[key]
		return set
	})
}

// excludes reports whether no machine of a pool meets what is asked of a label: no value that
// the pool allows does, or no machine of it has the label.
func (c *CloudLabels) excludes(pool *model.Pool, asked *model.Requirement) bool {
	switch asked.Key {
	case model.LabelNodePool:
		return !asked.Matches(pool.Name, true)
	case model.LabelHostname, LabelRegistered, LabelInitialized:
		return false
	}
	mentioned := false
	for i := range pool.Requirements {
		own := &pool.Requirements[i]
		if own.Key != asked.Key {
			continue
		}
		mentioned = true
		if own.Operator != model.In {
			continue
		}
		meets := asked.Matcher()
		if !slices.ContainsFunc(own.Values, func(v string) bool { return meets(v, true) }) {
			return true
		}
	}
	if _, labelled := pool.Labels[asked.Key]; mentioned || labelled || c.Decides(pool, asked.Key) {
		return false
	}
	return !asked.Matches("", false)
}
