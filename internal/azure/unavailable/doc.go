// Package unavailable remembers which offerings Azure has refused to sell, so that
// they are not asked for again before it is worth it.
//
//	SDK error ── Classify ──> Failure ── Offerings.MarkUnavailable ──> entries with an end
//	                                                                        │
//	                             instance types <── Offerings.Unavailable ──┘
//
// What each refusal means is one row of one table, [Refusals]: the answers of Azure
// that it is read from, the reason that NodeClaims give, which offerings are
// unavailable afterwards and for how long, and what the launch does next. The table
// in docs/azure-refusals.md is written from it.
//
// The entries outlive the process as text, [Offerings.Marshal]. They end by
// themselves; [Offerings.Revision] changes whenever an answer of
// [Offerings.Unavailable] may have changed, also when time alone changed it.
package unavailable
