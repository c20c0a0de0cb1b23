package main

import (
	"bytes"
	"testing"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, "sim/planner"); err != nil {
		t.Fatal(err)
	}
	const want = "get_weather {\"name\":\"Oslo\"}\nget_weather says: It snows in Oslo, at -4 °C.\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if err := run(t.Context(), &out, "nobody/nothing"); err == nil {
		t.Error("an unknown provider was accepted")
	}
}
