package ollama_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codectest"
	"github.com/dragoman-go/dragoman/internal/recordings"
)

// exchange is one recorded request and what was answered.
type exchange struct {
	id, req, resp string
	status        int
}

// recorded reads the exchanges with the chat API, those of the public cassettes
// and those of a live server.
func recorded(t *testing.T) []exchange {
	t.Helper()
	var out []exchange
	for _, x := range recordings.Load(t, "ollama_chat") {
		req, _ := x.Request()
		resp, err := x.Response()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, exchange{x.ID(), string(req), string(resp), x.Status})
	}
	return append(out, live(t)...)
}

// live reads the exchanges with a server of our own, which has other APIs too.
func live(t *testing.T) []exchange {
	t.Helper()
	text, err := os.ReadFile("../../../shared/recorded/live_ollama.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []exchange
	for line := range bytes.Lines(text) {
		var x struct {
			API, Case string
			Status    int
			Req, Resp json.RawMessage
		}
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		if x.API == "ollama.chat" || x.API == "ollama_chat" {
			out = append(out, exchange{x.Case, plain(x.Req), plain(x.Resp), x.Status})
		}
	}
	return out
}

// plain is a body that was recorded as a string, or as the JSON itself.
func plain(raw json.RawMessage) string {
	var s string
	switch {
	case len(raw) == 0, string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &s) == nil:
		return s
	default:
		return string(raw)
	}
}

// writtenOut makes of a request what we write for it, and counts what that
// changes: defaults, and what a client left to the order of messages.
func writtenOut(v map[string]any, seen map[string]int) {
	if _, said := v["stream"]; !said {
		seen["stream:true written out"]++
		v["stream"] = true
	}
	var called []string
	for _, m := range v["messages"].([]any) {
		m := m.(map[string]any)
		for _, c := range listOf(m["tool_calls"]) {
			called = append(called, c.(map[string]any)["function"].(map[string]any)["name"].(string))
		}
		if m["role"] != "tool" {
			continue
		}
		if _, named := m["tool_name"]; !named && len(called) > 0 {
			seen["tool_name written out"]++
			m["tool_name"] = called[0]
		}
		called = called[min(1, len(called)):]
	}
}

func listOf(v any) []any { l, _ := v.([]any); return l }

func TestRecordedRequestsAreReadAndWrittenAgain(t *testing.T) {
	seen := map[string]int{}
	n := 0
	for _, x := range recorded(t) {
		if x.req == "" {
			continue
		}
		n++
		req, rep, err := codec.DecodeRequest([]byte(x.req), dialect.DecodeOptions{})
		if err != nil || rep.Err(dragoman.Warn) != nil {
			t.Errorf("%s: %v\n%s", x.id, err, rep)
			continue
		}
		same, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil || string(same.Body) != x.req {
			t.Errorf("%s: unchanged it went out as %s, %v", x.id, same.Body, err)
		}
		enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil || enc.Report.Err(dragoman.Info) != nil {
			t.Errorf("%s: %v\n%s", x.id, err, enc.Report)
		}
		var want, got map[string]any
		if json.Unmarshal([]byte(x.req), &want) != nil || json.Unmarshal(enc.Body, &got) != nil {
			t.Fatal(x.id)
		}
		writtenOut(want, seen)
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%s:\nsent    %s\nrebuilt %s", x.id, x.req, enc.Body)
		}
	}
	t.Logf("%d requests; %v", n, seen)
	if n < 50 {
		t.Errorf("only %d requests", n)
	}
}

func TestRecordedAnswersAreReadAndWrittenAgain(t *testing.T) {
	counts := map[string]int{}
	for _, x := range recorded(t) {
		switch {
		case x.resp == "":
			counts["no answer recorded"]++
		case x.status >= 400:
			counts["errors"]++
			recordedError(t, x)
		case strings.Count(strings.TrimSpace(x.resp), "\n") == 0:
			counts["whole"]++
			recordedResponse(t, x, counts)
		default:
			counts["streams"]++
			recordedStream(t, x, counts)
		}
	}
	t.Log(counts)
	if counts["whole"] < 25 || counts["streams"] < 25 || counts["calls"] < 25 || counts["errors"] < 2 {
		t.Errorf("too little: %v", counts)
	}
}

