package kube

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// limitNodes is the name under which a NodePool limits its number of nodes.
const limitNodes = "nodes"

func pool(p *v1.NodePool) *fleet.Pool {
	t := &p.Spec.Template
	out := &fleet.Pool{
		Name:          p.Name,
		Labels:        poolLabels(p),
		Taints:        taints(t.Spec.Taints),
		StartupTaints: taints(t.Spec.StartupTaints),
		NodeLimit:     -1,
		Static:        p.Spec.Replicas != nil,
		Deleting:      p.DeletionTimestamp != nil,
		Disruption:    disruption(p),
	}
	if p.Spec.Replicas != nil {
		out.Replicas = int(*p.Spec.Replicas)
	}
	if p.Spec.Weight != nil {
		out.Weight = int(*p.Spec.Weight)
	}
	out.Requirements = userMode(append(poolRequirements(t.Spec.Requirements), labelRequirements(out.Labels)...))
	for _, name := range slices.Sorted(maps.Keys(p.Spec.Limits)) {
		value := amount(name, p.Spec.Limits[name])
		if name == limitNodes {
			out.NodeLimit = int(value)
			continue
		}
		out.Limits = append(out.Limits, fleet.Amount{Name: string(name), Value: value})
	}
	out.Ready, out.NotReady = poolReady(p)
	var costErr, limitErr error
	out.NodeCost, costErr = NodeCost(p)
	out.CostLimit, limitErr = CostLimit(p)
	if err := cmp.Or(costErr, limitErr, checkPool(p)); err != nil {
		out.Invalid = err.Error()
	}
	return out
}

// userMode adds to the requirements of a NodePool which says nothing of the mode that its
// machines are not of mode system: a pod alone cannot make one of the system's machines.
func userMode(requirements model.Requirements) model.Requirements {
	if slices.ContainsFunc(requirements, func(r model.Requirement) bool { return r.Key == model.LabelMode }) {
		return requirements
	}
	return append(requirements, model.Requirement{Key: model.LabelMode, Operator: model.NotIn, Values: []string{"system"}})
}

// NodeCost reads what the NodePool's nodes cost per hour beside machine and disk.
func NodeCost(p *v1.NodePool) (model.Money, error) {
	value, given := p.Annotations[v1beta1.AnnotationNodeCost]
	if !given {
		return 0, nil
	}
	dollars, err := strconv.ParseFloat(value, 64)
	if err != nil || !decimal.MatchString(value) || dollars > highestPrice {
		return 0, fmt.Errorf("metadata.annotations[%s]: got %q, allowed: dollars per hour from 0 to %d, such as \"0.10\"",
			v1beta1.AnnotationNodeCost, value, highestPrice)
	}
	return model.USD(dollars), nil
}

// CostLimit reads the most that the NodePool's nodes may cost per hour together, nil
// without a limit. With an error it is zero: a limit that cannot be read lets nothing be
// bought.
func CostLimit(p *v1.NodePool) (*model.Money, error) {
	value, given := p.Annotations[v1beta1.AnnotationMaxHourlyCost]
	if !given {
		return nil, nil
	}
	limit := model.Money(0)
	dollars, err := strconv.ParseFloat(value, 64)
	if err != nil || !decimal.MatchString(value) || dollars > highestPrice {
		return &limit, fmt.Errorf("metadata.annotations[%s]: got %q, allowed: dollars per hour from 0 to %d, such as \"12.50\"",
			v1beta1.AnnotationMaxHourlyCost, value, highestPrice)
	}
	limit = model.USD(dollars)
	return &limit, nil
}

// disruption reads the settings for giving nodes back, with the API server's
// defaults where it has not filled them in.
func disruption(p *v1.NodePool) fleet.Disruption {
	d := &p.Spec.Disruption
	out := fleet.Disruption{Policy: model.ConsolidationPolicy(cmp.Or(string(d.ConsolidationPolicy), string(model.WhenEmptyOrUnderutilized)))}
	out.Frozen = FreezeOf(p)
	if after := d.ConsolidateAfter.Duration; after != nil {
		out.After = *after
	} else {
		out.Never = true
	}
	budgets := &v1.NodePool{Spec: v1.NodePoolSpec{Disruption: v1.Disruption{Budgets: d.Budgets}}}
	if d.Budgets == nil {
		budgets.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "10%"}}
	}
	for i := range d.Budgets {
		if fault := scheduleFault(&d.Budgets[i]); fault != "" {
			out.Unreadable = append(out.Unreadable, fmt.Sprintf("spec.disruption.budgets[%d].schedule %s", i, fault))
		}
	}
	out.Allowed = func(now time.Time, nodes int, reason model.DisruptionReason) int {
		return budgets.MustGetAllowedDisruptions(moment{now: now}, nodes, v1.DisruptionReason(reason))
	}
	out.Ends = budgetEnds(d.Budgets)
	return out
}

