package disruption

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/model"
)

// outcomes tells how commands end, and remembers what later decisions must know of it.
type outcomes struct {
	metrics *metrics.Disruption
	teller  teller
	backoff *backoff
	batch   *batch
	clock   clock.Clock
}

// finish tells of a command that is over, and leaves the nodes of a failed one alone
// for a while.
func (o *outcomes) finish(ctx context.Context, c *command) {
	o.teller.ended(c)
	logger := log.FromContext(ctx).WithValues("command", c.ID, "reason", string(c.Reason), "nodes", names(c.Remove))
	if c.failure == nil {
		o.metrics.Succeeded(c.measured())
		o.backoff.succeeded(c.Remove)
		logger.Info("removed nodes", "savingPerHour", c.Saving, "evictions", c.Evictions, "took", o.clock.Since(c.Begun).String())
		return
	}
	o.metrics.RolledBack(c.measured(), c.failure.cause)
	o.batch.lose(&c.Record, model.USD(c.Saving))
	o.backoff.failed(c.Remove, o.clock.Now())
	logger.Info("rolled a command back", "because", c.failure.message)
}
