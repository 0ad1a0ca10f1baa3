package consolidate_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain gives the properties a fixed seed, so that every run of the tests
// draws the same fleets. To explore others: -rapid.seed=N -rapid.checks=N.
func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.seed" })
	if !chosen {
		if err := flag.Set("rapid.seed", "4711"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
