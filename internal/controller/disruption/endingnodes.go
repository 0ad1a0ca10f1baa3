package disruption

import (
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// endingAtMost is for how long a node without a break is not consolidated because pods of it are
// ending, or come again. Where some always do, as those of a Job with short tasks, waiting helps
// nothing.
const endingAtMost = time.Minute

// endingNodes remembers since when pods of nodes have been ending or about to come again, by the
// node's name, in each decision since. The zero value knows none.
type endingNodes struct{ since map[string]time.Time }

// limit takes in a decision, and leaves them out on nodes on which there were some for long.
func (e *endingNodes) limit(p *model.DisruptionProblem) {
	since := map[string]time.Time{}
	for n := range p.Usages {
		t := &p.Usages[n]
		if t.Ending == 0 && t.Returning == 0 {
			continue
		}
		name := p.Problem.Nodes[n].Name
		began, known := e.since[name]
		if !known {
			began = p.Now
		}
		since[name] = began
		if p.Now.Sub(began) >= endingAtMost {
			t.Ending, t.Returning = 0, 0
		}
	}
	e.since = since
}
