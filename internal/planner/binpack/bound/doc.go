// Package bound prices resources and proves lower bounds on the cost of packings.
//
// The primal is the program over all fillings of bins (Gilmore and Gomory 1961):
// with P_t the fillings of type t and x_p how often filling p is bought,
//
//	minimise   Σ c_p·x_p
//	subject to Σ a_ip·x_p >= n_i  for each class i       (dual y_i >= 0)
//	           Σ use_ps·x_p <= L_s for each shared limit (dual μ_s >= 0)
//	           Σ over p in P_t of x_p <= M_t, x_p >= 0
//
// Nothing here solves it by brute force. dual.go solves a fluid relaxation of it
// by the simplex method (simplex.go), refine.go climbs a dual in which items stay
// whole as far as their number in a bin goes, and columns.go generates fillings
// for small problems. bound.go turns prices of any origin into a proven bound by
// weak duality, with the relaxed knapsacks of knapsack.go as an upper estimate of
// what a bin may hold. pricer.go runs these in turn and keeps the prices in use;
// soften.go changes them for filling bins, never for bounds.
//
// See docs/planner.md, section "Prices".
package bound
