package ollama_test

import (
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// A client that gets the original bytes must not find a different call in them than the one we
// decoded.
func TestAmbiguousInputIsReencoded(t *testing.T) {
	const fine = `{"id":"a","function":{"name":"rm","arguments":{}}}`
	for name, c := range map[string]struct {
		msg  string
		runs bool
	}{
		"duplicate name":             {`{"tool_calls":[{"id":"a","function":{"name":"ls","name":"rm","arguments":{}}}]}`, false},
		"duplicate function":         {`{"tool_calls":[{"id":"a","function":{"name":"ls","arguments":{}},"function":{"name":"rm","arguments":{}}}]}`, false},
		"duplicate key in arguments": {`{"tool_calls":[{"id":"a","function":{"name":"rm","arguments":{"a":1,"a":2}}}]}`, false},
		"duplicate nested key":       {`{"tool_calls":[{"id":"a","function":{"name":"rm","arguments":{"o":{"a":1,"a":2}}}}]}`, false},
		"duplicate arguments":        {`{"tool_calls":[{"id":"a","function":{"name":"rm","arguments":{},"arguments":{"a":1}}}]}`, false},
		"arguments in other case":    {`{"tool_calls":[{"id":"a","function":{"name":"rm","arguments":{},"Arguments":{"a":1}}}]}`, false},
		"function in other case":     {`{"tool_calls":[{"id":"a","function":{"name":"rm"},"FUNCTION":{"name":"ls"}}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			resp, rep := decodeResponse(t, wholeResponse(c.msg, ""))
			problem(t, calls(resp)[0], codes.ProblemDuplicateKey)
			if resp.Native != nil || resp.Output[0].Native != nil {
				t.Error("the native form was kept")
			}
			lost(t, rep, dragoman.Lowered, "", "duplicate")
			enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			object(t, enc.Body) // no duplicate fields
			if !strings.Contains(string(enc.Body), `"_raw"`) {
				t.Errorf("a client would run %s", enc.Body)
			}
			d := streamed(t, line(c.msg)+last(""))
			problem(t, calls(d.resp)[0], codes.ProblemDuplicateKey)
			lines, _ := written(t, dialect.EncodeOptions{}, d.events)
			if all := strings.Join(lines, "\n"); !strings.Contains(all, `"_raw"`) {
				t.Errorf("a client would run %s", all)
			}
		})
	}
	for name, l := range map[string]string{
		"duplicate tool_calls":       `{"message":{"tool_calls":[` + fine + `],"tool_calls":[]}}`,
		"message in other case":      `{"message":{"tool_calls":[` + fine + `]},"Message":{}}`,
		"duplicate message":          `{"message":{},"message":{"tool_calls":[` + fine + `]}}`,
		"tool_calls in other case":   `{"message":{"TOOL_CALLS":[],"tool_calls":[` + fine + `]}}`,
		"duplicate role with a call": `{"message":{"role":"assistant","role":"tool","tool_calls":[` + fine + `]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := streamed(t, l+"\n"+last(""))
			for _, c := range calls(d.resp) {
				problem(t, c, codes.ProblemDuplicateKey)
			}
			lines, _ := written(t, dialect.EncodeOptions{}, d.events)
			if all := strings.Join(lines, "\n"); strings.Contains(all, `"arguments":{}`) {
				t.Errorf("a client would run %s", all)
			}
			resp, _, err := codec.DecodeResponse([]byte(l), dialect.DecodeOptions{})
			if err == nil && resp.Native != nil {
				t.Error("the native form was kept")
			}
		})
	}
}

func TestForbiddingStopReasonIsNotReplaced(t *testing.T) {
	const call = `{"tool_calls":[{"id":"a","function":{"name":"rm","arguments":{}}}]}`
	resp, _ := decodeResponse(t, wholeResponse(call, `,"done_reason":"length","done_reason":"stop"`))
	d := streamed(t, line(call)+`{"message":{},"done_reason":"length"}`+"\n"+last(`,"done_reason":"stop"`))
	for _, r := range []*dragoman.Response{resp, d.resp} {
		if r.Stop.Reason != dragoman.StopLength || r.ToolCalls()[0].Problem == nil {
			t.Errorf("%+v", r.Stop)
		}
	}
	if resp.Native != nil {
		t.Error("a client would read the other reason")
	}
	lines, _ := written(t, dialect.EncodeOptions{}, d.events)
	if end := lines[len(lines)-1]; !strings.Contains(end, `"done_reason":"length"`) {
		t.Error(end)
	}
}

func TestMalformedCallIsNotForwarded(t *testing.T) {
	for _, call := range []string{`"f"`, `5`, `[]`, `true`} {
		msg := `{"content":"x","tool_calls":[` + call + `]}`
		resp, rep := decodeResponse(t, wholeResponse(msg, ""))
		if len(resp.ToolCalls()) != 0 || resp.Native != nil || len(rep.Losses) == 0 {
			t.Errorf("%s: %+v\n%s", call, resp.Output, rep)
		}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil || strings.Contains(string(enc.Body), "tool_calls") {
			t.Errorf("%s: %s, %v", call, enc.Body, err)
		}
		d := streamed(t, line(msg)+last(""))
		lines, rep := written(t, dialect.EncodeOptions{}, d.events)
		if strings.Contains(strings.Join(lines, ""), "tool_calls") {
			t.Errorf("%s: %q", call, lines)
		}
		lost(t, rep, dragoman.Dropped, "/output", "malformed call")
		// In a request to Ollama it is sent back unchanged.
		req := &dragoman.Request{Model: "m", Messages: resp.Output}
		m, _ := encode(t, req, dialect.EncodeOptions{})
		sameJSON(t, elements(t, m["messages"])[0], `{"role":"assistant","content":"x","tool_calls":[`+call+`]}`)
	}
	unnamed, _ := decodeResponse(t, wholeResponse(`{"tool_calls":[{"id":"a","function":{"arguments":{}}}]}`, ""))
	problem(t, calls(unnamed)[0], codes.ProblemNoName)
}

// The encoder writes the changed text, and does not repeat the text before it.
func TestChangedDeltaIsEncoded(t *testing.T) {
	d := streamed(t, sampleStream)
	for i, ev := range d.events {
		delta, ok := ev.(*dragoman.PartDelta)
		if !ok || delta.Text != "look." {
			continue
		}
		d.events[i] = &dragoman.PartDelta{Index: delta.Index, Kind: delta.Kind, Text: "leap."}
		d.events[i-1] = &dragoman.Chunk{}
	}
	for i, ev := range d.events {
		if end, ok := ev.(*dragoman.PartEnd); ok && end.Part.Kind() == codes.KindText {
			d.events[i] = &dragoman.PartEnd{Index: end.Index, Part: text("I leap.")}
		}
	}
	lines, rep := written(t, dialect.EncodeOptions{}, d.events)
	lossless(t, rep)
	got := streamed(t, strings.Join(lines, "\n")).resp
	if got.Text() != "I leap." || len(got.ToolCalls()) != 2 || got.Usage.Input != d.resp.Usage.Input {
		t.Errorf("%q", lines)
	}
	if !strings.HasPrefix(sampleStream, strings.Join(lines[:3], "\n")+"\n") {
		t.Errorf("the lines before the change differ: %q", lines)
	}
}

// Decoding time is linear in the length of the input.
func TestHostileInputTakesLinearTime(t *testing.T) {
	bodies := map[string]func(n int) error{
		"calls without ids, then results": func(n int) error {
			body := `{"model":"m","messages":[{"role":"assistant","tool_calls":[` + strings.Repeat(`{"function":{"name":"f"}},`, n) + `null]}` + strings.Repeat(`,{"role":"tool","tool_name":"f"}`, n) + `]}`
			req, _, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
			if err == nil {
				_, err = codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
			}
			return err
		},
		"results without a tool name": func(n int) error {
			body := `{"model":"m","messages":[{"role":"assistant","tool_calls":[` + strings.Repeat(`{"id":"a","function":{"name":"f"}},`, n) + `null]}` + strings.Repeat(`,{"role":"tool"}`, n) + `]}`
			_, _, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
			return err
		},
		"unknown fields": func(n int) error {
			var b strings.Builder
			for i := range n {
				b.WriteString(`"k` + strings.Repeat("x", i%7) + time.Duration(i).String() + `":1,`)
			}
			req, _, err := codec.DecodeRequest([]byte(`{`+b.String()+`"messages":[{`+b.String()+`"role":"user","content":"x"}]}`), dialect.DecodeOptions{})
			if err == nil {
				_, err = codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
			}
			return err
		},
		"blank lines": func(n int) error {
			d := decodeStream(t, dialect.DecodeOptions{}, strings.Repeat("\n", 20*n)+last(""))
			return d.feed
		},
		"one long line in small chunks": func(n int) error {
			body := line(`{"content":"`+strings.Repeat("a", 40*n)+`"}`) + last("")
			var chunks []string
			for len(body) > 16 {
				chunks, body = append(chunks, body[:16]), body[16:]
			}
			d := decodeStream(t, dialect.DecodeOptions{NoNative: true}, append(chunks, body)...)
			return d.feed
		},
	}
	for name, work := range bodies {
		codectest.Linear(t, name, 60_000, work)
	}
}
