package openaichat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/targets"
)

func TestQuirkC1_DeltasAreCorrelated(t *testing.T) {
	ab := []dragoman.ToolCall{call("a", "f", `{"x":1}`), call("b", "g", `{"y":2}`)}
	for _, tc := range []struct {
		name   string
		deltas []string
		want   []dragoman.ToolCall
	}{
		{"OpenAI", []string{
			`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`,
			`{"index":0,"function":{"arguments":"{\"x\""}}`, `{"index":0,"function":{"arguments":":1}"}}`,
			`{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}}`,
			`{"index":1,"function":{"arguments":"{\"y\":2}"}}`,
		}, ab},
		{"interleaved", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\""}}`,
			`{"index":0,"function":{"arguments":":1}"}}`, `{"index":1,"function":{"arguments":":2}"}}`,
		}, ab},
		{"C2: index always 0, different ids", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`,
		}, ab},
		{"C2: index always 0, id on every fragment", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`, `{"index":0,"id":"a","function":{"arguments":"{\"x\":1}"}}`,
			`{"index":0,"id":"b","function":{"name":"g","arguments":""}}`, `{"index":0,"id":"b","function":{"arguments":"{\"y\":2}"}}`,
		}, ab},
		{"C3: id and name on every chunk", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`,
			`{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`,
		}, ab},
		{"C3: new id on every chunk, name once", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"id":"a2","function":{"arguments":":1}"}}`,
		}, ab[:1]},
		{"no index", []string{
			`{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"id":"b","function":{"name":"g","arguments":"{\"y\""}}`, `{"function":{"arguments":":2}"}}`,
		}, ab},
		{"index -1 for a single call", []string{
			`{"index":-1,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":-1,"function":{"arguments":":1}"}}`,
		}, ab[:1]},
		{"indexes from 1, with a gap", []string{
			`{"index":1,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":7,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`,
		}, ab},
		{"C4: huge index", []string{
			`{"index":1000000000,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":1000000000,"function":{"arguments":":1}"}}`,
			`{"index":1e300,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`,
		}, ab},
		{"later deltas with an empty id and name (Qwen, GLM)", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"id":"","function":{"name":"","arguments":":1}"}}`,
		}, ab[:1]},
		{"later deltas with null for everything", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":0,"id":null,"type":null,"function":null}`, `{"index":0,"function":{"name":null,"arguments":null}}`,
		}, ab[:1]},
		{"an unknown index without id and name continues the latest", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":3,"function":{"arguments":":1}"}}`,
		}, ab[:1]},
		{"C5: the name in fragments", []string{
			`{"index":0,"id":"a","function":{"name":"get_"}}`, `{"index":0,"function":{"name":"weather"}}`, `{"index":0,"function":{"arguments":"{}"}}`,
		}, []dragoman.ToolCall{call("a", "get_weather", "{}")}},
		{"C5: the name in fragments, with empty ones between", []string{
			`{"index":0,"id":"a","function":{"name":"get_"}}`, `{"index":0,"function":{"name":""}}`, `{"index":0,"function":{"name":null}}`, `{"index":0,"function":{"name":"weather","arguments":"{}"}}`,
		}, []dragoman.ToolCall{call("a", "get_weather", "{}")}},
		{"C5: the name repeated with every argument", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`, `{"index":0,"function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"function":{"name":"f","arguments":":1}"}}`,
		}, ab[:1]},
		{"C5: the name repeated before any argument", []string{
			`{"index":0,"id":"a","function":{"name":"f"}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`,
		}, ab[:1]},
		{"C6: arguments in the chunk of the name", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`}, ab[:1]},
		{"C7: arguments as an object", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}`}, ab[:1]},
		{"B24: the name after the arguments", []string{
			`{"index":0,"id":"a","function":{"arguments":"{\"x\""}}`, `{"index":0,"function":{"name":"f","arguments":":1}"}}`,
		}, ab[:1]},
		{"B11: two calls share an id on two indexes", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":1,"id":"a","function":{"name":"g","arguments":"{\"y\":2}"}}`,
		}, []dragoman.ToolCall{call("a", "f", `{"x":1}`), call("*", "g", `{"y":2}`)}},
		{"C10: whole call sent again", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`,
		}, ab[:1]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := calls(streamed(t, stream(`"tool_calls"`, toolDeltas(tc.deltas...)...)))
			for i := range got {
				if i < len(tc.want) && tc.want[i].ID == "*" {
					if !got[i].Synthetic || got[i].ID == got[0].ID {
						t.Errorf("call %d did not get a new id: %+v", i, got[i])
					}
					tc.want[i].ID = got[i].ID
				}
				if got[i].Problem != nil {
					t.Errorf("call %d has a problem: %v", i, got[i].Problem)
				}
			}
			sameCalls(t, got, tc.want...)
		})
	}
}