func recordedError(t *testing.T, x exchange) {
	e := codec.DecodeError(x.status, nil, []byte(x.resp))
	if e.Class != dragoman.ErrorNotFound || !strings.Contains(x.resp, e.Message) {
		t.Errorf("%s: %+v", x.id, e)
	}
	if status, body := codec.EncodeError(e); status != x.status || string(body) != x.resp {
		t.Errorf("%s: %d %s", x.id, status, body)
	}
}

// reading is what an independent reader finds in the lines of an answer.
type reading struct {
	text, thinking, word string
	calls                []string
	prompt, eval         float64
}

func readIndependently(t *testing.T, body string) (r reading) {
	for line := range strings.Lines(body) {
		var v struct {
			Message struct {
				Content, Thinking string
				ToolCalls         []struct {
					ID       string
					Function struct {
						Name      string
						Arguments any
					}
				} `json:"tool_calls"`
			}
			DoneReason string  `json:"done_reason"`
			Prompt     float64 `json:"prompt_eval_count"`
			Eval       float64 `json:"eval_count"`
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		r.text += v.Message.Content
		r.thinking += v.Message.Thinking
		for _, c := range v.Message.ToolCalls {
			args, _ := json.Marshal(c.Function.Arguments)
			r.calls = append(r.calls, c.ID+" "+c.Function.Name+" "+string(args))
		}
		r.word, r.prompt, r.eval = v.DoneReason, v.Prompt, v.Eval
	}
	return r
}

func readOf(t *testing.T, resp *dragoman.Response) (r reading) {
	for _, m := range resp.Output {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				r.text += p.Text
			case *dragoman.Reasoning:
				r.thinking += p.Text
			case *dragoman.ToolCall:
				var v any
				if err := json.Unmarshal([]byte(p.Arguments), &v); err != nil || p.Problem != nil && resp.Stop.Reason.Runs() {
					t.Errorf("%v %v", err, p.Problem)
				}
				args, _ := json.Marshal(v)
				r.calls = append(r.calls, p.ID+" "+p.Name+" "+string(args))
			}
		}
	}
	r.word, r.prompt, r.eval = resp.Stop.Native, float64(resp.Usage.Input.N), float64(resp.Usage.Output.N)
	return r
}

func recordedResponse(t *testing.T, x exchange, counts map[string]int) {
	resp, rep, err := codec.DecodeResponse([]byte(x.resp), dialect.DecodeOptions{})
	if err != nil || len(rep.Losses) > 0 {
		t.Fatalf("%s: %v\n%s", x.id, err, rep)
	}
	counts["calls"] += len(resp.ToolCalls())
	if want, got := readIndependently(t, x.resp), readOf(t, resp); !reflect.DeepEqual(want, got) {
		t.Errorf("%s:\nwant %+v\ngot  %+v", x.id, want, got)
	}
	same, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || string(same.Body) != x.resp {
		t.Errorf("%s: unchanged it went out as %s, %v", x.id, same.Body, err)
	}
	enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil || len(enc.Report.Losses) > 0 {
		t.Errorf("%s: %v\n%s", x.id, err, enc.Report)
	}
	sameJSON(t, string(enc.Body), x.resp)
}

func recordedStream(t *testing.T, x exchange, counts map[string]int) {
	d := decodeStream(t, dialect.DecodeOptions{}, x.resp)
	if d.feed != nil || d.err != nil || len(d.rep.Losses) > 0 {
		t.Fatalf("%s: %v, %v\n%s", x.id, d.feed, d.err, d.rep)
	}
	counts["calls"] += len(d.resp.ToolCalls())
	want := readIndependently(t, x.resp)
	if got := readOf(t, d.resp); !reflect.DeepEqual(want, got) {
		t.Errorf("%s:\nwant %+v\ngot  %+v", x.id, want, got)
	}
	if same, _ := codectest.EncodeStream(t, codec, dialect.EncodeOptions{}, d.events); string(same) != x.resp {
		t.Errorf("%s: unchanged it went out as\n%s", x.id, same)
	}
	lines, rep := written(t, dialect.EncodeOptions{}, codectest.Bare(d.events))
	if got := readIndependently(t, strings.Join(lines, "\n")); !reflect.DeepEqual(want, got) || len(rep.Losses) > 0 {
		t.Errorf("%s: written anew\nwant %+v\ngot  %+v\n%s", x.id, want, got, rep)
	}
}
