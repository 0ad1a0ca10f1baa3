// Package instancetype turns what Azure says about VM sizes into the instance types
// that can be bought: labels, capacity, overhead and offerings.
//
//	Resource SKUs ── ParseSKU ──> []SKU ──┐
//	AKSNodeClass  ── nodeclass.NodeClass ─┴─ static part (labels, capacity) ──┐
//	prices, quota, unavailable ── Market, by revision ────────────────────────┴──> Built
//
// [Catalog.For] is the way in. The static part is kept per kind of node class;
// the changing part is laid over it again as soon as any of its sources has a
// new revision, so a price or a shortage is visible to the next plan. Offerings
// that cannot be bought at the moment stay in the catalogue with Available
// false: labels and zones do not come and go with capacity.
//
// Sizes are left out by an ordered list of checks (filter.go), each of which
// gives its reason, see [Built.Excluded].
package instancetype
