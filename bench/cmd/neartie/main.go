// Command neartie measures what the planner pays for fewer machines on the workloads of
// the benchmark, with disks in the prices, and prints a table; with -write it puts the
// table into the documentation.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/neartie"
	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/model"
)

func main() { bench.Main("neartie", run) }

func run(ctx context.Context) error {
	pattern := flag.String("workloads", "^(W|diverse-1000?/|heavy|identical|gpu)", "plan the workloads whose names match this")
	disk := flag.Float64("disk", 0.027, "dollars per hour of every node's disk")
	effort := flag.Duration("effort", 250*time.Millisecond, "plans do the work that fits into about that time")
	write := flag.String("write", "", "also write the table into this file, between its marks")
	flag.Parse()
	chosen, err := workload.Select(*pattern)
	if err != nil {
		return err
	}
	var rows []*neartie.Row
	for i := range chosen {
		row, failed := neartie.Measure(ctx, &chosen[i], model.USD(*disk), *effort)
		if failed != nil {
			return failed
		}
		rows = append(rows, row)
	}
	text, err := neartie.Table(rows)
	if err != nil {
		return err
	}
	text = fmt.Sprintf("Every node with a disk of $%g/h, a budget of %v counted in steps.\n\n%s", *disk, *effort, text)
	if _, err := fmt.Fprint(os.Stdout, text); err != nil || *write == "" {
		return err
	}
	return bench.WriteBetweenMarks(*write, "neartie", text)
}
