package fleet

import (
	"context"
	"errors"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// answer is a source with one answer for every NodePool.
type answer struct {
	catalog *Catalog
	err     error
}

func (a answer) Catalog(context.Context, string) (*Catalog, error) { return a.catalog, a.err }

func TestPoolsAreLeftOutWithTheirReason(t *testing.T) {
	full := answer{catalog: &Catalog{Axes: model.NewAxes(), InstanceTypes: []model.InstanceType{{Name: "t"}}}}
	for name, c := range map[string]struct {
		pool    Pool
		source  answer
		reason  model.Reason
		message string
	}{
		"sound":      {pool: Pool{Ready: true}, source: full},
		"invalid":    {Pool{Ready: true, Invalid: "spec.weight is wrong"}, full, model.ReasonPoolInvalid, "spec.weight is wrong"},
		"deleted":    {Pool{Ready: true, Deleting: true}, full, model.ReasonNoPool, "it is being deleted"},
		"not ready":  {Pool{NotReady: "no class"}, full, model.ReasonNoPool, "it is not Ready: no class"},
		"no status":  {Pool{}, full, model.ReasonNoPool, "it is not Ready: its status has not been written yet"},
		"unreadable": {Pool{Ready: true}, answer{err: errors.New("no")}, model.ReasonPoolInvalid, "its catalogue cannot be read: no"},
		"empty":      {Pool{Ready: true}, answer{}, model.ReasonPoolInvalid, "its node class offers no instance types"},
		"invalid before empty": {
			Pool{Invalid: "spec.weight is wrong"}, answer{}, model.ReasonPoolInvalid, "spec.weight is wrong",
		},
		"paused": {Pool{Ready: true}, full, model.ReasonPoolPaused, "no machine registers"},
	} {
		c.pool.Name = "general"
		paused := map[string]string{}
		if c.reason == model.ReasonPoolPaused {
			paused["general"] = c.message
		}
		got, err := readCatalogs(t.Context(), []*Pool{&c.pool}, c.source, paused)
		if err != nil {
			t.Fatal(err)
		}
		if buys := got.buys("general"); buys != (c.reason == "") {
			t.Errorf("%s: buys %v", name, buys)
		}
		if c.reason == "" {
			continue
		}
		if len(got.leftOut) != 1 || got.leftOut[0].Pool != "general" || got.leftOut[0].Reason != c.reason || got.leftOut[0].Message != c.message {
			t.Errorf("%s: left out %v, want for %s: %s", name, got.leftOut, c.reason, c.message)
		}
	}
}
