package provider_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// toolsPlace returns where a payload of a dialect has its tools.
func toolsPlace(d dragoman.Dialect) string {
	if d == dialectname.Bedrock {
		return "/toolConfig/tools"
	}
	return "/tools"
}

// nativeTools returns tools as a dialect writes them.
func nativeTools(t *testing.T, c dialect.Codec, names ...string) json.RawMessage {
	t.Helper()
	req := newRequest()
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

func TestR6_InjectedToolsAreNotInjectedTwice(t *testing.T) {
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
					server := serve(t, c, respond(callResponse(`{"city":"Oslo"}`)))
					model := server.client(&provider.Client{Extensions: extensions(t, e)})
					req := newRequest()
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

// An empty list of an extension counts as a list: no tools are sent, and no settings of tools
// (quirk E3).
func TestR6_NoFlagsAreSentIfAnExtensionInjectsNoTools(t *testing.T) {
	eachInjector(t, json.RawMessage("[]"), func(t *testing.T, c dialect.Codec, e extension.Extension) {
		server := serve(t, c, respond(textResponse("Yes.")))
		model := server.client(&provider.Client{Extensions: extensions(t, e)})
		req := newRequest()
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

// deleter removes the list of tools, and may write a choice of its own.
type deleter struct{ tools, setting, value string }

func (deleter) Info() extension.Info { return extension.Info{Name: "deleter"} }

func (d deleter) Decorate(_ context.Context, x *extension.Exchange) error {
	if d.value != "" {
		if err := x.Payload.Set(d.setting, json.RawMessage(d.value)); err != nil {
			return err
		}
	}
	return x.Payload.Delete(d.tools)
}

func TestR6_NoFlagsAreSentIfAnExtensionDeletesTheTools(t *testing.T) {
	each(t, func(t *testing.T, c dialect.Codec) {
		server := serve(t, c, respond(textResponse("Yes.")))
		model := server.client(&provider.Client{Extensions: extensions(t, deleter{tools: toolsPlace(c.Dialect())})})
		req := newRequest()
		req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
		if _, err := model.Generate(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		body := string(server.requests()[0].body)
		for _, field := range []string{"tool_choice", "toolChoice", "functionCallingConfig"} {
			if strings.Contains(body, field) {
				t.Errorf("%s is sent without tools: %s", field, body)
			}
		}
	})
	server := serve(t, openaichat.Codec{}, respond(textResponse("Yes.")))
	own := deleter{"tools", "tool_choice", `"any"`}
	req := newRequest()
	req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
	if _, err := server.client(&provider.Client{Extensions: extensions(t, own)}).Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if body := string(server.requests()[0].body); !strings.Contains(body, `"tool_choice":"any"`) {
		t.Errorf("the choice of the extension is not sent: %s", body)
	}
}

// eachInjector runs a test for every dialect with extensions that write a list of tools before
// and after the request is encoded.
func eachInjector(t *testing.T, tools json.RawMessage, test func(t *testing.T, c dialect.Codec, e extension.Extension)) {
	t.Helper()
	each(t, func(t *testing.T, c dialect.Codec) {
		i := injector{place: toolsPlace(c.Dialect()), tools: tools}
		t.Run("early", func(t *testing.T) { test(t, c, earlyInjector{i}) })
		t.Run("late", func(t *testing.T) { test(t, c, lateInjector{i}) })
	})
}

// A choice among tools that only an extension knows is sent with them.
func TestR6_ChoiceIsSentWithToolsOfAnExtension(t *testing.T) {
	no := false
	forced := &dragoman.ToolChoice{Mode: dragoman.ChoiceTool, Tools: []dragoman.ToolRef{{Name: "of_extension"}}}
	required := &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
	for name, tc := range map[string]struct {
		choice  *dragoman.ToolChoice
		noTools bool
	}{"required without other tools": {required, true}, "forced without other tools": {forced, true}, "forced": {forced, false}} {
		each(t, func(t *testing.T, c dialect.Codec) {
			own := nativeTools(t, c, "of_extension")
			place := toolsPlace(c.Dialect())
			send := func(e extension.Extension, tools []dragoman.ToolSpec) (*dragoman.Response, extension.Object) {
				server := serve(t, c, respond(textResponse("Yes.")))
				client := &provider.Client{}
				if e != nil {
					client.Extensions = extensions(t, e)
				}
				req := newRequest()
				req.Tools, req.ToolChoice, req.ParallelToolCalls = tools, tc.choice, &no
				resp, err := server.client(client).Generate(t.Context(), req)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				o, err := extension.NewObject(server.requests()[0].body)
				if err != nil {
					t.Fatal(err)
				}
				return resp, o
			}
			tools := newRequest().Tools
			if tc.noTools {
				tools = nil
			}
			resp, got := send(earlyInjector{injector{place: place, tools: own}}, tools)
			same, want := send(nil, []dragoman.ToolSpec{{Name: "of_extension", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)}})
			if string(got.Get(place)) != string(own) {
				t.Errorf("%s: the tools are %s", name, got.Get(place))
			}
			for _, field := range []string{"tool_choice", "parallel_tool_calls", "/toolConfig/toolChoice", "/toolConfig/functionCallingConfig"} {
				if string(got.Get(field)) != string(want.Get(field)) {
					t.Errorf("%s: %s is %s, want %s", name, field, got.Get(field), want.Get(field))
				}
			}
			if resp.Losses.String() != same.Losses.String() {
				t.Errorf("%s: the losses are %s, want %s", name, resp.Losses, same.Losses)
			}
		})
	}
}

// A request is not refused for a loss in tools that are not sent.
func TestR6_LossesOfToolsThatAreNotSentAreNotReported(t *testing.T) {
	each(t, func(t *testing.T, c dialect.Codec) {
		warn := dragoman.Warn
		server := serve(t, c, respond(textResponse("Yes.")))
		own := nativeTools(t, c, "get_weather")
		req := newRequest()
		req.Tools = append(req.Tools, dragoman.ToolSpec{Kind: codes.ToolHosted, Name: "search", Source: &dragoman.ToolSource{Format: "acme.search", JSON: json.RawMessage(`{"type":"search"}`)}})
		if _, err := server.client(&provider.Client{Strict: &warn}).Generate(t.Context(), req); err == nil {
			t.Fatal("a tool of another provider is not a loss")
		}
		model := server.client(&provider.Client{Strict: &warn, Extensions: extensions(t, earlyInjector{injector{place: toolsPlace(c.Dialect()), tools: own}})})
		if _, err := model.Generate(t.Context(), req); err != nil {
			t.Error(err)
		}
	})
}
