package armsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/armsim/identity"
	"github.com/nodeautoprovision/nap/internal/armsim/network"
)

// gateway is the way of a request from HTTP to its handler and back.
type gateway struct {
	sub       *arm.Subscription
	directory *identity.Directory
	router    *arm.Router
	versions  map[string][]string // of api-version by namespace, lower case
	limits    *throttle
	latency   arm.Latencies // of the first answer, before the time scale
	deliver   func()        // tells observers, without the lock, what a request did
	log       *slog.Logger
}

func newGateway(sub *arm.Subscription, directory *identity.Directory, routes []arm.Route,
	limits *throttle, latency arm.Latencies, deliver func(), log *slog.Logger) *gateway {
	g := &gateway{sub: sub, directory: directory, router: arm.NewRouter(routes), versions: map[string][]string{},
		limits: limits, latency: latency, deliver: deliver, log: log}
	for _, r := range routes {
		namespace, _, _ := strings.Cut(strings.ToLower(r.Type), "/")
		g.versions[namespace] = r.Versions
	}
	return g
}

// front wraps the handlers that are not part of ARM: only faults that name
// their operation touch them.
func (g *gateway) front(e arm.Endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g.sub.Lock.Lock()
		err := g.sub.Faults.OfRequest(arm.Target{Operation: e.Operation, Named: true})
		g.sub.Audit.Count(e.Operation)
		g.sub.Lock.Unlock()
		var rep arm.Reply
		if err == nil {
			rep, err = e.Handle(r)
		}
		g.write(w, http.Header{}, rep, err)
	}
}

// maxBody is the largest request body that ARM takes.
const maxBody = 4 << 20

// serveARM is the way of an ARM request.
func (g *gateway) serveARM(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		g.write(w, http.Header{}, arm.Reply{}, arm.NewError(http.StatusRequestEntityTooLarge,
			"RequestEntityTooLarge", "The request content size exceeds the maximum size of %d bytes.", maxBody))
		return
	}
	c := &arm.Call{Request: r, Body: body, Header: http.Header{}}
	g.sub.Lock.Lock()
	wait := g.sub.Clock.Scaled(g.sub.Random.Sample(g.latencyOf(r)))
	g.sub.Lock.Unlock()
	if !sleep(r, wait) {
		return
	}
	g.sub.Lock.Lock()
	rep, err := g.handle(c)
	g.sub.Lock.Unlock()
	g.deliver()
	g.write(w, c.Header, rep, err)
}

// latencyOf is how long the first answer to a request takes. Network
// interfaces are finished by then.
func (g *gateway) latencyOf(r *http.Request) arm.Distribution {
	switch p, _ := arm.ParsePath(r.URL.Path); {
	case r.Method == http.MethodGet:
		return g.latency.Read
	case r.Method == http.MethodPut && p.Type == network.TypeInterface:
		return g.latency.NIC
	}
	return g.latency.Write
}

