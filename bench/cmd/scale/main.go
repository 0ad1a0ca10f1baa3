// Command scale measures memory of caches and mirror, and CPU of first plans and of
// decisions on whole fleets, at growing sizes, and prints tables; with -write it puts them
// into the documentation.
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
	"github.com/nodeautoprovision/nap/bench/scale"
)

func main() { bench.Main("scale", run) }

func run(ctx context.Context) error {
	kept := flag.String("kept", "1000,5000", "measure memory for so many nodes, with ten times the pods")
	planned := flag.String("planned", "5000,50000,200000", "plan for so many pods")
	tenants := flag.String("tenants", "100,300,1000", "plan for so many tenants with a NodePool each")
	given := flag.String("given", "500,1000,2000,5000,20000", "decide on fleets of so many nodes")
	effort := flag.Duration("effort", 250*time.Millisecond, "plans and decisions do the work that fits into about that time")
	write := flag.String("write", "", "also write the tables into this file, between its marks")
	flag.Parse()
	var memory []*scale.Kept
	err := each("kept", *kept, func(n int) error {
		k, err := scale.Measure(scale.Size{Nodes: n, Pods: 10 * n})
		memory = append(memory, k)
		return err
	})
	if err != nil {
		return err
	}
	var plans []*scale.Planned
	err = each("planned", *planned, func(n int) error {
		p, err := scale.Plan(ctx, n, *effort)
		plans = append(plans, p)
		return err
	})
	if err != nil {
		return err
	}
	var tenantPlans []*scale.Planned
	err = each("tenants", *tenants, func(n int) error {
		p, err := scale.PlanTenants(ctx, n, *effort)
		tenantPlans = append(tenantPlans, p)
		return err
	})
	if err != nil {
		return err
	}
	var decisions []*scale.GivenBack
	err = each("given", *given, func(n int) error {
		g, err := scale.GiveBack(ctx, n, *effort)
		decisions = append(decisions, g)
		return err
	})
	if err != nil {
		return err
	}
	text, err := scale.Table(memory, plans, tenantPlans, decisions)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(os.Stdout, text); err != nil || *write == "" {
		return err
	}
	return bench.WriteBetweenMarks(*write, "scale", text)
}

// each measures every size of a list, and says on the way which one.
func each(flagName, list string, measure func(int) error) error {
	for _, word := range strings.Split(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("-%s: got %q, must be numbers above 0 with commas between", flagName, list)
		}
		fmt.Fprintf(os.Stderr, "-%s %d\n", flagName, n)
		if err := measure(n); err != nil {
			return fmt.Errorf("-%s %d: %w", flagName, n, err)
		}
	}
	return nil
}
