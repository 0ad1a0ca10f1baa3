package vm

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

const (
	// operationFor is how long an operation's word is taken for the machine's; then
	// the machine itself is looked at, in case the operation hangs or is unknown.
	operationFor = 2 * time.Second
	// mostDeletions are remembered. More than that were never asked about again.
	mostDeletions = 2000
)

// deletions are operations that remove virtual machines. Azure grants twelve reads
// of one machine a minute, and fifteen more of the operation, so that the end of a
// deletion is noticed sooner by looking at both in turn. They are a matter of speed:
// what is forgotten, by a restart say, is asked of the machine itself.
type deletions struct {
	mu      sync.Mutex
	pending map[string]*deletion // by machine
}

type deletion struct {
	poller *runtime.Poller[armcompute.VirtualMachinesClientDeleteResponse]
	seen   time.Time // when the machine was last looked at
	ended  time.Time // when Azure says that the machine was gone; zero until then
}

// poll asks Azure for the operation, and reports whether it is still running.
func (x *deletion) poll(ctx context.Context) bool {
	if x.poller.Done() {
		return false
	}
	answer, err := x.poller.Poll(ctx)
	if err != nil {
		return false
	}
	if !x.poller.Done() {
		return true
	}
	var operation struct {
		EndTime time.Time `json:"endTime"`
	}
	if text, err := runtime.Payload(answer); err == nil && json.Unmarshal(text, &operation) == nil {
		x.ended = operation.EndTime
	}
	return false
}

func newDeletions() *deletions { return &deletions{pending: map[string]*deletion{}} }

// take removes a deletion for as long as its caller works with it: pollers are not
// for concurrent use.
func (d *deletions) take(name string) *deletion {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.pending[name]
	delete(d.pending, name)
	return out
}

func (d *deletions) keep(name string, x *deletion) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pending) >= mostDeletions {
		clear(d.pending)
	}
	d.pending[name] = x
}

// running reports whether Azure says that it is still deleting the machine. False
// means that the machine itself is to be looked at.
func (d *deletions) running(ctx context.Context, name string) bool {
	x := d.take(name)
	if x == nil {
		return false
	}
	if time.Since(x.seen) >= operationFor {
		x.seen = time.Now()
		d.keep(name, x)
		return false
	}
	running := x.poll(ctx)
	d.keep(name, x)
	return running
}

// over ends a deletion whose machine is not there any more, and returns [launch.ErrNotFound],
// with the time of it where Azure tells.
func (d *deletions) over(ctx context.Context, name string) error {
	x := d.take(name)
	if x == nil {
		return launch.ErrNotFound
	}
	if x.poll(ctx); x.ended.IsZero() {
		return launch.ErrNotFound
	}
	return &launch.GoneError{At: x.ended}
}
