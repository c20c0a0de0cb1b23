package agenttest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/agent/agenttest"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/tool"
)

// This agent counts its turns in the instructions, so each request starts differently and the
// prompt cache is never used. In a test, probe.Check(t) reports that.
func ExampleCacheProbe() {
	server := httptest.NewServer(sim.Handler(sim.Config{}))
	defer server.Close()
	var probe agenttest.CacheProbe
	turn := 0
	a := agent.Agent{
		Model: &provider.Client{
			Codec: openaichat.Codec{}, Model: "sim/planner", BaseURL: server.URL + "/v1", HTTP: &http.Client{Transport: &probe},
		},
		Tools: []tool.Tool{tool.New("get_weather", "Looks up the weather in a city.", func(_ context.Context, p place) (string, error) {
			return "3 degrees in " + p.City, nil
		})},
		Instruct: func(context.Context, agent.Turn) (string, error) {
			turn++
			return fmt.Sprintf("This is turn %d.", turn), nil
		},
	}
	if _, err := a.Run(context.Background(), "What is the weather in Oslo?"); err != nil {
		panic(err)
	}
	var broken *agenttest.CacheBreak
	if errors.As(probe.Err(), &broken) {
		fmt.Printf("request %d changes %s\nwas %s\nis  %s\n", broken.Request, broken.Path, broken.Previous, broken.Current)
	}
	// Output:
	// request 2 changes /messages/0
	// was {"content":"This is turn 1.","role":"system"}
	// is  {"content":"This is turn 2.","role":"system"}
}