// sleep waits like a network does; false when the client has gone.
func sleep(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// handle runs a request under the lock and records what became of it.
func (g *gateway) handle(c *arm.Call) (arm.Reply, error) {
	c.ID = g.sub.IDs.GUID()
	correlation := c.Request.Header.Get("x-ms-correlation-request-id")
	if correlation == "" {
		correlation = c.ID
	}
	c.Header.Set("x-ms-request-id", c.ID)
	c.Header.Set("x-ms-correlation-request-id", correlation)
	c.Header.Set("x-ms-routing-request-id", strings.ToUpper(g.sub.Region)+":"+arm.Timestamp(g.sub.Clock.Now())+":"+c.ID)
	if id := c.Request.Header.Get("x-ms-client-request-id"); id != "" && c.Request.Header.Get("x-ms-return-client-request-id") == "true" {
		c.Header.Set("x-ms-client-request-id", id)
	}
	var rep arm.Reply
	err := g.admit(c)
	if err == nil {
		rep, err = c.Route.Handle(c)
		err = asProvider(c.Route, err)
	}
	g.record(c, rep, err)
	return rep, err
}

// admit decides whether the request reaches its handler: its token, its path, its
// version, its permission, the faults in force and the rate limits, in this order.
func (g *gateway) admit(c *arm.Call) error {
	principal, err := g.directory.Authenticate(c.Request)
	if err != nil {
		if c.Request.Header.Get("Authorization") != "" || err.Status == http.StatusUnauthorized {
			c.Header.Set("WWW-Authenticate", fmt.Sprintf(`Bearer authorization_uri="%s/%s", error="invalid_token", error_description="%s"`,
				c.Base(), g.sub.TenantID, err.Message))
		}
		return err
	}
	c.Principal = principal
	if err := g.resolve(c); err != nil {
		return err
	}
	if err := identity.Authorize(c); err != nil {
		return err
	}
	if err := g.sub.Faults.OfRequest(arm.Target{Operation: c.Route.Action(), Resource: c.Path.ID()}); err != nil {
		return asProvider(c.Route, err)
	}
	return g.limit(c)
}

// asProvider gives an error the form in which the resource provider of a route writes
// its own: AKS does not wrap them as ARM does. Throttling and outages are ARM's.
func asProvider(r *arm.Route, err error) error {
	var failure *arm.Error
	if r.Provider() != "Microsoft.ContainerService" || !errors.As(err, &failure) ||
		failure.Status == http.StatusTooManyRequests || failure.Status == http.StatusServiceUnavailable {
		return err
	}
	flat := *failure
	flat.Flat = true
	return &flat
}

// resolve finds the route of a request and checks subscription, version and group.
func (g *gateway) resolve(c *arm.Call) error {
	p, ok := arm.ParsePath(c.Request.URL.Path)
	if !ok {
		return arm.NewError(http.StatusNotFound, "InvalidResourceType", "The path '%s' is not a resource of this API.", c.Request.URL.Path)
	}
	c.Path = p
	if p.Subscription != "" && !strings.EqualFold(p.Subscription, g.sub.ID) {
		return arm.NewError(http.StatusNotFound, "SubscriptionNotFound", "The subscription '%s' could not be found.", p.Subscription)
	}
	if err := g.checkVersion(c, p); err != nil {
		return err
	}
	if c.Route = g.router.Find(c.Request.Method, p); c.Route == nil {
		return g.errNoRoute(c, p)
	}
	if p.Group != "" {
		group := g.sub.Resources.Find("/subscriptions/" + p.Subscription + "/resourceGroups/" + p.Group)
		if group == nil {
			return arm.ErrGroupNotFound(p.Group)
		}
		c.Path.Group = arm.LastSegment(group.ID)
	}
	return nil
}

// checkVersion looks at the api-version of a request.
func (g *gateway) checkVersion(c *arm.Call, p arm.Path) error {
	namespace, _, _ := strings.Cut(p.Type, "/")
	version, known := c.Request.URL.Query().Get("api-version"), g.versions[namespace]
	if known == nil {
		known = resourceVersions
	}
	switch {
	case version == "":
		return arm.NewError(http.StatusBadRequest, "MissingApiVersionParameter",
			"The api-version query parameter (?api-version=) is required for all requests.")
	case slices.Contains(known, version):
		return nil
	case len(p.Segments) < 2:
		return arm.NewError(http.StatusBadRequest, "InvalidApiVersionParameter",
			"The api-version '%s' is invalid. The supported versions are '%s'.", version, strings.Join(known, ","))
	}
	return arm.NewError(http.StatusBadRequest, "NoRegisteredProviderFound",
		"No registered resource provider found for location '%s' and API version '%s' for type '%s'. The supported api-versions are '%s'.",
		c.Request.URL.Query().Get("location"), version, p.Segments[1], strings.Join(known, ", "))
}

// errNoRoute tells a type that does not exist from a method that it has not.
func (g *gateway) errNoRoute(c *arm.Call, p arm.Path) error {
	if g.router.Serves(p) {
		return arm.NewError(http.StatusMethodNotAllowed, "MethodNotAllowed",
			"The method '%s' is not allowed on '%s'.", c.Request.Method, c.Request.URL.Path)
	}
	namespace, typ, _ := strings.Cut(p.Type, "/")
	return arm.NewError(http.StatusNotFound, "InvalidResourceType",
		"The resource type '%s' could not be found in the namespace '%s' for api version '%s'.",
		typ, namespace, c.Request.URL.Query().Get("api-version"))
}

// limit applies the rate limits to a request and reports what is left.
func (g *gateway) limit(c *arm.Call) error {
	class := "writes"
	switch c.Request.Method {
	case http.MethodGet:
		class = "reads"
	case http.MethodDelete:
		class = "deletes"
	}
	limit, wait, left := g.limits.take([]string{class, c.Route.Policy}, arm.Key(c.Path.ID()))
	if limit == nil {
		if n, ok := left[class]; ok {
			c.Header.Set("x-ms-ratelimit-remaining-subscription-"+class, fmt.Sprint(n))
		}
		if n, ok := left[c.Route.Policy]; ok {
			c.Header.Set("x-ms-ratelimit-remaining-resource", fmt.Sprintf("%s/%s;%d", c.Path.Segments[0], c.Route.Policy, n))
		}
		return nil
	}
	g.sub.Audit.Count("throttled " + limit.Class)
	e := arm.NewError(http.StatusTooManyRequests, "TooManyRequests",
		"The request is being throttled as the limit has been reached for operation type - %s. For more information, see - "+
			"https://aka.ms/thirdpartythrottling", limit.Class)
	if limit.Class == class {
		e = arm.NewError(http.StatusTooManyRequests, "SubscriptionRequestsThrottled",
			"Number of requests for subscription '%s' and operation '%s' exceeded the limit. Please try again after '%d' seconds.",
			g.sub.ID, c.Route.Action(), int(math.Ceil(wait.Seconds())))
	}
	e.RetryAfter = max(wait, time.Second)
	return e
}

// record counts a request and, when it could change something, puts it into the
// audit log.
func (g *gateway) record(c *arm.Call, rep arm.Reply, err error) {
	status, code := rep.Status, ""
	var failure *arm.Error
	if errors.As(err, &failure) {
		status, code = failure.Status, failure.Code
	}
	action := "unknown"
	if c.Route != nil {
		action = c.Route.Action()
	}
	g.sub.Audit.Count("calls " + action)
	if status >= 400 {
		g.sub.Audit.Count("errors " + code)
	}
	if c.Request.Method == http.MethodGet || action == "Microsoft.ResourceGraph/resources/action" {
		return
	}
	e := arm.AuditEntry{Kind: arm.AuditCall, Action: action, Resource: c.Path.ID(), Status: status, Code: code, RequestID: c.ID}
	if failure != nil {
		e.Detail = failure.Message
	}
	if c.Principal != nil {
		e.Principal = c.Principal.ClientID
	}
	g.sub.Audit.Record(e)
}

// write sends a reply or an error.
func (g *gateway) write(w http.ResponseWriter, h http.Header, rep arm.Reply, err error) {
	if err != nil {
		var failure *arm.Error
		if !errors.As(err, &failure) {
			failure = arm.NewError(http.StatusInternalServerError, "InternalServerError", "%s", err)
		}
		if failure.Abort {
			panic(http.ErrAbortHandler)
		}
		rep = arm.Reply{Status: failure.Status, Body: failure.Body(), Header: http.Header{}}
		rep.Header.Set("x-ms-failure-cause", "service")
		if failure.RetryAfter > 0 {
			g.sub.Clock.SetRetryAfter(rep.Header, failure.RetryAfter)
		}
	}
	for _, from := range []http.Header{h, rep.Header} {
		for k, v := range from {
			w.Header()[k] = v
		}
	}
	body, raw := rep.Body.([]byte)
	if !raw && rep.Body != nil {
		body, err = json.Marshal(rep.Body)
		if err != nil {
			g.log.Error("cannot encode a reply", "error", err)
			rep.Status = http.StatusInternalServerError
		}
	}
	if body != nil && w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	w.WriteHeader(rep.Status)
	if _, err := w.Write(body); err != nil {
		g.log.Debug("the client went away before the answer", "error", err)
	}
}
