package armsim

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/internal/skutable"
)

// Server is one simulated Azure. Create it with [New] and release it with
// [Server.Close].
type Server struct {
	cfg Config
	cat *skutable.Catalogue
	log *slog.Logger

	mu            sync.Mutex
	st            *state
	quota         *quotaBook
	graph         *graphIndex
	throttle      *throttle
	audit         auditLog
	stats         map[string]int64
	routes        map[string]*route
	skus          map[string][]byte          // encoded answers of the SKU API by location
	ips           map[string]map[string]bool // taken addresses by subnet
	lastIP        uint32                     // where the search for a free address goes on
	prices        map[string]float64         // what SetPrice said
	meterTable    map[string][]priceItem     // by region and API version
	imageVersions []string                   // oldest first
	draws         uint64                     // random decisions taken so far
	timer         *time.Timer
	saver         *saver
	closed        bool

	observers  []MachineObserver
	notes      []func()
	delivering bool
}

// New builds the subscription that the configuration describes, or takes up
// the one in its StateFile. The error names the field that is wrong.
func New(cfg Config) (*Server, error) {
	cat, err := skutable.Load()
	if err != nil {
		return nil, err
	}
	if cfg, err = cfg.withDefaults(cat); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, cat: cat, log: cfg.Logger,
		st:     newState(),
		routes: routeTable(),
		prices: map[string]float64{}, meterTable: map[string][]priceItem{}, imageVersions: slices.Clone(cfg.ImageVersions),
		ips:   map[string]map[string]bool{},
		stats: map[string]int64{},
		skus:  map[string][]byte{},
	}
	s.graph = newGraphIndex(s.scaled(max(cfg.GraphLag, 0)), s.graphRow)
	s.quota = newQuotaBook(s.scaled(max(cfg.UsageLag, 0)))
	s.throttle = newThrottle(cfg.Limits, cfg.TimeScale)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.restore(); err != nil {
		return nil, err
	}
	s.seed()
	s.arm()
	return s, nil
}

// Close stops the timers and writes the state a last time. Handlers still
// answer, but nothing moves any more.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	return s.flush()
}

// Config is the configuration with its defaults filled in.
func (s *Server) Config() Config { return s.cfg }

// Catalogue is the table of sizes and prices that the server answers from.
func (s *Server) Catalogue() *skutable.Catalogue { return s.cat }

// now is the simulated Azure's clock.
func (s *Server) now() time.Time { return time.Now() }

// scaled turns a duration of the real Azure into one of this server.
func (s *Server) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / s.cfg.TimeScale)
}

// hash is a number that depends on the seed and the parts alone.
func (s *Server) hash(parts ...string) uint64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(nil, s.cfg.Seed))
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// draw is the next random number in [0, 1).
func (s *Server) draw() float64 {
	s.draws++
	return float64(s.hash("draw", strconv.FormatUint(s.draws, 10))>>11) / (1 << 53)
}

// sample takes a duration of the distribution, before TimeScale.
func (s *Server) sample(d Distribution) time.Duration {
	if d.Spread == 0 {
		return d.at(0)
	}
	// Box-Muller; 1-draw keeps the logarithm finite.
	z := math.Sqrt(-2*math.Log(1-s.draw())) * math.Cos(2*math.Pi*s.draw())
	return d.at(z)
}

// call is one request on its way through a handler.
type call struct {
	r         *http.Request
	path      path
	body      []byte
	route     *route
	principal *Principal
	requestID string
	header    http.Header // of the reply, whatever becomes of it
}

// base is the scheme and host under which the client reached the server.
func (c *call) base() string { return "https://" + c.r.Host }

// reply is a handler's answer. The body is encoded as JSON after the lock is
// released; []byte is sent as it is.
type reply struct {
	status int
	header http.Header
	body   any
}

// Handler answers the API, the token endpoint, the retail prices and, when an
// admin token is configured, /admin/.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	s.handleAdmin(mux)
	mux.HandleFunc("GET /api/retail/prices", s.front("retail/prices", s.servePrices))
	mux.HandleFunc("GET /metadata/endpoints", s.front("metadata/endpoints", s.serveEndpoints))
	mux.HandleFunc("/{tenant}/v2.0/.well-known/openid-configuration", s.front("oauth2/discovery", s.serveDiscovery))
	mux.HandleFunc("/common/discovery/instance", s.front("oauth2/discovery", s.serveInstanceDiscovery))
	mux.HandleFunc("POST /{tenant}/oauth2/v2.0/token", s.front("oauth2/token", s.serveToken))
	mux.HandleFunc("/", s.serveARM)
	return mux
}

// front wraps the handlers that are not part of ARM: only faults that name
// their operation touch them.
func (s *Server) front(operation string, h func(*http.Request) (reply, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		err := s.requestFault(faultTarget{Operation: operation, Named: true})
		s.stats[operation]++
		s.mu.Unlock()
		var rep reply
		if err == nil {
			rep, err = h(r)
		}
		s.write(w, http.Header{}, rep, err)
	}
}

