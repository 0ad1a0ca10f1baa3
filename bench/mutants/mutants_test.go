package mutants

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// judged is a small package with a mutant of each outcome.
const judged = `package judged

type order struct {
	count int
	tags  map[string]string
}

func cap3(n int) int {
	if n > 3 {
		return 3
	}
	return n
}

func halvings(n int) int {
	left := order{count: n}
	times := 0
	for left.count > 1 {
		left.count /= 2
		times += 1
	}
	return times
}

func doublings(n int) (times int) {
	for at := 1; at < n; at *= 2 {
		times++
	}
	return times
}

func never() {
	cap3(1)
}

func sum(list []int) (total int) {
	if len(list) > 0 && list[0] > 9 {
		total = 1000
	}
	for _, n := range list {
		if n < 0 {
			total += n
		}
		total += max(n, 0)
	}
	return total
}

func ends(ok bool) int {
	if ok {
		return 1
	}
	panic("not ok")
}
`

const judges = `package judged

import "testing"

func TestCap(t *testing.T) {
	if cap3(9) != 3 {
		t.Fail()
	}
}

func TestHalvings(t *testing.T) {
	if halvings(8) != 3 {
		t.Fail()
	}
}

// It does not look at the sum.
func TestSum(t *testing.T) {
	sum([]int{0, -1})
}

func TestDoublings(t *testing.T) {
	if doublings(8) != 3 {
		t.Fail()
	}
}

func TestEnds(t *testing.T) {
	if ends(true) != 1 {
		t.Fail()
	}
}
`

func TestSuiteTellsWhatTestsSay(t *testing.T) {
	all, r := smallModule(t, judged, judges)
	suite, err := r.Prepare(t.Context(), []Target{{Dir: ".", Tests: []string{"."}}}, all)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Outcome{}
	err = suite.Judge(t.Context(), all, func(m Mutant, o Outcome) { got[strings.TrimPrefix(m.Name(), "sum.go ")] = o })
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Outcome{
		"cap3 never n > 3":                       Killed,
		"cap3 boundary n > 3":                    Unreached, // no test asks for three
		"halvings field count: n":                Killed,
		"halvings boundary left.count > 1":       Killed,
		"halvings statement left.count /= 2":     Killed, // it does not end
		"halvings statement times += 1":          Killed,
		"doublings statement at *= 2":            Killed, // it does not end
		"doublings boundary at < n":              Killed,
		"never statement cap3(1)":                Unreached,
		"sum never len(list) > 0 && list[0] > 9": Unreached, // not true anywhere
		"sum operand len(list) > 0":              Unreached, // not false anywhere
		"sum operand list[0] > 9":                Survived,
		"sum boundary len(list) > 0":             Unreached,
		"sum boundary list[0] > 9":               Unreached,
		"sum never n < 0":                        Survived,
		"sum boundary n < 0":                     Survived,
		"sum statement total += n":               Survived,
		"sum statement total += max(n, 0)":       Survived,
		"ends never ok":                          Killed,
		"ends statement panic(\"not ok\")":       Invalid,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSuiteRefusesTestsThatFailAnyway(t *testing.T) {
	all, r := smallModule(t, judged, strings.Replace(judges, "halvings(8) != 3", "true", 1))
	_, err := r.Prepare(t.Context(), []Target{{Dir: ".", Tests: []string{"."}}}, all)
	if err == nil || !strings.Contains(err.Error(), "TestHalvings") || !strings.Contains(err.Error(), "without any change") {
		t.Errorf("got %v", err)
	}
}

// smallModule writes a module of one package and returns its mutants.
func smallModule(t *testing.T, code, tests string) ([]Mutant, Runner) {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module judged\n\ngo 1.26\n", "sum.go": code, "sum_test.go": tests} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Find(root, ".")
	if err != nil {
		t.Fatal(err)
	}
	return all, Runner{Root: root, Scratch: t.TempDir(), Timeout: 10 * time.Second}
}
