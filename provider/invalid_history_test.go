package provider_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/provider"
)

// If the arguments of a call are not JSON, {} is sent back to its server, streamed or not.
func TestR7_InvalidArgumentsAreNotSentBackToTheirOrigin(t *testing.T) {
	broken, err := json.Marshal(`{"city":`)
	if err != nil {
		t.Fatal(err)
	}
	chat := `{"index":0,"id":"c1","type":"function","function":{"name":"get_weather","arguments":` + string(broken) + `}}`
	item := `{"type":"function_call","id":"fc_1","call_id":"c1","name":"get_weather","arguments":` + string(broken) + `,"status":"completed"}`
	response := `{"id":"resp_1","object":"response","status":"completed","model":"m","output":[` + item + `]}`
	for _, tc := range []struct {
		codec         dialect.Codec
		whole, stream string
	}{
		{
			openaichat.Codec{},
			`{"id":"x","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[` + chat + `]}}]}`,
			`data: {"id":"x","model":"m","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[` + chat + `]}}]}` + "\n\n" +
				`data: {"id":"x","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n",
		},
		{
			openairesponses.Codec{},
			response,
			"event: response.output_item.done\ndata: " + `{"type":"response.output_item.done","output_index":0,"item":` + item + `}` +
				"\n\nevent: response.completed\ndata: " + `{"type":"response.completed","response":` + response + `}` + "\n\n",
		},
	} {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprint(tc.codec.Dialect(), " streamed ", streamed), func(t *testing.T) {
				var body []byte
				client := &provider.Client{Codec: tc.codec, BaseURL: "http://x.test", Model: "m", HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					body, _ = io.ReadAll(r.Body)
					answer, kind := tc.whole, "application/json"
					if streamed {
						answer, kind = tc.stream, "text/event-stream"
					}
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
				})}}
				send := func(req *dragoman.Request) *dragoman.Response {
					var resp *dragoman.Response
					var err error
					if streamed {
						resp, err = dragoman.Collect(client.Stream(t.Context(), req))
					} else {
						resp, err = client.Generate(t.Context(), req)
					}
					if err != nil {
						t.Fatal(err)
					}
					return resp
				}
				req := newRequest()
				resp := send(req)
				calls := resp.ToolCalls()
				if len(calls) != 1 || calls[0].Arguments != `{"city":` || calls[0].Problem == nil {
					t.Fatalf("the call was read as %+v", calls)
				}
				req.Messages = append(append(req.Messages, resp.Output...), dragoman.Message{Role: dragoman.RoleTool, Parts: []dragoman.Part{
					&dragoman.ToolResult{CallID: "c1", Name: "get_weather", Content: []dragoman.Part{&dragoman.Text{Text: "not JSON"}}},
				}})
				resp = send(req)
				if !strings.Contains(string(body), `"arguments":"{}"`) || strings.Contains(string(body), `{\"city\":`) {
					t.Errorf("the history is %s", body)
				}
				if !strings.Contains(resp.Losses.String(), "written as {}") {
					t.Errorf("the losses are %s", resp.Losses)
				}
			})
		}
	}
}
