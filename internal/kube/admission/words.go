package admission

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// namedInside finds the field of a fault that says it in its text alone.
var namedInside = regexp.MustCompile(`^"([^"]+)" | in (\S+)$`)

// told are faults in the order of their fields, each with the field and its value: the library
// says of a value of a wrong type only which type it has, and of one that fits none of several
// schemas neither field nor value.
func told(object map[string]any, found field.ErrorList) field.ErrorList {
	mistyped := map[string]*field.Error{}
	for _, e := range found {
		if e.Type != field.ErrorTypeTypeInvalid {
			continue
		}
		e.BadValue, _ = valueAt(object, e.Field)
		e.Detail, _, _ = strings.Cut(e.Detail, ": ")
		if other := mistyped[e.Field]; other == nil || len(other.Detail) < len(e.Detail) { // it has all types that there may be
			mistyped[e.Field] = e
		}
	}
	found = slices.DeleteFunc(found, func(e *field.Error) bool {
		inside := e.Field == (*field.Path)(nil).String()
		if inside {
			nameField(e, object)
		}
		typed := mistyped[e.Field]
		return typed != nil && (inside || e.Type == field.ErrorTypeTypeInvalid && e != typed)
	})
	for _, e := range found {
		e.Detail = withExample(e.Detail)
		if (e.BadValue == "array" || e.BadValue == "object") && strings.Contains(e.Detail, " evaluating rule: ") {
			e.BadValue = field.OmitValueType{} // it is no value
		}
	}
	slices.SortStableFunc(found, func(a, b *field.Error) int {
		return cmp.Or(byField(a.Field, b.Field), cmp.Compare(a.Detail, b.Detail))
	})
	return slices.CompactFunc(found, func(a, b *field.Error) bool { return a.Error() == b.Error() })
}

// nameField gives a fault its field and the value of that, or the object as a whole.
func nameField(e *field.Error, object map[string]any) {
	e.Field = "the object"
	if named := namedInside.FindStringSubmatch(e.Detail); named != nil {
		e.Field = cmp.Or(named[1], named[2])
		e.BadValue, _ = valueAt(object, e.Field)
	}
}

// byField orders fields by name, items of lists by number.
func byField(a, b string) int {
	split := func(r rune) bool { return r == '.' || r == '[' || r == ']' }
	x, y := strings.FieldsFunc(a, split), strings.FieldsFunc(b, split)
	return slices.CompareFunc(x, y, func(a, b string) int {
		m, err := strconv.Atoi(a)
		n, err2 := strconv.Atoi(b)
		if err == nil && err2 == nil {
			return cmp.Compare(m, n)
		}
		return cmp.Compare(a, b)
	})
}

// valueAt is the value of a field such as spec.limits.nvidia.com/gpu or
// spec.template.spec.taints[0].effect. Keys may have dots themselves.
func valueAt(v any, path string) (value any, there bool) {
	if path == "" {
		return v, true
	}
	if rest, item := strings.CutPrefix(path, "["); item {
		number, rest, closed := strings.Cut(rest, "]")
		list, is := v.([]any)
		if i, err := strconv.Atoi(number); closed && is && err == nil && i >= 0 && i < len(list) {
			return valueAt(list[i], strings.TrimPrefix(rest, "."))
		}
		path = number // the key of a map
		if closed && rest != "" {
			path += rest
		}
	}
	object, is := v.(map[string]any)
	if !is {
		return nil, false
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		rest, begins := strings.CutPrefix(path, key)
		if !begins || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		if value, there = valueAt(object[key], strings.TrimPrefix(rest, ".")); there {
			return value, true
		}
	}
	return nil, false
}

// examples are values that patterns of Karpenter's definitions match, for those who do not read
// patterns.
func examples() map[string]string {
	return map[string]string{
		`^(([0-9]+(s|m|h))+|Never)$`:                "720h, 1h30m or Never",
		`^([0-9]+(s|m|h))+$`:                        "90s or 1h30m",
		`^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$`: "8h, 90m or 8h30m",
		`^((100|[0-9]{1,2})%|[0-9]+)$`:              "5 or 10%",
		`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$`: "0 9 * * 1-5 or @daily",
		`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|` +
			`([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`: "4, 500m or 16Gi",
	}
}

// withExample adds to what is wanted, where that is a pattern, what matches it.
func withExample(detail string) string {
	if _, quoted, found := strings.Cut(detail, "should match '"); found {
		if example := examples()[strings.TrimSuffix(quoted, "'")]; example != "" {
			return detail + ", such as " + example
		}
	}
	return detail
}
