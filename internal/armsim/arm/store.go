package arm

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// TypeGroup is the type of resource groups.
const TypeGroup = "resourcegroups"

// Resource is one thing in the subscription as the API shows it. What only the
// simulator knows of it is kept by its provider.
type Resource struct {
	ID    string   `json:"id"`              // with the case of its creation
	Type  string   `json:"type"`            // lower case
	Group string   `json:"group"`           // resource group, with the case of its creation
	ETag  string   `json:"etag"`            // changes with every Put; the document shows it where Azure does
	Doc   Document `json:"doc"`             // never changed in place
	Fixed bool     `json:"fixed,omitempty"` // part of the subscription from the start; never a leak
}

// Store holds the resources of the subscription.
type Store struct {
	byKey    map[string]*Resource            // by Key(ID)
	byType   map[string]map[string]*Resource // the same by type, then key
	etags    map[string][]string             // by type, the keys under which documents show their ETag
	ids      *IDs
	changed  func()
	watchers []func(*Resource, Document)
}

func newStore(ids *IDs, changed func()) *Store {
	return &Store{byKey: map[string]*Resource{}, byType: map[string]map[string]*Resource{}, etags: map[string][]string{},
		ids: ids, changed: changed}
}

// Watch has a function called after each change, in the order of registration:
// with the new document, or nil when the resource is gone.
func (s *Store) Watch(f func(r *Resource, d Document)) { s.watchers = append(s.watchers, f) }

// ShowETags has the documents of a type, lower case, show their ETag under the keys
// where Azure shows it. Documents of other types show none: Azure has no ETags there.
func (s *Store) ShowETags(typ string, keys ...string) { s.etags[typ] = keys }

// ShowsETag says whether Azure shows an ETag of the type.
func (s *Store) ShowsETag(typ string) bool { return s.etags[typ] != nil }

// Find looks a resource up by its ID, in any case; nil when there is none.
func (s *Store) Find(id string) *Resource { return s.byKey[Key(id)] }

// Put stores a document under its resource, which gets a new ETag. From then on the
// document must not change.
func (s *Store) Put(r *Resource, d Document) {
	r.ETag = fmt.Sprintf(`W/"%s"`, s.ids.GUID())
	if keys := s.etags[r.Type]; keys != nil {
		at := d
		for _, k := range keys[:len(keys)-1] {
			at = Section(at, k)
		}
		at[keys[len(keys)-1]] = r.ETag
	}
	r.Doc = d
	s.insert(r)
	s.tell(r, d)
}

// Drop removes a resource.
func (s *Store) Drop(r *Resource) {
	k := Key(r.ID)
	delete(s.byKey, k)
	delete(s.byType[r.Type], k)
	s.tell(r, nil)
}

func (s *Store) insert(r *Resource) {
	k := Key(r.ID)
	s.byKey[k] = r
	if s.byType[r.Type] == nil {
		s.byType[r.Type] = map[string]*Resource{}
	}
	s.byType[r.Type][k] = r
}

func (s *Store) tell(r *Resource, d Document) {
	s.changed()
	for _, w := range s.watchers {
		w(r, d)
	}
}

// Seed stores a resource that the subscription comes with, unless it is there.
func (s *Store) Seed(id, typ, group string, d Document) *Resource {
	if r := s.Find(id); r != nil {
		return r
	}
	r := &Resource{ID: id, Type: typ, Group: group, Fixed: true}
	d["id"], d["name"] = id, LastSegment(id)
	s.Put(r, d)
	return r
}

// All iterates over the resources in no order.
func (s *Store) All() iter.Seq[*Resource] { return maps.Values(s.byKey) }

// OfType iterates over the resources of a type, with their keys, in no order.
func (s *Store) OfType(typ string) iter.Seq2[string, *Resource] { return maps.All(s.byType[typ]) }

// Count is the number of resources of a type.
func (s *Store) Count(typ string) int { return len(s.byType[typ]) }

// Sorted lists the resources of a type by ID.
func (s *Store) Sorted(typ string) []*Resource {
	return slices.SortedFunc(maps.Values(s.byType[typ]), func(a, b *Resource) int { return cmp.Compare(Key(a.ID), Key(b.ID)) })
}

// Snapshot copies the resources, so that the copy can be encoded while requests
// go on. Documents are shared: they are never changed.
func (s *Store) Snapshot() map[string]*Resource {
	c := make(map[string]*Resource, len(s.byKey))
	for k, r := range s.byKey {
		f := *r
		c[k] = &f
	}
	return c
}

// Restore takes the resources of a snapshot. No watcher is told.
func (s *Store) Restore(resources map[string]*Resource) {
	for _, r := range resources {
		s.insert(r)
	}
}
