package containerservice

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// batchHeader is the content of the header BatchPutMachine: all the machines
// that one PUT creates, the one in its path included.
type batchHeader struct {
	BatchMachines []batchEntry `json:"batchMachines"`
}

type batchEntry struct {
	MachineName string            `json:"machineName"`
	Zones       []string          `json:"zones"`
	Tags        map[string]string `json:"tags"`
}

// maxBatch is the most machines that one PUT may create.
const maxBatch = 50

// batchOf lists the machines that a PUT asks for.
func batchOf(c *arm.Call, body machineBody) ([]batchEntry, error) {
	raw := c.Request.Header.Get("BatchPutMachine")
	if raw == "" {
		return []batchEntry{{MachineName: c.Path.Name(), Zones: body.Zones, Tags: body.Properties.Tags}}, nil
	}
	var h batchHeader
	if err := json.Unmarshal([]byte(raw), &h); err != nil {
		return nil, arm.NewError(http.StatusBadRequest, "InvalidHeader", "The header BatchPutMachine is no JSON: %s.", err)
	}
	if n := len(h.BatchMachines); n < 1 || n > maxBatch {
		return nil, arm.NewError(http.StatusBadRequest, "InvalidHeader",
			"The header BatchPutMachine names %d machines; it must name 1 to %d.", n, maxBatch)
	}
	named := map[string]bool{}
	for _, e := range h.BatchMachines {
		if named[arm.Key(e.MachineName)] {
			return nil, arm.NewError(http.StatusBadRequest, "InvalidHeader", "The header BatchPutMachine names machine '%s' twice.", e.MachineName)
		}
		named[arm.Key(e.MachineName)] = true
	}
	if !named[arm.Key(c.Path.Name())] {
		return nil, arm.NewError(http.StatusBadRequest, "InvalidHeader",
			"The header BatchPutMachine does not name machine '%s', whose path the call has.", c.Path.Name())
	}
	return h.BatchMachines, nil
}

// checkAll refuses what AKS refuses at once. In a batch the refusals come
// together, each with the machine as target.
func (s *machines) checkAll(pool *arm.Resource, entries []batchEntry, body machineBody) error {
	var refused []arm.Error
	for _, e := range entries {
		if err := s.check(e, body); err != nil {
			err.Target = e.MachineName
			refused = append(refused, *err)
		}
	}
	switch {
	case len(refused) == 0:
		return nil
	case len(entries) == 1:
		return &refused[0]
	}
	all := arm.NewError(http.StatusBadRequest, "BatchMachineClientError",
		"%d of the %d machines of the batch for %s are invalid; none was created.", len(refused), len(entries), arm.LastSegment(pool.ID))
	all.Details = refused
	return all
}

// createAll makes what passed the checks. Of a batch for which something runs
// out on the way AKS keeps what it has made, and says in its message, as JSON, which
// machines it could not make.
func (s *machines) createAll(c *arm.Call, pool *arm.Resource, entries []batchEntry, doc arm.Document, body machineBody) error {
	var failed []any
	for _, e := range entries {
		err := s.create(c, pool, e, doc, body)
		if err == nil {
			continue
		}
		var refusal *arm.Error
		if len(entries) == 1 || !errors.As(err, &refusal) {
			return err
		}
		own := *refusal
		own.Target = e.MachineName
		failed = append(failed, own.Document())
	}
	if len(failed) == 0 {
		return nil
	}
	message, err := json.Marshal(arm.Document{"details": failed})
	if err != nil {
		return err
	}
	return arm.NewError(http.StatusInternalServerError, "BatchMachineInternalServerError", "%s", message)
}
