package scenario

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// stepResult is one row of the closing table: how things stood when the step
// ended.
type stepResult struct {
	name     string
	began    time.Time
	took     time.Duration
	pods     int
	machines int
	cost     float64
}

// step closes the step before and opens a new one.
func (r *runner) step(ctx context.Context, words []string) error {
	if err := r.closeStep(ctx); err != nil {
		return err
	}
	name := strings.Join(words, " ")
	r.story.heading(name)
	r.steps = append(r.steps, stepResult{name: name, began: time.Now()})
	return nil
}

// closeStep records how the open step ended, if there is one.
func (r *runner) closeStep(ctx context.Context) error {
	if len(r.steps) == 0 || r.steps[len(r.steps)-1].took != 0 {
		return nil
	}
	machines, err := r.Azure.Machines(ctx)
	if err != nil {
		return err
	}
	s := &r.steps[len(r.steps)-1]
	s.took = time.Since(s.began)
	s.pods = r.world.countPods(labels.Everything()).running
	s.machines = len(machines)
	for _, m := range machines {
		s.cost += m.DollarsPerHour
	}
	return nil
}

// table prints a row per step and the totals of the whole run.
func (r *runner) table(ctx context.Context) error {
	if err := r.closeStep(ctx); err != nil {
		return err
	}
	purchases, err := r.Azure.Purchases(ctx)
	if err != nil {
		return err
	}
	leaks, err := r.leaks(ctx)
	if err != nil {
		return err
	}
	returned := 0
	for _, p := range purchases {
		if p.Returned {
			returned++
		}
	}
	r.story.mu.Lock()
	defer r.story.mu.Unlock()
	fmt.Fprintln(r.Out)
	t := tabwriter.NewWriter(r.Out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "took\tpods running\tmachines\tcost per hour\t  step")
	for _, s := range r.steps {
		fmt.Fprintf(t, "%.1f s\t%d\t%d\t$%.4f\t  %s\n", s.took.Seconds(), s.pods, s.machines, s.cost, s.name)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	left := "none"
	if len(leaks) > 0 {
		left = strings.Join(leaks, ", ")
	}
	_, err = fmt.Fprintf(r.Out, "\nmachines bought %d, returned %d; leaks: %s\n", len(purchases), returned, left)
	return err
}
