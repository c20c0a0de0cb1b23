package openairesponses

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit"
)

const recordedDir = "../../../shared/recorded"

func recorded(t *testing.T) []testkit.Exchange { return testkit.Recordings(t, "openai_responses") }

// normalize applies the defaults and long forms in which a rebuilt request may differ, and counts
// them.
func normalize(v map[string]any, seen map[string]int) {
	note := func(what string) { seen[what]++ }
	if s, ok := v["input"].(string); ok {
		note("input string written as a message")
		v["input"] = []any{map[string]any{"role": "user", "content": s}}
	}
	items, _ := v["input"].([]any)
	for _, it := range items {
		m, ok := it.(map[string]any)
		if !ok {
			continue
		}
		if m["type"] == nil && m["role"] != nil {
			note("type message added")
			m["type"] = "message"
		}
		if m["type"] == "message" {
			typ := "input_text"
			if m["role"] == "assistant" {
				typ = "output_text"
			}
			if s, ok := m["content"].(string); ok {
				note("content string written as a part")
				m["content"] = []any{map[string]any{"type": typ, "text": s}}
			}
			for _, p := range m["content"].([]any) {
				if p := p.(map[string]any); p["type"] == "input_image" && p["detail"] == nil {
					note("detail auto added")
					p["detail"] = "auto"
				}
			}
		}
		if parts, ok := m["output"].([]any); ok && strings.HasSuffix(m["type"].(string), "tool_call_output") || m["type"] == "function_call_output" {
			if len(parts) == 1 {
				if p := parts[0].(map[string]any); p["type"] == "input_text" && len(p) == 2 {
					note("output of one text written as a string")
					m["output"] = p["text"]
				}
			}
			for _, p := range parts {
				if p := p.(map[string]any); p["type"] == "input_image" && p["detail"] == nil {
					note("detail auto added")
					p["detail"] = "auto"
				}
			}
		}
		if m["type"] == "function_call" && m["arguments"] == "" {
			note("empty arguments written as {}")
			m["arguments"] = "{}"
		}
	}
}

func TestRecordedRequestsRebuildToTheSameJSON(t *testing.T) {
	seen := map[string]int{}
	var bodies []string
	for _, e := range recorded(t) {
		if e.Req != nil {
			bodies = append(bodies, *e.Req)
		}
	}
	agents, _ := filepath.Glob(filepath.Join(recordedDir, "agents", "codex-*.json"))
	for _, f := range agents {
		var a struct{ Body json.RawMessage }
		b, _ := os.ReadFile(f)
		if err := json.Unmarshal(b, &a); err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, string(a.Body))
	}
	n := 0
	for i, body := range bodies {
		req, rep, err := Codec{}.DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Errorf("%d: %v\n%.300s", i, err, body)
			continue
		}
		if len(rep.Losses) > 0 {
			t.Errorf("%d: decoding reports %v", i, rep)
		}
		same, err := Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil || string(same.Body) != body {
			t.Errorf("%d: not byte-identical: %v", i, err)
		}
		re, err := Codec{}.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		var a, b map[string]any
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(re.Body, &b); err != nil {
			t.Errorf("%d: %v\n%s", i, err, re.Body)
			continue
		}
		normalize(a, seen)
		if !reflect.DeepEqual(a, b) {
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			t.Errorf("%d: rebuilt differently\nwant %s\ngot  %s\nreport %v", i, diffStart(x, y), diffStart(y, x), re.Report)
		}
		n++
	}
	t.Logf("%d requests rebuilt; explained differences: %v", n, sorted(seen))
}

func diffStart(a, b []byte) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return string(a[max(0, i-80):min(len(a), i+200)])
}

func sorted(m map[string]int) []string {
	var out []string
	for k, v := range m {
		b, _ := json.Marshal(v)
		out = append(out, k+": "+string(b))
	}
	sort.Strings(out)
	return out
}

// framed returns a recorded stream with SSE framing. Some recordings have only the data.
func framed(body string) []byte {
	if !strings.HasPrefix(body, "{") {
		return []byte(body)
	}
	var b bytes.Buffer
	for _, line := range strings.Split(strings.TrimSpace(body), "\n") {
		b.WriteString("data: " + line + "\n\n")
	}
	return b.Bytes()
}