// scheduleFault says what is wrong with the schedule of a budget, which the API server checks by
// its letters alone; empty for one that can be read.
func scheduleFault(b *v1.Budget) string {
	_, err := b.IsActive(moment{now: time.Unix(0, 0)})
	if err == nil {
		return ""
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	schedule := ""
	if b.Schedule != nil {
		schedule = *b.Schedule
	}
	return fmt.Sprintf("%q: %s", schedule, err)
}

// FreezeOf reads whether and why nodes of the NodePool must not be removed voluntarily; nil
// where its annotations do not say so.
func FreezeOf(p *v1.NodePool) *fleet.Freeze {
	reason, frozen := p.Annotations[v1beta1.AnnotationFrozen]
	if !frozen {
		return nil
	}
	until, _ := FrozenUntil(p) // what is no time has no end: what is to be kept is kept
	return &fleet.Freeze{Reason: reason, Until: until}
}

// FrozenUntil reads when the NodePool's freeze ends, zero where it does not say so.
func FrozenUntil(p *v1.NodePool) (time.Time, error) {
	value, given := p.Annotations[v1beta1.AnnotationFrozenUntil]
	if !given {
		return time.Time{}, nil
	}
	until, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, fmt.Errorf("metadata.annotations[%s]: got %q, allowed: a time such as \"2026-11-22T14:00:00Z\"",
			v1beta1.AnnotationFrozenUntil, value)
	}
	return until, nil
}

// AnnotationNotes say which annotations of a NodePool do nothing: those that are written almost as
// one of nap's, and an end of a freeze that there is not.
func AnnotationNotes(p *v1.NodePool) []string {
	known := []string{
		v1beta1.AnnotationNodeCost, v1beta1.AnnotationMaxHourlyCost, v1beta1.AnnotationFrozen, v1beta1.AnnotationFrozenUntil,
		v1beta1.AnnotationBeforeDisable,
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p.Annotations)) {
		if slices.Contains(known, name) {
			continue
		}
		if meant := model.MeantLabel(name, known); meant != "" {
			out = append(out, fmt.Sprintf("NodePool %s has the annotation %s, which says nothing to nap: %s is meant, perhaps", p.Name, name, meant))
		}
	}
	if _, until := p.Annotations[v1beta1.AnnotationFrozenUntil]; until && FreezeOf(p) == nil {
		out = append(out, fmt.Sprintf("NodePool %s has the annotation %s, which freezes nothing without %s, whose value is the reason",
			p.Name, v1beta1.AnnotationFrozenUntil, v1beta1.AnnotationFrozen))
	}
	return out
}

// moment is a clock that stands still.
type moment struct {
	clock.RealClock
	now time.Time
}

func (m moment) Now() time.Time { return m.now }

// poolLabels are the labels that every node of the pool carries.
func poolLabels(p *v1.NodePool) map[string]string {
	labels := map[string]string{}
	for k, v := range p.Spec.Template.Labels {
		labels[NormalizeLabel(k)] = normalizeValue(NormalizeLabel(k), v)
	}
	labels[v1.NodePoolLabelKey] = p.Name
	if ref := p.Spec.Template.Spec.NodeClassRef; ref != nil {
		labels[v1.NodeClassLabelKey(ref.GroupKind())] = ref.Name
	}
	return labels
}

// poolReady reads the Ready condition, naming the condition beneath it that
// says why not.
func poolReady(p *v1.NodePool) (bool, string) {
	why := ""
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type == "Ready" && string(c.Status) == "True" {
			return true, ""
		}
		if string(c.Status) != "True" && c.Type != v1.ConditionTypeNodeRegistrationHealthy && (why == "" || c.Type != "Ready") {
			why = c.Type + " is " + string(c.Status)
			if text := cmp.Or(c.Message, c.Reason); text != "" {
				why += " (" + text + ")"
			}
		}
	}
	return false, why
}

// CheckManaged refuses a NodePool whose node class is not one of nap's: it belongs to another
// Karpenter, or to none, and nap buys nothing for it.
func CheckManaged(p *v1.NodePool) error { return CheckClass(p.Spec.Template.Spec.NodeClassRef) }

// CheckClass refuses a node class of a NodePool or NodeClaim that is not one of nap's.
func CheckClass(ref *v1.NodeClassReference) error {
	const kind, group = "AKSNodeClass", "karpenter.azure.com"
	if ref == nil || (ref.Kind == "" || ref.Kind == kind) && (ref.Group == "" || ref.Group == group) {
		return nil
	}
	return fmt.Errorf("spec.template.spec.nodeClassRef: got kind %q of group %q, which nap does not manage, allowed: %s of group %s",
		ref.Kind, ref.Group, kind, group)
}

