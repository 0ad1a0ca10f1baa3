// Package objectmetrics has those metrics of Karpenter's that are about single nodes and
// objects. Karpenter's controllers write them every five or ten seconds for every object,
// changed or not, and keep all series in memory; here a value is made when it is read, and
// nothing is kept of what is not served.
//
// Names, labels and help are Karpenter's own: [Replace] and [NewNodes] take Karpenter's
// gauges out of the registry and serve under the same descriptions.
package objectmetrics