func isWhole(body string) bool {
	return json.Valid([]byte(body)) && strings.Contains(body, `"object"`) && strings.HasPrefix(strings.TrimSpace(body), "{")
}

func TestRecordedResponsesAndStreamsDecode(t *testing.T) {
	counts := map[string]int{}
	for _, e := range recorded(t) {
		if e.Resp == nil || e.Status >= 400 {
			continue
		}
		label := e.Repo + " " + e.Path
		if strings.HasSuffix(label, "parallel-tool-call-wrapper.1.chunks.txt") {
			counts["not JSON: a fixture whose events lack their last brace"]++
			continue
		}
		if isWhole(*e.Resp) {
			counts["whole"]++
			checkWhole(t, label, []byte(*e.Resp), counts)
			continue
		}
		counts["streams"]++
		checkStream(t, label, framed(*e.Resp), counts)
	}
	t.Log(sorted(counts))
}

func checkWhole(t *testing.T, label string, body []byte, counts map[string]int) {
	t.Helper()
	resp, rep, err := Codec{}.DecodeResponse(body, dialect.DecodeOptions{})
	if err != nil {
		t.Errorf("%s: %v", label, err)
		return
	}
	if len(rep.Losses) > 0 {
		t.Errorf("%s: %v", label, rep)
	}
	same, err := Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || !bytes.Equal(same.Body, body) {
		t.Errorf("%s: not byte-identical: %v", label, err)
	}
	again, err := Codec{}.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil {
		t.Errorf("%s: %v", label, err)
		return
	}
	for _, l := range again.Report.Losses {
		counts["rebuild: "+l.Detail]++
	}
	back, _, err := Codec{}.DecodeResponse(again.Body, dialect.DecodeOptions{})
	if err != nil {
		t.Errorf("%s: %v\n%s", label, err, again.Body)
		return
	}
	if a, b := meaning(resp), meaning(back); a != b {
		t.Errorf("%s: the rebuilt response differs\nwant %s\ngot  %s", label, diffStart([]byte(a), []byte(b)), diffStart([]byte(b), []byte(a)))
	}
	checkIndependent(t, label, body, resp)
}

// checkIndependent decodes the raw JSON without our code and compares the results.
func checkIndependent(t *testing.T, label string, body []byte, resp *dragoman.Response) {
	t.Helper()
	var raw struct {
		ID, Model string
		Output    []struct {
			Type, Name, Input string
			Arguments         any
			Call              string `json:"call_id"`
			Encrypted         string `json:"encrypted_content"`
			Content           []struct{ Type, Text, Refusal string }
			Summary           []struct{ Text string }
		}
		Usage *struct {
			In  int64 `json:"input_tokens"`
			Out int64 `json:"output_tokens"`
		}
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		t.Errorf("%s: %v", label, err)
		return
	}
	if raw.ID != resp.ID || raw.Model != resp.Model || len(raw.Output) != len(resp.Output) {
		t.Errorf("%s: id %q model %q items %d, want %q %q %d", label, resp.ID, resp.Model, len(resp.Output), raw.ID, raw.Model, len(raw.Output))
		return
	}
	if raw.Usage != nil && (raw.Usage.In != resp.Usage.Input.N || raw.Usage.Out != resp.Usage.Output.N) {
		t.Errorf("%s: usage %+v", label, resp.Usage)
	}
	for i, it := range raw.Output {
		m := resp.Output[i]
		switch it.Type {
		case "message":
			want := ""
			for _, c := range it.Content {
				want += c.Text + c.Refusal
			}
			got := ""
			for _, p := range m.Parts {
				got += textOf(p)
			}
			if got != want {
				t.Errorf("%s: text %q, want %q", label, got, want)
			}
		case "function_call", "custom_tool_call":
			c := m.Parts[0].(*dragoman.ToolCall)
			arguments, _ := it.Arguments.(string)
			if c.ID != it.Call || c.Name != it.Name || c.Arguments != arguments+it.Input {
				t.Errorf("%s: call %+v, want %+v", label, c, it)
			}
		case "reasoning":
			r := m.Parts[0].(*dragoman.Reasoning)
			if r.Encrypted != it.Encrypted || len(r.Summary) != len(it.Summary) {
				t.Errorf("%s: reasoning %+v, want %+v", label, r, it)
			}
		default:
			if o := m.Parts[0].(*dragoman.Opaque); o.Type != it.Type {
				t.Errorf("%s: %s, want %s", label, o.Type, it.Type)
			}
		}
	}
}

