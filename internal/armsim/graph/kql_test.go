package graph

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// Whatever a client sends, the parser answers with a result or an error.
func FuzzQueries(f *testing.F) {
	for _, q := range []string{
		"Resources | where type == 'a' and not(tags has_cs 'b') | project id, x = tolower(name), properties.vmId | limit 3",
		"resources | where name in~ ('a', \"b\") or isempty(tags['c']) | count", "Resources | where a !contains 'b' | order by name asc",
	} {
		f.Add(q)
	}
	rows := []arm.Document{{"id": "a", "name": "b", "tags": arm.Document{"c": "d"}}, {"properties": arm.Document{"vmId": 3.0}}}
	f.Fuzz(func(t *testing.T, query string) {
		if q, err := parseKQL(query); err == nil {
			q.run(rows)
		}
	})
}
