package conformance

import (
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/bench"
)

// Result is what came of one spec of a suite with one engine.
type Result struct {
	Suite string `json:"suite"`
	// Engine is empty for suites of kind API.
	Engine string `json:"engine,omitempty"`
	Spec   string `json:"spec"`
	State  State  `json:"state"`
	// Seconds is how long the spec took.
	Seconds int `json:"seconds"`
	// Message is what the spec said if it did not pass.
	Message string `json:"message,omitempty"`
	// Phases are what the spec has measured, in order; of suite performance alone.
	Phases []Phase `json:"phases,omitempty"`
}

// Record is all results that are known, and the specs that each suite has.
type Record struct {
	// Specs are the names of the specs of each suite of kind Cluster, by the suite's name.
	// A suite that has not been listed yet is missing.
	Specs map[string][]string `json:"specs"`
	// API counts the specs of suites of kind API, by the suite's name: the names of
	// hundreds of cases that pass would tell a reader nothing.
	API map[string]Tally `json:"api"`
	// Results has at most one result of each suite, engine and spec, in this order; of
	// suites of kind API only specs that did not pass.
	Results []Result `json:"results"`
}

// Tally counts specs.
type Tally struct {
	Specs  int `json:"specs"`
	Passed int `json:"passed"`
}

// ReadRecord reads a record. A file that does not exist is an empty record.
func ReadRecord(path string) (*Record, error) {
	r := &Record{Specs: map[string][]string{}, API: map[string]Tally{}}
	if err := bench.ReadRecord(path, r); err != nil {
		return nil, err
	}
	return r, nil
}

// Write writes the record, sorted, so that a diff shows what has changed.
func (r *Record) Write(path string) error {
	slices.SortFunc(r.Results, func(a, b Result) int { return strings.Compare(a.key(), b.key()) })
	return bench.WriteRecord(path, r)
}

func (r Result) key() string { return r.Suite + "\x00" + r.Spec + "\x00" + r.Engine }

// Add replaces the result of the same suite, engine and spec, or adds it.
func (r *Record) Add(added Result) {
	for i := range r.Results {
		if r.Results[i].key() == added.key() {
			r.Results[i] = added
			return
		}
	}
	r.Results = append(r.Results, added)
}

// Of returns the result of a spec, and whether it has been run.
func (r *Record) Of(suite, engine, spec string) (Result, bool) {
	for _, have := range r.Results {
		if have.Suite == suite && have.Engine == engine && have.Spec == spec {
			return have, true
		}
	}
	return Result{}, false
}

// SetAPI takes over a whole run of a suite of kind API.
func (r *Record) SetAPI(suite string, specs []Spec) {
	r.Results = slices.DeleteFunc(r.Results, func(have Result) bool { return have.Suite == suite })
	tally := Tally{Specs: len(specs)}
	for _, s := range specs {
		if s.State == Passed {
			tally.Passed++
			continue
		}
		r.Add(Result{Suite: suite, Spec: s.Text, State: s.State, Seconds: int(s.Took.Seconds()), Message: s.Message})
	}
	r.API[suite] = tally
}
