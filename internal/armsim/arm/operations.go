package arm

import (
	"fmt"
	"net/http"
	"time"
)

// Operation is a long-running operation as clients poll it.
type Operation struct {
	ID       string    `json:"id"`
	Action   string    `json:"action"`   // the ARM action that started it
	Resource string    `json:"resource"` // ID of what it works on
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"`    // zero while it runs
	Failure  *Error    `json:"failure,omitempty"` // what it ended with; nil for success
}

// operationKept is how long an ended operation can still be asked for.
const operationKept = time.Hour

// Operations holds the long-running operations of the subscription.
type Operations struct {
	byID         map[string]*Operation
	ids          *IDs
	clock        Clock
	audit        *AuditLog
	subscription string        // GUID, for status URLs
	region       string        // likewise
	pollEvery    time.Duration // Retry-After of running operations, before the time scale
}

// Start records a new operation.
func (o *Operations) Start(action, resourceID string) *Operation {
	op := &Operation{ID: o.ids.GUID(), Action: action, Resource: resourceID, Started: o.clock.Now()}
	o.byID[op.ID] = op
	return op
}

// Finish ends an operation, with success when failure is nil. An operation that is
// unknown or has ended stays as it is.
func (o *Operations) Finish(id string, failure *Error) {
	op := o.byID[id]
	if op == nil || !op.Ended.IsZero() {
		return
	}
	op.Ended, op.Failure = o.clock.Now(), failure
	status, code := http.StatusOK, ""
	if failure != nil {
		status, code = failure.Status, failure.Code
	}
	o.audit.Record(AuditEntry{Kind: AuditOperation, Action: op.Action, Resource: op.Resource, Status: status, Code: code,
		Detail: fmt.Sprintf("took %s", o.clock.Now().Sub(op.Started).Round(time.Millisecond))})
}

// Find is the operation with this ID; nil when there is none.
func (o *Operations) Find(id string) *Operation { return o.byID[id] }

// status is Azure's word for the state of the operation.
func (op *Operation) status() string {
	switch {
	case op.Ended.IsZero():
		return "InProgress"
	case op.Failure != nil:
		return "Failed"
	}
	return "Succeeded"
}

// Accepted is the answer to a request that started the operation with this ID.
func (o *Operations) Accepted(c *Call, status int, id string, body any) Reply {
	rep := Reply{Status: status, Body: body, Header: http.Header{}}
	url := fmt.Sprintf("%s/subscriptions/%s/providers/%s/locations/%s/operations/%s?api-version=%s",
		c.Base(), o.subscription, c.Route.Provider(), o.region, id, c.Request.URL.Query().Get("api-version"))
	rep.Header.Set("Azure-AsyncOperation", url)
	if status == http.StatusAccepted {
		rep.Header.Set("Location", url+"&monitor=true")
	}
	o.clock.SetRetryAfter(rep.Header, o.pollEvery)
	return rep
}

// Get answers polls: the body of Azure-AsyncOperation, or with monitor=true the
// form of Location, which speaks by status code alone.
func (o *Operations) Get(c *Call) (Reply, error) {
	op := o.byID[c.Path.Name()]
	if op == nil {
		return Reply{}, NewError(http.StatusNotFound, "NotFound", "The entity was not found: operation %s.", c.Path.Name())
	}
	h := http.Header{}
	if op.Ended.IsZero() {
		o.clock.SetRetryAfter(h, o.pollEvery)
	}
	if c.Request.URL.Query().Get("monitor") == "true" {
		switch {
		case op.Ended.IsZero():
			return Reply{Status: http.StatusAccepted, Header: h}, nil
		case op.Failure != nil:
			return Reply{}, op.Failure
		}
		return Reply{Status: http.StatusNoContent}, nil
	}
	body := Document{"name": op.ID, "startTime": Timestamp(op.Started), "status": op.status()}
	if !op.Ended.IsZero() {
		body["endTime"] = Timestamp(op.Ended)
	}
	if op.Failure != nil {
		body["error"] = op.Failure.Document()
	}
	return Reply{Status: http.StatusOK, Header: h, Body: body}, nil
}

// Forget drops the operations that ended so long ago that no client asks for them.
func (o *Operations) Forget() {
	for id, op := range o.byID {
		if !op.Ended.IsZero() && o.clock.Now().Sub(op.Ended) > operationKept {
			delete(o.byID, id)
		}
	}
}

// Snapshot copies the operations, which change when they end.
func (o *Operations) Snapshot() map[string]*Operation {
	c := make(map[string]*Operation, len(o.byID))
	for id, op := range o.byID {
		f := *op
		c[id] = &f
	}
	return c
}

// Restore takes the operations of a snapshot.
func (o *Operations) Restore(operations map[string]*Operation) {
	for id, op := range operations {
		o.byID[id] = op
	}
}
