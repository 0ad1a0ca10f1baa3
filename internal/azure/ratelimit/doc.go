// Package ratelimit keeps all requests of the process within what Azure grants a
// subscription, so that a burst of launches is spread out instead of refused.
//
// Azure counts requests in token buckets: one for each kind of request to
// Resource Manager, and further ones of the resource providers, some of them for
// every single resource ([Published]). A [Limiter] keeps the same buckets and lets
// a request pass once each of its buckets has a token:
//
//	request ── classify ──> its buckets ── queue ──> Azure ── headers, 429 ──> buckets
//
// The published figures are only where it starts from. What Azure says is left,
// in the x-ms-ratelimit-remaining headers, corrects a bucket in both directions:
// other clients of the subscription use it up, and some subscriptions are granted
// more. Until Azure has said anything, a bucket admits a few requests only, since
// a predecessor of this process may have emptied it. A refusal (429) empties the
// bucket that it names and holds it for as long as Retry-After asks.
//
// A [CircuitBreaker] watches the same answers for an outage: when an API of Azure has
// failed for a while without a single success, no new launch is begun, one now
// and then excepted that finds out whether it is over.
package ratelimit
