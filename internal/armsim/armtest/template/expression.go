package template

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// namespace is that of the function guid:
// https://learn.microsoft.com/azure/azure-resource-manager/bicep/bicep-functions-string#guid
const namespace = "11fb06fb-712d-4ddd-98c7-e71bbd588830"

// interleave is a type of resources with the names of one of them.
func interleave(typ string, names []any) string {
	parts := strings.Split(typ, "/")
	out := parts[0]
	for i, name := range names {
		out += "/" + parts[i+1] + "/" + fmt.Sprint(name)
	}
	return out
}

// eval replaces the expressions in a value.
func (d *Deployment) eval(v any) any {
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(v, "[") && strings.HasSuffix(v, "]") {
			e := &expression{Deployment: d, rest: v[1 : len(v)-1]}
			out := e.value()
			if e.rest != "" {
				d.Fatalf("expression %s: %q is left", v, e.rest)
			}
			return out
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = d.eval(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			key, _ := d.eval(k).(string)
			out[key] = d.eval(v[k])
		}
		return out
	}
	return v
}

// expression is what of an expression is not read yet.
type expression struct {
	*Deployment
	rest string
}

func (e *expression) take(token string) bool {
	e.rest = strings.TrimLeft(e.rest, " ")
	if !strings.HasPrefix(e.rest, token) {
		return false
	}
	e.rest = e.rest[len(token):]
	return true
}

func (e *expression) word() string {
	i := 0
	for i < len(e.rest) && ofName(e.rest[i]) {
		i++
	}
	word := e.rest[:i]
	e.rest = e.rest[i:]
	return word
}

// value reads a text, a number, or a call with what is taken from its result.
func (e *expression) value() any {
	if e.take("'") {
		text, rest, _ := strings.Cut(e.rest, "'")
		e.rest = rest
		return text
	}
	word := e.word()
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	if !e.take("(") {
		e.Fatalf("expected a call of %q at %q", word, e.rest)
	}
	var args []any
	for !e.take(")") {
		if len(args) > 0 && !e.take(",") {
			e.Fatalf("expected a comma at %q", e.rest)
		}
		e.take("")
		args = append(args, e.value())
	}
	out := e.function(word, args)
	for {
		switch {
		case e.take("."):
			out = get(out, e.word())
		case e.take("["):
			i, _ := e.value().(int)
			list, _ := out.([]any)
			e.take("]")
			if i >= len(list) {
				return nil
			}
			out = list[i]
		default:
			return out
		}
	}
}

// ofName reports whether names of functions have the letter.
func ofName(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// function calls a function of templates.
func (e *expression) function(name string, args []any) any {
	if out, is := ofValues(name, args); is {
		return out
	}
	text := func(i int) string { return fmt.Sprint(args[i]) }
	subscription := "/subscriptions/" + e.Env.SubscriptionID
	switch name {
	case "subscription":
		return map[string]any{"id": subscription, "subscriptionId": e.Env.SubscriptionID}
	case "parameters":
		if v, has := e.parameters[text(0)]; has {
			return v
		}
		v, has := e.template["parameters"].(map[string]any)[text(0)].(map[string]any)["defaultValue"]
		if !has {
			e.Fatalf("parameter %s has no value", text(0))
		}
		return e.eval(v)
	case "variables":
		return e.eval(get(e.template, "variables", text(0)))
	case "resourceGroup":
		_, name, _ := strings.Cut(e.Scope, "/resourceGroups/")
		return map[string]any{"id": e.Scope, "name": name, "location": e.Env.Region}
	case "resourceId":
		return e.Scope + "/providers/" + interleave(text(0), args[1:])
	case "subscriptionResourceId":
		return subscription + "/providers/" + interleave(text(0), args[1:])
	case "reference":
		if nested := e.done[text(0)]; nested != nil {
			outputs := map[string]any{}
			for name, o := range nested.template["outputs"].(map[string]any) {
				outputs[name] = map[string]any{"value": nested.eval(get(o, "value"))}
			}
			return map[string]any{"outputs": outputs}
		}
		if len(args) < 2 {
			e.Fatalf("reference of %s, which is not deployed before", text(0))
		}
		return e.call(http.MethodGet, text(0), text(1), nil)["properties"]
	}
	e.Fatalf("function %s of templates is not played here", name)
	return nil
}

// ofValues calls a function that looks at its arguments alone; is says whether it is one.
func ofValues(name string, args []any) (out any, is bool) {
	text := func(i int) string { return fmt.Sprint(args[i]) }
	switch name {
	case "format":
		out := text(0)
		for i, a := range args[1:] {
			out = strings.ReplaceAll(out, fmt.Sprintf("{%d}", i), fmt.Sprint(a))
		}
		return out, true
	case "guid":
		var texts []string
		for _, a := range args {
			texts = append(texts, fmt.Sprint(a))
		}
		return uuid.NewSHA1(uuid.MustParse(namespace), []byte(strings.Join(texts, "-"))).String(), true
	case "split":
		var out []any
		for part := range strings.SplitSeq(text(0), text(1)) {
			out = append(out, part)
		}
		return out, true
	case "empty":
		return text(0) == "", true
	case "not":
		return args[0] != true, true
	case "if":
		if args[0] == true {
			return args[1], true
		}
		return args[2], true
	case "true":
		return true, true
	case "null":
		return nil, true
	case "createObject":
		out := map[string]any{}
		for i := 0; i+1 < len(args); i += 2 {
			out[text(i)] = args[i+1]
		}
		return out, true
	}
	return nil, false
}
