package compare

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

const printed = `goos: linux
BenchmarkSolve/100_pods_of_20_deployments/0s-2         	     300	   3340000 ns/op	         1.02 cost/bound	 1410000 B/op	     975 allocs/op
BenchmarkFirstMoves/{nodes:100_small:false}-2 	      30	  31000000 ns/op	       512 tried	  100 B/op	  3 allocs/op
PASS
`

func TestParseReadsFiguresByUnit(t *testing.T) {
	r, err := parse(printed)
	if err != nil {
		t.Fatal(err)
	}
	want := Figures{Time: 3340 * time.Microsecond, Bytes: 1.41e6, Allocs: 975}
	if got := r.figures["BenchmarkSolve/100_pods_of_20_deployments/0s"]; got != want || len(r.names) != 2 {
		t.Errorf("got %+v of %v, want %+v", got, r.names, want)
	}
	if got := r.figures["BenchmarkFirstMoves/{nodes:100_small:false}"].Trials; got != 512 {
		t.Errorf("got %v trials, want 512", got)
	}
	if _, err := parse("PASS\n"); err == nil {
		t.Error("a run without benchmarks is no error")
	}
}

func TestExactlySelectsOneBenchmark(t *testing.T) {
	name := "BenchmarkFirstMoves/{nodes:100_small:false}"
	for i, part := range strings.Split(exactly(name), "/") {
		if !regexp.MustCompile(part).MatchString(strings.Split(name, "/")[i]) {
			t.Errorf("%s does not match %s", part, name)
		}
	}
	if regexp.MustCompile(exactly("BenchmarkSolve")).MatchString("BenchmarkSolveMore") {
		t.Error("a longer name is selected, too")
	}
}

func TestKeepTakesTheLeast(t *testing.T) {
	var f Figures
	f.keep(Figures{Time: 5, CPU: 7, Bytes: 10, Allocs: 3, Trials: 4})
	f.keep(Figures{Time: 6, CPU: 6, Bytes: 11, Allocs: 2, Trials: 5})
	if want := (Figures{Time: 5, CPU: 6, Bytes: 10, Allocs: 2, Trials: 5}); f != want {
		t.Errorf("got %+v, want %+v", f, want)
	}
}

func TestTableSaysByHowMuchFiguresRise(t *testing.T) {
	rows := []Row{{"planner: x", Figures{Time: time.Millisecond, CPU: 2 * time.Millisecond, Bytes: 2e6, Allocs: 100},
		Figures{Time: 2 * time.Millisecond, CPU: time.Millisecond, Bytes: 1e6, Allocs: 105}}}
	got := Table("a", "b", 3, rows)
	want := "| planner: x | 2.00 | 1.00 | -50.0 | 1.00 | 2.00 | +100.0 | 2.00 | 1.00 | -50.0 | 100 | 105 | +5.0 | | |\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
