// Package retailprices is the simulated retail price API of Azure, which needs no
// sign-in: the prices of the catalogue, or what a test has set, as meters.
package retailprices
