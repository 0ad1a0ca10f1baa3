package cli

import (
	"fmt"
	"html/template"
	"time"

	"github.com/nodeautoprovision/nap/internal/ledger"
)

// ledgerPage is nap ledger -o html: one file without links to others.
var ledgerPage = template.Must(template.New("ledger").Funcs(template.FuncMap{
	"dollars": func(v float64) string { return fmt.Sprintf("%.2f", v) },
	"hourly":  func(v float64) string { return fmt.Sprintf("%.3f", v) },
	"day":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") },
	"paid":    func(m ledger.Move) bool { return m.Paid() },
}).Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Ledger of nap</title>
<style>body{font-family:sans-serif;margin:2em;max-width:70em}table{border-collapse:collapse;margin:1em 0}
td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ccc}td:first-child,th:first-child{text-align:left}</style></head><body>
<h1>${{dollars .Cost.Total}} from {{day .From}} to {{day .To}} UTC</h1>
<p>Now ${{hourly .HourlyCost.Total}} an hour. {{.Totals.Machines}} machines, {{.Totals.Evicted}} of them taken back by Azure.
{{.Totals.Moves}} moves: {{.Totals.MovesPaid}} have paid; they saved ${{dollars .Totals.Saved}}, cost ${{dollars .Totals.Spent}} and evicted
{{.Totals.Evictions}} pods. Days are days in UTC.</p>
{{define "costs"}}<table><tr><th></th><th>Machine $</th><th>Disk $</th><th>Node $</th><th>Sum $</th></tr>
{{range .}}<tr><td>{{if .Of}}{{.Of}}={{end}}{{.Name}}</td>` +
	`<td>{{dollars .Cost.Machine}}</td><td>{{dollars .Cost.Disk}}</td><td>{{dollars .Cost.Node}}</td>` +
	`<td>{{dollars .Cost.Total}}</td></tr>
{{end}}</table>{{end}}
<h2>By NodePool</h2>{{template "costs" .NodePools}}
<h2>By namespace</h2>{{template "costs" .Namespaces}}
<h2>By label</h2>{{template "costs" .Labels}}
<h2>Moves</h2><table><tr><th>Move</th><th>Reason</th><th>Begun</th><th>Nodes</th><th>Evictions</th><th>Planned $/h</th><th>Real $/h</th>` +
	`<th>Spent $</th><th>Saved $</th><th>Paid</th></tr>
{{range .Moves}}<tr><td>{{.ID}}</td><td>{{.Reason}}</td><td>{{day .Begun}}</td><td>{{len .Removed}}</td><td>{{.Evictions}}</td>` +
	`<td>{{hourly .Planned}}</td><td>{{hourly .Realised}}</td><td>{{dollars .Spent}}</td><td>{{dollars .Saved}}</td><td>{{if paid .}}yes{{else}}no{{end}}</td></tr>
{{end}}</table>
<h2>Machines</h2><table><tr><th>NodeClaim</th><th>NodePool</th><th>Size</th><th>Zone</th><th>Capacity</th><th>Launched</th><th>Ended</th>` +
	`<th>Planned $/h</th><th>Paid $/h</th><th>Sum $</th></tr>
{{range .Purchases}}<tr><td>{{.NodeClaim}}</td><td>{{.NodePool}}</td>` +
	`<td>{{.Size}}</td><td>{{.Zone}}</td><td>{{.CapacityType}}</td><td>{{day .Launched}}</td>` +
	`<td>{{with .Ended}}{{day .}}{{end}} {{if .Ended}}{{.End}}{{end}}</td><td>{{if .Planned}}{{hourly .Planned}}{{end}}</td><td>{{hourly .Paid.Total}}</td>` +
	`<td>{{dollars .Cost.Total}}</td></tr>
{{end}}</table>
</body></html>
`))
