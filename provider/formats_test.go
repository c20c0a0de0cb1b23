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
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// plugged is a tool format that no dialect has; plugin reads it.
const plugged dragoman.Format = "plugin.tool"

type plugin struct{}

func (plugin) Format() dragoman.Format { return plugged }

func (plugin) InspectSchema(json.RawMessage) ([]dragoman.ToolSpec, dragoman.Report, error) {
	return []dragoman.ToolSpec{{Name: "look", Description: "the canonical view", Parameters: json.RawMessage(`{"type":"object"}`)}}, dragoman.Report{}, nil
}

// directAdapter writes a definition of the plugin's format in another format.
type directAdapter struct{ to dragoman.Format }

func (directAdapter) Kind() string          { return codes.SchemaObject }
func (directAdapter) From() dragoman.Format { return plugged }
func (d directAdapter) To() dragoman.Format { return d.to }

func (directAdapter) Adapt(in dragoman.AdapterInput) (json.RawMessage, dragoman.Report, error) {
	return json.RawMessage(`{"adapted":` + string(in.Native) + `}`), dragoman.Report{}, nil
}

// contributing is an extension with a contribution and required tags.
type contributing struct {
	requires     []extension.Tag
	contribution dragoman.Contribution
}

func (c contributing) Info() extension.Info {
	return extension.Info{Name: "contributing", Requires: c.requires}
}

func (c contributing) Contribute(*extension.Exchange) []dragoman.Contribution {
	return []dragoman.Contribution{c.contribution}
}

// payloadScribbler is an extension that changes the bytes of the payload in place.
type payloadScribbler struct{ contributing }

func (payloadScribbler) Decorate(_ context.Context, x *extension.Exchange) error {
	payload := x.Payload.JSON()
	for i := range payload {
		if payload[i] == 'o' {
			payload[i] = 'x'
		}
	}
	return nil
}

// ownTools are definitions in the formats of the dialects, with odd spaces and an unknown
// keyword.
var ownTools = map[dragoman.Dialect]dragoman.ToolSource{
	dialectname.OpenAIChat:      {Format: toolformat.ChatFunction, JSON: json.RawMessage(`{ "type":"function","function":{"name":"look",  "parameters":{"type":"object","x-odd": 1 }} }`)},
	dialectname.OpenAIResponses: {Format: toolformat.ResponsesFunction, JSON: json.RawMessage(`{ "type":"function","name":"look",  "strict":false,"parameters":{"type":"object","x-odd": 1 } }`)},
	dialectname.Anthropic:       {Format: toolformat.AnthropicTool, JSON: json.RawMessage(`{ "name":"look",  "input_schema":{"type":"object","x-odd": 1 } }`)},
	dialectname.Gemini:          {Format: toolformat.GeminiFunction, JSON: json.RawMessage(`{ "name":"look",  "parametersJsonSchema":{"type":"object","x-odd": 1 } }`)},
	dialectname.Ollama:          {Format: toolformat.OllamaFunction, JSON: json.RawMessage(`{ "type":"function","function":{"name":"look",  "parameters":{"type":"object","x-odd": 1 }} }`)},
	dialectname.Bedrock:         {Format: toolformat.BedrockTool, JSON: json.RawMessage(`{ "toolSpec":{"name":"look",  "inputSchema":{"json":{"type":"object","x-odd": 1 }}} }`)},
	cohere.Codec{}.Dialect():    {Format: "cohere.chat.function", JSON: json.RawMessage(`{ "type":"function","function":{"name":"look",  "parameters":{"type":"object","x-odd": 1 }} }`)},
}

// sentWith returns the body of a request with tools, sent with an extension.
func sentWith(t *testing.T, codec dialect.Codec, e extension.Extension, tools []dragoman.ToolSpec) string {
	t.Helper()
	var body []byte
	c := &provider.Client{Codec: codec, BaseURL: "http://x.test", Model: "m"}
	if e != nil {
		c.Extensions = extensions(t, e)
	}
	c.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		body, _ = io.ReadAll(r.Body)
		enc, err := codec.EncodeResponse(textResponse("Yes."), dialect.EncodeOptions{Seed: "s"})
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(enc.Body)), Request: r}, err
	})}
	req := newRequest()
	req.Tools, req.Contributions = tools, []dragoman.Contribution{{Source: "tool", Schemas: []dragoman.SchemaAccessor{plugin{}}}}
	if _, err := c.Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestR4_AcceptedFormatsFollowTheProviderAndItsEnabledExtensions(t *testing.T) {
	const source = `{"odd":   "bytes"}`
	each(t, func(t *testing.T, codec dialect.Codec) {
		own := ownTools[codec.Dialect()]
		tool := []dragoman.ToolSpec{{Name: "look", Source: &own}}
		if body := sentWith(t, codec, nil, tool); !strings.Contains(body, string(own.JSON)) {
			t.Errorf("the dialect's own format: %s", body)
		}
		tool = []dragoman.ToolSpec{{Name: "look", Source: &dragoman.ToolSource{Format: plugged, JSON: json.RawMessage(source)}}}
		accepts := dragoman.Contribution{Source: "extension", Accepts: []dragoman.Format{plugged}}
		adapts := dragoman.Contribution{Source: "extension", Adapters: []dragoman.Adapter{directAdapter{own.Format}}}
		never := []extension.Tag{"never"}
		for name, tc := range map[string]struct {
			e    contributing
			want string
		}{
			"accepted":              {contributing{nil, accepts}, source},
			"accepted by one off":   {contributing{never, accepts}, "the canonical view"},
			"direct adapter":        {contributing{nil, adapts}, `{"adapted":` + source + `}`},
			"direct adapter, off":   {contributing{never, adapts}, "the canonical view"},
			"neither of the two":    {contributing{}, "the canonical view"},
			"accepted, not adapted": {contributing{nil, dragoman.Contribution{Source: "extension", Accepts: accepts.Accepts, Adapters: adapts.Adapters}}, source},
		} {
			body := sentWith(t, codec, tc.e, tool)
			if !strings.Contains(body, tc.want) || strings.Contains(body, "adapted") != strings.Contains(tc.want, "adapted") || strings.Contains(body, source) != strings.Contains(tc.want, source) {
				t.Errorf("%s: %s", name, body)
			}
		}
	})
}

func TestR5_SourcesAreByteEqualAfterRequestsToEveryProvider(t *testing.T) {
	var tools []dragoman.ToolSpec
	for i, codec := range codecs {
		source := ownTools[codec.Dialect()]
		space := string(rune('a' + i))
		tools = append(tools,
			dragoman.ToolSpec{Name: "look", Namespace: space, NamespaceDescription: "n", Source: &source},
			dragoman.ToolSpec{
				Name: "find_" + space, Strict: codes.StrictOn, Deferred: i == 0,
				Parameters: json.RawMessage(`{"type":"object","properties":{"q":{"anyOf":[{"type":"string"},{"type":"null"}]},"r":{"$ref":"#/$defs/r"}},"$defs":{"r":{"type":"string","pattern":"^q"}}}`),
			})
	}
	tools = append(tools, dragoman.ToolSpec{Name: "free", Kind: codes.ToolFreeform, Grammar: &dragoman.Grammar{Syntax: "regex", Definition: "q+"}})
	before, err := json.Marshal(tools)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		each(t, func(t *testing.T, codec dialect.Codec) {
			sentWith(t, codec, payloadScribbler{}, tools)
			after, err := json.Marshal(tools)
			if err != nil || !bytes.Equal(before, after) {
				t.Fatalf("the tools became\n%s\nand were\n%s", after, before)
			}
		})
	}
}
