package bench

import (
	"fmt"
	"io"
	"time"
)

// writeTimes says where the time to the first plan goes, and what it grows with.
func writeTimes(w io.Writer, rows []*Row) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := fmt.Fprint(w, `
## Where the time to the first plan goes

Reading turns objects into the problem, on all cores. Planning prepares what can be
bought, assigns pods to domains, chooses machines, and proves the bound beside
that. nap looks at classes of pods that no rule tells apart, Karpenter at every
pod: so nap is the more times faster the more pods a class has. Where nearly every
pod is a class of its own, as in small diverse workloads, what is left is what one
class costs against what one pod does.

`)
	if err != nil {
		return err
	}
	var lines [][]string
	for _, r := range rows {
		n := r.Nap
		per := ""
		if k := r.Karpenter; k != nil && !k.TimedOut {
			per = each(k.Final, r.Pods)
		}
		lines = append(lines, []string{r.Name, fmt.Sprint(r.Pods), fmt.Sprint(n.Classes),
			duration(n.Read), duration(n.First - n.Read), each(n.First, n.Classes), per})
	}
	return Markdown(w, []string{"workload", "pods", "classes", "reading", "planning", "nap per class", "karpenter per pod"}, lines)
}

// each is a share of a time.
func each(d time.Duration, n int) string {
	return fmt.Sprintf("%.0fµs", float64(d)/float64(time.Microsecond)/float64(max(1, n)))
}
