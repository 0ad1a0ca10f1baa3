package arm

import (
	"net/http"
	"strings"
)

// Route is one row of the API: a method on a type of resource.
type Route struct {
	Method string
	Type   string // with Azure's case, as in actions and messages
	Item   bool   // one resource; otherwise a collection or an action
	// Scope is where the type lives: by default in a resource group, whose
	// collections can be listed for the whole subscription too.
	Scope Scope
	// Policy is the throttling policy of the resource provider, see Limit.Class;
	// empty for those that have none.
	Policy string
	// Open routes need no permission beyond a valid token.
	Open bool
	// Versions are the values of api-version that the route takes.
	Versions []string
	Handle   func(*Call) (Reply, error)
}

// Scope is what stands before the provider in a path.
type Scope int

// The scopes of ARM.
const (
	GroupScope        Scope = iota // /subscriptions/{}/resourceGroups/{}/providers/...
	SubscriptionScope              // /subscriptions/{}/providers/...
	TenantScope                    // /providers/...
	AnyScope                       // /{}/providers/..., where {} is any resource, group or subscription
)

// Provider is the namespace of the resource provider, as Microsoft.Compute.
func (r *Route) Provider() string {
	namespace, _, _ := strings.Cut(r.Type, "/")
	if !strings.HasPrefix(namespace, "Microsoft.") {
		return "Microsoft.Resources"
	}
	return namespace
}

// Action is the name that role definitions give to the method on the type;
// permissions and faults use it.
func (r *Route) Action() string {
	typ := r.Type
	switch {
	case typ == "resourceGroups":
		typ = "Microsoft.Resources/subscriptions/resourceGroups"
	case !strings.HasPrefix(typ, "Microsoft."):
		typ = "Microsoft.Resources/" + typ
	}
	switch r.Method {
	case http.MethodGet:
		return typ + "/read"
	case http.MethodDelete:
		return typ + "/delete"
	case http.MethodPost:
		return typ + "/action"
	}
	return typ + "/write"
}

// Paths are the patterns of the paths that the row serves, with {} for every
// parameter: those of one resource, or of a collection in each of its scopes.
func (r *Route) Paths() []string {
	const subscription, group = "/subscriptions/{}", "/subscriptions/{}/resourceGroups/{}"
	switch {
	case r.Type == "subscriptions":
		return []string{subscription}
	case r.Type == "resourceGroups" && r.Item:
		return []string{group}
	case r.Type == "resourceGroups":
		return []string{subscription + "/resourceGroups"}
	case !strings.HasPrefix(r.Type, "Microsoft."):
		_, last, _ := strings.Cut(r.Type, "/")
		if r.Item {
			last += "/{}"
		}
		return []string{subscription + "/" + last}
	}
	segments := strings.Split(r.Type, "/")
	tail := "/providers/" + segments[0] + "/" + strings.Join(segments[1:], "/{}/")
	if r.Item {
		tail += "/{}"
	}
	switch {
	case r.Scope == TenantScope:
		return []string{tail}
	case r.Scope == AnyScope:
		return []string{"/{}" + tail}
	case r.Scope == SubscriptionScope:
		return []string{subscription + tail}
	case !r.Item && len(segments) == 2:
		return []string{group + tail, subscription + tail}
	}
	return []string{group + tail}
}

// key finds the row of a request.
func (r *Route) key() string { return routeKey(r.Method, strings.ToLower(r.Type), r.Item) }

func routeKey(method, typ string, item bool) string {
	if item {
		return method + " " + typ + "/*"
	}
	return method + " " + typ
}

// Router finds the row of a request.
type Router struct{ rows map[string]*Route }

// NewRouter makes a router of rows, no two of which may serve the same method on
// the same type.
func NewRouter(rows []Route) *Router {
	t := &Router{rows: make(map[string]*Route, len(rows))}
	for i := range rows {
		t.rows[rows[i].key()] = &rows[i]
	}
	return t
}

// Find is the row of a method on a path; nil when there is none.
func (t *Router) Find(method string, p Path) *Route {
	return t.rows[routeKey(method, p.Type, p.Item())]
}

// Serves says whether any method works on the path.
func (t *Router) Serves(p Path) bool {
	for _, m := range []string{http.MethodGet, http.MethodPut, http.MethodPost} {
		if t.Find(m, p) != nil {
			return true
		}
	}
	return false
}

// Endpoint is a row of an API beside ARM, such as the token endpoint: it has a
// path of its own and no bearer token, version or resource.
type Endpoint struct {
	Method    string // empty for any
	Path      string // as http.ServeMux reads it
	Operation string // what faults and counters call it
	Handle    func(*http.Request) (Reply, error)
}
