package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// refusals says of pods of files what an API server would refuse of them, so that nothing is
// bought for pods which can never exist. Pods of a cluster are not asked for: its API server
// took them, perhaps one of another version. The rules are those of creation in
// k8s.io/kubernetes/pkg/apis/core/validation, as far as they are about scheduling.
type refusals struct {
	// template is the first container of the pod that was looked at last: pods of one template
	// share it. why is what was found.
	template *corev1.Container
	why      string
}

// of is the first thing that would be refused of a pod, empty for none.
func (r *refusals) of(pod *corev1.Pod) string {
	if why := validation.IsDNS1123Subdomain(pod.Name); len(why) > 0 {
		return fmt.Sprintf("metadata.name: got %q, must be a DNS subdomain: lower case letters, digits, - and ., up to 253", pod.Name)
	}
	if len(pod.Spec.Containers) == 0 {
		return "spec.containers: is empty, must have at least one container"
	}
	if r.template != &pod.Spec.Containers[0] {
		c := &refusal{spec: &pod.Spec}
		c.containers()
		c.resources()
		c.spread()
		c.tolerations()
		c.labels()
		r.template, r.why = &pod.Spec.Containers[0], c.why
	}
	return r.why
}

// refusal looks for what is refused of one pod.
type refusal struct {
	spec *corev1.PodSpec
	// why is the first thing that was found.
	why string
}

func (c *refusal) fail(format string, args ...any) {
	if c.why == "" {
		c.why = fmt.Sprintf(format, args...)
	}
}

// containers are refused with a name or a host port that another one has, beside fields of
// the whole pod with values of their own.
func (c *refusal) containers() {
	names := map[string]bool{}
	each := func(list []corev1.Container, field string) {
		for i := range list {
			name := list[i].Name
			if names[name] && name != "" {
				c.fail("%s[%d].name: got %q, which another container of the pod has, must be unique", field, i, name)
			}
			names[name] = true
		}
	}
	each(c.spec.Containers, "spec.containers")
	each(c.spec.InitContainers, "spec.initContainers")
	c.hostPorts(c.spec.Containers, "spec.containers", 0)
	for i := range c.spec.InitContainers { // each of them may take the ports of others
		c.hostPorts(c.spec.InitContainers[i:i+1], "spec.initContainers", i)
	}
	switch c.spec.RestartPolicy {
	case "", corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever:
	default:
		c.fail("spec.restartPolicy: got %q, allowed: Always, OnFailure, Never", c.spec.RestartPolicy)
	}
	if os := c.spec.OS; os != nil && os.Name != corev1.Linux && os.Name != corev1.Windows {
		c.fail("spec.os.name: got %q, allowed: linux, windows", os.Name)
	}
}

// hostPorts refuses a port that is taken twice; from is the place of the first container.
func (c *refusal) hostPorts(containers []corev1.Container, field string, from int) {
	type port struct {
		ip, protocol string
		number       int32
	}
	var taken map[port]bool
	for i := range containers {
		for j := range containers[i].Ports {
			p := &containers[i].Ports[j]
			if p.HostPort == 0 {
				continue
			}
			key := port{p.HostIP, string(p.Protocol), p.HostPort}
			if key.protocol == "" {
				key.protocol = string(corev1.ProtocolTCP)
			}
			if taken[key] {
				c.fail("%s[%d].ports[%d].hostPort: got %d, which the pod takes already for %s, allowed: once for a protocol and hostIP",
					field, from+i, j, p.HostPort, key.protocol)
			}
			if taken == nil {
				taken = map[port]bool{}
			}
			taken[key] = true
		}
	}
}

func (c *refusal) spread() {
	for i := range c.spec.TopologySpreadConstraints {
		in := &c.spec.TopologySpreadConstraints[i]
		field := fmt.Sprintf("spec.topologySpreadConstraints[%d]", i)
		for j := range i {
			if o := &c.spec.TopologySpreadConstraints[j]; o.TopologyKey == in.TopologyKey && o.WhenUnsatisfiable == in.WhenUnsatisfiable {
				c.fail("%s: got topologyKey %q with whenUnsatisfiable %s, which spec.topologySpreadConstraints[%d] has, allowed: once",
					field, in.TopologyKey, in.WhenUnsatisfiable, j)
			}
		}
		if in.MinDomains != nil && in.WhenUnsatisfiable != corev1.DoNotSchedule {
			c.fail("%s.minDomains: got %d with whenUnsatisfiable %s, allowed with DoNotSchedule alone", field, *in.MinDomains, in.WhenUnsatisfiable)
		}
		c.policy(in.NodeAffinityPolicy, field+".nodeAffinityPolicy")
		c.policy(in.NodeTaintsPolicy, field+".nodeTaintsPolicy")
		c.labelKeys(in, field)
	}
}

func (c *refusal) policy(p *corev1.NodeInclusionPolicy, field string) {
	if p != nil && *p != corev1.NodeInclusionPolicyHonor && *p != corev1.NodeInclusionPolicyIgnore {
		c.fail("%s: got %q, allowed: Honor, Ignore", field, *p)
	}
}

// labelKeys refuses keys that the constraint's selector has already.
func (c *refusal) labelKeys(in *corev1.TopologySpreadConstraint, field string) {
	if in.LabelSelector == nil {
		if len(in.MatchLabelKeys) > 0 {
			c.fail("%s.matchLabelKeys: got %q, allowed with a labelSelector alone", field, in.MatchLabelKeys)
		}
		return
	}
	for i, key := range in.MatchLabelKeys {
		_, selected := in.LabelSelector.MatchLabels[key]
		for _, e := range in.LabelSelector.MatchExpressions {
			selected = selected || e.Key == key
		}
		if selected {
			c.fail("%s.matchLabelKeys[%d]: got %q, which is in labelSelector, too, allowed: in one of them", field, i, key)
		}
	}
}

func (c *refusal) tolerations() {
	for i := range c.spec.Tolerations {
		t := &c.spec.Tolerations[i]
		field := fmt.Sprintf("spec.tolerations[%d]", i)
		if t.Key == "" && t.Operator != corev1.TolerationOpExists {
			c.fail("%s.operator: got %q, must be Exists where key is empty", field, t.Operator)
		}
		if t.Operator == corev1.TolerationOpExists && t.Value != "" {
			c.fail("%s.value: got %q, must be empty with operator Exists", field, t.Value)
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			c.fail("%s.effect: got %q, must be NoExecute where tolerationSeconds is set", field, t.Effect)
		}
	}
}

// labels refuses what no label of a node can be.
func (c *refusal) labels() {
	for _, key := range slices.Sorted(maps.Keys(c.spec.NodeSelector)) {
		if why := validation.IsQualifiedName(key); len(why) > 0 {
			c.fail("spec.nodeSelector: got the key %q, must be a label key: %s", key, strings.Join(why, "; "))
		}
		if value := c.spec.NodeSelector[key]; len(validation.IsValidLabelValue(value)) > 0 {
			c.fail("spec.nodeSelector[%s]: got %q, must be a label value: %s", key, value, strings.Join(validation.IsValidLabelValue(value), "; "))
		}
	}
}