func checkStream(t *testing.T, label string, body []byte, counts map[string]int) {
	t.Helper()
	evs, rep, err := decodeStream(body, len(body), dialect.DecodeOptions{})
	if err != nil {
		t.Errorf("%s: %v", label, err)
		return
	}
	rep.Losses = slices.DeleteFunc(rep.Losses, func(l dragoman.Loss) bool {
		return l.Detail == "data after the end of the stream" // a second stream, in some recordings
	})
	if len(rep.Losses) > 0 {
		t.Errorf("%s: %v", label, rep)
	}
	var raw, last []byte
	var c dragoman.Collector
	for _, ev := range evs {
		if ch, ok := ev.(*dragoman.Chunk); ok {
			raw, last = append(raw, ch.Raw...), ch.Raw
		}
		c.Add(ev)
	}
	// Some recordings continue after the end, with [DONE] or a second stream.
	ended := regexp.MustCompile(`"type": ?"response\.(completed|incomplete|failed)"`).Match(last)
	if !bytes.HasPrefix(body, raw) || len(body)-len(raw) > 2 && !ended {
		t.Errorf("%s: chunks have %d of %d bytes", label, len(raw), len(body))
	}
	got, err := c.Response()
	if err != nil {
		counts["streams that report an error: "+err.Error()]++
		return
	}
	// The terminal event has the whole response, which must have the same content.
	whole := terminalResponse(body)
	if whole == nil {
		t.Errorf("%s: no terminal event", label)
		return
	}
	want, _, err := Codec{}.DecodeResponse(whole, dialect.DecodeOptions{})
	if err != nil {
		t.Errorf("%s: %v", label, err)
		return
	}
	if len(want.Output) == 0 && len(got.Output) > 0 {
		counts["terminal event with an empty output"]++
		return
	}
	if strings.Contains(label, "copilot") { // a new id in every event
		for _, ms := range [][]dragoman.Message{want.Output, got.Output} {
			dropIDs(ms)
		}
	}
	a, b := streamMeaning(want), streamMeaning(got)
	if a != b {
		t.Errorf("%s: the collected stream differs from the whole response\nwhole  %s\nstream %s", label, diffStart([]byte(a), []byte(b)), diffStart([]byte(b), []byte(a)))
	}
	// Re-encoding gives the same content.
	var out []byte
	enc := Codec{}.NewStreamEncoder(dialect.EncodeOptions{})
	for _, ev := range evs {
		out, _ = enc.Encode(out, ev)
	}
	out, _ = enc.Close(out)
	if err := checkOrder(out, false); err != nil {
		t.Errorf("%s: %v", label, err)
	}
	back, _, err := decodeStream(out, len(out), dialect.DecodeOptions{})
	if err != nil {
		t.Errorf("%s: re-encoded stream: %v", label, err)
		return
	}
	var c2 dragoman.Collector
	for _, ev := range back {
		c2.Add(ev)
	}
	again, err := c2.Response()
	if err != nil {
		t.Errorf("%s: re-encoded stream: %v", label, err)
		return
	}
	if strings.Contains(label, "copilot") {
		dropIDs(again.Output)
	}
	again.ID = got.ID // a stream keeps the id of its start; some proxies change it
	if a, b := meaning(got), meaning(again); a != b {
		t.Errorf("%s: the re-encoded stream differs\nwant %s\ngot  %s", label, diffStart([]byte(a), []byte(b)), diffStart([]byte(b), []byte(a)))
	}
}

func terminalResponse(body []byte) []byte {
	for _, line := range bytes.Split(body, []byte("\n")) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if !ok {
			continue
		}
		var ev struct {
			Type     string
			Response json.RawMessage
		}
		if json.Unmarshal(data, &ev) != nil {
			continue
		}
		switch ev.Type {
		case "response.completed", "response.incomplete", "response.failed":
			return ev.Response
		}
	}
	return nil
}

func dropIDs(ms []dragoman.Message) {
	for i := range ms {
		ms[i].Extra = withoutFields(ms[i].Extra, "id")
		for _, p := range ms[i].Parts {
			switch p := p.(type) {
			case *dragoman.Reasoning:
				p.ID = ""
			case *dragoman.ToolCall:
				p.ItemID = ""
			}
		}
	}
}
