package provider

import dragoman "github.com/dragoman-go/dragoman"

// simName is the provider that needs no network: package sim.
const simName = "sim"

// openSim opens a model of the simulator, such as "planner".
func openSim(model string) (dragoman.Model, error) {
	return nil, &SpecError{Spec: simName + "/" + model, Reason: "the simulator is not part of this build"}
}