// checkPool names the first field of a NodePool that cannot be, with the value
// and what is allowed.
func checkPool(p *v1.NodePool) error {
	t := &p.Spec.Template
	if t.Spec.NodeClassRef == nil || t.Spec.NodeClassRef.Name == "" {
		return fmt.Errorf("spec.template.spec.nodeClassRef: is missing, must name a node class")
	}
	for _, k := range slices.Sorted(maps.Keys(t.Labels)) {
		field := fmt.Sprintf("spec.template.metadata.labels[%s]", k)
		if err := checkLabel(k, []string{t.Labels[k]}, field); err != nil {
			return err
		}
		if k == v1.NodePoolLabelKey || reserved(k) {
			return fmt.Errorf("%s: is a label that provisioning itself sets, use another key", field)
		}
	}
	if err := checkTaints(t); err != nil {
		return err
	}
	for i := range t.Spec.Requirements {
		if err := checkPoolRequirement(&t.Spec.Requirements[i], fmt.Sprintf("spec.template.spec.requirements[%d]", i)); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Spec.Limits)) {
		if q := p.Spec.Limits[name]; q.Sign() < 0 {
			return fmt.Errorf("spec.limits[%s]: got %s, must not be negative", name, q.String())
		}
	}
	if w := p.Spec.Weight; w != nil && (*w < 1 || *w > 100) {
		return fmt.Errorf("spec.weight: got %d, allowed: 1 to 100", *w)
	}
	return nil
}

func checkPoolRequirement(in *v1.NodeSelectorRequirementWithMinValues, field string) error {
	r := nodeRequirement(in.Key, string(in.Operator), in.Values)
	if err := validateNodeRequirement(r); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	if err := checkLabel(r.Key, in.Values, field); err != nil {
		return err
	}
	if r.Key == v1.NodePoolLabelKey || reserved(r.Key) {
		return fmt.Errorf("%s.key: got %q, which provisioning itself sets, use another key", field, r.Key)
	}
	switch r.Operator {
	case model.Gt, model.Lt, model.Gte, model.Lte:
		if strings.HasPrefix(r.Values[0], "-") {
			return fmt.Errorf("%s.values: got %q, must be zero or more", field, r.Values[0])
		}
	default: // the others take any number of values
	}
	if r.Key == v1.CapacityTypeLabelKey && r.Operator == model.In {
		known := func(v string) bool {
			return v == v1.CapacityTypeOnDemand || v == v1.CapacityTypeSpot || v == v1.CapacityTypeReserved
		}
		if !slices.ContainsFunc(r.Values, known) {
			return fmt.Errorf("%s.values: got %q, allowed: on-demand, spot, reserved", field, r.Values)
		}
	}
	if in.MinValues != nil {
		if *in.MinValues < 1 || *in.MinValues > 50 {
			return fmt.Errorf("%s.minValues: got %d, allowed: 1 to 50", field, *in.MinValues)
		}
		if r.Operator == model.In && len(r.Values) < *in.MinValues {
			return fmt.Errorf("%s.minValues: got %d, but the requirement lists %d different values", field, *in.MinValues, len(r.Values))
		}
	}
	return nil
}

// reserved labels name one node or how far it has come; no pool can ask for
// them.
func reserved(key string) bool {
	if key == corev1.LabelHostname {
		return true
	}
	domain, _, found := strings.Cut(key, "/")
	own := domain == "karpenter.sh" || strings.HasSuffix(domain, ".karpenter.sh")
	return found && own && key != v1.CapacityTypeLabelKey && key != v1.NodePoolLabelKey
}

func checkLabel(key string, values []string, field string) error {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return fmt.Errorf("%s: key %q: %s", field, key, problems[0])
	}
	for _, v := range values {
		if problems := validation.IsValidLabelValue(v); len(problems) > 0 {
			return fmt.Errorf("%s: value %q: %s", field, v, problems[0])
		}
	}
	return nil
}

func checkTaints(t *v1.NodeClaimTemplate) error {
	type keyEffect struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[keyEffect]string{}
	check := func(list []corev1.Taint, name string) error {
		for i, taint := range list {
			field := fmt.Sprintf("spec.template.spec.%s[%d]", name, i)
			if problems := validation.IsQualifiedName(taint.Key); len(problems) > 0 {
				return fmt.Errorf("%s.key: got %q: %s", field, taint.Key, problems[0])
			}
			switch taint.Effect {
			case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
			default:
				return fmt.Errorf("%s.effect: got %q, allowed: NoSchedule, PreferNoSchedule, NoExecute", field, taint.Effect)
			}
			key := keyEffect{taint.Key, taint.Effect}
			if first, twice := seen[key]; twice {
				return fmt.Errorf("%s: repeats the key and effect of %s", field, first)
			}
			seen[key] = field
		}
		return nil
	}
	return cmp.Or(check(t.Spec.Taints, "taints"), check(t.Spec.StartupTaints, "startupTaints"))
}
