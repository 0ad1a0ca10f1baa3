package armsim

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// graphIndex is what Resource Graph knows: the truth of some time ago.
type graphIndex struct {
	lag     time.Duration
	row     func(key string, d document) document // how a document looks as a row; nil when it is none
	shown   map[string]document                   // rows by resource key
	pending []graphChange
}

type graphChange struct {
	at  time.Time
	key string
	doc document // nil: gone
}

func newGraphIndex(lag time.Duration, row func(string, document) document) *graphIndex {
	return &graphIndex{lag: lag, row: row, shown: map[string]document{}}
}

// change tells the index that a resource has a new document, or none.
func (g *graphIndex) change(now time.Time, k string, d document) {
	g.pending = append(g.pending, graphChange{at: now, key: k, doc: d})
}

// settle makes a resource visible at once.
func (g *graphIndex) settle(k string, d document) {
	if row := g.row(k, d); row != nil {
		g.shown[k] = row
	}
}

// visible is what a query sees.
func (g *graphIndex) visible(now time.Time) map[string]document {
	i := 0
	for ; i < len(g.pending) && now.Sub(g.pending[i].at) >= g.lag; i++ {
		if c := g.pending[i]; c.doc == nil {
			delete(g.shown, c.key)
		} else {
			g.settle(c.key, c.doc)
		}
	}
	g.pending = slices.Delete(g.pending, 0, i)
	return g.shown
}

// graphBody is the question of Resource Graph.
type graphBody struct {
	Subscriptions []string `json:"subscriptions"`
	Query         string   `json:"query"`
	Options       struct {
		Top          int    `json:"$top"`
		Skip         int    `json:"$skip"`
		SkipToken    string `json:"$skipToken"`
		ResultFormat string `json:"resultFormat"`
	} `json:"options"`
}

// graphPage is the most rows that one answer holds.
const graphPage = 1000

// queryGraph answers a Resource Graph query.
func (s *Server) queryGraph(c *call) (reply, error) {
	var q graphBody
	if err := json.Unmarshal(c.body, &q); err != nil {
		return reply{}, newError(http.StatusBadRequest, "BadRequest", "Please provide below info when asking for support: the request is no JSON: %s.", err)
	}
	if q.Options.ResultFormat == "table" {
		return reply{}, newError(http.StatusBadRequest, "BadRequest", "The result format 'table' is not supported here; ask for 'objectArray'.")
	}
	query, err := parseKQL(q.Query)
	if err != nil {
		e := newError(http.StatusBadRequest, "BadRequest", "Please provide below info when asking for support: the query is invalid.")
		e.Details = []apiError{*newError(0, "InvalidQuery", "Query is invalid. Please refer to the documentation for the Azure Resource Graph service and fix the error before retrying. %s", err)}
		return reply{}, e
	}
	rows := []document{}
	if len(q.Subscriptions) == 0 || slices.ContainsFunc(q.Subscriptions, func(id string) bool { return strings.EqualFold(id, s.cfg.SubscriptionID) }) {
		rows = query.run(s.graphRows())
	}
	return s.graphPage(q, rows)
}

// graphRows are all rows of the table Resources, by ID.
func (s *Server) graphRows() []document {
	shown := s.graph.visible(s.now())
	rows := make([]document, 0, len(shown))
	for _, k := range slices.Sorted(maps.Keys(shown)) {
		rows = append(rows, shown[k])
	}
	return rows
}

// graphRow is a resource as Resource Graph shows it: type and group are lower
// case, and the case of the ID cannot be relied on.
func (s *Server) graphRow(k string, d document) document {
	p, ok := parsePath(k)
	if !ok || p.group == "" || len(p.segments) == 0 {
		return nil
	}
	row := maps.Clone(d)
	delete(row, "etag")
	row["type"] = p.typ
	row["resourceGroup"] = p.group
	row["subscriptionId"] = s.cfg.SubscriptionID
	row["tenantId"] = s.cfg.TenantID
	if id := text(d, "id"); s.hash("case", id)%2 == 0 {
		row["id"] = strings.Replace(id, "/resourceGroups/"+s.cfg.Cluster.NodeResourceGroup+"/", "/resourceGroups/"+strings.ToUpper(s.cfg.Cluster.NodeResourceGroup)+"/", 1)
	}
	return row
}

// graphPage cuts the rows of an answer out.
func (s *Server) graphPage(q graphBody, rows []document) (reply, error) {
	top := q.Options.Top
	if top <= 0 || top > graphPage {
		top = graphPage
	}
	from := q.Options.Skip
	if t := q.Options.SkipToken; t != "" {
		n, err := strconv.Atoi(t)
		if err != nil || n < 0 {
			return reply{}, newError(http.StatusBadRequest, "BadRequest", "The $skipToken '%s' is invalid.", t)
		}
		from = n
	}
	total := len(rows)
	rows = rows[min(from, total):]
	body := document{"totalRecords": total, "resultTruncated": "false", "facets": []any{}}
	if len(rows) > top {
		rows = rows[:top]
		body["$skipToken"] = fmt.Sprint(from + top)
	}
	body["count"], body["data"] = len(rows), rows
	return reply{status: http.StatusOK, body: body}, nil
}
