package testkit

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// seed is the one used unless another is asked for.
const seed = "20260101"

// Main runs the tests of a package that has properties.
func Main(m *testing.M) {
	flag.Parse()
	given := false // on the command line, which has the last word
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.seed" })
	if !given {
		if err := set(os.Getenv("DRAGOMAN_SEED")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}

func set(asked string) error {
	switch asked {
	case "":
		asked = seed
	case "random":
		asked = "0" // rapid's word for it
	}
	if err := flag.Set("rapid.seed", asked); err != nil {
		return fmt.Errorf("DRAGOMAN_SEED is %q, want a number or \"random\": %w", asked, err)
	}
	return nil
}
