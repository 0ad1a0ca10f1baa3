package disruption

import "time"

// backoff leaves nodes alone for a while after their command failed.
type backoff struct {
	// nodes has the failures in a row of nodes, by name. A node is forgotten when a
	// command with it succeeds, or restAtMost after its pause is over.
	nodes map[string]pause
}

// pause is for how long a node is left alone.
type pause struct {
	// failures counts the commands in a row that failed.
	failures int
	until    time.Time
}

// restAtLeast and restAtMost bound a pause. It doubles with every failure in a row.
const restAtLeast, restAtMost = time.Minute, 15 * time.Minute

// pauseAfter is how long to pause after so many earlier failures in a row.
func pauseAfter(failures int) time.Duration {
	return min(restAtMost, restAtLeast<<min(failures, 10))
}

func (b *backoff) failed(nodes []Removed, now time.Time) {
	for _, n := range nodes {
		before := b.nodes[n.Node].failures
		b.nodes[n.Node] = pause{failures: before + 1, until: now.Add(pauseAfter(before))}
	}
}

func (b *backoff) succeeded(nodes []Removed) {
	for _, n := range nodes {
		delete(b.nodes, n.Node)
	}
}

// until are the nodes that are left alone, and until when.
func (b *backoff) until(now time.Time) map[string]time.Time {
	out := map[string]time.Time{}
	for node, p := range b.nodes {
		switch {
		case p.until.After(now):
			out[node] = p.until
		case now.Sub(p.until) > restAtMost:
			delete(b.nodes, node)
		}
	}
	return out
}