// maxBody is the largest request body that ARM takes.
const maxBody = 4 << 20

// serveARM is the way of an ARM request.
func (s *Server) serveARM(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		s.write(w, http.Header{}, reply{}, newError(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "The request content size exceeds the maximum size of %d bytes.", maxBody))
		return
	}
	c := &call{r: r, body: body, header: http.Header{}}
	s.mu.Lock()
	wait := s.scaled(s.sample(s.latencyOf(r)))
	s.mu.Unlock()
	if !sleep(r, wait) {
		return
	}
	s.mu.Lock()
	rep, err := s.handle(c)
	s.mu.Unlock()
	s.deliver()
	s.write(w, c.header, rep, err)
}

// latencyOf is how long the first answer to a request takes. Network
// interfaces are finished by then.
func (s *Server) latencyOf(r *http.Request) Distribution {
	switch p, _ := parsePath(r.URL.Path); {
	case r.Method == http.MethodGet:
		return s.cfg.Latency.Read
	case r.Method == http.MethodPut && p.typ == typeNIC:
		return s.cfg.Latency.NIC
	}
	return s.cfg.Latency.Write
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
func (s *Server) handle(c *call) (reply, error) {
	c.requestID = s.guid()
	correlation := c.r.Header.Get("x-ms-correlation-request-id")
	setDefault(&correlation, c.requestID)
	c.header.Set("x-ms-request-id", c.requestID)
	c.header.Set("x-ms-correlation-request-id", correlation)
	c.header.Set("x-ms-routing-request-id", strings.ToUpper(s.cfg.Region)+":"+timestamp(s.now())+":"+c.requestID)
	if id := c.r.Header.Get("x-ms-client-request-id"); id != "" && c.r.Header.Get("x-ms-return-client-request-id") == "true" {
		c.header.Set("x-ms-client-request-id", id)
	}
	var rep reply
	err := s.admit(c)
	if err == nil {
		rep, err = c.route.handle(s, c)
	}
	s.recordCall(c, rep, err)
	return rep, err
}

// admit decides whether the request reaches its handler: who, where, which
// version, may they, and is the API in a mood to answer.
func (s *Server) admit(c *call) error {
	principal, err := s.authenticate(c.r)
	if err != nil {
		if c.r.Header.Get("Authorization") != "" || err.Status == http.StatusUnauthorized {
			c.header.Set("WWW-Authenticate", fmt.Sprintf(`Bearer authorization_uri="%s/%s", error="invalid_token", error_description="%s"`,
				c.base(), s.cfg.TenantID, err.Message))
		}
		return err
	}
	c.principal = principal
	if err := s.resolve(c); err != nil {
		return err
	}
	if err := s.authorize(c); err != nil {
		return err
	}
	if err := s.requestFault(faultTarget{Operation: c.route.action, Resource: c.path.id()}); err != nil {
		return err
	}
	return s.admitRate(c)
}

// setRetryAfter asks the client to wait. The header counts whole seconds; for
// what compressed time leaves over, milliseconds are added, which the SDK prefers.
func (s *Server) setRetryAfter(h http.Header, d time.Duration) {
	d = s.scaled(d)
	h.Set("Retry-After", strconv.Itoa(int(math.Ceil(d.Seconds()))))
	if d%time.Second != 0 {
		h.Set("Retry-After-Ms", strconv.Itoa(int(math.Ceil(float64(d)/float64(time.Millisecond)))))
	}
}

// write sends a reply or an error.
func (s *Server) write(w http.ResponseWriter, h http.Header, rep reply, err error) {
	if err != nil {
		var failure *apiError
		if !errors.As(err, &failure) {
			failure = newError(http.StatusInternalServerError, "InternalServerError", "%s", err)
		}
		if failure.abort {
			panic(http.ErrAbortHandler)
		}
		rep = reply{status: failure.Status, body: document{"error": failure.body()}, header: http.Header{}}
		rep.header.Set("x-ms-failure-cause", "service")
		if failure.RetryAfter > 0 {
			s.setRetryAfter(rep.header, failure.RetryAfter)
		}
	}
	for _, from := range []http.Header{h, rep.header} {
		for k, v := range from {
			w.Header()[k] = v
		}
	}
	body, raw := rep.body.([]byte)
	if !raw && rep.body != nil {
		body, err = json.Marshal(rep.body)
		if err != nil {
			s.log.Error("cannot encode a reply", "error", err)
			rep.status = http.StatusInternalServerError
		}
	}
	if body != nil {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	w.WriteHeader(rep.status)
	if _, err := w.Write(body); err != nil {
		s.log.Debug("the client went away before the answer", "error", err)
	}
}
