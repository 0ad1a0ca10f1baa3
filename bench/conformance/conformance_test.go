package conformance

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	recordFile = "testdata/results.json"
	pageFile   = "../../docs/conformance.md"
)

func record(t *testing.T) *Record {
	t.Helper()
	r, err := ReadRecord(recordFile)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSuitesAreInKarpentersModule(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", karpenterModule).Output()
	if err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSpace(string(out))
	for _, s := range Suites() {
		if s.Module != karpenterModule {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, s.Package, "suite_test.go")); err != nil {
			t.Errorf("suite %s: %v", s.Name, err)
		}
		if s.Kind == API {
			w := &Workspace{Dir: t.TempDir()}
			file, err := w.Overlay(s, root)
			if err != nil {
				t.Fatal(err)
			}
			if got := replaced(t, file); len(got) != 4 {
				t.Errorf("suite %s: %d of Karpenter's 4 definitions are replaced: %v", s.Name, len(got), got)
			}
		}
	}
}

func replaced(t *testing.T, overlay string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(overlay)
	if err != nil {
		t.Fatal(err)
	}
	var o struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return o.Replace
}

// The suite dra gets Azure's names of sizes, another cleanup and the file that its module lacks; no other
// suite of a cluster is changed.
func TestOnlySuiteOfDevicesIsChanged(t *testing.T) {
	for _, s := range Suites() {
		if s.Kind != Cluster {
			continue
		}
		w := &Workspace{Dir: t.TempDir()}
		folder := filepath.Join(w.link(s), s.Package)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(folder, "x_test.go")
		if err := os.WriteFile(file, []byte(`"c-4x-amd64-linux"`), 0o644); err != nil {
			t.Fatal(err)
		}
		flags, err := w.changes(s)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name != "dra" {
			if flags != nil {
				t.Errorf("suite %s is changed: %v", s.Name, flags)
			}
			continue
		}
		got := replaced(t, strings.TrimPrefix(flags[0], "-overlay="))
		text, err := os.ReadFile(got[file])
		if err != nil || string(text) != `"Standard_D4s_v5"` || len(got) != 2 {
			t.Errorf("%q, %v: %v", text, err, got)
		}
	}
}

func TestOverlayOfNodeClassHasNapsDefinition(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "pkg/apis/crds")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	s := Suite{Name: "x", Kind: API, Package: "pkg/apis/v1beta1", Definitions: []string{"pkg/apis/crds"},
		SetUp: "suite_test.go", LeftOut: []string{"odd_test.go"}}
	w := &Workspace{Dir: t.TempDir()}
	if _, err := w.Overlay(s, root); err == nil {
		t.Error("a module without definitions is accepted, though its suite would judge nothing of nap")
	}
	place := filepath.Join(folder, "karpenter.azure.com_aksnodeclasses.yaml")
	if err := os.WriteFile(place, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	file, err := w.Overlay(s, root)
	if err != nil {
		t.Fatal(err)
	}
	got := replaced(t, file)
	text, err := os.ReadFile(got[place])
	if err != nil || !strings.Contains(string(text), "imageVersion") {
		t.Errorf("the definition in %q is not nap's: %v", got[place], err)
	}
	setup, err := os.ReadFile(got[filepath.Join(root, s.Package, s.SetUp)])
	if err != nil || !strings.HasPrefix(string(setup), "package v1beta1_test\n") {
		t.Errorf("the set-up is %.60q: %v", setup, err)
	}
	if goes := filepath.Ext(got[filepath.Join(root, s.Package, s.SetUp)]); goes == ".go" {
		t.Error("the set-up is a Go file below the workspace, which is below nap's own module")
	}
	if file, there := got[filepath.Join(root, s.Package, "odd_test.go")]; !there || file != "" {
		t.Errorf("odd_test.go is replaced by %q (%v), want nothing", file, there)
	}
}

