package arm

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Call is one request on its way through a handler.
type Call struct {
	Request   *http.Request
	Path      Path
	Body      []byte
	Route     *Route      // nil until the path is resolved
	Principal *Principal  // nil until the token is verified
	ID        string      // of the request, as x-ms-request-id says it
	Header    http.Header // of the reply, whatever becomes of it
}

// Base is the scheme and host under which the client reached the server.
func (c *Call) Base() string { return "https://" + c.Request.Host }

// AuthorizeLinked checks the permission that using another resource takes: a
// network interface in a subnet needs one on the subnet. An empty scope needs none.
func (c *Call) AuthorizeLinked(action, scope string) error {
	if scope == "" || c.Principal.May(action, scope) {
		return nil
	}
	return NewError(http.StatusForbidden, "LinkedAuthorizationFailed",
		"The client '%s' with object id '%s' has permission to perform action '%s' on scope '%s'; however, it does not have "+
			"permission to perform action(s) '%s' "+
			"on the linked scope(s) '%s' (respectively) or the linked scope(s) are invalid.",
		c.Principal.ClientID, c.Principal.ClientID, c.Route.Action(), c.Path.ID(), action, scope)
}

// CheckMatch honours If-Match: the ETag of the resource must be the one that the
// client has seen.
func (c *Call) CheckMatch(r *Resource) error {
	want, has := c.Request.Header.Get("If-Match"), r.ETag
	if want == "" || want == "*" || want == has {
		return nil
	}
	return NewError(http.StatusPreconditionFailed, "PreconditionFailed",
		"The precondition given in one of the request headers evaluated to false: If-Match is %s, the resource has %s.", want, has)
}

// Reply is a handler's answer. The body is encoded as JSON after the lock is
// released; []byte is sent as it is.
type Reply struct {
	Status int
	Header http.Header
	Body   any
}

// Principal is an identity that may sign in.
type Principal struct {
	ClientID string
	ObjectID string   // default: the client ID
	Secret   string   // for client secrets; empty: only federated tokens
	Actions  []string // permitted ARM actions, * matches any run of characters; nil permits all
	// Grants, where set, count instead of Actions.
	Grants *[]Grant
}

// May says whether the principal is permitted an ARM action on a resource, or whatever
// else the ID names.
func (p *Principal) May(action, id string) bool {
	if p.Grants != nil {
		return slices.ContainsFunc(*p.Grants, func(g Grant) bool { return g.permits(action, id) })
	}
	return p.Actions == nil || slices.ContainsFunc(p.Actions, func(pattern string) bool { return Matches(pattern, action) })
}

// Grant is what a role assignment permits: actions at a scope and below it.
type Grant struct {
	Scope               string // resource ID
	Actions, NotActions []string
}

func (g *Grant) permits(action, id string) bool {
	is := func(pattern string) bool { return Matches(pattern, action) }
	return Within(id, g.Scope) && slices.ContainsFunc(g.Actions, is) && !slices.ContainsFunc(g.NotActions, is)
}

// Within says whether what an ID names is a scope or below it.
func Within(id, scope string) bool {
	id, scope = Key(id), Key(scope)
	return id == scope || strings.HasPrefix(id, scope+"/")
}

// Error is an answer of the API that is not a success. Code and message are
// those of the real Azure: clients tell quota and capacity errors apart by them.
type Error struct {
	Status  int
	Code    string
	Message string
	Target  string
	Details []Error
	// AdditionalInfo is what Azure Policy says of a request that it denies, see ErrorAdditionalInfo
	// of the SDK.
	AdditionalInfo []any
	RetryAfter     time.Duration
	Abort          bool `json:"-"` // close the connection instead of answering
	Flat           bool `json:"-"` // the body is the error itself, as AKS writes it, and not {"error": the error}
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Body is the error as an answer has it.
func (e *Error) Body() Document {
	if e.Flat {
		return e.Document()
	}
	return Document{"error": e.Document()}
}

// Document is the error by itself.
func (e *Error) Document() Document {
	b := Document{"code": e.Code, "message": e.Message}
	if e.Target != "" {
		b["target"] = e.Target
	}
	if len(e.Details) > 0 {
		var details []any
		for _, d := range e.Details {
			details = append(details, d.Document())
		}
		b["details"] = details
	}
	if len(e.AdditionalInfo) > 0 {
		b["additionalInfo"] = e.AdditionalInfo
	}
	return b
}

// NewError is an error with a formatted message, as the real Azure words it.
func NewError(status int, code, format string, args ...any) *Error {
	return &Error{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// ErrNotFound is the answer to a path whose resource does not exist.
func ErrNotFound(p Path) *Error {
	return NewError(http.StatusNotFound, "ResourceNotFound",
		"The Resource '%s' under resource group '%s' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix",
		p.Relative(), p.Group)
}

// ErrGroupNotFound is the answer to a path in a group that does not exist.
func ErrGroupNotFound(group string) *Error {
	return NewError(http.StatusNotFound, "ResourceGroupNotFound", "Resource group '%s' could not be found.", group)
}

// ErrInvalidReference refuses a resource that refers to a missing one, both by ID.
func ErrInvalidReference(missing, by string) *Error {
	return NewError(http.StatusBadRequest, "InvalidResourceReference",
		"Resource %s referenced by resource %s was not found. Please make sure that the referenced resource exists, and "+
			"that both resources are in the same region.", missing, by)
}

// ErrInvalidParameter refuses a value; the target is the name of the parameter.
func ErrInvalidParameter(target, format string, args ...any) *Error {
	e := NewError(http.StatusBadRequest, "InvalidParameter", format, args...)
	e.Target = target
	return e
}

// ErrImmutable refuses the change of a property that stays as it was created.
func ErrImmutable(property string) *Error {
	e := NewError(http.StatusConflict, "PropertyChangeNotAllowed", "Changing property '%s' is not allowed.", property)
	e.Target = property
	return e
}
