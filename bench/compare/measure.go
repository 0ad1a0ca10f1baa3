package compare

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Figures are those of one benchmark: the least over all runs, and of Trials the most.
type Figures struct {
	// Time is that of one operation by the clock. CPU is the processor's for a whole run,
	// divided by its operations; a run also makes the input, once.
	Time, CPU time.Duration
	// Bytes and Allocs are what one operation allocates.
	Bytes, Allocs float64
	// Trials is how much consolidation tried in its time; 0 for plans.
	Trials float64
}

// Row is one benchmark on both sides.
type Row struct {
	// Name is that of the benchmark, with its package's last element in front.
	Name     string
	Old, New Figures
}

// mostOperations bounds how often a run repeats an operation.
const mostOperations = 200

// Measure runs every benchmark that both sides have so many rounds, the sides in turns.
// Each run repeats its operation for about the given time. After each round of a suite it
// calls tell.
func Measure(ctx context.Context, older, newer *Side, rounds int, each time.Duration, tell func(suite string, round int)) ([]Row, error) {
	var out []Row
	for i, suite := range Suites() {
		before, err := older.run(ctx, i, suite.Pattern, 1)
		if err != nil {
			return nil, err
		}
		now, err := newer.run(ctx, i, suite.Pattern, 1)
		if err != nil {
			return nil, err
		}
		best := map[string]*Row{}
		var names []string
		for _, name := range now.names {
			if _, ok := before.figures[name]; ok {
				names = append(names, name)
				best[name] = &Row{Name: filepath.Base(suite.Package) + ": " + display(name)}
			}
		}
		for round := range rounds {
			for _, name := range names {
				n := min(mostOperations, 1+int(each/max(1, now.figures[name].Time)))
				for _, side := range []*Side{older, newer} {
					r, err := side.run(ctx, i, exactly(name), n)
					if err != nil {
						return nil, err
					}
					f := r.figures[name]
					f.CPU = r.cpu / time.Duration(n)
					if side == older {
						best[name].Old.keep(f)
					} else {
						best[name].New.keep(f)
					}
				}
			}
			tell(suite.Package, round+1)
		}
		for _, name := range names {
			out = append(out, *best[name])
		}
	}
	return out, nil
}

// keep takes over what is better in other figures.
func (f *Figures) keep(o Figures) {
	if f.Time == 0 {
		*f = o
		return
	}
	f.Time, f.CPU = min(f.Time, o.Time), min(f.CPU, o.CPU)
	f.Bytes, f.Allocs, f.Trials = min(f.Bytes, o.Bytes), min(f.Allocs, o.Allocs), max(f.Trials, o.Trials)
}

// result is what one run of benchmarks printed, and the CPU time that it took.
type result struct {
	names   []string
	figures map[string]Figures
	cpu     time.Duration
}

// run runs the benchmarks of a suite that the expression selects, n operations each.
func (s *Side) run(ctx context.Context, suite int, pattern string, n int) (*result, error) {
	c := exec.CommandContext(ctx, s.binaries[suite], "-test.run", "^$", "-test.bench", pattern, "-test.benchmem",
		"-test.benchtime", fmt.Sprintf("%dx", n))
	c.Dir, c.Stderr = filepath.Join(s.root, Suites()[suite].Package), os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("benchmarks of %s in %s: %w\n%s", s.Name, Suites()[suite].Package, err, out)
	}
	r, err := parse(string(out))
	if err != nil {
		return nil, fmt.Errorf("benchmarks of %s: %w", s.Name, err)
	}
	r.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	return r, nil
}

// procs is what benchmarks append to their names: the number of processors.
var procs = regexp.MustCompile(`-\d+$`)

// parse reads the lines of benchmarks: the name, the number of operations, and then
// figures, each followed by its unit.
func parse(out string) (*result, error) {
	r := &result{figures: map[string]Figures{}}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := procs.ReplaceAllString(fields[0], "")
		var f Figures
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("benchmark line %q: %q is no number", line, fields[i])
			}
			switch fields[i+1] {
			case "ns/op":
				f.Time = time.Duration(v)
			case "B/op":
				f.Bytes = v
			case "allocs/op":
				f.Allocs = v
			case "tried":
				f.Trials = v
			}
		}
		r.names = append(r.names, name)
		r.figures[name] = f
	}
	if len(r.names) == 0 {
		return nil, fmt.Errorf("no benchmark ran:\n%s", out)
	}
	return r, nil
}

// exactly is the expression that selects a benchmark alone.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
	}
	return strings.Join(parts, "/")
}

// display is a benchmark's name as a table has it.
func display(name string) string {
	_, rest, _ := strings.Cut(strings.TrimSuffix(name, "/0s"), "/")
	return strings.ReplaceAll(rest, "_", " ")
}
