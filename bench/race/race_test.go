package race

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

const (
	page        = "../../docs/race.md"
	turnsOfPage = "testdata/turns.json"
)

// write makes a profile of samples that took a second each, by their stacks, the leaf
// first.
func write(t *testing.T, kind string, stacks ...[]string) string {
	t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: kind, Unit: "nanoseconds"}}}
	for _, stack := range stacks {
		s := &profile.Sample{Value: []int64{1, 1e9}}
		for _, name := range stack {
			f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
			at := &profile.Location{ID: uint64(len(p.Location) + 1), Line: []profile.Line{{Function: f}}}
			p.Function, p.Location, s.Location = append(p.Function, f), append(p.Location, at), append(s.Location, at)
		}
		p.Sample = append(p.Sample, s)
	}
	path := filepath.Join(t.TempDir(), "cpu.pprof")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := p.Write(file); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProcessorTimeCountsForWhatAsksForIt(t *testing.T) {
	const nap = "github.com/nodeautoprovision/nap/internal/"
	got, err := Shares(write(t, "cpu",
		[]string{"runtime.mallocgc", nap + "planner/pack.Pack", nap + "controller/provisioning.(*Loop).plan"},
		[]string{"runtime.mapaccess1", nap + "controller/provisioning.(*Loop).plan"},
		[]string{"encoding/json.Unmarshal", "k8s.io/client-go/rest.(*Request).Do", nap + "controller/provisioning.(*Loop).nominate"},
		[]string{"encoding/json.Unmarshal", "k8s.io/apimachinery/pkg/watch.(*StreamWatcher).receive"},
		[]string{"runtime.scanobject", "runtime.gcBgMarkWorker"},
		[]string{"runtime.schedule"}))
	want := map[string]float64{
		"planning": 1, "nap's controllers": 1, "requests to the API server": 1, "watching": 1, "collecting garbage": 1, "the rest": 1,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if _, err := Shares(write(t, "alloc_space")); err == nil || !strings.Contains(err.Error(), "no profile of processor time") {
		t.Errorf("a profile of memory: %v", err)
	}
}

func TestRunTakesThePlaceOfItsTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turns.json")
	old := Record{{Course: "thousand", Engine: "nap", Bought: 1}, {Course: "thousand", Engine: "nap", Bought: 2}, {Course: "burst", Engine: "nap", Bought: 3}}
	if err := old.With([]*Result{{Course: "thousand", Engine: "nap", Bought: 9, AllRunning: time.Second}, {Course: "thousand", Engine: Floor}}).Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRecord(path)
	if err != nil || len(got) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	want := Record{{Course: "thousand", Engine: Floor}, {Course: "thousand", Engine: "nap", Bought: 9, AllRunning: time.Second}, {Course: "burst", Engine: "nap", Bought: 3}}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("turn %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	if none, err := ReadRecord(filepath.Join(t.TempDir(), "none")); err != nil || none != nil {
		t.Errorf("no file: %v, %v", none, err)
	}
}

func TestPageHasTheTableOfTheRecord(t *testing.T) {
	record, err := ReadRecord(turnsOfPage)
	if err != nil || len(record) == 0 {
		t.Fatalf("%d turns, %v", len(record), err)
	}
	var table strings.Builder
	if err := WriteTable(&table, record); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), table.String()) {
		t.Errorf("%s does not have the table of %s; run: make race-karpenter RACE='-write docs/race.md'", page, turnsOfPage)
	}
}
