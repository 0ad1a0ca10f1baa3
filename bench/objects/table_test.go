package objects

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestTableSaysHowFiguresGrow(t *testing.T) {
	var all []*Figures
	for _, n := range []int{500, 1000, 2000} {
		all = append(all, &Figures{
			Size: SizeOf(n), Engine: "nap", FirstClaim: time.Duration(n) * time.Millisecond, StartCPU: time.Second,
			Memory: int64(n) * int64(n), DecisionCPU: time.Duration(n) * time.Millisecond,
		})
	}
	var b strings.Builder
	if err := WriteTable(&b, all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 1000  | 10000 | 60 ", "none in 5m0s", "| nap    | 1.00 ", "| 0.00 ", "| 2.00   | 1.00 "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, b.String())
		}
	}
}

func TestFiguresTakeThePlaceOfThoseOfTheSameSizeAndEngine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.json")
	figures := func(nodes int, engine string, idle float64) *Figures {
		return &Figures{Size: SizeOf(nodes), Engine: engine, Idle: idle}
	}
	old := Record{figures(1000, "karpenter", 0.3), figures(1000, "nap", 0.2)}
	if err := old.With(figures(500, "nap", 0.1)).With(figures(1000, "nap", 0.04)).Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRecord(path)
	want := Record{figures(500, "nap", 0.1), figures(1000, "karpenter", 0.3), figures(1000, "nap", 0.04)}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if none, err := ReadRecord(filepath.Join(t.TempDir(), "none")); err != nil || none != nil {
		t.Errorf("no file: %v, %v", none, err)
	}
}

func TestPageHasTheTableOfTheRecord(t *testing.T) {
	record, err := ReadRecord("testdata/figures.json")
	if err != nil || len(record) == 0 {
		t.Fatalf("%d figures, %v", len(record), err)
	}
	var table strings.Builder
	if err := WriteTable(&table, record); err != nil {
		t.Fatal(err)
	}
	const page = "../../docs/scale.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), table.String()) {
		t.Errorf("%s does not have the table of the record; run: make scale-objects OBJECTS='-write docs/scale.md'", page)
	}
}

func TestNodesAreOfNodePoolsThatExist(t *testing.T) {
	for _, nodes := range []int{10, 500, 5000, 20000} {
		if s := SizeOf(nodes); s.Pools < 1 || s.Pools > 300 || s.Pods != 10*nodes {
			t.Errorf("%d nodes: %+v", nodes, s)
		}
	}
}
