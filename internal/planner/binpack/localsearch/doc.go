// Package localsearch makes a packing cheaper.
//
// exchange.go moves single items between bins until a bin fits in a cheaper type.
// ruinrecreate.go is ruin and recreate (Shaw 1998; Schrimpf et al. 2000): a trial takes
// two to four bins apart into a pool (pool.go) and packs it again (recreate.go). It
// accepts by record-to-record travel (Dueck 1993). twoworkers.go runs both by two
// workers where nothing that may be bought is limited: then bins of different
// workers have nothing to do with each other, and what each does depends on its own
// seed and share alone, so the result does not depend on how many processors there
// are.
//
// See docs/planner.md, section "Local search".
package localsearch
