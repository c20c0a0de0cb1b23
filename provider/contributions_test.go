package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// accessorFunc makes an accessor of the plugin's format from a function.
type accessorFunc func(obj json.RawMessage) []dragoman.ToolSpec

func (accessorFunc) Format() dragoman.Format { return plugged }

func (f accessorFunc) InspectSchema(obj json.RawMessage) ([]dragoman.ToolSpec, dragoman.Report, error) {
	return f(obj), dragoman.Report{}, nil
}

// adapterFunc makes an adapter to a dialect's own format from a function. If from is empty, it
// writes from the canonical view.
type adapterFunc struct {
	from, to dragoman.Format
	adapt    func(in dragoman.AdapterInput) string
}

func (adapterFunc) Kind() string            { return codes.SchemaObject }
func (w adapterFunc) From() dragoman.Format { return w.from }
func (w adapterFunc) To() dragoman.Format   { return w.to }

func (w adapterFunc) Adapt(in dragoman.AdapterInput) (json.RawMessage, dragoman.Report, error) {
	return json.RawMessage(w.adapt(in)), dragoman.Report{}, nil
}

// sentTools sends a request with tools and a contribution. It returns the body that was sent
// and the response.
func sentTools(t *testing.T, codec dialect.Codec, c dragoman.Contribution, tools ...dragoman.ToolSpec) (string, *dragoman.Response) {
	t.Helper()
	var body []byte
	client := &provider.Client{Codec: codec, BaseURL: "http://x.test", Model: "m"}
	client.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		body, _ = io.ReadAll(r.Body)
		enc, err := codec.EncodeResponse(textResponse("Yes."), dialect.EncodeOptions{Seed: "s"})
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(enc.Body)), Request: r}, err
	})}
	req := newRequest()
	req.Tools, req.Contributions = tools, []dragoman.Contribution{c}
	resp, err := client.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(body) {
		t.Errorf("the request is not JSON: %s", body)
	}
	return string(body), resp
}

// pluggedTool returns a tool with a name and a source, and nothing else.
func pluggedTool(source string) dragoman.ToolSpec {
	return dragoman.ToolSpec{Name: "look", Source: &dragoman.ToolSource{Format: plugged, JSON: json.RawMessage(source)}}
}

