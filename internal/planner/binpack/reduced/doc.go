// Package reduced holds the problem that the packer works on after reduction, and
// packings of it in the making.
//
// A [Problem] has merged classes of items (a set I, class i with size a_i, count
// n_i, at most u_i in a bin) and the bin types that may be of use (a set T, type t
// with capacity C_t, cost c_t, at most M_t bins). Everything is a dense number:
// classes, types, signatures (the sets of bin types that classes admit),
// acceptances (the sets of signatures that bin types admit), conflict ids and
// dimensions. A Problem does not change once it is made, so goroutines may share
// it. A [Shortlist] is the part of the types that prices look at. A [Packing] is a
// list of patterns, each a filled bin and how often it is bought, with what is
// left of the items and of the [Limits].
//
// See docs/planner.md, section "Reduction".
package reduced