func TestQuirkC1_SeveralCallsInOneDelta(t *testing.T) {
	for name, d := range map[string]string{
		"with index and id": `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]}`,
		"without either":    `{"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":"{}"}}]}`,
		"without arguments": `{"tool_calls":[{"function":{"name":"f","arguments":""}},{"function":{"name":"g"}}]}`,
		"twice the same":    `{"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"f","arguments":"{}"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			got := calls(streamed(t, stream(`"tool_calls"`, d)))
			if len(got) != 2 || got[0].ID == got[1].ID || got[0].Name != "f" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestQuirkC2_SecondNameWithoutIDsIsASecondCall(t *testing.T) {
	got := calls(streamed(t, stream(`"tool_calls"`, toolDeltas(
		`{"index":0,"function":{"name":"f","arguments":"{\"a\":{"}}`, `{"index":0,"function":{"arguments":"}}"}}`,
		`{"index":0,"function":{"name":"f","arguments":"{\"b\""}}`, `{"index":0,"function":{"arguments":":1}"}}`,
		`{"index":0,"id":"late","function":{"name":"g","arguments":"{}"}}`,
	)...)))
	if len(got) != 3 || got[0].Arguments != `{"a":{}}` || got[1].Arguments != `{"b":1}` || got[2].Name != "g" || got[2].ID != "late" {
		t.Errorf("%+v", got)
	}
}

func TestQuirkC4_TooManyCalls(t *testing.T) {
	var ds []string
	for i := range 2000 {
		ds = append(ds, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"f","arguments":"{}"}}]}`, i, i))
	}
	d := decodeStream(t, dialect.DecodeOptions{}, sse(deltas(ds...)...))
	decodeError(t, d.feed)
	if got := len(d.resp.ToolCalls()); got != 1024 {
		t.Errorf("%d calls were kept", got)
	}
	for _, c := range calls(d.resp) {
		if c.Problem == nil {
			t.Fatal("a call of a broken stream may run")
		}
	}
}

func TestQuirkC8_NullAndEmptyValuesAreIgnored(t *testing.T) {
	resp := streamed(t, sse(
		`{"id":"","created":0,"model":"","choices":null}`, `{"choices":[]}`, `{"choices":[null]}`, `{"choices":[{"index":0,"delta":null}]}`,
		`{"choices":[{"index":0,"delta":{"role":"","content":null,"tool_calls":null,"refusal":null,"function_call":null,"reasoning":null}}],"usage":null,"error":null}`,
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[]}}]}`, `{"choices":[{"index":0,"delta":{"tool_calls":[null]}}]}`,
		`{"id":"r","model":"m","choices":[{"delta":{"content":"hi"}}]}`, `{"choices":[{"index":null,"finish_reason":"stop"}]}`, "[DONE]",
	))
	if resp.Text() != "hi" || resp.ID != "r" || resp.Model != "m" || resp.Stop.Reason != dragoman.StopEnd || len(resp.Output[0].Parts) != 1 {
		t.Errorf("%+v", resp)
	}
}

func TestQuirkC10_CallEndsWithTheStream(t *testing.T) {
	d := decodeStream(t, dialect.DecodeOptions{NoNative: true}, stream(`"tool_calls"`, toolDeltas(
		`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":0,"function":{"arguments":" "}}`, `{"index":0,"function":{"arguments":"\n"}}`,
	)...))
	var kinds []string
	for _, ev := range d.events {
		kinds = append(kinds, ev.Type())
	}
	want := "response_start part_start part_delta part_delta part_delta part_end response_end"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("events: %s\nwant    %s", got, want)
	}
}

