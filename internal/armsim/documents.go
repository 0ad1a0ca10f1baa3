package armsim

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// The handlers of types that are documents and nothing more, and the reading
// half of the others.

// getDocument shows one resource.
func (s *Server) getDocument(c *call) (reply, error) {
	r := s.find(c.path.id())
	if c.path.typ == typeGroup {
		r = s.find("/subscriptions/" + c.path.subscription + "/resourceGroups/" + c.path.name())
	}
	if r == nil {
		return reply{}, errResourceNotFound(c.path)
	}
	h := http.Header{}
	h.Set("ETag", text(r.Doc, "etag"))
	return reply{status: http.StatusOK, header: h, body: r.Doc}, nil
}

// pageSize is how many resources one page of a list holds.
const pageSize = 1000

// listDocuments lists a type within a group, a parent or the subscription.
func (s *Server) listDocuments(c *call) (reply, error) {
	prefix := key(c.path.id()) + "/"
	wholeSubscription := c.path.group == "" && len(c.path.names) == 0
	nested := strings.Count(c.path.typ, "/") > 1
	if nested && s.find(c.path.parent()) == nil {
		return reply{}, errResourceNotFound(c.path)
	}
	skip, _ := strconv.Atoi(c.r.URL.Query().Get("$skiptoken")) // anything else is the first page
	values := []any{}
	seen := 0
	body := document{}
	for _, r := range s.sorted(c.path.typ) {
		if !wholeSubscription && c.path.typ != typeGroup && !strings.HasPrefix(key(r.ID), prefix) {
			continue
		}
		if seen++; seen <= skip {
			continue
		}
		if len(values) == pageSize {
			q := c.r.URL.Query()
			q.Set("$skiptoken", fmt.Sprint(skip+pageSize))
			body["nextLink"] = c.base() + c.r.URL.Path + "?" + q.Encode()
			break
		}
		values = append(values, r.Doc)
	}
	body["value"] = values
	return reply{status: http.StatusOK, body: body}, nil
}

// putDocument creates or replaces a resource.
func (s *Server) putDocument(c *call) (reply, error) {
	doc, err := decodeBody(c.body, nil)
	if err != nil {
		return reply{}, err
	}
	if err := s.checkTags(doc); err != nil {
		return reply{}, err
	}
	stamp(c.path, doc)
	section(doc, "properties")["provisioningState"] = "Succeeded"
	r, status := s.find(c.path.id()), http.StatusOK
	if r == nil {
		r, status = &resource{ID: c.path.id(), Typ: c.path.typ, Group: c.path.group}, http.StatusCreated
	} else if err := checkMatch(c, r); err != nil {
		return reply{}, err
	}
	doc["id"] = r.ID
	if r.Typ == typeVNET {
		guid := text(r.Doc, "properties", "resourceGuid") // once drawn it stays
		setDefault(&guid, s.guid())
		section(doc, "properties")["resourceGuid"] = guid
	}
	s.put(r, doc)
	return reply{status: status, body: doc}, nil
}

// patchDocument merges a patch into a resource.
func (s *Server) patchDocument(c *call) (reply, error) {
	patch, err := decodeBody(c.body, nil)
	if err != nil {
		return reply{}, err
	}
	r := s.find(c.path.id())
	if r == nil {
		return reply{}, errResourceNotFound(c.path)
	}
	if err := s.checkTags(patch); err != nil {
		return reply{}, err
	}
	if err := checkMatch(c, r); err != nil {
		return reply{}, err
	}
	doc := clone(r.Doc)
	if tags, ok := patch["tags"].(document); ok { // tags are replaced as a whole
		doc["tags"] = cloneValue(tags)
		delete(patch, "tags")
	}
	merge(doc, patch)
	s.put(r, doc)
	return reply{status: http.StatusOK, body: doc}, nil
}

// deleteDocument removes a resource at once.
func (s *Server) deleteDocument(c *call) (reply, error) {
	r := s.find(c.path.id())
	if r == nil {
		return reply{status: http.StatusNoContent}, nil
	}
	s.drop(r)
	if r.Typ == typeDisk {
		s.event("disk.deleted", r.ID, "")
	}
	return reply{status: http.StatusOK}, nil
}

// checkTags refuses tags that ARM refuses.
func (s *Server) checkTags(doc document) error {
	tags, _ := doc["tags"].(document)
	if len(tags) > 50 {
		return newError(http.StatusBadRequest, "InvalidTagCount", "The number of tags on the resource is %d, which exceeds the limit of 50.", len(tags))
	}
	for k, v := range tags {
		value, isText := v.(string)
		switch {
		case k == "" || len(k) > 512:
			return newError(http.StatusBadRequest, "InvalidTagNameLength", "The tag name '%s' is empty or longer than 512 characters.", k)
		case strings.ContainsAny(k, `<>%&\?/`):
			return newError(http.StatusBadRequest, "InvalidTagNameCharacters", `The tag names '%s' have reserved characters '<,>,%%,&,\,?,/' or control characters.`, k)
		case !isText || len(value) > 256:
			return newError(http.StatusBadRequest, "InvalidTagValueLength", "The value of tag '%s' is no text or longer than 256 characters.", k)
		}
	}
	return nil
}

// diskID is the ID of a managed disk.
func (s *Server) diskID(group, name string) string {
	return "/subscriptions/" + s.cfg.SubscriptionID + "/resourceGroups/" + group + "/providers/Microsoft.Compute/disks/" + name
}

// createDisk makes the OS disk of a machine. Ephemeral disks are no resources.
func (s *Server) createDisk(id string, vm *resource) {
	if vm.VM.Spec.Ephemeral || s.find(id) != nil {
		return
	}
	r := &resource{ID: id, Typ: typeDisk, Group: vm.Group}
	doc := document{
		"id": id, "name": lastSegment(id), "type": "Microsoft.Compute/disks", "location": s.cfg.Region,
		"managedBy": vm.ID, "sku": document{"name": "Premium_LRS", "tier": "Premium"},
		"properties": document{"osType": "Linux", "diskSizeGB": vm.VM.Spec.OSDiskGB, "diskState": "Attached",
			"provisioningState": "Succeeded", "timeCreated": timestamp(s.now())},
	}
	if tags, ok := vm.Doc["tags"].(document); ok {
		doc["tags"] = tags
	}
	if vm.VM.Spec.Zone != "0" {
		doc["zones"] = []any{vm.VM.Spec.Zone}
	}
	s.put(r, doc)
	s.event("disk.created", id, "")
}
