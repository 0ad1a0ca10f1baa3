package race

import (
	"context"
	"fmt"
	"io"
	"time"
)

// sampled is how often a timeline looks.
const sampled = 250 * time.Millisecond

// timeline writes a line whenever something has changed, until ctx ends: seconds since the
// beginning, and how many NodeClaims have been made, nodes are there and ready, pods are
// there, bound and running. Where a turn was slow, it says at which step.
func (o *observer) timeline(ctx context.Context, began time.Time, w io.Writer) {
	var before [6]int
	fmt.Fprintln(w, "seconds\tclaims\tnodes\tready\tpods\tbound\trunning")
	for {
		s := o.look()
		now := [6]int{s.made, s.nodes, s.ready, s.pods, s.bound, s.running}
		if now != before {
			fmt.Fprintf(w, "%.1f\t%d\t%d\t%d\t%d\t%d\t%d\n", time.Since(began).Seconds(), now[0], now[1], now[2], now[3], now[4], now[5])
			before = now
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(sampled):
		}
	}
}
