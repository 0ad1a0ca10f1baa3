package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Check says what of a value, in JSON, what is pointed to has no place for: every field that it
// does not know, and every value of another type, by its path and with what is allowed. A number
// where a text is wanted is left to the decoder, and so is what decodes itself.
func Check(value []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var read any
	if err := d.Decode(&read); err != nil {
		return err
	}
	c := &checking{}
	c.value(read, reflect.TypeOf(into).Elem(), "")
	return errors.Join(c.errs...)
}

// checking collects what is wrong with a value.
type checking struct{ errs []error }

// refuse says what is at a path, and what must be there.
func (c *checking) refuse(path string, got any, must string) {
	said := fmt.Sprintf("got %v", got)
	switch got := got.(type) {
	case string:
		said = fmt.Sprintf("got %q", got)
	case map[string]any:
		said = "got a mapping"
	case []any:
		said = "got a list"
	}
	if path != "" {
		path += ": "
	}
	c.errs = append(c.errs, fmt.Errorf("%s%s, must be %s", path, said, must))
}

func (c *checking) value(v any, t reflect.Type, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if v == nil || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return
	}
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	switch t.Kind() {
	case reflect.Struct:
		if !isObject {
			c.refuse(path, v, "a mapping with the fields "+strings.Join(fieldNames(t), ", "))
		}
		c.fields(object, t, path)
	case reflect.Map:
		if !isObject {
			c.refuse(path, v, "a mapping")
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			c.value(object[name], t.Elem(), joined(path, name))
		}
	case reflect.Slice:
		if !isList {
			c.refuse(path, v, "a list")
		}
		for i, item := range list {
			c.value(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
		}
	default:
		c.scalar(v, t.Kind(), path)
	}
}

func (c *checking) scalar(v any, kind reflect.Kind, path string) {
	number, _ := v.(json.Number)
	switch kind {
	case reflect.String:
		if _, is := v.(map[string]any); is {
			c.refuse(path, v, "a text")
		} else if _, is := v.([]any); is {
			c.refuse(path, v, "a text")
		}
	case reflect.Bool:
		if _, is := v.(bool); !is {
			c.refuse(path, v, "true or false")
		}
	case reflect.Int, reflect.Int64:
		if _, err := strconv.ParseInt(number.String(), 10, 64); err != nil {
			c.refuse(path, v, "a whole number")
		}
	default: // the rest are numbers with fractions
		if _, err := number.Float64(); err != nil {
			c.refuse(path, v, "a number")
		}
	}
}

func (c *checking) fields(object map[string]any, t reflect.Type, path string) {
	known := fieldNames(t)
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 {
			c.value(object[name], t.Field(i).Type, joined(path, name))
		} else {
			unknown = append(unknown, joined(path, name))
		}
	}
	if len(unknown) > 0 {
		there := "there is no such field"
		if len(unknown) > 1 {
			there = "there are no such fields"
		}
		c.errs = append(c.errs, fmt.Errorf("%s: %s, allowed: %s", strings.Join(unknown, ", "), there, strings.Join(known, ", ")))
	}
}

// fieldNames are what the fields of a struct are called, in its order.
func fieldNames(t reflect.Type) []string {
	var out []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}
