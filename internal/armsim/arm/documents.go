package arm

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Documents are the handlers of types that are documents and nothing more, and the
// reading half of the others.
type Documents struct {
	Resources *Store
	// Complete, where set, adds to a document that a client put what Azure adds; old
	// is nil when the resource is new.
	Complete func(old *Resource, doc Document)
	// Stateless is set for types that have no provisioningState.
	Stateless bool
	// Deleted, where set, is told of each resource that a client deleted.
	Deleted func(*Resource)
}

// Get shows one resource.
func (h Documents) Get(c *Call) (Reply, error) {
	r := h.Resources.Find(c.Path.ID())
	if c.Path.Type == TypeGroup {
		r = h.Resources.Find("/subscriptions/" + c.Path.Subscription + "/resourceGroups/" + c.Path.Name())
	}
	if r == nil {
		return Reply{}, ErrNotFound(c.Path)
	}
	header := http.Header{}
	if h.Resources.ShowsETag(r.Type) {
		header.Set("ETag", r.ETag)
	}
	return Reply{Status: http.StatusOK, Header: header, Body: r.Doc}, nil
}

// pageSize is how many resources one page of a list holds.
const pageSize = 1000

// List lists a type within a group, a parent or the subscription.
func (h Documents) List(c *Call) (Reply, error) {
	prefix := Key(c.Path.ID()) + "/"
	wholeSubscription := c.Path.Group == "" && len(c.Path.Names) == 0
	nested := strings.Count(c.Path.Type, "/") > 1
	if nested && h.Resources.Find(c.Path.Parent()) == nil {
		return Reply{}, ErrNotFound(c.Path)
	}
	skip, _ := strconv.Atoi(c.Request.URL.Query().Get("$skiptoken")) // anything else is the first page
	values := []any{}
	seen := 0
	body := Document{}
	for _, r := range h.Resources.Sorted(c.Path.Type) {
		if !wholeSubscription && c.Path.Type != TypeGroup && !strings.HasPrefix(Key(r.ID), prefix) {
			continue
		}
		if seen++; seen <= skip {
			continue
		}
		if len(values) == pageSize {
			q := c.Request.URL.Query()
			q.Set("$skiptoken", fmt.Sprint(skip+pageSize))
			body["nextLink"] = c.Base() + c.Request.URL.Path + "?" + q.Encode()
			break
		}
		values = append(values, r.Doc)
	}
	body["value"] = values
	return Reply{Status: http.StatusOK, Body: body}, nil
}

// Put creates or replaces a resource.
func (h Documents) Put(c *Call) (Reply, error) {
	doc, err := DecodeBody(c.Body, nil)
	if err != nil {
		return Reply{}, err
	}
	if err := CheckTags(doc); err != nil {
		return Reply{}, err
	}
	Stamp(c.Path, doc)
	if !h.Stateless {
		Section(doc, "properties")["provisioningState"] = "Succeeded"
	}
	old := h.Resources.Find(c.Path.ID())
	r, status := old, http.StatusOK
	if r == nil {
		r, status = &Resource{ID: c.Path.ID(), Type: c.Path.Type, Group: c.Path.Group}, http.StatusCreated
	} else if err := c.CheckMatch(r); err != nil {
		return Reply{}, err
	}
	doc["id"] = r.ID
	if h.Complete != nil {
		h.Complete(old, doc)
	}
	h.Resources.Put(r, doc)
	return Reply{Status: status, Body: doc}, nil
}

// Patch merges a patch into a resource.
func (h Documents) Patch(c *Call) (Reply, error) {
	patch, err := DecodeBody(c.Body, nil)
	if err != nil {
		return Reply{}, err
	}
	r := h.Resources.Find(c.Path.ID())
	if r == nil {
		return Reply{}, ErrNotFound(c.Path)
	}
	if err := CheckTags(patch); err != nil {
		return Reply{}, err
	}
	if err := c.CheckMatch(r); err != nil {
		return Reply{}, err
	}
	doc := Patched(r.Doc, patch)
	h.Resources.Put(r, doc)
	return Reply{Status: http.StatusOK, Body: doc}, nil
}

// UpdateTags replaces the tags of a resource, which is all that a PATCH can change of
// many types.
func (h Documents) UpdateTags(c *Call) (Reply, error) {
	patch, err := DecodeBody(c.Body, nil)
	if err != nil {
		return Reply{}, err
	}
	for k := range patch {
		if k != "tags" {
			return Reply{}, NewError(http.StatusBadRequest, "InvalidRequestContent",
				"The request content was invalid and could not be deserialized: 'Could not find member '%s' on object of type 'TagsObject'.'.", k)
		}
	}
	return h.Patch(c)
}

// Patched is a clone of a document with a patch laid over it. Tags are replaced as
// a whole; the patch loses them.
func Patched(d, patch Document) Document {
	c := Clone(d)
	if tags, ok := patch["tags"].(Document); ok {
		c["tags"] = CloneValue(tags)
		delete(patch, "tags")
	}
	Merge(c, patch)
	return c
}

// Delete removes a resource at once.
func (h Documents) Delete(c *Call) (Reply, error) {
	r := h.Resources.Find(c.Path.ID())
	if r == nil {
		return Reply{Status: http.StatusNoContent}, nil
	}
	h.Resources.Drop(r)
	if h.Deleted != nil {
		h.Deleted(r)
	}
	return Reply{Status: http.StatusOK}, nil
}

// Routes are the rows of a type that is documents and nothing more: its patch is
// h.Patch, h.UpdateTags or, where Azure has none, nil. The policies are those of
// reading and of writing.
func (h Documents) Routes(typ, read, write string, versions []string, patch func(*Call) (Reply, error)) []Route {
	rows := []Route{
		{Method: http.MethodGet, Item: true, Policy: read, Handle: h.Get},
		{Method: http.MethodGet, Policy: read, Handle: h.List},
		{Method: http.MethodPut, Item: true, Policy: write, Handle: h.Put},
		{Method: http.MethodDelete, Item: true, Policy: write, Handle: h.Delete},
	}
	if patch != nil {
		rows = append(rows, Route{Method: http.MethodPatch, Item: true, Policy: write, Handle: patch})
	}
	for i := range rows {
		rows[i].Type, rows[i].Versions = typ, versions
	}
	return rows
}
