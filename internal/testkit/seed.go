package testkit

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// seed is the default seed.
const seed = "20260101"

// Main runs the tests of a package with property tests. Call it from TestMain. Properties use a fixed
// seed, unless the flag -rapid.seed or the environment variable DRAGOMAN_SEED gives another; the
// value "random" draws a new one.
func Main(m *testing.M) {
	flag.Parse()
	given := false // the command line takes precedence
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.seed" })
	if !given {
		if err := set(os.Getenv("DRAGOMAN_SEED")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}

func set(value string) error {
	switch value {
	case "":
		value = seed
	case "random":
		value = "0" // a random seed in rapid
	}
	if err := flag.Set("rapid.seed", value); err != nil {
		return fmt.Errorf("DRAGOMAN_SEED is %q, want a number or \"random\": %w", value, err)
	}
	return nil
}
