package armsim

import "testing"

// Whatever a client sends, the parsers answer with a result or an error.

func FuzzQueries(f *testing.F) {
	for _, q := range []string{
		"Resources | where type == 'a' and not(tags has_cs 'b') | project id, x = tolower(name), properties.vmId | limit 3",
		"resources | where name in~ ('a', \"b\") or isempty(tags['c']) | count", "Resources | where a !contains 'b' | order by name asc",
	} {
		f.Add(q)
	}
	rows := []document{{"id": "a", "name": "b", "tags": document{"c": "d"}}, {"properties": document{"vmId": 3.0}}}
	f.Fuzz(func(t *testing.T, query string) {
		if q, err := parseKQL(query); err == nil {
			q.run(rows)
		}
	})
}

func FuzzPaths(f *testing.F) {
	f.Add("/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/v/extensions/e")
	f.Add("/subscriptions/s/providers/Microsoft.Compute/locations/l/usages")
	f.Add("/providers/Microsoft.ResourceGraph/resources")
	f.Fuzz(func(t *testing.T, raw string) {
		p, ok := parsePath(raw)
		if !ok {
			return
		}
		again, ok := parsePath(p.id())
		if p.subscription != "" && (!ok || p.typ != again.typ && len(p.segments) > 0 || p.id() != again.id()) {
			t.Errorf("%q reads as %s %q, which reads as %s %q", raw, p.typ, p.id(), again.typ, again.id())
		}
		_, _, _, _ = p.item(), p.name(), p.relative(), p.item() && len(p.segments) > 2 && p.parent() != ""
	})
}

func FuzzImages(f *testing.F) {
	f.Add("/CommunityGalleries/AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2/images/2204gen2containerd/versions/202606.09.0")
	f.Add("AKSUbuntu-2204gen2containerd-202606.09.0")
	f.Fuzz(func(t *testing.T, ref string) {
		parseImage(ref)
		parseNodeImage(ref)
		publishedAt(ref)
	})
}
