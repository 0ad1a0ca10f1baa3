package graph

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// Provider is Microsoft.ResourceGraph. Its methods need the subscription's lock.
type Provider struct {
	sub       *arm.Subscription
	nodeGroup string // node resource group, which the rows show in upper case here and there
	index     *index
}

// New makes the provider of a subscription. It sees changes after the lag, before
// the time scale; a negative lag means at once.
func New(sub *arm.Subscription, nodeResourceGroup string, lag time.Duration) *Provider {
	p := &Provider{sub: sub, nodeGroup: nodeResourceGroup}
	p.index = &index{lag: sub.Clock.Scaled(max(lag, 0)), row: p.row, shown: map[string]arm.Document{}}
	sub.Resources.Watch(func(r *arm.Resource, d arm.Document) { p.index.note(sub.Clock.Now(), arm.Key(r.ID), d) })
	return p
}

// Routes are the rows of the provider.
func (p *Provider) Routes() []arm.Route {
	return []arm.Route{{
		Method: http.MethodPost, Type: "Microsoft.ResourceGraph/resources", Scope: arm.TenantScope, Policy: "ResourceGraph", Open: true,
		Versions: []string{"2021-03-01", "2022-10-01", "2024-04-01"}, Handle: p.query,
	}}
}

// Settle makes all resources visible at once, as after a restart.
func (p *Provider) Settle() {
	for r := range p.sub.Resources.All() {
		p.index.settle(arm.Key(r.ID), r.Doc)
	}
}

// request is the question of Resource Graph.
type request struct {
	Subscriptions []string `json:"subscriptions"`
	Query         string   `json:"query"`
	Options       struct {
		Top          int    `json:"$top"`
		Skip         int    `json:"$skip"`
		SkipToken    string `json:"$skipToken"`
		ResultFormat string `json:"resultFormat"`
	} `json:"options"`
}

// pageSize is the most rows that one answer holds.
const pageSize = 1000

// query answers a Resource Graph query.
func (p *Provider) query(c *arm.Call) (arm.Reply, error) {
	var q request
	if err := json.Unmarshal(c.Body, &q); err != nil {
		return arm.Reply{}, arm.NewError(http.StatusBadRequest, "BadRequest",
			"Please provide below info when asking for support: the request is no JSON: %s.", err)
	}
	if q.Options.ResultFormat == "table" {
		return arm.Reply{}, arm.NewError(http.StatusBadRequest, "BadRequest",
			"The result format 'table' is not supported here; ask for 'objectArray'.")
	}
	parsed, err := parseKQL(q.Query)
	if err != nil {
		e := arm.NewError(http.StatusBadRequest, "BadRequest", "Please provide below info when asking for support: the query is invalid.")
		e.Details = []arm.Error{*arm.NewError(0, "InvalidQuery",
			"Query is invalid. Please refer to the documentation for the Azure Resource Graph service and fix the error before retrying. %s", err)}
		return arm.Reply{}, e
	}
	rows := []arm.Document{}
	if len(q.Subscriptions) == 0 || slices.ContainsFunc(q.Subscriptions, func(id string) bool { return strings.EqualFold(id, p.sub.ID) }) {
		rows = parsed.run(p.rows())
	}
	return p.page(q, rows)
}

// rows are all rows of the table Resources, by ID.
func (p *Provider) rows() []arm.Document {
	shown := p.index.visible(p.sub.Clock.Now())
	rows := make([]arm.Document, 0, len(shown))
	for _, k := range slices.Sorted(maps.Keys(shown)) {
		rows = append(rows, shown[k])
	}
	return rows
}

// row is a resource as Resource Graph shows it: type and group are lower
// case, and the case of the ID cannot be relied on.
func (p *Provider) row(k string, d arm.Document) arm.Document {
	path, ok := arm.ParsePath(k)
	if !ok || path.Group == "" || len(path.Segments) == 0 {
		return nil
	}
	row := maps.Clone(d)
	delete(row, "etag")
	row["type"] = path.Type
	row["resourceGroup"] = path.Group
	row["subscriptionId"] = p.sub.ID
	row["tenantId"] = p.sub.TenantID
	if id := arm.Text(d, "id"); p.sub.Random.Hash("case", id)%2 == 0 {
		row["id"] = strings.Replace(id, "/resourceGroups/"+p.nodeGroup+"/", "/resourceGroups/"+strings.ToUpper(p.nodeGroup)+"/", 1)
	}
	return row
}

// page cuts the rows of an answer out.
func (p *Provider) page(q request, rows []arm.Document) (arm.Reply, error) {
	top := q.Options.Top
	if top <= 0 || top > pageSize {
		top = pageSize
	}
	from := q.Options.Skip
	if t := q.Options.SkipToken; t != "" {
		n, err := strconv.Atoi(t)
		if err != nil || n < 0 {
			return arm.Reply{}, arm.NewError(http.StatusBadRequest, "BadRequest", "The $skipToken '%s' is invalid.", t)
		}
		from = n
	}
	total := len(rows)
	rows = rows[min(from, total):]
	body := arm.Document{"totalRecords": total, "resultTruncated": "false", "facets": []any{}}
	if len(rows) > top {
		rows = rows[:top]
		body["$skipToken"] = fmt.Sprint(from + top)
	}
	body["count"], body["data"] = len(rows), rows
	return arm.Reply{Status: http.StatusOK, Body: body}, nil
}
