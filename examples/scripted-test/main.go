// Scripted-test shows how to test an agent: main_test.go gives it a model that plays a script,
// so that the test decides which tools the model calls and what it says.
//
//	$ go run ./examples/scripted-test
//	get_weather says: It snows in Oslo.
//
// To run the test:
//
//	go test -v ./examples/scripted-test
package main

import (
	"context"
	"fmt"
	"log"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

type City struct {
	Name string `json:"name"`
}

func getWeather(_ context.Context, c City) (string, error) {
	if c.Name != "Oslo" {
		return "", fmt.Errorf("no such city: %s", c.Name)
	}
	return "It snows in Oslo.", nil
}

// newAgent takes the model as a parameter, so that tests can pass another one.
func newAgent(model dragoman.Model) agent.Agent {
	return agent.Agent{
		Model: model,
		Tools: []tool.Tool{tool.New("get_weather", "Current weather in a city.", getWeather)},
	}
}

func main() {
	a := newAgent(provider.MustOpen("sim/planner"))
	res, err := a.Run(context.Background(), "What is the weather in Oslo?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Output)
}
