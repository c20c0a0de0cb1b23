package provider

import (
	"errors"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/sim"
)

// simName is the provider that needs no network: package sim.
const simName = "sim"

// openSim opens a model of the simulator, such as "planner".
func openSim(model string) (dragoman.Model, error) {
	m, err := sim.Open(model)
	var e *dragoman.APIError
	if errors.As(err, &e) {
		return nil, &SpecError{Spec: simName + "/" + model, Reason: e.Message}
	}
	return m, err
}
