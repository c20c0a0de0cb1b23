package main

import (
	"testing"

	"github.com/dragoman-go/dragoman/sim"
)

// The comment of package sim describes the script. A response that no turn matches is an
// error, so the test fails if the agent sends something unexpected.
const script = `
turn the model misspells the city
  match turn 1
  match user coat
  call get_weather {"name": "Olso"}

turn the model corrects the call
  match turn 2
  match result no such city
  call get_weather {"name": "Oslo"}

turn the model answers
  match turn 3
  match result It snows
  say Take a coat.
`

func TestAgentCorrectsACall(t *testing.T) {
	model, err := sim.ParseScenario("coat", script)
	if err != nil {
		t.Fatal(err)
	}
	res, err := newAgent(model).Run(t.Context(), "Do I need a coat in Oslo?")
	if err != nil {
		t.Fatal(err)
	}
	if res.Output != "Take a coat." {
		t.Errorf("output %q", res.Output)
	}
	if len(res.Records) != 2 || res.Records[0].OK || !res.Records[1].OK {
		t.Errorf("calls: %+v, want a failed one and a successful one", res.Records)
	}
}
