// Command idle measures the CPU that a fleet at rest takes, and what one pod that waits
// takes there, and prints a table; with -write it puts the table into the documentation.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/fleets"
)

func main() { bench.Main("idle", run) }

// restPause is the longest pause of the controller between two decisions on a fleet at
// rest.
const restPause = 2 * time.Minute

func run(ctx context.Context) error {
	nodes := flag.String("nodes", "1000,10000", "draw fragmented fleets of so many nodes, and consolidate them first")
	budget := flag.Duration("consolidation-budget", time.Second, "time for the search of one decision")
	plan := flag.Duration("plan-budget", 250*time.Millisecond, "time to improve the plan for the pod")
	write := flag.String("write", "", "also write the table into this file, between its marks")
	flag.Parse()
	ms := func(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond)) }
	var lines [][]string
	for _, word := range strings.Split(*nodes, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("-nodes: got %q, must be numbers above 0 with commas between", *nodes)
		}
		rest, err := fleets.AtRest(ctx, fleets.Fleet{Name: fmt.Sprint("fleet-", n), Nodes: n}, *budget, *plan)
		if err != nil {
			return err
		}
		if !rest.Bought {
			return fmt.Errorf("-nodes %d: the pod found room on a node, so that its plan says nothing", n)
		}
		lines = append(lines, []string{
			fmt.Sprint(rest.Nodes), fmt.Sprint(rest.Pods), ms(rest.Decision),
			fmt.Sprintf("%.2f%%", 100*rest.Decision.Seconds()/restPause.Seconds()), ms(rest.Pod),
		})
	}
	var b strings.Builder
	head := []string{"nodes", "pods", "CPU of one decision", "of a core, one every two minutes", "CPU of one pod, from its event to its plan"}
	if err := bench.Markdown(&b, head, lines); err != nil {
		return err
	}
	if _, err := fmt.Fprint(os.Stdout, b.String()); err != nil || *write == "" {
		return err
	}
	return bench.WriteBetweenMarks(*write, "idle", b.String())
}
