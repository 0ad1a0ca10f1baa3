package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	yamlnodes "go.yaml.in/yaml/v3"
)

// key is one of an object, and where it begins.
type key struct {
	name []byte
	at   int
}

// level is an object or an array that is not closed yet.
type level struct {
	object  bool
	expects bool // a key, not a value
	// first is the place of its first key among all, index that of an array's item.
	first, index int
	// seen has where the keys of an object are that has many.
	seen map[string]int
}

// many is from how many keys on they are not compared with each other one by one.
const many = 16

// repetition looks for a key that an object has twice.
type repetition struct {
	levels []level
	keys   []key
}

// repeated is the first key of a value that an object of it has twice, as a path, and where its
// two places are; the path is empty where there is none.
// Precondition: it is JSON.
func repeated(value []byte) (path string, first, second int) {
	var r repetition
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '{', '[':
			r.levels = append(r.levels, level{object: c == '{', expects: c == '{', first: len(r.keys)})
		case '}', ']':
			last := len(r.levels) - 1
			r.keys, r.levels = r.keys[:r.levels[last].first], r.levels[:last]
		case ',':
			in := &r.levels[len(r.levels)-1]
			in.expects, in.index = in.object, in.index+1
		case '"':
			from := i
			for i++; value[i] != '"'; i++ {
				if value[i] == '\\' {
					i++
				}
			}
			if n := len(r.levels); n == 0 || !r.levels[n-1].expects {
				continue
			}
			if at, is := r.add(key{unescaped(value[from : i+1]), from}); is {
				return r.path(), at, from
			}
		}
	}
	return "", 0, 0
}

// add adds a key to the innermost object, and says where it is already.
func (r *repetition) add(k key) (at int, is bool) {
	in := &r.levels[len(r.levels)-1]
	in.expects = false
	before := r.keys[in.first:]
	r.keys = append(r.keys, k)
	if len(before) < many {
		for i := range before {
			if bytes.Equal(before[i].name, k.name) {
				return before[i].at, true
			}
		}
		return 0, false
	}
	if in.seen == nil {
		in.seen = make(map[string]int, 2*many)
		for i := range before {
			in.seen[string(before[i].name)] = before[i].at
		}
	}
	at, is = in.seen[string(k.name)]
	in.seen[string(k.name)] = k.at
	return at, is
}

// path is that of the last key.
func (r *repetition) path() string {
	var path string
	for i := range r.levels {
		if !r.levels[i].object {
			path += fmt.Sprintf("[%d]", r.levels[i].index)
			continue
		}
		end := len(r.keys)
		if i+1 < len(r.levels) {
			end = r.levels[i+1].first
		}
		path = joined(path, string(r.keys[end-1].name))
	}
	return path
}

// joined is the path of a key below another one.
func joined(path, name string) string {
	switch {
	case name == "" || strings.ContainsAny(name, "./"):
		return path + "[" + name + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// unescaped is what a quoted text of JSON says.
func unescaped(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // it is JSON
	return []byte(text)
}

// yamlRepetitions is what is wrong with each of the first documents of a text, for those of which
// a mapping has a key twice. What a mapping merges (<<) is another's, which its own keys override.
func yamlRepetitions(text []byte, documents int) []error {
	d := yamlnodes.NewDecoder(bytes.NewReader(text))
	out := make([]error, documents)
	for i := range out {
		var n yamlnodes.Node
		if d.Decode(&n) != nil { // what cannot be read has been told
			break
		}
		out[i] = repeatedIn(&n, "")
	}
	return out
}

func repeatedIn(n *yamlnodes.Node, path string) error {
	if n.Kind != yamlnodes.MappingNode {
		for i, item := range n.Content {
			at := path
			if n.Kind == yamlnodes.SequenceNode {
				at += fmt.Sprintf("[%d]", i)
			}
			if err := repeatedIn(item, at); err != nil {
				return err
			}
		}
		return nil
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		at := joined(path, k.Value)
		first, there := lines[k.Value]
		if there && k.Kind == yamlnodes.ScalarNode && k.ShortTag() != "!!merge" {
			return twice(at, first, k.Line)
		}
		lines[k.Value] = k.Line
		if err := repeatedIn(n.Content[i+1], at); err != nil {
			return err
		}
	}
	return nil
}
