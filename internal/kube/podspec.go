package kube

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// specReader converts the scheduling part of one pod.
type specReader struct {
	pod *corev1.Pod
	out *fleet.PodSpec
}

// readSpec converts a pod's scheduling fields and the annotations that planning
// obeys. It looks at the pod's own labels only where matchLabelKeys asks for them.
func readSpec(pod *corev1.Pod) *fleet.PodSpec {
	if why := tooMuch(pod); why != "" {
		return readTooMuch(pod, why)
	}
	return readSpecWith(pod, readRules(pod))
}

// readRules converts a pod's affinity and its topology spread constraints, which
// pods of different sizes often have in common.
func readRules(pod *corev1.Pod) *fleet.PodSpec {
	c := &specReader{pod: pod, out: &fleet.PodSpec{}}
	c.affinity()
	c.spread()
	c.out.AvoidsPools = avoidsPools(c.out)
	return c.out
}

// rulesOf are the rules of a pod which has the same ones as another, whose spec is given.
func rulesOf(like *fleet.PodSpec) *fleet.PodSpec {
	return &fleet.PodSpec{
		PodRules:     model.PodRules{NodeAlternatives: like.NodeAlternatives, NodePreferences: like.NodePreferences},
		Spread:       like.Spread,
		Affinity:     like.Affinity,
		AntiAffinity: like.AntiAffinity,
		Preferences:  like.Preferences,
		AvoidsPools:  like.AvoidsPools,
	}
}

// readSpecWith is readSpec for a pod with known rules.
func readSpecWith(pod *corev1.Pod, rules *fleet.PodSpec) *fleet.PodSpec {
	out := *rules
	out.Invalid = ""
	c := &specReader{pod: pod, out: &out}
	c.resources()
	out.NodeRequirements = append(labelRequirements(pod.Spec.NodeSelector), osRequirement(&pod.Spec)...)
	if rules.Invalid != "" {
		c.fail("%s", rules.Invalid)
	}
	c.tolerations()
	out.HostPorts = hostPorts(&pod.Spec)
	for _, p := range out.HostPorts {
		if p.Port < 1 || p.Port > math.MaxUint16 {
			c.fail("spec.containers[].ports[].hostPort: got %d, allowed: 1 to %d", p.Port, math.MaxUint16)
		}
	}
	if pod.Spec.Priority != nil {
		out.Priority = *pod.Spec.Priority
	}
	c.annotations()
	c.devices()
	out.Features = features(&pod.Spec)
	out.SetKey()
	return &out
}

// osRequirement is what a pod for Windows asks of its node where its node selector does not: the
// kubelets of other nodes refuse it, though the scheduler does not look at the field.
func osRequirement(spec *corev1.PodSpec) model.Requirements {
	if spec.OS == nil || spec.OS.Name != corev1.Windows || spec.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows) {
		return nil
	}
	return model.Requirements{nodeRequirement(corev1.LabelOSStable, string(model.In), []string{string(corev1.Windows)})}
}

// fail records the first thing wrong with the pod.
func (c *specReader) fail(format string, args ...any) {
	if c.out.Invalid == "" {
		c.out.Invalid = fmt.Sprintf(format, args...)
	}
}

// resources are what the scheduler reserves: containers and sidecars together,
// or the most that any init container needs beside the sidecars started before
// it, whichever is more; pod-level requests in their place; overhead on top. A
// container or a pod that is being resized counts with the most of what it asks for and
// what it has, and with what it has alone where its node never has room for more.
func (c *specReader) resources() {
	c.checkRequests()
	if c.oneContainer() {
		c.out.Requests = amounts(c.pod.Spec.Containers[0].Resources.Requests)
	} else {
		// Where a cluster cannot resize pods or their containers, no status says so.
		c.out.Requests = amounts(resourcehelper.PodRequests(c.pod, resourcehelper.PodResourcesOptions{
			UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
		}))
	}
	c.out.Requests.Pods = 1
}

// oneContainer reports whether what the pod takes is what its only container asks
// for, as with most pods.
func (c *specReader) oneContainer() bool {
	spec := &c.pod.Spec
	return len(spec.Containers) == 1 && len(spec.InitContainers) == 0 && len(spec.Overhead) == 0 && spec.Resources == nil &&
		!slices.ContainsFunc(c.pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Resources != nil })
}

func (c *specReader) checkRequests() {
	check := func(list corev1.ResourceList, field func() string) {
		if err := checkAmounts(list, field); err != nil {
			c.fail("%v", err)
		}
	}
	spec := &c.pod.Spec
	for i := range spec.Containers {
		check(spec.Containers[i].Resources.Requests, func() string { return fmt.Sprintf("spec.containers[%d].resources.requests", i) })
	}
	for i := range spec.InitContainers {
		check(spec.InitContainers[i].Resources.Requests, func() string { return fmt.Sprintf("spec.initContainers[%d].resources.requests", i) })
	}
	check(spec.Overhead, func() string { return "spec.overhead" })
	if spec.Resources != nil {
		check(spec.Resources.Requests, func() string { return "spec.resources.requests" })
	}
}