func TestQuirkC12_FinishReasonAndMarker(t *testing.T) {
	t.Run("empty finish reason is ignored", func(t *testing.T) {
		resp := streamed(t, sse(`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":""}]}`, `{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`, "[DONE]"))
		if resp.Text() != "ab" || resp.Stop.Native != "stop" {
			t.Errorf("%+v", resp)
		}
	})
	t.Run("deltas after the finish reason count", func(t *testing.T) {
		resp := streamed(t, sse(finish(`"tool_calls"`), deltas(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`)[0], "[DONE]"))
		if len(resp.ToolCalls()) != 1 || resp.Stop.Reason != dragoman.StopToolCalls {
			t.Errorf("%+v", resp)
		}
	})
	t.Run("data after the marker is ignored", func(t *testing.T) {
		resp := streamed(t, stream(`"stop"`, `{"content":"a"}`)+sse(deltas(`{"content":"junk"}`)[0], `{"error":{"message":"junk"}}`, `{broken`))
		if resp.Text() != "a" {
			t.Errorf("%q", resp.Text())
		}
	})
	t.Run("the marker may be missing after a finish reason", func(t *testing.T) {
		resp := streamed(t, sse(deltas(`{"content":"a"}`)[0], finish(`"stop"`)))
		if resp.Stop.Reason != dragoman.StopEnd {
			t.Errorf("%+v", resp.Stop)
		}
	})
	t.Run("the finish reason may be missing before the marker", func(t *testing.T) {
		resp := streamed(t, sse(deltas(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`)[0], "[DONE]"))
		if resp.Stop.Reason != dragoman.StopToolCalls || resp.ToolCalls()[0].Problem != nil {
			t.Errorf("%+v", resp)
		}
	})
}

func TestQuirkC13_IncompleteStream(t *testing.T) {
	for name, body := range map[string]string{
		"empty":                        "",
		"comments only":                ": ping\n\n",
		"text":                         sse(deltas(`{"content":"half"}`)...),
		"a complete call":              sse(deltas(`{"content":"half","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`)...),
		"half a call":                  sse(deltas(`{"content":"half","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":"}}]}`)...),
		"one of two choices has ended": sse(deltas(`{"content":"half"}`)[0], finish(`"stop"`), `{"choices":[{"index":1,"delta":{"content":"x"}}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			d := decodeStream(t, dialect.DecodeOptions{}, body)
			if !errors.Is(d.feed, dragoman.ErrIncompleteStream) || !errors.Is(d.err, dragoman.ErrIncompleteStream) {
				t.Errorf("Close: %v, collected: %v", d.feed, d.err)
			}
			var api *dragoman.APIError
			if !errors.As(d.feed, &api) || !api.Retryable() {
				t.Errorf("%v is not retryable", d.feed)
			}
			if strings.Contains(body, "half") && d.resp.Text() != "half" {
				t.Errorf("the content that arrived was lost: %+v", d.resp)
			}
			for _, c := range d.resp.ToolCalls() {
				if c.Problem == nil {
					t.Errorf("%s(%s) may run", c.Name, c.Arguments)
				}
			}
		})
	}
}

func TestQuirkC14_ErrorEndsTheStream(t *testing.T) {
	for name, tc := range map[string]struct {
		event string
		class dragoman.ErrorClass
		code  string
	}{
		"OpenAI":           {"data: " + `{"error":{"message":"boom","type":"server_error","param":null,"code":null}}`, dragoman.ErrorServer, ""},
		"OpenRouter":       {"data: " + `{"id":"r","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"boom"}}`, dragoman.ErrorServer, "502"},
		"in the choice":    {"data: " + `{"id":"r","choices":[{"index":0,"error":{"code":429,"message":"boom"},"finish_reason":"error"}]}`, dragoman.ErrorRateLimit, "429"},
		"bare string":      {"data: " + `{"error":"boom"}`, dragoman.ErrorUnknown, ""},
		"without envelope": {"data: " + `{"object":"error","message":"boom","type":"rate_limit_error","code":429}`, dragoman.ErrorRateLimit, "429"},
		"named event":      {"event: error\ndata: " + `{"message":"boom","type":"overloaded_error"}`, dragoman.ErrorOverloaded, ""},
	} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/first=%v", name, first), func(t *testing.T) {
				body := tc.event + "\n\n" + sse("[DONE]")
				if !first {
					body = sse(deltas(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`)...) + body
				}
				d := decodeStream(t, dialect.DecodeOptions{}, body)
				var api *dragoman.APIError
				if !errors.As(d.err, &api) || api.Message != "boom" || api.Class != tc.class || api.Code != tc.code {
					t.Fatalf("%#v", d.err)
				}
				if d.feed != nil {
					t.Errorf("the decoder failed: %v", d.feed)
				}
				for _, c := range d.resp.ToolCalls() {
					if c.Problem == nil {
						t.Error("a call may run after an error")
					}
				}
			})
		}
	}
	resp := streamed(t, stream(`"error"`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`))
	if resp.Stop.Reason != dragoman.StopError {
		t.Errorf("finish_reason error: %+v", resp.Stop)
	}
	problem(t, calls(resp)[0], codes.ProblemStopped)
}

func TestQuirkC34_OutputLimitBlocksCalls(t *testing.T) {
	two := []string{
		`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`,
		`{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"a\":1}"}}]}`,
	}
	whole, _ := message(t, `{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"{\"a\":1}"}}]}`, `"length"`)
	for _, resp := range []*dragoman.Response{streamed(t, stream(`"length"`, two...)), whole} {
		cs := calls(resp)
		if len(cs) != 2 || resp.Stop.Reason != dragoman.StopLength {
			t.Fatalf("%+v", resp)
		}
		problem(t, cs[0], codes.ProblemStopped)
		problem(t, cs[1], codes.ProblemTruncated)
	}
}

func TestManyArgumentFragments(t *testing.T) {
	var ds []string
	for range 5000 {
		ds = append(ds, `{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"aaaaaaaa"}}]}`)
	}
	ds[0] = `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\""}}]}`
	ds = append(ds, `{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}`)
	resp := streamed(t, stream(`"tool_calls"`, ds...))
	if c := resp.ToolCalls(); len(c) != 1 || c[0].Problem != nil || len(c[0].Arguments) != 4999*8+len(`{"x":""}`) {
		t.Errorf("%d calls", len(c))
	}
}

func TestQuirkC36_InterleavedChoices(t *testing.T) {
	for name, chunks := range map[string][]string{
		"index first": {
			`{"id":"r","choices":[{"index":1,"delta":{"content":"B"}}]}`, `{"choices":[{"index":0,"delta":{"content":"A"}},{"index":1,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"},{"index":1,"delta":{},"finish_reason":"length"}]}`, "[DONE]",
		},
		"keys sorted": {
			`{"choices":[{"delta":{"content":"B"},"index":1}],"id":"r"}`, `{"choices":[{"delta":{"content":"A"},"index":0},{"delta":{"tool_calls":[{"function":{"arguments":"{}","name":"g"},"id":"b","index":0}]},"index":1}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{}","name":"f"},"id":"a","index":0}]},"index":0}]}`,
			`{"choices":[{"delta":{},"finish_reason":"tool_calls","index":0},{"delta":{},"finish_reason":"length","index":1}]}`, "[DONE]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			resp := streamed(t, sse(chunks...))
			if resp.Text() != "A" || len(resp.Alternatives) != 1 || resp.Alternatives[0].Output[0].Text() != "B" {
				t.Fatalf("%+v", resp)
			}
			sameCalls(t, calls(resp), call("a", "f", "{}"))
			alt := resp.Alternatives[0]
			if c := alt.Output[0].ToolCalls(); len(c) != 1 || c[0].ID != "b" || alt.Stop.Reason != dragoman.StopLength || resp.Stop.Reason != dragoman.StopToolCalls {
				t.Errorf("%+v", alt)
			}
		})
	}
}

func TestQuirkC38_TextBeforeCallsInOneDelta(t *testing.T) {
	for name, d := range map[string]string{
		"text first":  `{"content":"say","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`,
		"calls first": `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}],"content":"say"}`,
	} {
		t.Run(name, func(t *testing.T) {
			resp := streamed(t, stream(`"tool_calls"`, d))
			parts := resp.Output[0].Parts
			if len(parts) != 2 || parts[0].Kind() != codes.KindText || parts[1].Kind() != codes.KindToolCall || resp.Text() != "say" {
				t.Errorf("%+v", parts)
			}
		})
	}
}

func TestQuirkC39_ReasoningBeforeTextInOneDelta(t *testing.T) {
	for name, ds := range map[string][]string{
		"reasoning first": {`{"reasoning_content":"think"}`, `{"reasoning_content":"ing","content":"sa"}`, `{"content":"y"}`},
		"text first":      {`{"reasoning_content":"think"}`, `{"content":"sa","reasoning_content":"ing"}`, `{"content":"y"}`},
	} {
		t.Run(name, func(t *testing.T) {
			resp := streamed(t, stream(`"stop"`, ds...))
			parts := resp.Output[0].Parts
			if len(parts) != 2 || parts[0].(*dragoman.Reasoning).Text != "thinking" || resp.Text() != "say" {
				t.Errorf("%+v", parts)
			}
		})
	}
}

func TestQuirkC15_CommentsAreIgnored(t *testing.T) {
	body := ": OPENROUTER PROCESSING\n\n" + sse(deltas(`{"content":"a"}`)...) + ":ping\n" + sse(finish(`"stop"`), "[DONE]")
	d := decodeStream(t, dialect.DecodeOptions{}, body)
	if d.feed != nil || d.resp.Text() != "a" {
		t.Fatalf("%+v, %v", d.resp, d.feed)
	}
	faithful(t, d.events)
}

func TestQuirkB10_GeneratedIDsAreStable(t *testing.T) {
	for _, id := range []string{``, `"id":"",`, `"id":null,`, `"id":7,`} {
		body := stream(`"tool_calls"`, `{"tool_calls":[{"index":0,`+id+`"function":{"name":"f","arguments":"{}"}},{"index":1,`+id+`"function":{"name":"g","arguments":"{}"}}]}`)
		a := decodeStream(t, dialect.DecodeOptions{Seed: "run1"}, body)
		b := decodeStream(t, dialect.DecodeOptions{Seed: "run1"}, body)
		c := decodeStream(t, dialect.DecodeOptions{Seed: "run2"}, body)
		ca, cb, cc := calls(a.resp), calls(b.resp), calls(c.resp)
		if len(ca) != 2 || !ca[0].Synthetic || ca[0].ID == "" || ca[0].ID == ca[1].ID {
			t.Fatalf("%+v", ca)
		}
		if ca[0].ID != cb[0].ID || ca[0].ID == cc[0].ID {
			t.Errorf("ids %q, %q, %q for seeds run1, run1, run2", ca[0].ID, cb[0].ID, cc[0].ID)
		}
		lost(t, a.rep, dragoman.Synthesized, "call id")
		if !codec.Limits().ID.Allows(ca[0].ID) {
			t.Errorf("%q is too long", ca[0].ID)
		}
	}
}

func TestQuirkB10_LateIDIsUsed(t *testing.T) {
	got := calls(streamed(t, stream(`"tool_calls"`, toolDeltas(
		`{"index":0,"function":{"name":"f","arguments":"{"}}`, `{"index":0,"id":"real","function":{"arguments":"}"}}`,
	)...)))
	sameCalls(t, got, call("real", "f", "{}"))
	if got[0].Synthetic {
		t.Error("the id is marked as synthetic")
	}
}

func TestQuirkB11_ExactRepeatRunsOnce(t *testing.T) {
	got := calls(streamed(t, stream(`"tool_calls"`, toolDeltas(
		`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"function":{"arguments":":1}"}}`,
		`{"index":1,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":1,"function":{"arguments":":1}"}}`,
	)...)))
	runs := 0
	for _, c := range got {
		if c.Problem == nil {
			runs++
		}
	}
	if runs != 1 {
		t.Errorf("%d of %+v may run", runs, got)
	}
}

func TestQuirkB24_CallWithoutName(t *testing.T) {
	got := calls(streamed(t, stream(`"tool_calls"`, toolDeltas(
		`{"index":0,"id":"a","function":{"name":"","arguments":"{\"x\":1}"}}`, `{"index":1,"function":{"name":"","arguments":""}}`,
	)...)))
	if len(got) != 1 || got[0].ID != "a" || got[0].Arguments != `{"x":1}` || got[0].Name == "" {
		t.Fatalf("%+v", got)
	}
	problem(t, got[0], codes.ProblemNoName)
}

func TestQuirkB9_InvalidArgumentsAreAProblem(t *testing.T) {
	for args, code := range map[string]string{
		`{\"a\":`:              codes.ProblemInvalidJSON,
		`{\"a\":1}{\"a\":2}`:   codes.ProblemInvalidJSON, // quirk B6
		`{\"a\":1,\"a\":2}`:    codes.ProblemDuplicateKey,
		`[1]`:                  codes.ProblemNotObject,
		`{\"a\":\"x\\ud800\"}`: codes.ProblemInvalidJSON,
	} {
		resp := streamed(t, stream(`"tool_calls"`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"`+args+`"}}]}`))
		whole, _ := message(t, `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"`+args+`"}}]}`, `"tool_calls"`)
		for _, r := range []*dragoman.Response{resp, whole} {
			if len(r.ToolCalls()) != 1 || r.Stop.Reason != dragoman.StopToolCalls {
				t.Fatalf("%s: %+v", args, r)
			}
			problem(t, calls(r)[0], code)
			if calls(r)[0].Problem.Message == "" {
				t.Error("the problem has no message for the model")
			}
		}
	}
}

func TestCustom_StreamedInputIsText(t *testing.T) {
	got := calls(streamed(t, stream(`"tool_calls"`, toolDeltas(
		`{"index":0,"id":"c","type":"custom","custom":{"name":"run_sql","input":""}}`, `{"index":0,"custom":{"input":"SELECT "}}`, `{"index":0,"custom":{"input":"1"}}`,
	)...)))
	sameCalls(t, got, dragoman.ToolCall{ID: "c", Name: "run_sql", Payload: codes.PayloadText, Arguments: "SELECT 1"})
}

func TestLegacy_StreamedFunctionCallIsACall(t *testing.T) {
	resp := streamed(t, stream(`"function_call"`, `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":""}}`, `{"function_call":{"arguments":"{\"a\""}}`, `{"function_call":{"arguments":":1}"}}`))
	got := calls(resp)
	if len(got) != 1 || got[0].Name != "f" || got[0].Arguments != `{"a":1}` || !got[0].Synthetic || resp.Stop.Reason != dragoman.StopToolCalls {
		t.Errorf("%+v", resp)
	}
}

func TestFreeform_WrappedInputIsHeldUntilComplete(t *testing.T) {
	tools := []dragoman.ToolSpec{{Kind: codes.ToolFreeform, Name: "apply patch"}}
	enc, err := codec.EncodeRequest(&dragoman.Request{Model: "m", Tools: tools, Messages: []dragoman.Message{dragoman.UserText("x")}},
		dialect.EncodeOptions{Target: caps(targets.Capabilities{NoCustomTools: true})})
	if err != nil {
		t.Fatal(err)
	}
	wire := enc.Registry.WireName("", "apply patch")
	body := stream(`"tool_calls"`, toolDeltas(
		`{"index":0,"id":"a","function":{"name":"`+wire+`","arguments":"{\"inp"}}`, `{"index":0,"function":{"arguments":"ut\":\"*** x\\n\"}"}}`,
	)...)
	d := decodeStream(t, dialect.DecodeOptions{Registry: enc.Registry, NoNative: true}, body)
	if d.feed != nil {
		t.Fatal(d.feed)
	}
	sameCalls(t, calls(d.resp), dragoman.ToolCall{ID: "a", Name: "apply patch", Payload: codes.PayloadText, Arguments: "*** x\n"})
	for _, ev := range d.events {
		switch ev := ev.(type) {
		case *dragoman.PartStart:
			if c := ev.Part.(*dragoman.ToolCall); c.Name != "apply patch" || c.Payload != codes.PayloadText {
				t.Errorf("started as %+v", c)
			}
		case *dragoman.PartDelta:
			t.Errorf("a fragment of JSON was emitted as input: %q", ev.Text)
		}
	}
	// Clients of the same dialect get a custom call.
	out, _ := encodeStream(t, dialect.EncodeOptions{}, d.events)
	has(t, out, `"custom":{"name":"`)
	has(t, out, `*** x\n`)
}

func TestQuirkC10_RepeatedCallIsReportedOnce(t *testing.T) {
	const whole = `{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`
	got := decodeStream(t, dialect.DecodeOptions{}, stream(`"tool_calls"`, toolDeltas(whole, whole, whole)...))
	n := 0
	for _, l := range got.rep.Losses {
		if l.Kind == dragoman.Dropped && strings.Contains(l.Detail, "exact repeat") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%v", got.rep.Losses)
	}
}
