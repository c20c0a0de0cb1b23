package gemini_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codectest"
	"github.com/dragoman-go/dragoman/internal/recordings"
	"github.com/google/go-cmp/cmp"
)

func recorded(t *testing.T) []recordings.Exchange {
	return recordings.Load(t, "gemini_generateContent")
}

func isStream(x *recordings.Exchange) bool {
	s := strings.TrimSpace(*x.Resp)
	return strings.HasPrefix(s, "data:") || strings.HasPrefix(s, "[")
}

// expanded spells a recorded request as a rebuilt one does, and counts why.
func expanded(req map[string]any, why map[string]int) map[string]any {
	for _, tool := range list(req["tools"]) {
		tool := tool.(map[string]any)
		for k, v := range tool {
			if v == nil {
				delete(tool, k)
				why["a tool that is null left out"]++
			}
		}
	}
	if c := object(object(req["toolConfig"])["functionCallingConfig"]); c != nil {
		if names, ok := c["allowed_function_names"]; ok {
			delete(c, "allowed_function_names")
			c["allowedFunctionNames"] = names
			why["snake_case written in camelCase"]++
		}
		if mode, _ := c["mode"].(string); mode != strings.ToUpper(mode) {
			c["mode"] = strings.ToUpper(mode)
			why["a mode in capitals"]++
		}
	}
	config := object(req["generationConfig"])
	if s, ok := config["responseSchema"]; ok {
		delete(config, "responseSchema")
		config["responseJsonSchema"] = jsonSchema(s)
		why["responseSchema written as responseJsonSchema"]++
	}
	if think := object(config["thinkingConfig"]); think != nil {
		if level, _ := think["thinkingLevel"].(string); level != strings.ToUpper(level) {
			think["thinkingLevel"] = strings.ToUpper(level)
			why["a thinking level in capitals"]++
		}
	}
	var asked []string
	for _, c := range list(req["contents"]) {
		asked = inOrder(object(c), asked, why)
		for _, p := range list(object(c)["parts"]) {
			p := p.(map[string]any)
			if p["thoughtSignature"] != nil && len(p) == 1 {
				p["text"] = ""
				why["a signature alone gets an empty text"]++
			}
			if f := object(p["functionCall"]); f != nil && f["args"] == nil {
				f["args"] = map[string]any{}
				why["no arguments written as {}"]++
			}
			if f := object(p["functionResponse"]); f != nil && f["response"] == nil {
				f["response"] = map[string]any{"output": ""}
				why["no response written as an empty output"]++
			}
		}
	}
	req["contents"] = merged(list(req["contents"]), why)
	return req
}

