package arm

import "testing"

// Whatever a client sends, the parser answers with a result or an error.
func FuzzPaths(f *testing.F) {
	f.Add("/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/v/extensions/e")
	f.Add("/subscriptions/s/providers/Microsoft.Compute/locations/l/usages")
	f.Add("/providers/Microsoft.ResourceGraph/resources")
	f.Fuzz(func(t *testing.T, raw string) {
		p, ok := ParsePath(raw)
		if !ok {
			return
		}
		again, ok := ParsePath(p.ID())
		if p.Subscription != "" && (!ok || p.Type != again.Type && len(p.Segments) > 0 || p.ID() != again.ID()) {
			t.Errorf("%q reads as %s %q, which reads as %s %q", raw, p.Type, p.ID(), again.Type, again.ID())
		}
		_, _, _, _ = p.Item(), p.Name(), p.Relative(), p.Item() && len(p.Segments) > 2 && p.Parent() != ""
	})
}
