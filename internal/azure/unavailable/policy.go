package unavailable

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
)

// policyCode is the code of Azure Resource Manager where an assignment of Azure Policy with the
// effect deny forbids a request.
const policyCode = "RequestDisallowedByPolicy"

// What Azure Policy calls the size of a virtual machine: an alias in a definition, and the path in
// the request.
const (
	sizeAlias = "Microsoft.Compute/virtualMachines/sku.name"
	sizePath  = "properties.hardwareProfile.vmSize"
)

// allowedSizes is the name of Azure's own definition "Allowed virtual machine size SKUs". An answer
// that has lost its details on the way may still name it.
const allowedSizes = "cccc23c7-8427-4f53-ad12-b6a63eb452b3"

// AdditionalInfo is a detail of an error of Azure Resource Manager, of a form that its type tells.
type AdditionalInfo struct {
	Type string          `json:"type"`
	Info json.RawMessage `json:"info"`
}

// violation is what a detail of the type PolicyViolation says of one policy assignment. The names
// of the fields are those of ExpressionEvaluationDetails in Azure's SDK for Policy Insights.
type violation struct {
	Definition        string `json:"policyDefinitionDisplayName"`
	DefinitionName    string `json:"policyDefinitionName"`
	Assignment        string `json:"policyAssignmentDisplayName"`
	AssignmentName    string `json:"policyAssignmentName"`
	EvaluationDetails struct {
		Expressions []struct {
			Result     string `json:"result"` // True or False
			Expression string `json:"expression"`
			Path       string `json:"path"`
			Operator   string `json:"operator"`
			Target     any    `json:"targetValue"`
		} `json:"evaluatedExpressions"`
	} `json:"evaluationDetails"`
}

// SizePolicy is a policy of the subscription that denies virtual machines of some sizes.
type SizePolicy struct {
	Name string `json:"name"`
	// Conditions decide together which sizes: those for which each comes to the same as for the
	// size that was refused.
	Conditions []SizeCondition `json:"conditions"`
}

// SizeCondition compares a size with values, as a policy does.
type SizeCondition struct {
	// Operator is that of Azure Policy: in, notIn, equals, notEquals, like, notLike, contains or
	// notContains, in any case.
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
	// Holds is what the comparison came to for the size that was refused.
	Holds bool `json:"holds"`
}

// denies reports whether the policy denies a size.
func (p *SizePolicy) denies(size string) bool {
	for _, c := range p.Conditions {
		if holds, known := c.of(size); !known || holds != c.Holds {
			return false
		}
	}
	return len(p.Conditions) > 0
}

// ofFamily reports whether a name is that of a family as quotas have it, such as
// standardDSv5Family, which a policy of sizes does not mean.
func ofFamily(name string) bool { return strings.HasSuffix(strings.ToLower(name), "family") }

// of is what the comparison comes to for a size; known is false for an operator which is not.
// Azure Policy compares without regard to case.
func (c SizeCondition) of(size string) (holds, known bool) {
	operator := strings.ToLower(c.Operator)
	plain := strings.TrimPrefix(operator, "not")
	var one func(value string) bool
	switch plain {
	case "in", "equals":
		one = func(value string) bool { return strings.EqualFold(value, size) }
	case "like":
		one = func(value string) bool { return like(value, size) }
	case "contains":
		one = func(value string) bool { return strings.Contains(strings.ToLower(size), strings.ToLower(value)) }
	default:
		return false, false
	}
	return slices.ContainsFunc(c.Values, one) != (plain != operator), true
}

// like compares as the operator like of Azure Policy: a pattern has at most one star, which
// stands for any text.
func like(pattern, size string) bool {
	pattern, size = strings.ToLower(pattern), strings.ToLower(size)
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == size
	}
	return len(size) >= len(before)+len(after) && strings.HasPrefix(size, before) && strings.HasSuffix(size, after)
}

// violations are the policies that a refusal names.
func (c *Cause) violations() []violation {
	var out []violation
	for _, detail := range c.AdditionalInfo {
		var v violation
		if detail.Type == "PolicyViolation" && json.Unmarshal(detail.Info, &v) == nil {
			out = append(out, v)
		}
	}
	return out
}

// disallowed types a refusal of Azure Policy. Its message names the policies and what they compare,
// which Azure's own leaves to the details.
func (c *Cause) disallowed(err error) *Failure {
	message := c.Message
	var policies []SizePolicy
	for _, v := range c.violations() {
		message += v.words()
		if p, of := v.sizes(); of {
			policies = append(policies, p)
		}
	}
	failure := NewFailure(c.Code, message, err)
	failure.policies = policies
	return failure
}

// name is what people call the policy.
func (v *violation) name() string {
	return cmp.Or(v.Assignment, v.Definition, v.AssignmentName, v.DefinitionName, "without a name")
}

// words is a sentence about the policy, with the fields that it compares.
func (v *violation) words() string {
	var fields []string
	for _, x := range v.EvaluationDetails.Expressions {
		if x.Expression != "" && x.Expression != "type" && !slices.Contains(fields, x.Expression) {
			fields = append(fields, x.Expression)
		}
	}
	out := fmt.Sprintf(" Policy: %s", v.name())
	if v.AssignmentName != "" && v.AssignmentName != v.name() {
		out += fmt.Sprintf(" (assignment %s)", v.AssignmentName)
	}
	if len(fields) > 0 {
		out += ", which compares " + strings.Join(fields, ", ")
	}
	return out + "."
}

// sizes is the policy as one of sizes; false where it compares none, or in a way which is not known.
func (v *violation) sizes() (SizePolicy, bool) {
	out := SizePolicy{Name: v.name()}
	for _, x := range v.EvaluationDetails.Expressions {
		if !strings.EqualFold(x.Expression, sizeAlias) && !strings.EqualFold(x.Path, sizePath) {
			continue
		}
		c := SizeCondition{Operator: x.Operator, Values: textsOf(x.Target), Holds: strings.EqualFold(x.Result, "true")}
		if _, known := c.of(""); !known || len(c.Values) == 0 {
			return SizePolicy{}, false
		}
		out.Conditions = append(out.Conditions, c)
	}
	return out, len(out.Conditions) > 0
}

// textsOf are the texts of a value, which is one of them or a list.
func textsOf(value any) []string {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		var out []string
		for _, x := range value {
			if text, ok := x.(string); ok {
				out = append(out, text)
			}
		}
		return out
	}
	return nil
}

// ofSizes are the policies which deny the size that was asked for, whatever else they deny.
func (f *Failure) ofSizes(s *instancetype.SKU) []SizePolicy {
	return slices.DeleteFunc(slices.Clone(f.policies), func(p SizePolicy) bool { return !p.denies(s.Name) })
}

// String is the name of the policy, "" for nil.
func (p *SizePolicy) String() string {
	if p == nil {
		return ""
	}
	return p.Name
}

// samePolicy reports whether two entries are about the same sizes, as far as a policy decides.
func samePolicy(a, b *SizePolicy) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.EqualFunc(a.Conditions, b.Conditions, func(x, y SizeCondition) bool {
		return x.Operator == y.Operator && x.Holds == y.Holds && slices.Equal(x.Values, y.Values)
	})
}

// listPolicies lists the entries of policies. The caller holds mu.
func (o *Offerings) listPolicies() {
	o.policies = o.policies[:0]
	for s := range o.entries {
		if s.policy != "" {
			o.policies = append(o.policies, s)
		}
	}
	slices.SortFunc(o.policies, func(x, y subject) int {
		return cmp.Or(cmp.Compare(x.policy, y.policy), cmp.Compare(x.capacityType, y.capacityType))
	})
}
