package agenttest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/agent/agenttest"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/tool"
)

type place struct {
	City string `json:"city"`
}

// asked returns an agent whose requests go through the probe to the simulator.
func asked(t *testing.T, codec dialect.Codec, base string, probe *agenttest.CacheProbe) agent.Agent {
	t.Helper()
	s := httptest.NewServer(sim.Handler(sim.Config{}))
	t.Cleanup(s.Close)
	return agent.Agent{
		Model: &provider.Client{Codec: codec, Model: "sim/planner", BaseURL: s.URL + base, HTTP: &http.Client{Transport: probe}},
		Tools: []tool.Tool{tool.New("get_weather", "Looks up the weather in a city.", func(_ context.Context, p place) (string, error) {
			return "3 degrees in " + p.City, nil
		})},
		Instructions: "Be brief.",
	}
}

var codecs = map[string]dialect.Codec{
	"/v1 chat": openaichat.Codec{}, "/v1 responses": openairesponses.Codec{}, " anthropic": anthropic.Codec{},
	" gemini": gemini.Codec{}, " ollama": ollama.Codec{}, " bedrock": bedrock.Codec{},
}

func TestDecision126_AgentRequestsKeepTheirPrefix(t *testing.T) {
	for name, codec := range codecs {
		base, _, _ := strings.Cut(name, " ")
		var probe agenttest.CacheProbe
		a := asked(t, codec, base, &probe)
		a.Settings.Cache = &dragoman.CacheHint{}
		first, err := a.Run(t.Context(), "What is the weather in Oslo?")
		if err != nil {
			t.Fatal(name, err)
		}
		// The conversation continues in a second run.
		if _, err := a.Run(t.Context(), "And the weather in Bergen?", agent.Messages(first.Messages...)); err != nil {
			t.Fatal(name, err)
		}
		if n := probe.Requests(); n < 4 {
			t.Fatalf("%s: %d requests", name, n)
		}
		probe.Check(t)
	}
}

func TestDecision126_ChangedElementIsReported(t *testing.T) {
	for name, codec := range codecs {
		base, _, _ := strings.Cut(name, " ")
		var probe agenttest.CacheProbe
		a := asked(t, codec, base, &probe)
		turn := 0
		a.Instruct = func(context.Context, agent.Turn) (string, error) {
			turn++
			return fmt.Sprintf("It is turn %d.", turn), nil // like instructions that contain the time of day
		}
		if _, err := a.Run(t.Context(), "What is the weather in Oslo?"); err != nil {
			t.Fatal(name, err)
		}
		var broken *agenttest.CacheBreak
		if err := probe.Err(); !errors.As(err, &broken) || broken.Request != 2 || !strings.Contains(broken.Previous, "It is turn 1.") || !strings.Contains(broken.Current, "It is turn 2.") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecision126_CompareRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		was, is, path string
		ignore        []string
	}{
		"same":            {was: `{"messages":[{"a":1}]}`, is: `{"messages":[{"a":1}]}`},
		"grows":           {was: `{"messages":[{"a":1}]}`, is: `{"messages":[{"a":1},{"b":2}]}`},
		"last gains":      {was: `{"messages":[{"content":[{"t":1}]}]}`, is: `{"messages":[{"content":[{"t":1},{"t":2}]},{}]}`},
		"last changes":    {was: `{"messages":[{"content":[{"t":1}]}]}`, is: `{"messages":[{"content":[{"t":2}]}]}`, path: "/messages/0/content/0"},
		"text to blocks":  {was: `{"messages":[{"content":"x"}]}`, is: `{"messages":[{"content":[{"text":"x"}]}]}`, path: "/messages/0/content"},
		"older changes":   {was: `{"messages":[{"a":1},{"b":1}]}`, is: `{"messages":[{"a":2},{"b":1}]}`, path: "/messages/0"},
		"older gains":     {was: `{"messages":[{"c":[1]},{"b":1}]}`, is: `{"messages":[{"c":[1,2]},{"b":1}]}`, path: "/messages/0"},
		"shrinks":         {was: `{"messages":[{"a":1},{"b":1}]}`, is: `{"messages":[{"a":1}]}`, path: "/messages/1"},
		"tool appended":   {was: `{"tools":[{"n":1}]}`, is: `{"tools":[{"n":1},{"n":2}]}`},
		"tool prepended":  {was: `{"tools":[{"n":1}]}`, is: `{"tools":[{"n":2},{"n":1}]}`, path: "/tools/0/n"},
		"nested tools":    {was: `{"toolConfig":{"tools":[{"n":1},{"n":3}]}}`, is: `{"toolConfig":{"tools":[{"n":2},{"n":3}]}}`, path: "/toolConfig/tools/0"},
		"field gone":      {was: `{"system":"x"}`, is: `{}`, path: "/system"},
		"field new":       {was: `{}`, is: `{"tools":[]}`, path: "/tools"},
		"number text":     {was: `{"t":1.0}`, is: `{"t":1}`, path: "/t"},
		"ignored":         {was: `{"id":"a","m":[{"id":"x"}]}`, is: `{"id":"b","m":[{"id":"y"}]}`, ignore: []string{"id"}},
		"marker moves":    {was: `{"m":[{"c":[{"t":1,"cache_control":{"type":"e"}}]}]}`, is: `{"m":[{"c":[{"t":1}]},{"c":[{"t":2,"cache_control":{"type":"e"}}]}]}`},
		"cachePoint goes": {was: `{"m":[{"c":[{"t":1},{"cachePoint":{"type":"d"}}]}]}`, is: `{"m":[{"c":[{"t":1}]},{"c":[{"t":2},{"cachePoint":{"type":"d"}}]}]}`},
	} {
		err := agenttest.CompareRequests([][]byte{[]byte(tc.was), []byte(tc.is)}, tc.ignore...)
		var broken *agenttest.CacheBreak
		switch {
		case tc.path == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.path != "" && (!errors.As(err, &broken) || broken.Path != tc.path || broken.Request != 2):
			t.Errorf("%s: %v, want a change at %s", name, err, tc.path)
		}
	}
	if err := agenttest.CompareRequests([][]byte{[]byte(`[]`)}); err == nil {
		t.Error("a list is not a request")
	}
}
