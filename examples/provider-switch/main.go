// Provider-switch continues one conversation with the models of three providers. The session
// stores messages in a neutral form, so each request has the form that its provider accepts,
// tool calls and results of the other providers included.
//
//	$ go run ./examples/provider-switch
//	anthropic.messages: get_weather says: It snows in Oslo.
//	openai.responses: get_weather says: It snows in Bergen.
//	gemini.generate_content: get_weather says: It snows in Paris.
//	12 messages
package main

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/tool"
)

type City struct {
	Name string `json:"name" doc:"the city's name, in English"`
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// One simulator takes the place of three servers. With keys, the models would be
	// provider.MustOpen("anthropic/…"), provider.MustOpen("openai/…") and so on.
	server := httptest.NewServer(sim.Handler(sim.Config{}))
	defer server.Close()
	models := []*provider.Client{
		{Codec: anthropic.Codec{}, BaseURL: server.URL, Model: "sim/planner"},
		{Codec: openairesponses.Codec{}, BaseURL: server.URL + "/v1", Model: "sim/planner"},
		{Codec: gemini.Codec{}, BaseURL: server.URL, Model: "sim/planner"},
	}
	weather := tool.New("get_weather", "Current weather in a city.",
		func(_ context.Context, c City) (string, error) { return "It snows in " + c.Name + ".", nil })

	s, err := session.Create(ctx, &session.Memory{}, session.Info{}) // or in SQLite or PostgreSQL
	if err != nil {
		return err
	}
	for i, city := range []string{"Oslo", "Bergen", "Paris"} {
		a := agent.Agent{Model: models[i], Tools: []tool.Tool{weather}}
		res, err := a.Run(ctx, "What is the weather in "+city+"?", agent.In(s))
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", models[i].Dialect(), res.Output)
	}
	messages, _, err := s.Load(ctx)
	if err != nil {
		return err
	}
	fmt.Println(len(messages), "messages")
	return nil
}