// merged joins neighbours of one role.
func merged(contents []any, why map[string]int) (out []any) {
	for _, c := range contents {
		if n := len(out); n > 0 {
			if last := object(out[n-1]); last["role"] == object(c)["role"] {
				last["parts"] = append(list(last["parts"]), list(object(c)["parts"])...)
				why["contents of one role merged"]++
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

// inOrder puts the results of a content in the order of the calls before it, and
// returns the names of those that it makes itself.
func inOrder(content map[string]any, asked []string, why map[string]int) (calls []string) {
	parts := list(content["parts"])
	rank := func(p any) int {
		res := object(object(p)["functionResponse"])
		if res == nil || res["id"] != nil {
			return 0
		}
		return slices.Index(asked, res["name"].(string))
	}
	byRank := func(a, b any) int { return rank(a) - rank(b) }
	if !slices.IsSortedFunc(parts, byRank) {
		slices.SortStableFunc(parts, byRank)
		why["results in the order of the calls"]++
	}
	for _, p := range parts {
		if c := object(object(p)["functionCall"]); c != nil {
			calls = append(calls, c["name"].(string))
		}
	}
	return calls
}

// jsonSchema is a closed schema as JSON Schema, for what was recorded.
func jsonSchema(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if s, ok := x.(string); ok && k == "type" {
				v[k] = strings.ToLower(s)
				continue
			}
			v[k] = jsonSchema(x)
		}
	case []any:
		for i, x := range v {
			v[i] = jsonSchema(x)
		}
	}
	return v
}

func list(v any) []any { l, _ := v.([]any); return l }

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

func TestRecordedRequestsRebuildEqual(t *testing.T) {
	why := map[string]int{}
	n := 0
	for _, x := range recorded(t) {
		if x.Req == nil {
			continue
		}
		n++
		req, _, err := codec.DecodeRequest([]byte(*x.Req), dialect.DecodeOptions{})
		if err != nil {
			t.Errorf("%s: %v", x.ID(), err)
			continue
		}
		req.Stream = true // as its URL may say
		same, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil || string(same.Body) != *x.Req {
			t.Errorf("%s: an unchanged request is not byte-identical (%v)", x.ID(), err)
		}
		built, err := codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Errorf("%s: rebuild: %v", x.ID(), err)
			continue
		}
		if diff := cmp.Diff(expanded(codectest.JSON[map[string]any](t, []byte(*x.Req)), why), codectest.JSON[map[string]any](t, built.Body)); diff != "" {
			t.Errorf("%s (status %d): %s\n%s", x.ID(), x.Status, diff, built.Report)
		}
	}
	t.Logf("%d requests; explained differences: %v", n, why)
}

func TestRecordedAnswers(t *testing.T) {
	whole, streams, failures := 0, 0, 0
	for _, x := range recorded(t) {
		switch {
		case x.Resp == nil:
		case x.Status != 200:
			failures++
			if e := codec.DecodeError(x.Status, nil, []byte(*x.Resp)); e.Native == nil || e.Class == dragoman.ErrorUnknown || e.Type == "" {
				t.Errorf("%s: %+v", x.ID(), e)
			}
		case isStream(&x):
			streams++
			recordedStream(t, &x)
		default:
			whole++
			recordedResponse(t, &x)
		}
	}
	t.Logf("%d responses, %d streams, %d errors", whole, streams, failures)
}

func recordedResponse(t *testing.T, x *recordings.Exchange) {
	t.Helper()
	resp, _, err := codec.DecodeResponse([]byte(*x.Resp), dialect.DecodeOptions{})
	if err != nil {
		t.Errorf("%s: %v", x.ID(), err)
		return
	}
	same, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || string(same.Body) != *x.Resp {
		t.Errorf("%s: an unchanged response is not byte-identical (%v)", x.ID(), err)
	}
	built, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil {
		t.Errorf("%s: rebuild: %v", x.ID(), err)
	}
	again, _, err := codec.DecodeResponse(built.Body, dialect.DecodeOptions{})
	if resp.ID == "" {
		again.ID = "" // clients demand one, so it was made
	}
	if diff := cmp.Diff(resp, again, ignoreSidecars); diff != "" || err != nil {
		t.Errorf("%s: rebuilt response means something else (%v): %s", x.ID(), err, diff)
	}
	// The same body as the only chunk of a stream means the same.
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(*x.Resp)); err != nil {
		t.Fatal(err)
	}
	streamed := collect(t, sseStream(compact.String()))
	bare, _, _ := codec.DecodeResponse(compact.Bytes(), dialect.DecodeOptions{})
	if diff := cmp.Diff(bare, streamed, ignoreSidecars); diff != "" {
		t.Errorf("%s: as a stream it means something else: %s", x.ID(), diff)
	}
}

func recordedStream(t *testing.T, x *recordings.Exchange) {
	t.Helper()
	body := []byte(*x.Resp)
	evs, err := drain(dialect.DecodeOptions{}, body)
	if err != nil {
		t.Errorf("%s: %v", x.ID(), err)
		return
	}
	if out, _ := play(t, dialect.EncodeOptions{}, evs...); out != *x.Resp {
		t.Errorf("%s: an unchanged stream is not byte-identical", x.ID())
	}
	var bare []dragoman.Event
	for _, ev := range evs {
		if ev.Type() != dragoman.EventChunk {
			bare = append(bare, ev)
		}
	}
	resp, err := codectest.Collect(bare)
	if err != nil {
		t.Errorf("%s: %v", x.ID(), err)
	}
	for _, c := range resp.ToolCalls() {
		if c.Arguments == "" {
			c.Arguments = "{}" // as it is written
		}
	}
	out, _ := play(t, dialect.EncodeOptions{}, bare...)
	if err := checkWire([]byte(out)); err != nil {
		t.Errorf("%s: what we emit is not valid: %v", x.ID(), err)
	}
	evs, err = drain(dialect.DecodeOptions{NoNative: true}, []byte(out))
	if err != nil {
		t.Errorf("%s: rebuilt stream: %v\n%s", x.ID(), err, out)
		return
	}
	again, _ := codectest.Collect(evs)
	if resp.ID == "" {
		again.ID = "" // clients demand one, so it was made
	}
	if diff := cmp.Diff(resp, again, ignoreSidecars); diff != "" {
		t.Errorf("%s: rebuilt stream means something else: %s", x.ID(), diff)
	}
}
