package objects

import (
	"errors"
	"io"
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
	old := Record[*Figures]{figures(1000, "karpenter", 0.3), figures(1000, "nap", 0.2)}
	if err := old.With(figures(500, "nap", 0.1)).With(figures(1000, "nap", 0.04)).Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRecord[*Figures](path)
	want := Record[*Figures]{figures(500, "nap", 0.1), figures(1000, "karpenter", 0.3), figures(1000, "nap", 0.04)}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if none, err := ReadRecord[*Figures](filepath.Join(t.TempDir(), "none")); err != nil || none != nil {
		t.Errorf("no file: %v, %v", none, err)
	}
}

func TestPageHasTheTablesOfTheRecords(t *testing.T) {
	const page = "../../docs/scale.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for path, table := range map[string]func(path string) (string, error){
		"testdata/figures.json": tableOf(WriteTable), "testdata/standby.json": tableOf(WriteStandbyTable),
	} {
		want, err := table(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not have the table of %s; run: make scale-objects OBJECTS='-write docs/scale.md', with -standby for standby.json",
				page, path)
		}
	}
}

// tableOf reads a record, which must not be empty, and writes its table.
func tableOf[R Row](write func(w io.Writer, all []R) error) func(path string) (string, error) {
	return func(path string) (string, error) {
		record, err := ReadRecord[R](path)
		if err != nil {
			return "", err
		}
		if len(record) == 0 {
			return "", errors.New(path + " is empty")
		}
		var table strings.Builder
		err = write(&table, record)
		return table.String(), err
	}
}

func TestNodesAreOfNodePoolsThatExist(t *testing.T) {
	for _, nodes := range []int{10, 500, 5000, 20000} {
		if s := SizeOf(nodes); s.Pools < 1 || s.Pools > 300 || s.Pods != 10*nodes {
			t.Errorf("%d nodes: %+v", nodes, s)
		}
	}
}
