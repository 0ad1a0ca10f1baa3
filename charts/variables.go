package charts

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
)

// setting is what the schema of chart nap says of one of its settings.
type setting struct {
	Type       kinds              `json:"type"`
	Properties map[string]setting `json:"properties"`
}

// kinds are one type or several of a schema.
type kinds []string

// UnmarshalJSON reads either form.
func (k *kinds) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*k = kinds{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(k))
}

// capital finds where a word of a setting's name begins.
var capital = regexp.MustCompile(`[A-Z]`)

// variableOf is the controller's variable that the chart makes of a setting.
func variableOf(name string) string { return strings.ToUpper(capital.ReplaceAllString(name, "_$0")) }

// settingsOf are the chart's settings by the variable that it makes of each.
func settingsOf(chart *chartv2.Chart) (names map[string]string, known map[string]setting, err error) {
	var schema struct {
		Properties struct{ Settings setting }
	}
	if err := json.Unmarshal(chart.Schema, &schema); err != nil {
		return nil, nil, fmt.Errorf("schema of chart %s: %w", chart.Name(), err)
	}
	known, names = schema.Properties.Settings.Properties, map[string]string{}
	for name := range known {
		names[variableOf(name)] = name
	}
	return names, known, nil
}

// isOwn reports whether a variable's name says that it is of nap's controller.
func isOwn(name string) bool {
	return strings.HasPrefix(name, "NAP_") && !strings.HasPrefix(name, "NAP_LAB_")
}

// fromVariables makes values of the controller's variables, NAME=value; of several
// of one name the last counts. Variables that are no setting are left out, except
// those of nap's own, which are an error. An empty value is none.
func fromVariables(chart *chartv2.Chart, variables []string) (map[string]any, error) {
	names, known, err := settingsOf(chart)
	if err != nil {
		return nil, err
	}
	settings, values, unknown := map[string]any{}, map[string]any{}, []string{}
	for _, variable := range variables {
		name, text, _ := strings.Cut(variable, "=")
		key, isSetting := names[name]
		switch {
		case text == "":
		case isSetting:
			settings[key] = known[key].value(text)
		case name == "METRICS_SECURE":
			values["metrics"] = map[string]any{"secure": boolean(text)}
		case isOwn(name):
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		own := slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(n string) bool { return !isOwn(n) })
		return nil, fmt.Errorf("no setting of the controller: %s; those of nap's own are %s",
			strings.Join(slices.Compact(unknown), ", "), strings.Join(own, ", "))
	}
	values["settings"] = settings
	return values, nil
}

// value reads a setting as its variable has it. What cannot be read stays text, and the
// schema refuses it by name.
func (s setting) value(text string) any {
	is := func(kind string) bool { return slices.Contains(s.Type, kind) }
	switch {
	case is("string"):
		return text
	case is("boolean"):
		return boolean(text)
	case is("integer"):
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return float64(n)
		}
		return text
	case is("array"):
		var all []any
		for part := range strings.SplitSeq(text, ",") {
			all = append(all, part)
		}
		return all
	}
	pairs := map[string]any{}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(pair, "=")
		if key = strings.TrimSpace(key); len(s.Properties) == 0 {
			pairs[key] = value
			continue
		}
		// Gates begin with a capital, and settings do not.
		letters := []rune(key)
		if len(letters) > 0 {
			letters[0] = unicode.ToLower(letters[0])
		}
		pairs[string(letters)] = s.Properties[string(letters)].value(value)
	}
	return pairs
}

func boolean(text string) any {
	if b, err := strconv.ParseBool(text); err == nil {
		return b
	}
	return text
}
