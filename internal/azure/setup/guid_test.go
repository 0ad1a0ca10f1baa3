package setup

import "testing"

// TestGUIDIsThatOfTemplates: the UUIDs of version 5 in the namespace of templates, as any
// implementation of RFC 9562 makes them.
func TestGUIDIsThatOfTemplates(t *testing.T) {
	if got, want := templateGUID("a", "b", "c"), "a98fa280-e03f-5afa-8d8e-92d0a9c201e8"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