func TestEtcdsFlagsAreThoseOfTheLab(t *testing.T) {
	got, err := etcdFlags([]string{"--data-dir=/tmp/x", "--listen-client-urls=http://127.0.0.1:4711", "--unsafe-no-fsync=true"})
	if want := []string{"--data-dir=/tmp/x", "--client-port=4711"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := etcdFlags([]string{"--data-dir=/tmp/x"}); err == nil {
		t.Error("etcd without a port is started")
	}
}

func TestOtherProgramsPlayNothing(t *testing.T) {
	if played, err := Play([]string{"bin/conformance", "api"}, nil); played || err != nil {
		t.Errorf("played %v, %v", played, err)
	}
	if played, err := Play([]string{"/assets/etcd"}, nil); !played || err == nil {
		t.Errorf("etcd without flags: played %v, %v", played, err)
	}
}

func TestReportGivesStatesAndOneLineOfWhy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"SuiteDescription": "Regression", "SpecReports": [
	  {"LeafNodeType": "BeforeSuite", "State": "passed"},
	  {"ContainerHierarchyTexts": ["A", "b"], "LeafNodeText": "does", "LeafNodeType": "It", "State": "passed", "RunTime": 3000000000},
	  {"LeafNodeText": "fails", "LeafNodeType": "It", "State": "timedout", "Failure": {"Message": "expected\n    <*int | 0xc000abcdef>: 1"}},
	  {"LeafNodeText": "waits", "LeafNodeType": "It", "State": "pending"}]}]`)
	description, specs, err := ReadReport(path)
	if err != nil || description != "Regression" || len(specs) != 3 {
		t.Fatalf("%q, %+v, %v", description, specs, err)
	}
	if s := specs[0]; s.Text != "A b does" || s.State != Passed || s.Took.Seconds() != 3 {
		t.Errorf("first: %+v", s)
	}
	if s := specs[1]; s.State != Failed || s.Message != "expected <*int | 0x>: 1" {
		t.Errorf("second: %+v", s)
	}
	if specs[2].State != Skipped {
		t.Errorf("third: %+v", specs[2])
	}
	write(`[{"SpecReports": [{"LeafNodeType": "BeforeSuite", "State": "panicked", "Failure": {"Message": "no etcd"}}]}]`)
	if _, _, err := ReadReport(path); err == nil || !strings.Contains(err.Error(), "no etcd") {
		t.Errorf("a suite that could not be set up: %v", err)
	}
}

func TestRecordKeepsTheLastResultOfEachSpec(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	r, err := ReadRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	r.list("regression", []string{"a", "b"})
	r.Add(Result{Suite: "regression", Engine: EngineNap, Spec: "b", State: Failed, Message: "why"})
	r.Add(Result{Suite: "regression", Engine: EngineKarpenter, Spec: "b", State: Passed})
	r.Add(Result{Suite: "regression", Engine: EngineNap, Spec: "b", State: Passed, Seconds: 9})
	r.SetAPI("karpenter-v1", []Spec{{Text: "x", State: Passed}, {Text: "y", State: Failed, Message: "no"}})
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	if r, err = ReadRecord(path); err != nil {
		t.Fatal(err)
	}
	if got, known := r.Of("regression", EngineNap, "b"); !known || got.State != Passed || got.Seconds != 9 {
		t.Errorf("b with nap: %+v, %v", got, known)
	}
	if _, known := r.Of("regression", EngineNap, "a"); known {
		t.Error("a has a result and would not be run")
	}
	if r.API["karpenter-v1"] != (Tally{Specs: 2, Passed: 1}) {
		t.Errorf("tally %+v", r.API)
	}
	r.list("regression", []string{"a"})
	if _, known := r.Of("regression", EngineNap, "b"); known {
		t.Error("the result of a spec that the suite no longer has is kept")
	}
}

func TestTablesCountMissesAndGiveReasons(t *testing.T) {
	r := &Record{Specs: map[string][]string{"regression": {"a", "b", "c|d"}}, API: map[string]Tally{}}
	r.Add(Result{Suite: "regression", Engine: EngineNap, Spec: "a", State: Passed, Seconds: 5})
	r.Add(Result{Suite: "regression", Engine: EngineNap, Spec: "b", State: Skipped, Message: "not here"})
	r.Add(Result{Suite: "regression", Engine: EngineKarpenter, Spec: "a", State: Failed, Message: "too late"})
	page := Tables(r)
	for _, want := range []string{
		"| nap | 3 | 1 | 0 | 1 | 1 |", "| karpenter | 3 | 0 | 1 | 0 | 2 |",
		"| a | passed, 5 s | failed | karpenter: too late |", "| b | skipped | not run | not here |", `| c\|d | not run |`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
}

func TestPageHasTheTablesOfTheRecord(t *testing.T) {
	page, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), Tables(record(t))) {
		t.Errorf("%s does not have the tables of %s; run: go run ./bench/cmd/conformance page", pageFile, recordFile)
	}
}

func TestEveryCauseIsThatOfSpecs(t *testing.T) {
	r := record(t)
	for _, c := range causes() {
		if !slices.ContainsFunc(r.Specs[c.suite], func(spec string) bool { return strings.HasPrefix(spec, c.prefix) }) {
			t.Errorf("no spec of suite %q begins with %q", c.suite, c.prefix)
		}
	}
}

func TestWrongSelectionsAreRefused(t *testing.T) {
	for want, o := range map[string]Selection{
		"allowed are nap and karpenter": {Engine: "none"},
		"regular expression":            {Engine: EngineNap, Focus: "("},
	} {
		if _, err := o.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	if _, err := Named(API, []string{"regression"}); err == nil || !strings.Contains(err.Error(), "karpenter-v1") {
		t.Errorf("a suite of another kind: %v", err)
	}
}
