package kubeletflags

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// parseTaints reads key=value:Effect and key:Effect, separated by commas.
func parseTaints(v string) ([]corev1.Taint, error) {
	var taints []corev1.Taint
	for _, s := range splitList(v) {
		spec, effect, ok := strings.Cut(s, ":")
		if !ok {
			return nil, fmt.Errorf("taint %q: want key=value:Effect or key:Effect", s)
		}
		t := corev1.Taint{Effect: corev1.TaintEffect(effect)}
		t.Key, t.Value, _ = strings.Cut(spec, "=")
		effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
		if !slices.Contains(effects, t.Effect) {
			return nil, fmt.Errorf("taint %q: effect %q: want NoSchedule, PreferNoSchedule or NoExecute", s, effect)
		}
		if err := validLabel(t.Key, t.Value); err != nil {
			return nil, fmt.Errorf("taint %q: %w", s, err)
		}
		if slices.ContainsFunc(taints, func(o corev1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }) {
			return nil, fmt.Errorf("taint %q: key and effect appear twice", s)
		}
		taints = append(taints, t)
	}
	return taints, nil
}

// validLabel checks a label key and value; taints follow the same rule.
func validLabel(key, value string) error {
	if msgs := validation.IsQualifiedName(key); len(msgs) > 0 {
		return fmt.Errorf("key %q: %s", key, strings.Join(msgs, "; "))
	}
	if msgs := validation.IsValidLabelValue(value); len(msgs) > 0 {
		return fmt.Errorf("value %q of %s: %s", value, key, strings.Join(msgs, "; "))
	}
	return nil
}

// parseReserved reads cpu=100m,memory=1843Mi,ephemeral-storage=1Gi,pid=1000.
func parseReserved(v string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for _, pair := range splitList(v) {
		name, amount, _ := strings.Cut(pair, "=")
		switch name {
		case "cpu", "memory", "ephemeral-storage", "pid":
		default:
			return nil, fmt.Errorf("resource %q: want cpu, memory, ephemeral-storage or pid", name)
		}
		q, err := resource.ParseQuantity(amount)
		if err != nil || q.Sign() < 0 {
			return nil, fmt.Errorf("%s %q: want a quantity of zero or more", name, amount)
		}
		list[corev1.ResourceName(name)] = q
	}
	return list, nil
}

// evictionSignals are the signals a kubelet knows.
var evictionSignals = []string{
	"memory.available", "allocatableMemory.available", "pid.available", "nodefs.available", "nodefs.inodesFree",
	"imagefs.available", "imagefs.inodesFree", "containerfs.available", "containerfs.inodesFree",
}

// setEviction reads memory.available<750Mi,nodefs.available<10%,….
func (f *Flags) setEviction(v string) error {
	f.EvictionMemory, f.EvictionDisk = Threshold{}, Threshold{}
	for _, s := range splitList(v) {
		signal, amount, ok := strings.Cut(s, "<")
		if !ok || !slices.Contains(evictionSignals, signal) {
			return fmt.Errorf("%q: want signal<amount with one of %s", s, strings.Join(evictionSignals, ", "))
		}
		t, err := parseThreshold(amount)
		if err != nil {
			return fmt.Errorf("%s: %w", signal, err)
		}
		switch signal {
		case "memory.available":
			f.EvictionMemory = t
		case "nodefs.available":
			f.EvictionDisk = t
		}
	}
	return nil
}

func parseThreshold(v string) (Threshold, error) {
	if percent, ok := strings.CutSuffix(v, "%"); ok {
		p, err := strconv.ParseFloat(percent, 64)
		if err != nil || p < 0 || p > 100 {
			return Threshold{}, fmt.Errorf("%q: want 0%% to 100%%", v)
		}
		return Threshold{Fraction: p / 100}, nil
	}
	q, err := resource.ParseQuantity(v)
	if err != nil || q.Sign() < 0 {
		return Threshold{}, fmt.Errorf("%q: want a quantity or a percentage", v)
	}
	return Threshold{Bytes: q.Value()}, nil
}

// parseNodeLabels refuses the labels that a kubelet refuses to give to its own node, and
// those that no node can have.
func parseNodeLabels(labels map[string]string) (map[string]string, error) {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if err := validLabel(key, labels[key]); err != nil {
			errs = append(errs, fmt.Errorf("--node-labels: %w", err))
		} else if reserved(key) {
			errs = append(errs, fmt.Errorf("--node-labels: label %q: a kubelet may not set it on its own node; "+
				"in kubernetes.io and k8s.io only well-known node labels and the kubelet. and node. prefixes are allowed", key))
		}
	}
	return labels, errors.Join(errs...)
}

// ownLabels are the labels in Kubernetes' own domains that a kubelet may set.
var ownLabels = []string{
	corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
	corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	corev1.LabelInstanceType, corev1.LabelInstanceTypeStable,
}

// reserved reports whether the label lies in Kubernetes' own domains and is not
// for kubelets to set.
func reserved(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok || slices.Contains(ownLabels, key) {
		return false
	}
	within := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }
	if within("kubelet.kubernetes.io") || within("node.kubernetes.io") {
		return false
	}
	return within("kubernetes.io") || within("k8s.io")
}

// splitList splits at commas and drops empty elements.
func splitList(v string) []string {
	return slices.DeleteFunc(strings.Split(v, ","), func(s string) bool { return strings.TrimSpace(s) == "" })
}
