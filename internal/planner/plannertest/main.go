// Package plannertest is what the tests of the planner's packages have in common.
package plannertest

import (
	"flag"
	"testing"
)

// seed is what the properties draw from unless another one is asked for.
const seed = "4711"

// Main runs the tests of a package with a fixed seed for its properties, so that every
// run draws the same problems. To explore others: -rapid.seed=N -rapid.checks=N.
func Main(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.seed" })
	if !chosen {
		if err := flag.Set("rapid.seed", seed); err != nil {
			panic(err)
		}
	}
	m.Run() // the runner exits with its code
}
