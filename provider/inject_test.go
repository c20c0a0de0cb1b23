package provider_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// toolsPlace returns where a payload of a dialect has its tools.
func toolsPlace(d dragoman.Dialect) string {
	if d == dragoman.Bedrock {
		return "/toolConfig/tools"
	}
	return "/tools"
}

// nativeTools returns tools as a dialect writes them.
func nativeTools(t *testing.T, c dialect.Codec, names ...string) json.RawMessage {
	t.Helper()
	req := question()
	req.Model = "model-1"
	req.Tools = nil
	for _, name := range names {
		req.Tools = append(req.Tools, dragoman.ToolSpec{Name: name, Description: "of an extension", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)})
	}
	enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := extension.NewObject(enc.Body)
	if err != nil {
		t.Fatal(err)
	}
	return o.Get(toolsPlace(c.Dialect()))
}

// injector is an extension that writes the tools of a request itself.
type injector struct {
	requires []extension.Tag
	place    string
	tools    json.RawMessage
}

func (i injector) Info() extension.Info {
	return extension.Info{Name: "injector", Requires: i.requires}
}

// earlyInjector injects before the request is encoded, and lateInjector after that.
type (
	earlyInjector struct{ injector }
	lateInjector  struct{ injector }
)

func (i earlyInjector) Prepare(_ context.Context, x *extension.Exchange) error {
	return x.Payload.Set(i.place, i.tools)
}

func (i lateInjector) Decorate(_ context.Context, x *extension.Exchange) error {
	return x.Payload.Set(i.place, i.tools)
}

func TestR6_ToolsThatAnExtensionInjectsAreNotInjectedAgain(t *testing.T) {
	each(t, func(t *testing.T, c dialect.Codec) {
		place := toolsPlace(c.Dialect())
		own := nativeTools(t, c, "get_weather")
		both := nativeTools(t, c, "get_weather", "of_extension")
		never := nativeTools(t, c, "never_sent")
		for name, tc := range map[string]struct {
			injects injector
			noTools bool
			want    json.RawMessage // nil: those of the provider
		}{
			"of the same name": {injector{place: place, tools: own}, false, own},
			"other tools":      {injector{place: place, tools: both}, false, both},
			"no tools":         {injector{place: place, tools: json.RawMessage("[]")}, false, json.RawMessage("[]")},
			"without others":   {injector{place: place, tools: both}, true, both},
			"while it is off":  {injector{place: place, tools: never, requires: []extension.Tag{"never"}}, false, nil},
		} {
			for when, e := range map[string]extension.Extension{"before encoding": earlyInjector{tc.injects}, "after encoding": lateInjector{tc.injects}} {
				t.Run(name+" "+when, func(t *testing.T) {
					server := serve(t, c, say(callAnswer(`{"city":"Oslo"}`)))
					model := server.client(&provider.Client{Extensions: extensions(t, e)})
					req := question()
					if tc.noTools {
						req.Tools = nil
					}
					want := tc.want
					if want == nil {
						if _, err := server.client(&provider.Client{}).Generate(t.Context(), req); err != nil {
							t.Fatal(err)
						}
						want = toolsOf(t, server.requests()[0].body, place)
						server.got = nil
					}
					whole, err := model.Generate(t.Context(), req)
					if err != nil {
						t.Fatal(err)
					}
					streamed, err := dragoman.Collect(model.Stream(t.Context(), req))
					if err != nil {
						t.Fatal(err)
					}
					for i, got := range server.requests() {
						if tools := toolsOf(t, got.body, place); string(tools) != string(want) || strings.Count(string(got.body), `"tools"`) != 1 {
							t.Errorf("request %d has the tools %s, want %s: %s", i, tools, want, got.body)
						}
					}
					for _, resp := range []*dragoman.Response{whole, streamed} {
						if calls := resp.ToolCalls(); len(calls) != 1 || calls[0].Name != "get_weather" || calls[0].Arguments != `{"city":"Oslo"}` {
							t.Errorf("the call was read as %+v", calls)
						}
					}
				})
			}
		}
	})
}

func toolsOf(t *testing.T, body []byte, place string) json.RawMessage {
	t.Helper()
	o, err := extension.NewObject(body)
	if err != nil {
		t.Fatal(err)
	}
	return o.Get(place)
}

// An empty list of an extension counts as present: no tools are sent, so neither are the
// fields that are about tools (quirk E3).
func TestR6_NoFlagsAreSentIfAnExtensionInjectsNoTools(t *testing.T) {
	each(t, func(t *testing.T, c dialect.Codec) {
		server := serve(t, c, say(textAnswer("Yes.")))
		model := server.client(&provider.Client{Extensions: extensions(t, earlyInjector{injector{place: toolsPlace(c.Dialect()), tools: json.RawMessage("[]")}})})
		req := question()
		no := false
		req.ToolChoice, req.ParallelToolCalls = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}, &no
		resp, err := model.Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		body := string(server.requests()[0].body)
		for _, field := range []string{"tool_choice", "toolChoice", "parallel", "functionCallingConfig", "toolConfig\":{\"functionCalling"} {
			if strings.Contains(body, field) {
				t.Errorf("%s is sent without tools: %s", field, body)
			}
		}
		if !strings.Contains(resp.Losses.String(), "/tool_choice") {
			t.Errorf("the choice is not reported: %v", resp.Losses)
		}
	})
}

// A request is not refused for a loss in tools that are not sent.
func TestR6_LossesOfToolsThatAreNotSentAreNotReported(t *testing.T) {
	each(t, func(t *testing.T, c dialect.Codec) {
		warn := dragoman.Warn
		server := serve(t, c, say(textAnswer("Yes.")))
		own := nativeTools(t, c, "get_weather")
		req := question()
		req.Tools = append(req.Tools, dragoman.ToolSpec{Kind: dragoman.ToolHosted, Name: "search", Source: &dragoman.ToolSource{Format: "acme.search", JSON: json.RawMessage(`{"type":"search"}`)}})
		if _, err := server.client(&provider.Client{Strict: &warn}).Generate(t.Context(), req); err == nil {
			t.Fatal("a tool of another provider is not a loss")
		}
		model := server.client(&provider.Client{Strict: &warn, Extensions: extensions(t, earlyInjector{injector{place: toolsPlace(c.Dialect()), tools: own}})})
		if _, err := model.Generate(t.Context(), req); err != nil {
			t.Error(err)
		}
	})
}
