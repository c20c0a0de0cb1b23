package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// callingTurns is the number of turns with a call in a benchmarked run.
const callingTurns = 10

// wire responds like OpenAI Chat, without a network: a call in every turn, each with another
// place, and then a final answer.
type wire struct{}

func (wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	message := `{"role":"assistant","content":"Take a coat."},"finish_reason":"stop"`
	if turn := bytes.Count(body, []byte(`"role":"tool"`)); turn < callingTurns {
		message = fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":`+
			`{"name":"get_weather","arguments":"{\"name\":\"place %d\"}"}}]},"finish_reason":"tool_calls"`, turn, turn)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"id":"chatcmpl-1","object":"chat.completion","created":1763000000,"model":"gpt-4.1","choices":[{"index":0,"message":` +
			message + `}],"usage":{"prompt_tokens":82,"completion_tokens":17,"total_tokens":99}}`)),
	}, nil
}

// BenchmarkRun measures a run of ten turns with a call each and a final answer, without a
// network. The session is in memory.
func BenchmarkRun(b *testing.B) {
	a := agent.Agent{
		Model: &provider.Client{Model: "gpt-4.1", HTTP: &http.Client{Transport: wire{}}},
		Tools: []tool.Tool{tool.New("get_weather", "Current weather in a city.", func(ctx context.Context, c City) (Weather, error) { return lookup(ctx, c.Name) })},
	}
	run := func(b *testing.B, opts ...agent.Option) {
		b.Helper()
		res, err := a.Run(b.Context(), "Do I need a coat?", opts...)
		if err != nil || res.Turns != callingTurns+1 {
			b.Fatal(res, err)
		}
	}
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			run(b)
		}
	})
	b.Run("in a session", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s, err := session.Create(b.Context(), &session.Memory{}, session.Info{})
			if err != nil {
				b.Fatal(err)
			}
			run(b, agent.In(s))
		}
	})
}
