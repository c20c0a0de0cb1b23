// Record-replay records the traffic of an agent with a model server in a file, without
// credentials, and replays it without the server. Use it in tests of programs that need a
// real model.
//
//	$ go run ./examples/record-replay
//	recorded: get_weather says: It snows in Oslo.
//	replayed: get_weather says: It snows in Oslo.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/tool"
)

type City struct {
	Name string `json:"name"`
}

// zeros makes requests repeatable: tool results are sent within random marks.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func ask(ctx context.Context, url string, transport http.RoundTripper, prompt string) (string, error) {
	weather := tool.New("get_weather", "Current weather in a city.",
		func(_ context.Context, c City) (string, error) { return "It snows in " + c.Name + ".", nil })
	a := agent.Agent{
		Model:  &provider.Client{BaseURL: url, Model: "sim/planner", HTTP: &http.Client{Transport: transport}},
		Tools:  []tool.Tool{weather},
		Runner: &tool.Runner{Random: zeros{}},
	}
	res, err := a.Run(ctx, prompt)
	return res.Output, err
}

func run(ctx context.Context) error {
	const prompt = "What is the weather in Oslo?"
	file := filepath.Join(os.TempDir(), "weather.traffic") // usually in testdata
	defer os.Remove(file)
	server := httptest.NewServer(sim.Handler(sim.Config{}))
	defer server.Close()
	recorder, err := sim.Record(file, nil)
	if err != nil {
		return err
	}
	output, err := ask(ctx, server.URL+"/v1", recorder, prompt)
	if err := errors.Join(err, recorder.Close()); err != nil {
		return err
	}
	fmt.Println("recorded:", output)

	server.Close()
	replayer, err := sim.Replay(file)
	if err != nil {
		return err
	}
	if output, err = ask(ctx, server.URL+"/v1", replayer, prompt); err != nil {
		return err
	}
	fmt.Println("replayed:", output)
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
