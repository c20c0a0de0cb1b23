package agent_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

func TestR9_EnvelopeIsKeptForItsDialectOnly(t *testing.T) {
	codecs := []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}, bedrock.Codec{}, cohere.Codec{}}
	content := map[dragoman.Dialect]string{
		dialectname.OpenAIChat: `[{"type":"text","text":"STRUCT"}]`, dialectname.OpenAIResponses: `[{"type":"input_text","text":"STRUCT"}]`,
		dialectname.Anthropic: `[{"type":"text","text":"STRUCT"}]`, dialectname.Gemini: `{"result":"STRUCT"}`, dialectname.Ollama: `"STRUCT"`,
		dialectname.Bedrock: `[{"json":{"x":"STRUCT"}}]`, cohere.Codec{}.Dialect(): `[{"type":"text","text":"STRUCT"}]`,
	}
	for _, format := range codecs {
		for _, to := range codecs {
			for _, streamed := range []bool{false, true} {
				raw := `{"type":"provider_native_tool_result","format":"` + string(format.Dialect()) + `","_metadata":{"cost":7},"content":` + content[format.Dialect()] + `,"text":"FALLBACK"}`
				look := tool.New("look", "Looks.", func(context.Context, struct{}) (json.RawMessage, error) { return json.RawMessage(raw), nil })
				var got []string
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					b, _ := io.ReadAll(r.Body)
					got = append(got, string(b))
					resp := textResponse("done")
					if len(got) == 1 {
						resp = calls("a look")
					}
					if err := writeWire(w, to, resp, streamed); err != nil {
						t.Error(err)
					}
				}))
				a := agent.Agent{Model: &provider.Client{Codec: to, BaseURL: srv.URL, Model: "m", Retry: provider.Retry{Max: -1}}, Tools: []tool.Tool{look}}
				s, _ := session.Create(t.Context(), &session.Memory{}, session.Info{})
				var err error
				if streamed {
					_, err = a.Stream(t.Context(), "go", agent.In(s)).Collect()
				} else {
					_, err = a.Run(t.Context(), "go", agent.In(s))
				}
				if err != nil {
					t.Error(err)
				}
				if _, err = a.Run(t.Context(), "again", agent.In(s)); err != nil {
					if !streamed {
						t.Error(err)
					}
				}
				for i, b := range got[1:] {
					same := format.Dialect() == to.Dialect()
					if strings.Contains(b, "STRUCT") != same || strings.Contains(b, "FALLBACK") == same || strings.Contains(b, "_metadata") || strings.Contains(b, "provider_native") {
						t.Errorf("%s to %s request %d: %s", format.Dialect(), to.Dialect(), i, b)
					}
				}
				srv.Close()
			}
		}
	}
}
