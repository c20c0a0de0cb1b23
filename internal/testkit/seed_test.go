package testkit

import (
	"flag"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { Main(m) }

func TestPropertiesDrawTheSameValues(t *testing.T) {
	asIs := flag.Lookup("rapid.seed").Value.String()
	t.Cleanup(func() { _ = flag.Set("rapid.seed", asIs) })
	drawn := func(asked string) (all []int64) {
		t.Helper()
		if err := flag.Set("rapid.seed", asked); err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) { all = append(all, rapid.Int64().Draw(t, "n")) })
		return all
	}
	if !slices.Equal(drawn(seed), drawn(seed)) {
		t.Error("the fixed seed draws different values")
	}
	if slices.Equal(drawn("0"), drawn("0")) {
		t.Error("random seeds draw the same values")
	}
}

func TestInvalidSeedIsRefused(t *testing.T) {
	if err := set("yesterday"); err == nil {
		t.Error("taken")
	}
}
