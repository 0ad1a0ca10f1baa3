// Package nodeoverlay applies NodeOverlays to what NodePools can buy.
//
//	result, err := nodeoverlay.Evaluate(ctx, overlays, pools)
//	catalog := result.Catalog("general")
//
// Which overlay has an effect on which offering is decided by Karpenter's own
// evaluation, which runs here on objects in memory: weights, conflicts and
// validation mean the same as in the status of the NodeOverlays. The result is nap's
// catalogue with other prices and further resources; quotas, disk slots and the
// reasons why something is not sold stay as they are. What is paid in advance keeps its
// price: an overlay changes that of further machines.
//
// An overlay's price is the machine's. Its disk, and what the user adds to every
// node, come on top.
package nodeoverlay
