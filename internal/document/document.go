// Package document reads files that hold YAML or JSON, as JSON, and loses nothing of them on the
// way: it reads every value that a text has, and refuses what follows and cannot be read, and keys
// that a mapping has twice.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v2"
)

// Value is one value of a text, as JSON, or what is wrong with it.
type Value struct {
	JSON []byte
	Err  error
}

// Values are the values of a text: one after the other where they are JSON, as jq -c prints them,
// or the documents of YAML. Those that are null, or nothing but comments, are left out. What
// cannot be read is the last one.
func Values(text []byte) []Value {
	if values, is := jsonValues(text); is {
		return values
	}
	return yamlValues(text)
}

// One is the value of a text that must not have more than one; nil where it has none.
func One(text []byte) ([]byte, error) {
	values := Values(text)
	for _, v := range values {
		if v.Err != nil {
			return nil, v.Err
		}
	}
	if len(values) > 1 {
		return nil, fmt.Errorf("has %d values, one after the other, must have one: give a file that has no other", len(values))
	}
	if len(values) == 0 {
		return nil, nil
	}
	return values[0].JSON, nil
}

// jsonValues reads a text as JSON, which takes a fraction of the time of YAML. It is not JSON where
// its first value is none, and where what follows one may be YAML, such as a comment.
func jsonValues(text []byte) (values []Value, is bool) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || !startsJSON(trimmed) {
		return nil, false
	} else if json.Valid(trimmed) {
		return []Value{checked(text, len(text)-len(bytes.TrimLeft(text, space)), trimmed)}, true
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var value json.RawMessage
		start := d.InputOffset()
		rest := bytes.TrimSpace(text[start:])
		switch err := d.Decode(&value); {
		case len(rest) == 0:
			return values, true
		case len(values) == 0 && err != nil, !startsJSON(rest):
			return nil, false
		case err != nil:
			start += int64(bytes.Index(text[start:], rest))
			return append(values, Value{Err: unreadable(text, len(values), fmt.Errorf("line %d: %w", line(text, int(start)), err))}), true
		}
		values = append(values, checked(text, int(d.InputOffset())-len(value), value))
	}
}

// space is what may stand around values of JSON.
const space = " \t\r\n"

func startsJSON(text []byte) bool { return text[0] == '{' || text[0] == '[' }

// checked is a value of a text that starts there, unless it has a key twice.
func checked(text []byte, start int, value []byte) Value {
	if path, first, second := repeated(value); path != "" {
		return Value{Err: twice(path, line(text, start+first), line(text, start+second))}
	}
	return Value{JSON: value}
}

// line is the number of the line in which something of a text stands.
func line(text []byte, offset int) int { return 1 + bytes.Count(text[:offset], []byte("\n")) }

func twice(path string, first, second int) error {
	if first == second {
		return fmt.Errorf("%s: is there twice, in its line %d: give it once", path, first)
	}
	return fmt.Errorf("%s: is there twice, in its lines %d and %d: give it once", path, first, second)
}

// unreadable says of a text of which some values have been read why the next one is none.
func unreadable(text []byte, read int, err error) error {
	switch {
	case bytes.Contains(text, []byte("{{")):
		return errors.New("holds {{ }}, which is for a template engine: render it first, for instance with helm template")
	case read > 0:
		return fmt.Errorf("what follows its value is neither YAML nor JSON: %w: put a line --- between documents, or take it out", located(err))
	}
	return fmt.Errorf("is neither YAML nor JSON: %w", err)
}

// located says of what follows a document in which line it is: the library counts lines from zero
// there, and leaves out the first.
func located(err error) error {
	const unexpected = "did not find expected <document start>"
	if !strings.HasSuffix(err.Error(), unexpected) {
		return err
	}
	var before int
	_, _ = fmt.Sscanf(err.Error(), "yaml: line %d:", &before) // none for the first
	return fmt.Errorf("line %d: begins no document", before+1)
}

// yamlValues reads a text as YAML. What has a key twice is told from what merges a mapping and
// overrides a key of it, which is allowed, by reading the text once more: hardly any has either.
func yamlValues(text []byte) []Value {
	values := decodeYAML(text, true)
	var strict *yaml.TypeError
	for i := range values {
		if errors.As(values[i].Err, &strict) {
			return withRepetitions(text, decodeYAML(text, false))
		}
	}
	return withoutEmpty(values)
}

// withRepetitions puts what is there twice in the place of the values that have it.
func withRepetitions(text []byte, values []Value) []Value {
	for i, err := range yamlRepetitions(text, len(values)) {
		if err != nil && values[i].Err == nil {
			values[i] = Value{Err: err}
		}
	}
	return withoutEmpty(values)
}

func withoutEmpty(values []Value) []Value {
	var out []Value
	for _, v := range values {
		if v.Err != nil || !bytes.Equal(v.JSON, []byte("null")) {
			out = append(out, v)
		}
	}
	return out
}

// decodeYAML reads each document of a text. Strict is what refuses a key that is there already, in
// its own mapping or in one that is merged into it.
func decodeYAML(text []byte, strict bool) []Value {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.SetStrict(strict)
	var values []Value
	for read := 0; ; {
		var value any
		err := d.Decode(&value)
		var wrong *yaml.TypeError
		switch {
		case errors.Is(err, io.EOF):
			return values
		case err != nil && !errors.As(err, &wrong):
			return append(values, Value{Err: unreadable(text, read, err)})
		}
		var out []byte
		if err == nil {
			out, err = asJSON(value)
		}
		values = append(values, Value{JSON: out, Err: err})
		if value != nil {
			read++
		}
	}
}

// asJSON writes what YAML holds as JSON.
func asJSON(v any) ([]byte, error) {
	plain, err := withTextKeys(v)
	if err != nil {
		return nil, err
	}
	out, err := json.Marshal(plain)
	if err != nil {
		return nil, fmt.Errorf("holds what JSON cannot: %w", err)
	}
	return out, nil
}

// withTextKeys makes texts of the keys of mappings, which may be numbers in YAML.
func withTextKeys(v any) (any, error) {
	switch v := v.(type) {
	case map[any]any:
		out := make(map[string]any, len(v))
		for k, value := range v {
			key, err := textOf(k)
			if err != nil {
				return nil, err
			}
			if _, there := out[key]; there {
				return nil, fmt.Errorf("the key %s: is there twice, as a text and as another value: give it once", key)
			}
			if out[key], err = withTextKeys(value); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		for i := range v {
			var err error
			if v[i], err = withTextKeys(v[i]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func textOf(key any) (string, error) {
	switch key := key.(type) {
	case string:
		return key, nil
	case int, int64, uint64, bool:
		return fmt.Sprint(key), nil
	case float64:
		return strconv.FormatFloat(key, 'g', -1, 32), nil
	}
	return "", fmt.Errorf("got the key %v, must be a text", key)
}
