package agent_test

import (
	"context"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/targets"
	"github.com/dragoman-go/dragoman/tool"
)

// encoding is a model whose requests are encoded for a dialect. Without a Target method, the
// agent searches by itself.
type encoding struct {
	scripted
	codec  dialect.Codec
	bodies []string
}

func (m *encoding) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	enc, err := m.codec.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		return nil, err
	}
	m.bodies = append(m.bodies, string(enc.Body)+"\n"+enc.Report.String())
	return m.scripted.Generate(ctx, req)
}

// encodingSearch is such a model whose provider has a tool search.
type encodingSearch struct {
	*encoding
	client *provider.Client
}

func (m *encodingSearch) Target(ctx context.Context, model string) (targets.Target, *extension.Resolution, error) {
	return m.client.Target(ctx, model)
}

// both calls a tool and its deferred sibling.
func both(name string) *dragoman.Response {
	res := calls("b "+name, "c "+name)
	res.Output[0].Parts[1].(*dragoman.ToolCall).Namespace = name
	return res
}

// A tool and a deferred tool may have the same name, and the model can call either.
func TestI2_DeferredSiblingOfAToolIsCalledByItsOwnKey(t *testing.T) {
	for _, codec := range []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}} {
		for _, native := range []bool{false, true} {
			var did counted
			later := tool.New("weather", "The weather of other planets.", func(context.Context, word) (string, error) {
				did.mu.Lock()
				defer did.mu.Unlock()
				did.runs = append(did.runs, "deferred")
				return "", nil
			}, tool.Deferred())
			script := []any{calls(`a tool_search {"query":"planets"}`), both("weather"), textResponse("done")}
			w := &encoding{codec: codec, scripted: scripted{script: script}}
			a := agent.Agent{Model: w, Tools: []tool.Tool{did.tool("weather"), later}, Runner: &tool.Runner{Parallel: 1}}
			if native {
				if codec.Dialect() != dialectname.OpenAIResponses && codec.Dialect() != dialectname.Anthropic {
					continue
				}
				w.script = script[1:]
				a.Model = &encodingSearch{w, &provider.Client{Codec: codec, Model: "m"}}
			}
			res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
			if did.String() != "weather: deferred" || res.Output != "done" {
				t.Errorf("%s, native search %v: ran %q", codec.Dialect(), native, did.String())
			}
			last := w.bodies[len(w.bodies)-1]
			if strings.Contains(last, "declared twice") {
				t.Errorf("%s, native search %v: one of the two is not sent:\n%s", codec.Dialect(), native, last)
			}
			for _, rec := range res.Records[len(res.Records)-2:] {
				if rec.Tool != "weather" || rec.Trace != "weather" {
					t.Errorf("%s: recorded as %q, traced as %q", codec.Dialect(), rec.Tool, rec.Trace)
				}
			}
		}
	}
}