func (c *specReader) tolerations() {
	for i, t := range c.pod.Spec.Tolerations {
		out := model.Toleration{Key: t.Key, Value: t.Value, Effect: model.TaintEffect(t.Effect)}
		switch t.Operator {
		case corev1.TolerationOpExists:
			out.Exists, out.Value = true, ""
		case corev1.TolerationOpEqual, "":
		case corev1.TolerationOpGt, corev1.TolerationOpLt:
			out.Compare = model.Operator(t.Operator)
			if _, err := strconv.ParseInt(t.Value, 10, 64); err != nil {
				c.fail("spec.tolerations[%d].value: got %q, must be a whole number with operator %s", i, t.Value, t.Operator)
				continue
			}
		default:
			c.fail("spec.tolerations[%d].operator: got %q, allowed: Exists, Equal, Gt, Lt", i, t.Operator)
			continue
		}
		switch t.Effect {
		case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			c.fail("spec.tolerations[%d].effect: got %q, allowed: NoSchedule, PreferNoSchedule, NoExecute", i, t.Effect)
		}
		if !slices.Contains(c.out.Tolerations, out) {
			c.out.Tolerations = append(c.out.Tolerations, out)
		}
	}
}

// devices notes the pod's resource claims. Containers name those again that they use.
func (c *specReader) devices() {
	for i := range c.pod.Spec.ResourceClaims {
		r := &c.pod.Spec.ResourceClaims[i]
		c.out.DeviceClaims = append(c.out.DeviceClaims, fleet.DeviceClaimRef{
			Name: r.Name, Claim: ptr.Deref(r.ResourceClaimName, ""), Template: ptr.Deref(r.ResourceClaimTemplateName, ""),
		})
	}
}

// hostPorts are the ports that the pod takes on its node: those of containers
// and sidecars. On the host network every container port is one.
func hostPorts(spec *corev1.PodSpec) []model.HostPort {
	var out []model.HostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			port := p.HostPort
			if port == 0 && spec.HostNetwork {
				port = p.ContainerPort
			}
			if port == 0 {
				continue
			}
			protocol := string(p.Protocol)
			if protocol == "" {
				protocol = string(corev1.ProtocolTCP)
			}
			out = append(out, model.HostPort{IP: p.HostIP, Port: port, Protocol: protocol})
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	for i := range spec.InitContainers {
		if restarts(&spec.InitContainers[i]) {
			add(&spec.InitContainers[i])
		}
	}
	return out
}

func restarts(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// avoidsPools reports whether the pod asks for a node outside every NodePool,
// on all of its alternatives.
func avoidsPools(s *fleet.PodSpec) bool {
	avoids := func(rs model.Requirements) bool {
		return slices.ContainsFunc(rs, func(r model.Requirement) bool {
			return r.Key == v1.NodePoolLabelKey && r.Operator == model.DoesNotExist
		})
	}
	for _, alternative := range s.NodeAlternatives {
		if !avoids(alternative) {
			return false
		}
	}
	return len(s.NodeAlternatives) > 0
}

// readDaemon converts a DaemonSet's template to what its pods will be. The API server
// makes requests of limits in pods, but not in templates; admission gives them the
// defaults of their namespace and what their RuntimeClass adds; the controller of DaemonSets
// adds tolerations to every pod; and a node's registration state, which some templates
// ask for, always comes true.
func readDaemon(template *corev1.PodTemplateSpec, adds admitted) *fleet.PodSpec {
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: *template.Spec.DeepCopy()}
	requestLimits(&pod.Spec)
	adds.defaults.admit(&pod.Spec)
	invalid := ""
	if adds.runtime != nil {
		if err := admitRuntimeClass(&pod.Spec, adds.runtime); err != nil {
			invalid = err.Error()
		}
	}
	s := readSpec(pod)
	s.Invalid = cmp.Or(s.Invalid, invalid)
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		s.Tolerations = append(s.Tolerations, model.Toleration{Key: key, Exists: true, Effect: model.NoExecute})
	}
	for _, key := range []string{corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure,
		corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable} {
		s.Tolerations = append(s.Tolerations, model.Toleration{Key: key, Exists: true, Effect: model.NoSchedule})
	}
	if template.Spec.HostNetwork {
		s.Tolerations = append(s.Tolerations, model.Toleration{Key: corev1.TaintNodeNetworkUnavailable, Exists: true, Effect: model.NoSchedule})
	}
	comesTrue := func(r model.Requirement) bool {
		return (r.Key == v1.NodeRegisteredLabelKey || r.Key == v1.NodeInitializedLabelKey) && r.Matches("true", true)
	}
	s.NodeRequirements = slices.DeleteFunc(s.NodeRequirements, comesTrue)
	for i := range s.NodeAlternatives {
		s.NodeAlternatives[i] = slices.DeleteFunc(s.NodeAlternatives[i], comesTrue)
	}
	return s
}

// ownerOf names the workload that controls a pod: the Deployment where the
// ReplicaSet's name carries the pod's template hash.
func ownerOf(pod *corev1.Pod) fleet.Owner {
	for i := range pod.OwnerReferences {
		o := &pod.OwnerReferences[i]
		if o.Controller == nil || !*o.Controller {
			continue
		}
		if hash := pod.Labels["pod-template-hash"]; o.Kind == "ReplicaSet" && hash != "" && strings.HasSuffix(o.Name, "-"+hash) {
			return fleet.Owner{Kind: "Deployment", Name: strings.TrimSuffix(o.Name, "-"+hash)}
		}
		return fleet.Owner{Kind: o.Kind, Name: o.Name}
	}
	return fleet.Owner{}
}
