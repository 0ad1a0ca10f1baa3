package model

// PodRef names a pod.
type PodRef struct {
	Namespace, Name string
}

// String is "namespace/name".
func (p PodRef) String() string { return p.Namespace + "/" + p.Name }

// PodShape is what topology terms see of a pod: where its labels live and what
// it refuses to be near.
type PodShape struct {
	Namespace string
	Labels    map[string]string
	// AntiAffinity are the required terms: they also bind pods that come later
	// (the inverse rule).
	AntiAffinity []AffinityTerm
}

// PodClass is a set of pods that no rule can tell apart. The planner places
// counts of a class, never single pods.
type PodClass struct {
	// Pods in the order in which they are to be placed; len(Pods) is the count.
	Pods []PodRef
	// Owner is the workload as a person names it, "Deployment default/web", for
	// messages; empty for bare pods.
	Owner string
	PodShape

	// Requests is what the scheduler reserves for one pod: containers, init
	// containers and sidecars, overhead, and one on the Pods axis.
	Requests Resources
	PodRules
	Spread []SpreadConstraint
	// Affinity are the required pod affinity terms (the anti-affinity ones are in
	// PodShape). Preferences are the preferred terms of both kinds.
	Affinity    []AffinityTerm
	Preferences []AffinityPreference
	Volumes     []Volume
	// VolumeAlternatives are the node requirements that its volumes' topology
	// leaves, of which at least one must hold; empty means anywhere.
	VolumeAlternatives []Requirements
	// Devices are what the pod's resource claims require of its node: that it has devices
	// of a kind ([DeviceLabel]), and the labels to which an allocated claim is bound; and
	// that its kubelet has the features that the pod needs.
	Devices Requirements

	// Quarantined says why the class must not be planned now: planning it has failed
	// before. Nothing but Pods and Owner is valid then.
	Quarantined string
}

// PodRules are those scheduling fields of a pod that planning takes over as they
// are: they depend on nothing but the pod itself.
type PodRules struct {
	// NodeRequirements must all hold: nodeSelector.
	NodeRequirements Requirements
	// NodeAlternatives are the required node affinity terms, of which at least
	// one must hold; empty means no such rule.
	NodeAlternatives []Requirements
	// NodePreferences are the preferred node affinity terms.
	NodePreferences []NodePreference
	Tolerations     []Toleration
	HostPorts       []HostPort
	// MaxPrice is the most that a node bought for the pod may cost per hour; zero
	// means no limit. Existing nodes are not limited: the scheduler, which does not
	// know the rule, may use them in any case.
	MaxPrice Money
	// Priority orders classes when something is short: higher first.
	Priority int32
}

// NodePreference is a preferred node affinity term; heavier ones are given up
// last.
type NodePreference struct {
	Weight       int32
	Requirements Requirements
}

// AffinityTerm ties a pod to, or keeps it from, the topology domain of the pods
// that it selects. It selects pods in Namespaces (already resolved from
// namespace selectors), or in all of them.
type AffinityTerm struct {
	TopologyKey   string
	Selector      *Selector
	Namespaces    []string
	AllNamespaces bool
}

// Selects reports whether the term speaks of a pod of this shape.
func (t *AffinityTerm) Selects(namespace string, labels map[string]string) bool {
	if !t.AllNamespaces {
		found := false
		for _, n := range t.Namespaces {
			if n == namespace {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return t.Selector.Matches(labels)
}

// AffinityPreference is a preferred pod affinity (Anti false) or anti-affinity
// term.
type AffinityPreference struct {
	Weight int32
	Anti   bool
	Term   AffinityTerm
}

// SpreadConstraint limits how unevenly the pods that Selector chooses (in the
// pod's own namespace; matchLabelKeys already merged in) sit over the domains
// of TopologyKey.
type SpreadConstraint struct {
	TopologyKey string
	MaxSkew     int32
	// MinDomains, where positive, counts missing domains as empty ones.
	MinDomains int32
	Selector   *Selector
	// Hard is DoNotSchedule; otherwise ScheduleAnyway, a preference.
	Hard bool
	// Share marks a cap of [NodeShare]. It is a preference that is given up last, whatever
	// the policy on preferences.
	Share bool
	// HonorNodeAffinity counts only nodes that the pod's own node rules allow
	// (nodeAffinityPolicy Honor, the default). HonorTaints counts only nodes
	// whose taints it tolerates (nodeTaintsPolicy Honor).
	HonorNodeAffinity bool
	HonorTaints       bool
}

// Volume is a disk that a pod attaches. Pods that share ID share one slot; with
// an empty ID every pod has a disk of its own.
type Volume struct {
	ID     string
	Driver string
}
