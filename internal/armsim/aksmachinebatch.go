package armsim

import (
	"encoding/json"
	"errors"
	"net/http"
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
func batchOf(c *call, body machineBody) ([]batchEntry, error) {
	raw := c.r.Header.Get("BatchPutMachine")
	if raw == "" {
		return []batchEntry{{MachineName: c.path.name(), Zones: body.Zones, Tags: body.Properties.Tags}}, nil
	}
	var h batchHeader
	if err := json.Unmarshal([]byte(raw), &h); err != nil {
		return nil, newError(http.StatusBadRequest, "InvalidHeader", "The header BatchPutMachine is no JSON: %s.", err)
	}
	if n := len(h.BatchMachines); n < 1 || n > maxBatch {
		return nil, newError(http.StatusBadRequest, "InvalidHeader", "The header BatchPutMachine names %d machines; it must name 1 to %d.", n, maxBatch)
	}
	named := map[string]bool{}
	for _, e := range h.BatchMachines {
		if named[key(e.MachineName)] {
			return nil, newError(http.StatusBadRequest, "InvalidHeader", "The header BatchPutMachine names machine '%s' twice.", e.MachineName)
		}
		named[key(e.MachineName)] = true
	}
	if !named[key(c.path.name())] {
		return nil, newError(http.StatusBadRequest, "InvalidHeader", "The header BatchPutMachine does not name machine '%s', whose path the call has.", c.path.name())
	}
	return h.BatchMachines, nil
}

// checkMachines refuses what AKS refuses at once. In a batch the refusals come
// together, each with the machine as target.
func (s *Server) checkMachines(pool *resource, entries []batchEntry, body machineBody) error {
	var refused []apiError
	for _, e := range entries {
		if err := s.checkMachine(e, body); err != nil {
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
	all := newError(http.StatusBadRequest, "BatchMachineClientError", "%d of the %d machines of the batch for %s are invalid; none was created.", len(refused), len(entries), lastSegment(pool.ID))
	all.Details = refused
	return all
}

// createMachines makes what passed the checks. Of a batch for which something runs
// out on the way AKS keeps what it has made, and says in its message, as JSON, which
// machines it could not make.
func (s *Server) createMachines(c *call, pool *resource, entries []batchEntry, doc document, body machineBody) error {
	var failed []any
	for _, e := range entries {
		err := s.createMachine(c, pool, e, doc, body)
		if err == nil {
			continue
		}
		var refusal *apiError
		if len(entries) == 1 || !errors.As(err, &refusal) {
			return err
		}
		own := *refusal
		own.Target = e.MachineName
		failed = append(failed, own.body())
	}
	if len(failed) == 0 {
		return nil
	}
	message, err := json.Marshal(failed)
	if err != nil {
		return err
	}
	return newError(http.StatusInternalServerError, "BatchMachineInternalServerError", "%s", message)
}
