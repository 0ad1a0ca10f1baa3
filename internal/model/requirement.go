package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Operator relates a label's value to the values of a [Requirement]. The names
// are those of Kubernetes node selectors; Gte and Lte are Karpenter's.
type Operator string

// The operators that a Requirement may use.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
	Gt           Operator = "Gt"
	Lt           Operator = "Lt"
	Gte          Operator = "Gte"
	Lte          Operator = "Lte"
)

// Operators lists every operator, in the order in which messages name them.
func Operators() []Operator {
	return []Operator{In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte}
}

// Requirement is one condition on one label. MinValues, where positive, asks
// that the offerings of a node keep at least that many distinct values of Key
// (NodePool requirements only).
type Requirement struct {
	Key       string
	Operator  Operator
	Values    []string
	MinValues int
}

// Requirements are conditions that must all hold.
type Requirements []Requirement

// Validate reports the first thing wrong with the requirement's form, naming
// the key, the value and what is allowed.
func (r Requirement) Validate() error {
	if r.Key == "" {
		return fmt.Errorf("requirement has no key")
	}
	switch r.Operator {
	case In:
		if len(r.Values) == 0 {
			return fmt.Errorf("requirement %q: operator In needs at least one value", r.Key)
		}
	case NotIn:
	case Exists, DoesNotExist:
		if len(r.Values) != 0 {
			return fmt.Errorf("requirement %q: operator %s takes no values, got %q", r.Key, r.Operator, r.Values)
		}
	case Gt, Lt, Gte, Lte:
		if len(r.Values) != 1 {
			return fmt.Errorf("requirement %q: operator %s takes exactly one integer, got %q", r.Key, r.Operator, r.Values)
		}
		if _, err := strconv.ParseInt(r.Values[0], 10, 64); err != nil {
			return fmt.Errorf("requirement %q: operator %s takes an integer, got %q", r.Key, r.Operator, r.Values[0])
		}
	default:
		return fmt.Errorf("requirement %q: unknown operator %q, allowed: %v", r.Key, r.Operator, Operators())
	}
	return nil
}

// Matches reports whether a label with this value (or its absence) satisfies
// the requirement. NotIn and DoesNotExist hold for an absent label, as in
// Kubernetes; the comparisons need an integer on both sides.
func (r Requirement) Matches(value string, present bool) bool {
	switch r.Operator {
	case In:
		return present && slices.Contains(r.Values, value)
	case NotIn:
		return !present || !slices.Contains(r.Values, value)
	case Exists:
		return present
	case DoesNotExist:
		return !present
	default: // the other operators compare no numbers
	}
	if !present || len(r.Values) != 1 {
		return false
	}
	have, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return false
	}
	want, err := strconv.ParseInt(r.Values[0], 10, 64)
	if err != nil {
		return false
	}
	switch r.Operator {
	case Gt:
		return have > want
	case Lt:
		return have < want
	case Gte:
		return have >= want
	case Lte:
		return have <= want
	default: // the others compare numbers, below
	}
	return false
}

// fewValues is up to how many values looking at all of them beats a map.
const fewValues = 8

// Matcher returns [Requirement.Matches] for many labels: what it does for each does not grow
// with the values.
func (r Requirement) Matcher() func(value string, present bool) bool {
	if len(r.Values) <= fewValues || r.Operator != In && r.Operator != NotIn {
		return r.Matches
	}
	named := make(map[string]bool, len(r.Values))
	for _, v := range r.Values {
		named[v] = true
	}
	return func(value string, present bool) bool {
		if r.Operator == In {
			return present && named[value]
		}
		return !present || !named[value]
	}
}

// String prints the requirement as users write it: "zone In [a b]".
func (r Requirement) String() string {
	if len(r.Values) == 0 {
		return fmt.Sprintf("%s %s", r.Key, r.Operator)
	}
	return fmt.Sprintf("%s %s [%s]", r.Key, r.Operator, strings.Join(r.Values, " "))
}

// MatchLabels reports whether a complete set of labels satisfies all
// requirements.
func (rs Requirements) MatchLabels(labels map[string]string) bool {
	for _, r := range rs {
		value, ok := labels[r.Key]
		if !r.Matches(value, ok) {
			return false
		}
	}
	return true
}

// String joins the requirements with commas.
func (rs Requirements) String() string {
	parts := make([]string, len(rs))
	for i, r := range rs {
		parts[i] = r.String()
	}
	return strings.Join(parts, ", ")
}

// Selector chooses pods by their labels; all requirements must hold. A nil
// Selector chooses nothing, an empty one chooses everything, as in Kubernetes.
type Selector struct {
	Requirements Requirements
}

// Matches reports whether the selector chooses a pod with these labels.
func (s *Selector) Matches(labels map[string]string) bool {
	return s != nil && s.Requirements.MatchLabels(labels)
}
