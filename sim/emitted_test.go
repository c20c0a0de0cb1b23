package sim_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
	"github.com/dragoman-go/dragoman/sim"
)

// prompts returns requests for every kind of response.
func prompts() map[string]*dragoman.Request {
	structured := ask("Ann is 42 🙂")
	structured.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "person", Schema: json.RawMessage(
		`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],"additionalProperties":false}`)}
	thinks := ask("What's the weather in Oslo?", toolbox()...)
	thinks.Reasoning = &dragoman.ReasoningSettings{Effort: "high", Summary: "auto"}
	cut := ask(strings.Repeat("a long answer that has to be cut somewhere, ", 4))
	cut.MaxOutputTokens = new(int64(16))
	return map[string]*dragoman.Request{
		"text":              ask("Ann is 42 🙂"),
		"one call":          ask("What's the weather in Oslo?", toolbox()...),
		"parallel calls":    ask("What's the weather in Oslo and Bergen?", toolbox()...),
		"reasoning":         thinks,
		"structured output": structured,
		"freeform":          ask(`Run the code "print(1)"`, dragoman.ToolSpec{Kind: codes.ToolFreeform, Name: "run_code", Description: "Runs code."}),
		"cut short":         cut,
	}
}

// emitters returns the clients, and one that requests a JSON array from Gemini.
func emitters() []client {
	return append(clients(), client{gemini.Codec{Array: true}, func(model string, stream bool) string {
		if stream {
			return "/v1beta/models/" + url.PathEscape(model) + ":streamGenerateContent"
		}
		return "/v1beta/models/" + url.PathEscape(model) + ":generateContent"
	}})
}

// emitted sends a request and returns the raw response.
func (c client) emitted(t *testing.T, server string, req *dragoman.Request) (status int, header http.Header, body []byte) {
	t.Helper()
	resp, _, err := c.post(context.Background(), server, req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, body
}

func TestZ1_StrictClientsAcceptResponses(t *testing.T) {
	server := serve(t, sim.Config{})
	document := emitcheck.OpenResponses(t)
	for _, c := range emitters() {
		for name, req := range prompts() {
			for _, model := range []string{"sim/planner", "sim/echo"} {
				req.Model = model
				req.Stream, req.StreamUsage = false, false
				status, header, body := c.emitted(t, server.URL, req)
				if err := emitcheck.Whole(c.Dialect(), status, header, body); err != nil {
					t.Errorf("%s, %s, whole: %v\n%s", c.Dialect(), name, err, body)
				}
				if c.Dialect() == dialectname.OpenAIResponses {
					if err := document.Whole(body); err != nil {
						t.Errorf("%s, whole: %v\n%s", name, err, body)
					}
				}
				for _, usage := range []bool{false, true} {
					req.Stream, req.StreamUsage = true, usage
					_, header, body = c.emitted(t, server.URL, req)
					if err := emitcheck.Stream(c.Dialect(), header, body); err != nil {
						t.Errorf("%s, %s, stream: %v\n%s", c.Dialect(), name, err, body)
					}
				}
				if c.Dialect() == dialectname.OpenAIResponses {
					if err := document.Stream(body); err != nil {
						t.Errorf("%s, stream: %v\n%s", name, err, body)
					}
				}
			}
		}
	}
}

func TestQuirkJ3_StrictClientsAcceptErrors(t *testing.T) {
	script := "turn\nmatch user slow\nerror rate_limit retry=3s Slow down.\nturn\nmatch user overload\nerror overloaded Too much.\nturn\nmatch user policy\nerror authentication Who?\n"
	played, err := sim.ParseScenario("errors", script)
	if err != nil {
		t.Fatal(err)
	}
	server := serve(t, sim.Config{Scenario: played})
	for _, c := range emitters() {
		for _, stream := range []bool{false, true} {
			for _, bad := range []struct{ model, prompt string }{
				{"sim/scenario", "slow"}, {"sim/scenario", "overload"}, {"sim/scenario", "policy"}, {"sim/scenario", "no turn"}, {"gpt-5", "hi"}, {"sim/planner?x=y", "hi"},
			} {
				req := ask(bad.prompt)
				req.Model, req.Stream = bad.model, stream
				status, header, body := c.emitted(t, server.URL, req)
				if err := emitcheck.Error(c.Dialect(), status, header, body); err != nil {
					t.Errorf("%s, %s: %v\n%s", c.Dialect(), bad.prompt, err, body)
				}
			}
		}
		// After the first byte, the error is an event of the stream.
		req := ask("What's the weather in Oslo?", toolbox()...)
		req.Model, req.Stream = "sim/planner?fault=c14", true
		_, header, body := c.emitted(t, server.URL, req)
		if err := emitcheck.Stream(c.Dialect(), header, body); err != nil {
			t.Errorf("%s: %v\n%s", c.Dialect(), err, body)
		}
	}
}
