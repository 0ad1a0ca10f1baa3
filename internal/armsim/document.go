package armsim

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// document is a resource as the API shows it. Stored documents are immutable:
// change a clone and store that.
type document = map[string]any

// clone copies a document deeply.
func clone(d document) document {
	c := make(document, len(d))
	for k, v := range d {
		c[k] = cloneValue(v)
	}
	return c
}

func cloneValue(v any) any {
	switch v := v.(type) {
	case document:
		return clone(v)
	case []any:
		c := make([]any, len(v))
		for i := range v {
			c[i] = cloneValue(v[i])
		}
		return c
	}
	return v
}

// at follows keys into a document; nil when one is missing.
func at(d document, keys ...string) any {
	var v any = d
	for _, k := range keys {
		m, ok := v.(document)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}

// text is the string under the keys, empty when there is none.
func text(d document, keys ...string) string {
	s, _ := at(d, keys...).(string)
	return s
}

// section is the object under a key, made when missing.
func section(d document, key string) document {
	m, ok := d[key].(document)
	if !ok {
		m = document{}
		d[key] = m
	}
	return m
}

// merge lays the patch over the document as JSON merge patch does: objects are
// merged, null deletes, all else replaces.
func merge(d, patch document) {
	for k, v := range patch {
		pm, isMap := v.(document)
		dm, hasMap := d[k].(document)
		switch {
		case v == nil:
			delete(d, k)
		case isMap && hasMap:
			merge(dm, pm)
		default:
			d[k] = cloneValue(v)
		}
	}
}

// tagsOf reads the tags of a document.
func tagsOf(d document) map[string]string {
	raw, _ := d["tags"].(document)
	tags := make(map[string]string, len(raw))
	for k, v := range raw {
		tags[k], _ = v.(string)
	}
	return tags
}

// decodeBody reads a request body into a document and a typed view of it.
func decodeBody(body []byte, view any) (document, error) {
	if len(body) == 0 {
		return nil, newError(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid and could not be deserialized: 'the body is empty'.")
	}
	var d document
	err := json.Unmarshal(body, &d)
	if err == nil && view != nil {
		err = json.Unmarshal(body, view)
	}
	if err != nil {
		return nil, newError(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid and could not be deserialized: '%s'.", err)
	}
	if d == nil {
		d = document{}
	}
	return d, nil
}

// resource is one thing in the subscription: what the API shows of it, and for
// machines and network interfaces what only the simulator knows.
type resource struct {
	ID    string    `json:"id"`  // with the case of its creation
	Typ   string    `json:"typ"` // lower case
	Group string    `json:"group"`
	Doc   document  `json:"doc"`
	Fixed bool      `json:"fixed,omitempty"` // part of the subscription from the start; never a leak
	VM    *vmState  `json:"vm,omitempty"`
	NIC   *nicState `json:"nic,omitempty"`
	// Secret is what was sent but is never shown: protected settings of extensions.
	Secret document `json:"secret,omitempty"`
	// Trouble is what an extension says went wrong when it ran.
	Trouble string `json:"trouble,omitempty"`
	// Failure is what the operation of an extension that is under way will end with.
	Failure *apiError `json:"failure,omitempty"`
}

// state is everything that the server remembers and that StateFile keeps.
type state struct {
	Resources  map[string]*resource  `json:"resources"` // by key(ID)
	Operations map[string]*operation `json:"operations"`
	Tasks      taskQueue             `json:"tasks"`
	Held       []heldTask            `json:"held"` // tasks that a hanging fault keeps back
	Faults     []*Fault              `json:"faults"`
	Sequence   uint64                `json:"sequence"`   // for IDs and ETags
	FaultCount int                   `json:"faultCount"` // faults added so far, for their IDs

	byType map[string]map[string]*resource
}

func newState() *state {
	return &state{
		Resources:  map[string]*resource{},
		Operations: map[string]*operation{},
		byType:     map[string]map[string]*resource{},
	}
}

// reindex rebuilds what is derived from the stored part.
func (st *state) reindex() {
	st.byType = map[string]map[string]*resource{}
	for k, r := range st.Resources {
		st.index(k, r)
	}
}

func (st *state) index(k string, r *resource) {
	if st.byType[r.Typ] == nil {
		st.byType[r.Typ] = map[string]*resource{}
	}
	st.byType[r.Typ][k] = r
}

// next numbers IDs, ETags and the like.
func (st *state) next() uint64 {
	st.Sequence++
	return st.Sequence
}

// guid makes an ID in the form of a GUID out of the sequence.
func (s *Server) guid() string {
	n := s.st.next()
	h := s.hash("guid", fmt.Sprint(n))
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(n), uint16(h), uint16(h>>16)&0xfff, uint16(h>>32)&0xfff, h&0xffffffffffff)
}

// put stores a document under its resource, gives it an ETag and tells Resource Graph.
func (s *Server) put(r *resource, d document) {
	d["etag"] = fmt.Sprintf(`W/"%s"`, s.guid())
	r.Doc = d
	k := key(r.ID)
	s.st.Resources[k] = r
	s.st.index(k, r)
	s.graph.change(s.now(), k, d)
	s.dirty()
	if r.Typ == typeExtension {
		s.showExtensions(r)
	}
}

// drop removes a resource.
func (s *Server) drop(r *resource) {
	k := key(r.ID)
	delete(s.st.Resources, k)
	delete(s.st.byType[r.Typ], k)
	s.graph.change(s.now(), k, nil)
	s.dirty()
	if r.Typ == typeExtension {
		s.showExtensions(r)
	}
}

// find looks a resource up by its ID, in any case; nil when there is none.
func (s *Server) find(id string) *resource { return s.st.Resources[key(id)] }

// stamp gives a document that a client sent the parts that ARM adds.
func stamp(p path, d document) document {
	d["id"] = p.id()
	d["name"] = p.name()
	d["type"] = p.displayType()
	return d
}

// timestamp writes a time as ARM does.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.0000000Z") }

// withProperties returns a clone whose properties have the given values.
func withProperties(d document, values document) document {
	c := clone(d)
	maps.Copy(section(c, "properties"), values)
	return c
}
