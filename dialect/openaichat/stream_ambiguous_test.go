package openaichat_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"pgregory.net/rapid"
)

// client reads a stream like a simple client program. It uses the last of two duplicate fields,
// ignores the case of field names, identifies calls by index, joins fragments, and runs its calls
// when the finish reason allows it.
type client struct {
	calls  map[int]*clientCall
	order  []int
	finish string
	failed bool
	// tolerant is set if the client continues after an event that it cannot parse.
	tolerant bool
}

type clientCall struct{ id, name, args string }

func (c *client) read(t *testing.T, body string) {
	t.Helper()
	c.calls = map[int]*clientCall{}
	for _, data := range chunksOf(t, body) {
		if data == "[DONE]" {
			continue
		}
		var chunk struct {
			Error   any
			Choices []struct {
				Index int
				Delta struct {
					ToolCalls []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
						Custom   struct{ Name, Input string }
					} `json:"tool_calls"`
				}
				FinishReason string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil && !c.tolerant {
			t.Fatalf("%v\n%s", err, data)
		}
		c.failed = c.failed || chunk.Error != nil
		for _, choice := range chunk.Choices {
			if choice.Index != 0 {
				continue // it requested one choice
			}
			if choice.FinishReason != "" {
				c.finish = choice.FinishReason
			}
			for _, d := range choice.Delta.ToolCalls {
				k := c.calls[d.Index]
				if k == nil {
					k = &clientCall{}
					c.calls[d.Index] = k
					c.order = append(c.order, d.Index)
				}
				if d.ID != "" {
					k.id = d.ID
				}
				k.name += d.Function.Name + d.Custom.Name
				k.args += d.Function.Arguments + d.Custom.Input
			}
		}
	}
}

// runs returns the calls that the client runs.
func (c *client) runs() []string {
	out := []string{}
	if c.failed || c.finish != "tool_calls" && c.finish != "stop" {
		return out
	}
	for _, i := range c.order {
		k := c.calls[i]
		if k.args == "" {
			k.args = "{}"
		}
		// A blocked call has arguments that no tool accepts, or an unknown name.
		if json.Valid([]byte(k.args)) && (k.name == "ls" || k.name == "rm") && !strings.HasPrefix(k.args, `{"_raw":`) {
			out = append(out, fmt.Sprintf("%s %s(%s)", k.id, k.name, k.args))
		}
	}
	return out
}

// approved returns the calls that may run according to our decoder.
func approved(r *dragoman.Response) []string {
	out := []string{}
	for _, c := range r.ToolCalls() {
		if c.Problem == nil {
			obj, _ := c.Object()
			out = append(out, fmt.Sprintf("%s %s(%s)", c.ID, c.Name, obj))
		}
	}
	return out
}

// forwarded decodes a stream and encodes it in the same dialect.
func forwarded(t *testing.T, body string) (decoded, string) {
	t.Helper()
	d := decodeStream(t, dialect.DecodeOptions{}, body)
	if d.feed != nil || d.err != nil {
		t.Fatalf("%v, %v\n%s", d.feed, d.err, body)
	}
	out, _ := encodeStream(t, dialect.EncodeOptions{}, d.events)
	return d, out
}

func TestAmbiguousStreamsRunOnlyApprovedCalls(t *testing.T) {
	began := `{"index":0,"id":"a","type":"function","function":{"name":"ls","arguments":""}}`
	more := `{"index":0,"function":{"arguments":"{\"p\":1}"}}`
	chunk := func(choice string) string { return `{"id":"r","model":"m","choices":[` + choice + `]}` }
	delta := func(calls ...string) string { return `{"tool_calls":[` + strings.Join(calls, ",") + `]}` }
	evil := `{"index":0,"function":{"arguments":"{\"p\":\"/\"}"}}`
	end := finish(`"tool_calls"`)
	for _, tc := range []struct {
		name string
		list []string // events
		runs bool     // the call may run
	}{
		{"valid", append(deltas(delta(began), delta(more)), end), true},
		{"duplicate arguments", append(deltas(delta(began), delta(`{"index":0,"function":{"arguments":"{\"p\":1}","arguments":"{\"p\":\"/\"}"}}`)), end), false},
		{"duplicate arguments, one escaped", append(deltas(delta(began), delta(`{"index":0,"function":{"arg\u0075ments":"{\"p\":1}","arguments":"{\"p\":\"/\"}"}}`)), end), false},
		{"arguments in two cases", append(deltas(delta(began), delta(`{"index":0,"function":{"arguments":"{\"p\":1}","Arguments":"{\"p\":\"/\"}"}}`)), end), false},
		{"arguments in another case", append(deltas(delta(began), delta(`{"index":0,"function":{"ARGUMENTS":"{\"p\":1}"}}`)), end), false},
		{"arguments in folded Unicode", append(deltas(delta(began), delta(`{"index":0,"function":{"argumentſ":"{\"p\":1}"}}`)), end), false},
		{"duplicate name", append(deltas(delta(`{"index":0,"id":"a","function":{"name":"ls","name":"rm","arguments":""}}`), delta(more)), end), false},
		{"name in two cases", append(deltas(delta(`{"index":0,"id":"a","function":{"name":"ls","Name":"rm","arguments":""}}`), delta(more)), end), false},
		{"duplicate id", append(deltas(delta(`{"index":0,"id":"a","id":"b","function":{"name":"ls","arguments":""}}`), delta(more)), end), false},
		{"duplicate index", append(deltas(delta(began), delta(`{"index":0,"index":1,"function":{"arguments":"{\"p\":1}"}}`)), end), false},
		{"duplicate type", append(deltas(delta(`{"index":0,"id":"a","type":"custom","type":"function","function":{"name":"ls","arguments":""}}`), delta(more)), end), false},
		{"duplicate function", append(deltas(delta(began), delta(`{"index":0,"function":{"arguments":"{\"p\":1}"},"function":{"arguments":"{\"p\":\"/\"}"}}`)), end), false},
		{"function and custom tool", append(deltas(delta(began), delta(`{"index":0,"function":{"arguments":"{\"p\":1}"},"custom":{"input":"x"}}`)), end), false},
		{"duplicate tool_calls", append(deltas(delta(began), `{"tool_calls":[`+more+`],"tool_calls":[`+evil+`]}`), end), false},
		{"tool_calls in two cases", append(deltas(delta(began), `{"tool_calls":[`+more+`],"Tool_Calls":[`+evil+`]}`), end), false},
		{"duplicate delta", append(deltas(delta(began)), chunk(`{"index":0,"delta":`+delta(more)+`,"delta":`+delta(evil)+`}`), end), false},
		{"delta in two cases", append(deltas(delta(began)), chunk(`{"index":0,"delta":`+delta(more)+`,"Delta":`+delta(evil)+`}`), end), false},
		{"duplicate choice index", append(deltas(delta(began)), chunk(`{"index":0,"index":0,"delta":`+delta(more)+`}`), end), false},
		{"duplicate choices", append(deltas(delta(began)), `{"choices":[{"index":0,"delta":`+delta(more)+`}],"choices":[{"index":0,"delta":`+delta(evil)+`}]}`, end), false},
		{"choices in another case", append(deltas(delta(began), delta(more)), `{"Choices":[{"index":0,"delta":`+delta(evil)+`}]}`, end), true},
		{"duplicate error", append(deltas(delta(began), delta(more)), `{"error":null,"error":null,"choices":[]}`, end), true},
		{"duplicate content", append(deltas(delta(began), delta(more), `{"content":"a","content":"b"}`), end), true},
		{"duplicate finish reason", append(deltas(delta(began), delta(more)), chunk(`{"index":0,"delta":{},"finish_reason":"length","finish_reason":"tool_calls"}`)), false},
		{"finish reason in two cases", append(deltas(delta(began), delta(more)), chunk(`{"index":0,"delta":{},"finish_reason":"length","Finish_Reason":"tool_calls"}`)), false},
		{"finish reason replaced", append(deltas(delta(began), delta(more)), finish(`"length"`), end), false},
		{"changed name", append(deltas(delta(began), delta(`{"index":0,"function":{"arguments":"{"}}`), delta(`{"index":0,"function":{"name":"rm","arguments":"}"}}`)), end), false},
		{"C5: the name again before any argument", append(deltas(delta(began), delta(`{"index":0,"function":{"name":"ls","arguments":"{\"p\":1}"}}`)), end), true},
		{"C5: the name again after arguments", append(deltas(delta(began), delta(`{"index":0,"function":{"arguments":"{\"p\""}}`), delta(`{"index":0,"id":"a","function":{"name":"ls","arguments":":1}"}}`)), end), true},
		{"C5: the name again alone", append(deltas(delta(began), delta(more), delta(`{"index":0,"function":{"name":"ls","arguments":""}}`)), end), true},
		{"C10: the whole call again", append(deltas(delta(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{\"p\":1}"}}`), delta(`{"id":"a","index":0,"function":{"name":"ls","arguments":"{\"p\":1}"}}`)), end), true},
		{"changed id", append(deltas(delta(began), delta(`{"index":0,"id":"b","function":{"arguments":"{}"}}`)), end), true},
		{"changed kind", append(deltas(delta(began), delta(`{"index":0,"function":{"arguments":"{"}}`), delta(`{"index":0,"custom":{"input":"}"}}`)), end), false},
		{"function_call in addition", append(deltas(delta(began), delta(more), `{"function_call":{"arguments":" "}}`), end), false},
		{"duplicate arguments of a function_call", append(deltas(`{"function_call":{"name":"ls","arguments":"{}","arguments":"{\"p\":1}"}}`), end), false},
		{"id of one call, index of another", append(deltas(delta(began, `{"index":1,"id":"b","function":{"name":"rm","arguments":""}}`),
			delta(more), delta(`{"index":0,"id":"b","function":{"arguments":"{}"}}`)), end), false},
		{"duplicate key in arguments", append(deltas(delta(began), delta(`{"index":0,"function":{"arguments":"{\"p\":1,"}}`), delta(`{"index":0,"function":{"arguments":"\"p\":2}"}}`)), end), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := sse(append(tc.list, "[DONE]")...)
			d, out := forwarded(t, body)
			want := approved(d.resp)
			if (len(want) > 0) != tc.runs {
				t.Errorf("approved calls: %q", want)
			}
			var c client
			c.read(t, out)
			if got := c.runs(); !slices.Equal(got, want) {
				t.Errorf("the client runs %q, approved are %q\n%s", got, want, out)
			}
			for _, k := range c.calls {
				if strings.HasPrefix(tc.name, "C5:") && k.name != "ls" {
					t.Errorf("a client that joins fragments reads the name %q", k.name)
				}
			}
			for _, chunk := range chunksOf(t, out) {
				if chunk != "[DONE]" {
					object(t, []byte(chunk)) // checks for duplicate fields
				}
			}
		})
	}
}

func TestReencodedStreamMeansTheSame(t *testing.T) {
	first := `{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":{\"name\":1},\"b\":{\"name\":2}}"}}`
	for name, body := range map[string]string{
		"everything in fragments":   parallel,
		"same field in two objects": stream(`"tool_calls"`, toolDeltas(first, `{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}`)...),
		"repeated finish reason":    sse(append(deltas(toolDeltas(first)...), finish(`"tool_calls"`), finish(`"tool_calls"`), "[DONE]")...),
		"stricter finish reason":    sse(append(deltas(toolDeltas(first)...), finish(`"stop"`), finish(`"length"`), "[DONE]")...),
		"id on every fragment":      stream(`"tool_calls"`, toolDeltas(first, `{"index":0,"id":"a","function":{"arguments":" "}}`)...),
		"all calls with index 0":    stream(`"tool_calls"`, toolDeltas(first, `{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}`, `{"index":0,"id":"a","function":{"arguments":" "}}`)...),
		"name in fragments":         stream(`"tool_calls"`, toolDeltas(`{"index":0,"id":"a","function":{"name":"get_"}}`, `{"index":0,"function":{"name":"it","arguments":"{}"}}`)...),
		"duplicate unknown field":   stream(`"stop"`, `{"content":"x","vendor":1,"vendor":2}`),
	} {
		t.Run(name, func(t *testing.T) {
			faithful(t, decodeStream(t, dialect.DecodeOptions{}, body).events)
		})
	}
}

func TestMalformedEventIsNotForwarded(t *testing.T) {
	bad := "data: " + finish(`"tool_calls"`) + " x\n\n"
	events, feed, _ := closed(t, sse(deltas(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"rm","arguments":"{}"}}]}`)...)+bad)
	if feed == nil {
		t.Fatal("the malformed event was accepted")
	}
	out, _ := encodeStream(t, dialect.EncodeOptions{}, events)
	hasNot(t, out, `"finish_reason":"tool_calls"`)
	has(t, out, `data: {"error":`)
}

// A duplicate field, in any case and with any value, never makes a client run a call that was not
// approved.
func TestProperty_DuplicateFieldsDoNotChangeApprovedCalls(t *testing.T) {
	list := append(deltas(
		`{"role":"assistant","content":"x"}`,
		`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"ls","arguments":""}}]}`,
		`{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":"}}]}`,
		`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"rm","arguments":"{}"}},{"index":0,"function":{"arguments":"1}"}}]}`,
	), finish(`"tool_calls"`))
	evil := map[string]string{
		"choices":    `[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":" "}}]},"finish_reason":"stop"}]`,
		"delta":      `{"tool_calls":[{"index":0,"function":{"name":"rm","arguments":" "}}]}`,
		"tool_calls": `[{"index":1,"id":"c","function":{"name":"rm","arguments":"{}"}}]`,
		"function":   `{"name":"rm","arguments":"{}"}`,
	}
	rapid.Check(t, func(rt *rapid.T) {
		events := slices.Clone(list)
		for range rapid.IntRange(1, 2).Draw(rt, "changes") {
			i := rapid.IntRange(0, len(events)-1).Draw(rt, "event")
			events[i] = duplicateField(rt, events[i], evil)
		}
		d := decodeStream(t, dialect.DecodeOptions{}, sse(append(events, "[DONE]")...))
		out, _ := encodeStream(t, dialect.EncodeOptions{}, d.events)
		var c client
		c.tolerant = true
		c.read(t, out)
		want := approved(d.resp)
		for _, got := range c.runs() {
			if !slices.Contains(want, got) {
				rt.Fatalf("the client runs %q, approved are %q\n%s\n%s", got, want, strings.Join(events, "\n"), out)
			}
		}
	})
}

// duplicateField adds a field to an object of a document that already has it.
func duplicateField(rt *rapid.T, doc string, evil map[string]string) string {
	keys := regexp.MustCompile(`[{,]"([a-z_]+)":`).FindAllStringSubmatchIndex(doc, -1)
	key := keys[rapid.IntRange(0, len(keys)-1).Draw(rt, "member")]
	name := doc[key[2]:key[3]]
	var old json.RawMessage
	dec := json.NewDecoder(strings.NewReader(doc[key[1]:]))
	if err := dec.Decode(&old); err != nil {
		rt.Fatal(err)
	}
	value := evil[name]
	if value == "" {
		value = rapid.SampledFrom([]string{`"rm"`, `"{\"p\":\"/\"}"`, `" "`, `"length"`, `"stop"`, `"b"`, `0`, `1`, `null`, string(old)}).Draw(rt, "value")
	}
	switch rapid.IntRange(0, 2).Draw(rt, "letters") {
	case 1:
		name = strings.ToUpper(name[:1]) + name[1:]
	case 2:
		name = name[:1] + fmt.Sprintf(`\u%04x`, name[1]) + name[2:]
	}
	member := `"` + name + `":` + value
	if rapid.Bool().Draw(rt, "before") {
		return doc[:key[0]+1] + member + "," + doc[key[0]+1:]
	}
	end := key[1] + int(dec.InputOffset())
	return doc[:end] + "," + member + doc[end:]
}

// joined reads a function_call like the official clients, which join its fragments.
func joined(t *testing.T, body string) (name, args, word string, others int) {
	t.Helper()
	for _, data := range chunksOf(t, body) {
		var chunk struct {
			Choices []struct {
				Delta struct {
					FunctionCall struct{ Name, Arguments string } `json:"function_call"`
					ToolCalls    []any                            `json:"tool_calls"`
				}
				FinishReason string `json:"finish_reason"`
			}
		}
		if data == "[DONE]" {
			continue
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatal(err)
		}
		for _, c := range chunk.Choices {
			name += c.Delta.FunctionCall.Name
			args += c.Delta.FunctionCall.Arguments
			word += c.FinishReason
			others += len(c.Delta.ToolCalls)
		}
	}
	return name, args, word, others
}

func TestQuirkC5_LegacyNameIsSentOnce(t *testing.T) {
	for what, ds := range map[string][]string{
		"alone":            {`{"function_call":{"name":"f"}}`, `{"function_call":{"name":"f"}}`, `{"function_call":{"arguments":"{\"a\":1}"}}`},
		"with arguments":   {`{"function_call":{"name":"f"}}`, `{"function_call":{"name":"f","arguments":"{\"a\":1}"}}`},
		"after arguments":  {`{"function_call":{"name":"f","arguments":"{\"a\""}}`, `{"function_call":{"name":"f","arguments":":1}"}}`},
		"after the call":   {`{"function_call":{"name":"f","arguments":"{\"a\":1}"}}`, `{"function_call":{"name":"f","arguments":""}}`},
		"arguments in two": {`{"function_call":{"name":"f"}}`, `{"function_call":{"arguments":"{\"a\""}}`, `{"function_call":{"arguments":":1}"}}`},
	} {
		t.Run(what, func(t *testing.T) {
			d := decodeStream(t, dialect.DecodeOptions{}, stream(`"function_call"`, ds...))
			out, _ := encodeStream(t, dialect.EncodeOptions{LegacyFunctions: true}, d.events)
			if name, args, word, others := joined(t, out); name != "f" || args != `{"a":1}` || word != "function_call" || others > 0 {
				t.Errorf("a client reads %s(%s), %d other calls, %s\n%s", name, args, others, word, out)
			}
			if cs := calls(d.resp); len(cs) != 1 || cs[0].Name != "f" || cs[0].Arguments != `{"a":1}` || cs[0].Problem != nil {
				t.Errorf("%+v", cs)
			}
		})
	}
}
