// Package nodeclass keeps AKSNodeClasses: what their text means on Azure right
// now, written into their status; the hash by which machines notice that they
// have drifted; and their end, which waits for the NodeClaims that use them.
//
//   - status.go: [Status], conditions from a [Finder]
//   - hash.go: [Hash]
//   - termination.go: [Termination]
//
// What there is to find out about a class is Azure's business. This package only
// asks, through Finder, and writes the answers down.
package nodeclass
