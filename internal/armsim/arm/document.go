package arm

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
)

// Document is a resource as the API shows it. Stored documents are immutable:
// change a clone and store that.
type Document = map[string]any

// Clone copies a document deeply.
func Clone(d Document) Document {
	c := make(Document, len(d))
	for k, v := range d {
		c[k] = CloneValue(v)
	}
	return c
}

// CloneValue copies a value of a document deeply.
func CloneValue(v any) any {
	switch v := v.(type) {
	case Document:
		return Clone(v)
	case []any:
		c := make([]any, len(v))
		for i := range v {
			c[i] = CloneValue(v[i])
		}
		return c
	}
	return v
}

// At follows keys into a document; nil when one is missing.
func At(d Document, keys ...string) any {
	var v any = d
	for _, k := range keys {
		m, ok := v.(Document)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}

// Text is the string under the keys, empty when there is none.
func Text(d Document, keys ...string) string {
	s, _ := At(d, keys...).(string)
	return s
}

// Section is the object under a key, made when missing.
func Section(d Document, key string) Document {
	m, ok := d[key].(Document)
	if !ok {
		m = Document{}
		d[key] = m
	}
	return m
}

// Merge lays the patch over the document as JSON merge patch does: objects are
// Merged, null deletes, all else replaces.
func Merge(d, patch Document) {
	for k, v := range patch {
		pm, isMap := v.(Document)
		dm, hasMap := d[k].(Document)
		switch {
		case v == nil:
			delete(d, k)
		case isMap && hasMap:
			Merge(dm, pm)
		default:
			d[k] = CloneValue(v)
		}
	}
}

// TagsOf reads the tags of a document.
func TagsOf(d Document) map[string]string {
	raw, _ := d["tags"].(Document)
	tags := make(map[string]string, len(raw))
	for k, v := range raw {
		tags[k], _ = v.(string)
	}
	return tags
}

// DecodeBody reads a request body into a document and a typed view of it.
func DecodeBody(body []byte, view any) (Document, error) {
	if len(body) == 0 {
		return nil, NewError(http.StatusBadRequest, "InvalidRequestContent",
			"The request content was invalid and could not be deserialized: 'the body is empty'.")
	}
	var d Document
	err := json.Unmarshal(body, &d)
	if err == nil && view != nil {
		err = json.Unmarshal(body, view)
	}
	if err != nil {
		return nil, NewError(http.StatusBadRequest, "InvalidRequestContent",
			"The request content was invalid and could not be deserialized: '%s'.", err)
	}
	if d == nil {
		d = Document{}
	}
	return d, nil
}

// Stamp gives a document that a client sent the parts that ARM adds.
func Stamp(p Path, d Document) Document {
	d["id"] = p.ID()
	d["name"] = p.Name()
	d["type"] = p.DisplayType()
	return d
}

// WithProperties returns a clone whose properties have the given values.
func WithProperties(d, values Document) Document {
	c := Clone(d)
	maps.Copy(Section(c, "properties"), values)
	return c
}

// Texts is a list of strings as a document holds it.
func Texts(in []string) []any {
	out := make([]any, len(in))
	for i, t := range in {
		out[i] = t
	}
	return out
}

// CheckTags refuses tags that ARM refuses.
func CheckTags(doc Document) error {
	tags, _ := doc["tags"].(Document)
	if len(tags) > 50 {
		return NewError(http.StatusBadRequest, "InvalidTagCount",
			"The number of tags on the resource is %d, which exceeds the limit of 50.", len(tags))
	}
	for k, v := range tags {
		value, isText := v.(string)
		switch {
		case k == "" || len(k) > 512:
			return NewError(http.StatusBadRequest, "InvalidTagNameLength", "The tag name '%s' is empty or longer than 512 characters.", k)
		case strings.ContainsAny(k, `<>%&\?/`):
			return NewError(http.StatusBadRequest, "InvalidTagNameCharacters",
				`The tag names '%s' have reserved characters '<,>,%%,&,\,?,/' or control characters.`, k)
		case !isText || len(value) > 256:
			return NewError(http.StatusBadRequest, "InvalidTagValueLength", "The value of tag '%s' is no text or longer than 256 characters.", k)
		}
	}
	return nil
}
