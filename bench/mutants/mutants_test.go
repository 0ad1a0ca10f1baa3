package mutants

import (
	"context"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const shop = `package shop

type order struct {
	count, price int
	once         bool
}

var log interface{ Info(string) }

func (s *store) buy(o order) bool {
	if o.count < 1 || o.price == 0 {
		return false
	}
	if err := s.open(); err != nil {
		return false
	}
	log.Info("bought")
	s.stock -= o.count
	s.send(order{
		count: o.count,
		once:  true,
	})
	return o.count <= 3 && o.once
}
`

func TestEachLossIsOneMutant(t *testing.T) {
	all, err := parse("shop/shop.go", []byte(shop))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, strings.TrimPrefix(m.Name(), "shop/shop.go store.buy "))
	}
	slices.Sort(got)
	want := []string{
		"boundary o.count < 1",
		"boundary o.count <= 3",
		"field count: o.count",
		"field once: true",
		"never o.count < 1 || o.price == 0",
		"operand o.count < 1",
		"operand o.count <= 3",
		"operand o.once",
		"operand o.price == 0",
		"statement s.send(order{ count: o.count, once: true, })",
		"statement s.stock -= o.count",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, m := range all {
		changed := m.Apply([]byte(shop))
		if _, err := parser.ParseFile(token.NewFileSet(), "shop.go", changed, 0); err != nil {
			t.Errorf("%s does not parse: %v\n%s", m.Name(), err, changed)
		}
		if string(changed) == shop {
			t.Errorf("%s changes nothing", m.Name())
		}
	}
}

func TestMutantsOfThisModuleParse(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, target := range Targets() {
		all, err := Find(root, target.Dir)
		if err != nil {
			t.Error(err)
			continue
		}
		names := map[string]bool{}
		for _, m := range all {
			if names[m.Name()] {
				t.Errorf("two mutants have the name %s", m.Name())
			}
			names[m.Name()] = true
			source, err := os.ReadFile(filepath.Join(root, m.File))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.ParseFile(token.NewFileSet(), m.File, m.Apply(source), 0); err != nil {
				t.Errorf("%s does not parse: %v", m.Name(), err)
			}
		}
		for _, dir := range target.Tests {
			if tests, _ := filepath.Glob(filepath.Join(root, dir, "*_test.go")); len(tests) == 0 {
				t.Errorf("%s of target %s has no tests", dir, target.Dir)
			}
		}
	}
}

func TestKnownSurvivorsAreThere(t *testing.T) {
	root := filepath.Join("..", "..")
	known, err := ReadSurvivors(filepath.Join("testdata", "survivors.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var all []Mutant
	for _, target := range Targets() {
		found, err := Find(root, target.Dir)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	for _, name := range known.Stale(all) {
		t.Errorf("the code of a listed survivor is gone, remove it: %s", name)
	}
}

func TestSurvivorsStateTheirReason(t *testing.T) {
	path := filepath.Join(t.TempDir(), "survivors.txt")
	if err := os.WriteFile(path, []byte("a.go f never x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSurvivors(path); err == nil || !strings.Contains(err.Error(), "states no reason") {
		t.Errorf("got %v", err)
	}
}

func TestRunnerTellsWhatTestsSay(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{
		"go.mod":      "module judged\n\ngo 1.26\n",
		"sum.go":      "package judged\n\nfunc cap3(n int) int {\n\tif n > 3 {\n\t\treturn 3\n\t}\n\treturn n\n}\n",
		"sum_test.go": "package judged\n\nimport \"testing\"\n\nfunc TestCap(t *testing.T) {\n\tif cap3(9) != 3 {\n\t\tt.Fail()\n\t}\n}\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Find(root, ".")
	if err != nil {
		t.Fatal(err)
	}
	r := Runner{Root: root, Scratch: t.TempDir(), Timeout: time.Minute}
	if err := r.Baseline(context.Background(), []string{"."}); err != nil {
		t.Fatal(err)
	}
	want := map[Kind]Outcome{Never: Killed, Boundary: Survived}
	for _, m := range all {
		got, err := r.Judge(context.Background(), m, []string{"."})
		if err != nil || got != want[m.Kind] {
			t.Errorf("%s: %s, %v; want %s", m.Name(), got, err, want[m.Kind])
		}
	}
	broken := all[0]
	broken.replacement = "unknown"
	if got, err := r.Judge(context.Background(), broken, []string{"."}); err != nil || got != Invalid {
		t.Errorf("%s, %v; want %s", got, err, Invalid)
	}
}
