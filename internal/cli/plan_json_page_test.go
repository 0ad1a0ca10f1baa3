package cli

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/ledger"
	"github.com/nodeautoprovision/nap/internal/shadow"
)

// docs/plan-json.md has each field that programs read, in the section of its command.
func TestPageHasTheFieldsOfDocuments(t *testing.T) {
	page, err := os.ReadFile("../../docs/plan-json.md")
	if err != nil {
		t.Fatal(err)
	}
	is := func(types ...reflect.Type) []reflect.Type { return types }
	node, move := reflect.TypeFor[reportNode](), reflect.TypeFor[reportMove]()
	for _, s := range []struct {
		title            string
		types, elsewhere []reflect.Type
	}{
		{"`nap plan -o json`", is(reflect.TypeFor[planReport]()), is(move, reflect.TypeFor[reportStay]())},
		{"`nap plan --consolidate -o json`", is(reflect.TypeFor[movesReport]()), is(node)},
		{"`nap explain pod|node|offer -o json`", is(reflect.TypeFor[story]()), is(reflect.TypeFor[reportNearest]())},
		{"`nap savings -o json`", is(reflect.TypeFor[savingsReport]()), nil},
		{"`nap what-if -o json`, `nap diff -o json`", is(reflect.TypeFor[comparison]()), nil},
		{"`nap status -o json`", is(reflect.TypeFor[clusterStatus]()), is(reflect.TypeFor[v1alpha1.SnapshotStatus]())},
		{"`nap get -o json`", is(reflect.TypeFor[listedNode](), reflect.TypeFor[listedClaim](), reflect.TypeFor[listedOffer]()), nil},
		{"`nap lint -o json`", is(reflect.TypeFor[lintReport]()), nil},
		{"`nap ledger -o json`", is(reflect.TypeFor[ledger.Report]()), nil},
		{"`nap shadow -o json`", is(reflect.TypeFor[shadow.Report]()), nil},
		{"`nap doctor -o json`", is(reflect.TypeFor[doctorReport]()), nil},
		{"`nap images -o json`", is(reflect.TypeFor[imagesReport]()), nil},
		{"`nap enable --dry-run -o json`, `nap disable --dry-run -o json`", is(reflect.TypeFor[dryRunReport]()), is(reflect.TypeFor[doctorReport]())},
	} {
		_, section, found := strings.Cut(string(page), "\n## "+s.title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !found {
			t.Errorf("the page has no section %s", s.title)
		}
		for _, of := range s.types {
			fieldsOfType(of, s.elsewhere, func(name string, of reflect.Type) {
				if !regexp.MustCompile("[`.]" + name + "[`.\\[]").MatchString(section) {
					t.Errorf("the section %s lacks %s of %s", s.title, name, of.Name())
				}
			})
		}
	}
}

// fieldsOfType tells of the fields of a type in JSON, and of those of their types but the ones
// that stand elsewhere.
func fieldsOfType(of reflect.Type, elsewhere []reflect.Type, tell func(name string, of reflect.Type)) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of == reflect.TypeFor[time.Time]() || slices.Contains(elsewhere, of) {
		return
	}
	for _, f := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			tell(name, of)
			fieldsOfType(f.Type, append(slices.Clip(elsewhere), of), tell) // a type may have fields of itself
		}
	}
}