func TestR10_NamedToolGetsTheDefinitionOfItsSource(t *testing.T) {
	yes := true
	for name, spec := range map[string]dragoman.ToolSpec{
		"function": {
			Description: "finds things", Strict: codes.StrictOn, Deferred: true, Annotations: dragoman.Annotations{ReadOnly: &yes},
			Parameters:   json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}`),
			OutputSchema: json.RawMessage(`{"type":"string"}`), Examples: []json.RawMessage{json.RawMessage(`{"q":"x"}`)},
		},
		"freeform": {Kind: codes.ToolFreeform, Description: "finds things", Grammar: &dragoman.Grammar{Syntax: "regex", Definition: "q+"}},
	} {
		each(t, func(t *testing.T, codec dialect.Codec) {
			read := accessorFunc(func(json.RawMessage) []dragoman.ToolSpec {
				s := spec
				s.Name = "the source's name"
				return []dragoman.ToolSpec{s}
			})
			got, resp := sentTools(t, codec, dragoman.Contribution{Source: "tool", Schemas: []dragoman.SchemaAccessor{read}}, pluggedTool(`{}`))
			whole := spec
			whole.Name = "look"
			want, same := sentTools(t, codec, dragoman.Contribution{}, whole)
			if got != want || resp.Losses.String() != same.Losses.String() {
				t.Errorf("%s:\ngot  %s\n%s\nwant %s\n%s", name, got, resp.Losses, want, same.Losses)
			}
		})
	}
}

func TestR5_ContributionsCannotChangeTheRequest(t *testing.T) {
	const source = `{"odd":   "bytes"}`
	scribble := func(b []byte) {
		for i := range b {
			b[i] = ' '
		}
	}
	look := []dragoman.ToolSpec{{Name: "look", Parameters: json.RawMessage(`{"type":"object"}`)}}
	each(t, func(t *testing.T, codec dialect.Codec) {
		own := ownTools[codec.Dialect()].Format
		for name, c := range map[string]dragoman.Contribution{
			"accessor": {Schemas: []dragoman.SchemaAccessor{accessorFunc(func(obj json.RawMessage) []dragoman.ToolSpec {
				scribble(obj)
				return look
			})}},
			"direct adapter": {Adapters: []dragoman.Adapter{adapterFunc{plugged, own, func(in dragoman.AdapterInput) string {
				scribble(in.Native)
				return `{}`
			}}}},
			"adapter from the canonical view": {Schemas: []dragoman.SchemaAccessor{plugin{}}, Adapters: []dragoman.Adapter{adapterFunc{"", own, func(in dragoman.AdapterInput) string {
				in.Schema.Name = "changed"
				scribble(in.Schema.Parameters)
				if in.Schema.Source != nil {
					scribble(in.Schema.Source.JSON)
				}
				return `{}`
			}}}},
		} {
			tools := []dragoman.ToolSpec{pluggedTool(source), {Name: "find", Parameters: json.RawMessage(`{"type":"object"}`)}}
			for range 2 {
				sentTools(t, codec, c, tools...)
			}
			if string(tools[0].Source.JSON) != source || string(tools[1].Parameters) != `{"type":"object"}` || tools[1].Name != "find" {
				t.Errorf("%s: the tools became %s and %+v", name, tools[0].Source.JSON, tools[1])
			}
		}
	})
}

func TestR10_FailedContributionLosesOnlyItsTool(t *testing.T) {
	other := dragoman.ToolSpec{Name: "find_it", Parameters: json.RawMessage(`{"type":"object"}`)}
	each(t, func(t *testing.T, codec dialect.Codec) {
		own := ownTools[codec.Dialect()].Format
		for name, tc := range map[string]struct {
			c    dragoman.Contribution
			want string
		}{
			"accessor that panics": {dragoman.Contribution{Source: "plug", Schemas: []dragoman.SchemaAccessor{accessorFunc(func(json.RawMessage) []dragoman.ToolSpec {
				panic("no such field")
			})}}, "no such field"},
			"adapter that panics": {dragoman.Contribution{Source: "plug", Adapters: []dragoman.Adapter{adapterFunc{plugged, own, func(dragoman.AdapterInput) string {
				panic("no such field")
			}}}}, "no such field"},
			"adapter that writes nothing": {dragoman.Contribution{Source: "plug", Adapters: []dragoman.Adapter{adapterFunc{plugged, own, func(dragoman.AdapterInput) string {
				return ""
			}}}}, "invalid JSON"},
			"adapter that writes half an object": {dragoman.Contribution{Source: "plug", Adapters: []dragoman.Adapter{adapterFunc{plugged, own, func(dragoman.AdapterInput) string {
				return `{"name":`
			}}}}, "invalid JSON"},
		} {
			body, resp := sentTools(t, codec, tc.c, pluggedTool(`{}`), other)
			if !strings.Contains(body, "find_it") || strings.Contains(body, `"look"`) {
				t.Errorf("%s: %s", name, body)
			}
			found := false
			for _, l := range resp.Losses.Losses {
				found = found || l.Severity == dragoman.Serious && l.Path == "/tools/0" && strings.Contains(l.Detail, tc.want) && strings.Contains(l.Detail, "plug")
			}
			if !found {
				t.Errorf("%s: %s", name, resp.Losses)
			}
		}
	})
}

// recognizing is an accessor of calls that has a [dragoman.Recognizer].
type recognizing struct{}

func (recognizing) Format() dragoman.Format             { return "plugin.call" }
func (recognizing) Recognizes(obj json.RawMessage) bool { return bytes.Contains(obj, []byte("plugin")) }

func (recognizing) InspectCall(json.RawMessage) (*dragoman.ToolCall, dragoman.Report, error) {
	return &dragoman.ToolCall{Name: "look"}, dragoman.Report{}, nil
}

// recognized is an extension that asks its registry for the format of a call.
type recognized struct {
	contributing
	format *dragoman.Format
}

func (r recognized) Decorate(_ context.Context, x *extension.Exchange) error {
	*r.format = x.Registry.RecognizeCall(json.RawMessage(`{"type":"tool_use","name":"plugin","input":{}}`))
	return nil
}

func TestR1_ExtensionRecognizersComeFirst(t *testing.T) {
	var got dragoman.Format
	e := recognized{contributing{nil, dragoman.Contribution{Source: "extension", Calls: []dragoman.CallAccessor{recognizing{}}}}, &got}
	sentWith(t, codecs[0], e, nil)
	if got != "plugin.call" {
		t.Errorf("the call has the format %q", got)
	}
}
