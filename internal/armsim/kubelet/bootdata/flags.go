package bootdata

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/kubeletflags"
)

// Flags are the settings of a kubelet.
type Flags = kubeletflags.Flags

// Threshold is an amount, either absolute or as a fraction of the capacity.
type Threshold = kubeletflags.Threshold

// defaultMaxPods is the kubelet's own default.
const defaultMaxPods = 110

// ParseFlags reads a kubelet's command line: --name=value or --name value,
// separated by blanks.
func ParseFlags(line string) (Flags, error) {
	f := Flags{MaxPods: defaultMaxPods}
	var errs []error
	words := strings.Fields(line)
	for i := 0; i < len(words); i++ {
		word := words[i]
		if !strings.HasPrefix(word, "--") {
			errs = append(errs, fmt.Errorf("%q: want --name=value", word))
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if !ok && i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
			i++
			value = words[i]
		}
		if err := set(&f, name, value); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", name, err))
		}
	}
	return f, errors.Join(errs...)
}

// set applies one flag.
func set(f *Flags, name, value string) (err error) {
	switch name {
	case "register-with-taints":
		f.Taints, err = parseTaints(value)
	case "max-pods":
		f.MaxPods, err = strconv.ParseInt(value, 10, 64)
		if err != nil || f.MaxPods < 1 {
			return fmt.Errorf("%q: want a positive number", value)
		}
	case "kube-reserved":
		f.KubeReserved, err = parseReserved(value)
	case "system-reserved":
		f.SystemReserved, err = parseReserved(value)
	case "eviction-hard":
		err = setEviction(f, value)
	case "cloud-provider":
		f.ExternalCloud = value == "external"
	case "node-ip":
		if net.ParseIP(value) == nil {
			return fmt.Errorf("%q: want an IP address", value)
		}
		f.NodeIP = value
	case "provider-id":
		f.ProviderID = value
	}
	return err
}

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
func setEviction(f *Flags, v string) error {
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
