package armsim

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// operation is a long-running operation as clients poll it.
type operation struct {
	ID       string    `json:"id"`
	Action   string    `json:"action"`   // the ARM action that started it
	Resource string    `json:"resource"` // ID of what it works on
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"`
	Failure  *apiError `json:"failure,omitempty"`
}

// operationKept is how long an ended operation can still be asked for.
const operationKept = time.Hour

// start records a new operation.
func (s *Server) start(action, resourceID string) *operation {
	op := &operation{ID: s.guid(), Action: action, Resource: resourceID, Started: s.now()}
	s.st.Operations[op.ID] = op
	return op
}

// finish ends an operation, with success when failure is nil.
func (s *Server) finish(id string, failure *apiError) {
	op := s.st.Operations[id]
	if op == nil || !op.Ended.IsZero() {
		return
	}
	op.Ended, op.Failure = s.now(), failure
	status, code := http.StatusOK, ""
	if failure != nil {
		status, code = failure.Status, failure.Code
	}
	s.record(AuditEntry{Kind: AuditOperation, Action: op.Action, Resource: op.Resource, Status: status, Code: code,
		Detail: fmt.Sprintf("took %s", s.now().Sub(op.Started).Round(time.Millisecond))})
}

// status is Azure's word for the state of the operation.
func (o *operation) status() string {
	switch {
	case o.Ended.IsZero():
		return "InProgress"
	case o.Failure != nil:
		return "Failed"
	}
	return "Succeeded"
}

// accepted is the answer to a request that started the operation.
func (s *Server) accepted(c *call, status int, op *operation, body any) reply {
	rep := reply{status: status, body: body, header: http.Header{}}
	namespace, _, _ := strings.Cut(c.route.typ, "/")
	url := fmt.Sprintf("%s/subscriptions/%s/providers/%s/locations/%s/operations/%s?api-version=%s",
		c.base(), s.cfg.SubscriptionID, namespace, s.cfg.Region, op.ID, c.r.URL.Query().Get("api-version"))
	rep.header.Set("Azure-AsyncOperation", url)
	if status == http.StatusAccepted {
		rep.header.Set("Location", url+"&monitor=true")
	}
	s.setRetryAfter(rep.header, s.cfg.PollEvery)
	return rep
}

// getOperation answers polls: the body of Azure-AsyncOperation, or with
// monitor=true the form of Location, which speaks by status code alone.
func (s *Server) getOperation(c *call) (reply, error) {
	op := s.st.Operations[c.path.name()]
	if op == nil {
		return reply{}, newError(http.StatusNotFound, "NotFound", "The entity was not found: operation %s.", c.path.name())
	}
	h := http.Header{}
	if op.Ended.IsZero() {
		s.setRetryAfter(h, s.cfg.PollEvery)
	}
	if c.r.URL.Query().Get("monitor") == "true" {
		switch {
		case op.Ended.IsZero():
			return reply{status: http.StatusAccepted, header: h}, nil
		case op.Failure != nil:
			return reply{}, op.Failure
		}
		return reply{status: http.StatusNoContent}, nil
	}
	body := document{"name": op.ID, "startTime": timestamp(op.Started), "status": op.status()}
	if !op.Ended.IsZero() {
		body["endTime"] = timestamp(op.Ended)
	}
	if op.Failure != nil {
		body["error"] = op.Failure.body()
	}
	return reply{status: http.StatusOK, header: h, body: body}, nil
}

// forgetOperations drops those that nobody asks for any more.
func (s *Server) forgetOperations() {
	for id, op := range s.st.Operations {
		if !op.Ended.IsZero() && s.now().Sub(op.Ended) > operationKept {
			delete(s.st.Operations, id)
		}
	}
}
