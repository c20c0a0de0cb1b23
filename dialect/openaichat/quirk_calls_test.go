package openaichat_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// bothWays decodes one call from a whole response and from a stream.
func bothWays(t *testing.T, args string, tools ...dragoman.ToolSpec) map[string]dragoman.ToolCall {
	t.Helper()
	o := dialect.DecodeOptions{Registry: all.Registry(interop.Options{Target: targets.Target{Dialect: codec.Dialect()}, Limits: codec.Limits(), Tools: tools})}
	quoted := quote(args)
	whole, _, err := codec.DecodeResponse([]byte(`{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":`+quoted+`}}]},"finish_reason":"tool_calls"}]}`), o)
	if err != nil {
		t.Fatal(err)
	}
	d := decodeStream(t, o, stream(`"tool_calls"`, toolDeltas(`{"index":0,"id":"a","function":{"name":"f","arguments":`+quoted+`}}`)...))
	if d.feed != nil {
		t.Fatal(d.feed)
	}
	return map[string]dragoman.ToolCall{"whole": calls(whole)[0], "streamed": calls(d.resp)[0]}
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

func TestQuirkB6_SeveralObjectsInOneStringAreOneInvalidCall(t *testing.T) {
	for _, args := range []string{`{"a":1}{"a":2}`, "{\"a\":1}\n{\"a\":2}", `{}{}`} {
		for way, c := range bothWays(t, args) {
			if c.Arguments != args || c.ID != "a" {
				t.Errorf("%s: %+v", way, c)
			}
			problem(t, c, codes.ProblemInvalidJSON)
		}
	}
}

func TestQuirkB8_UnfinishedStringIsNotClosed(t *testing.T) {
	for _, args := range []string{`{"path":"a","content":"half a fi`, `{"a":[1,2`, `{"a":1`, `{`} {
		for way, c := range bothWays(t, args) {
			if c.Arguments != args {
				t.Errorf("%s: %s became %s", way, args, c.Arguments)
			}
			if c.Problem == nil {
				t.Errorf("%s: %s may run", way, args)
			}
		}
	}
}

// signature is the Chat field in which Gemini sends its thought signature.
const signature = `{"google":{"thought_signature":"c2ln"}}`

func TestQuirkB16_B17_ThoughtSignatureStaysOnItsCall(t *testing.T) {
	signed := `{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":` + signature + `}`
	plain := `{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}`
	whole, _ := message(t, `{"role":"assistant","content":null,"tool_calls":[`+signed+`,`+plain+`]}`, `"tool_calls"`)
	streamed := streamed(t, stream(`"tool_calls"`, toolDeltas(strings.Replace(signed, `{`, `{"index":0,`, 1), strings.Replace(plain, `{`, `{"index":1,`, 1))...))
	for way, resp := range map[string]*dragoman.Response{"whole": whole, "streamed": streamed} {
		t.Run(way, func(t *testing.T) {
			cs := calls(resp)
			sameCalls(t, cs, call("a", "f", "{}"), call("b", "g", "{}"))
			if v, _ := extra.Get(cs[0].Extra, codec.Dialect(), "/extra_content"); string(v) != signature {
				t.Errorf("%+v", cs[0].Extra)
			}
			if cs[1].Extra != nil {
				t.Errorf("the other call also has a signature: %+v", cs[1].Extra)
			}
			// It is sent back on the same call, once, whether the message is replayed or rebuilt.
			req := &dragoman.Request{Model: "m", Messages: resp.Output}
			for _, rebuild := range []bool{false, true} {
				m, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: rebuild})
				sameJSON(t, string(m["messages"]), `[{"role":"assistant","content":null,"tool_calls":[`+signed+`,`+plain+`]}]`)
			}
		})
	}
}

func TestQuirkB25_CallsInTextStayText(t *testing.T) {
	for _, content := range []string{
		`<tool_call>{"name":"f","arguments":{}}</tool_call>`,
		`<function=f><parameter=a>1</parameter></function>`,
		`<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>`,
		"```json\n{\"name\":\"f\",\"arguments\":{}}\n```",
	} {
		whole, rep := message(t, `{"role":"assistant","content":`+quote(content)+`}`, `"stop"`)
		lossless(t, rep)
		for _, resp := range []*dragoman.Response{whole, streamed(t, stream(`"stop"`, `{"content":`+quote(content[:9])+`}`, `{"content":`+quote(content[9:])+`}`))} {
			if resp.Text() != content || len(resp.ToolCalls()) != 0 || resp.Stop.Reason != dragoman.StopEnd {
				t.Errorf("%+v", resp)
			}
		}
	}
}

func TestQuirkC7_WholeArgumentsAreComplete(t *testing.T) {
	for args, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, `{}`: `{}`, `{"a":{"b":[]}}`: `{"a":{"b":[]}}`,
	} {
		resp := streamed(t, stream(`"tool_calls"`, toolDeltas(
			`{"index":0,"id":"x","function":{"name":"f","arguments":""}}`, `{"index":0,"function":{"arguments":`+args+`}}`,
			`{"index":0,"function":{"arguments":null}}`, `{"index":0,"function":{"arguments":" "}}`,
		)...))
		if c := calls(resp)[0]; strings.TrimSpace(c.Arguments) != want || c.Problem != nil {
			t.Errorf("%s became %s, %+v", args, c.Arguments, c.Problem)
		}
	}
}

func TestQuirkC7_WholeAndFragmentedArgumentsDoNotRun(t *testing.T) {
	for _, fragments := range [][]string{
		{`"{\"a\":"`, `{"b":1}`, `"}"`}, // joined, these would be valid
		{`"{\"a\":"`, `1`, `"}"`},
		{`"{\"a\":"`, `true`, `"}"`},
		{`"["`, `{"a":1}`, `"]"`},
		{`"{\"a\":1}"`, `{"a":2}`},
		{`{"a":1}`, `{"a":1}`},
		{`{}`, `"{\"a\":1}"`},
		{`1`, `"2"`},
	} {
		for what, form := range map[string]string{
			"named":    `{"index":0,"id":"x","function":{"name":"f","arguments":`,
			"nameless": `{"index":0,"id":"x","function":{"arguments":`, // the name comes last
		} {
			var deltas []string
			for _, p := range fragments {
				deltas = append(deltas, form+p+`}}`)
				form = `{"index":0,"function":{"arguments":`
			}
			if what == "nameless" {
				deltas = append(deltas, `{"index":0,"function":{"name":"f"}}`)
			}
			cs := calls(streamed(t, stream(`"tool_calls"`, toolDeltas(deltas...)...)))
			if len(cs) != 1 || cs[0].Problem == nil {
				t.Errorf("%s, %v: %+v may run", what, fragments, cs[0])
			}
		}
	}
}

func TestQuirkB32_ArgumentsAreNotCoerced(t *testing.T) {
	spec := dragoman.ToolSpec{Name: "f", Parameters: []byte(`{"type":"object","properties":{"n":{"type":"integer"},"ok":{"type":"boolean"},"list":{"type":"array","items":{"type":"string"}},"x":{"type":["number","null"]}}}`)}
	const args = `{"n":"5","ok":"true","list":"one","x":"null"}`
	for way, c := range bothWays(t, args, spec) {
		if c.Arguments != args || c.Problem != nil {
			t.Errorf("%s: %s, %+v", way, c.Arguments, c.Problem)
		}
	}
}

func TestQuirkC3_IDOnEveryChunk(t *testing.T) {
	for name, deltas := range map[string][]string{
		"same id":           {`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`, `{"index":0,"id":"a","function":{"arguments":"1"}}`, `{"index":0,"id":"a","function":{"arguments":"}"}}`},
		"same id, no index": {`{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`, `{"id":"a","function":{"arguments":"1"}}`, `{"id":"a","function":{"arguments":"}"}}`},
		"new id each time":  {`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`, `{"index":0,"id":"b","function":{"arguments":"1"}}`, `{"index":0,"id":"c","function":{"arguments":"}"}}`},
		"new id, no index":  {`{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`, `{"id":"b","function":{"name":"","arguments":"1"}}`, `{"id":"c","function":{"arguments":"}"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			sameCalls(t, calls(streamed(t, stream(`"tool_calls"`, toolDeltas(deltas...)...))), call("a", "f", `{"x":1}`))
		})
	}
}

func TestQuirkC6_ArgumentsWithNameAreKept(t *testing.T) {
	resp := streamed(t, stream(`"tool_calls"`, toolDeltas(
		`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`,
		`{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":"}}`, `{"index":1,"function":{"arguments":"2}"}}`,
	)...))
	sameCalls(t, calls(resp), call("a", "f", `{"x":1}`), call("b", "g", `{"y":2}`))
	// The encoder keeps them too, whichever dialect the parts came from.
	out, _ := encodeStream(t, dialect.EncodeOptions{}, []dragoman.Event{
		&dragoman.ResponseStart{},
		&dragoman.PartStart{Header: &dragoman.Message{Role: dragoman.RoleAssistant}, Part: &dragoman.ToolCall{ID: "a", Name: "f"}},
		&dragoman.PartEnd{Part: &dragoman.ToolCall{ID: "a", Name: "f", Arguments: `{"x":1}`}},
		&dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}},
	})
	sameCalls(t, calls(streamed(t, out)), call("a", "f", `{"x":1}`))
}

// A number is not a valid call id, but it distinguishes calls like a string does.
func TestQuirkC2_NumberAsIDDistinguishesCalls(t *testing.T) {
	first, second := `{"index":null,"id":1,"function":{"name":"f","arguments":"{}"}}`, `{"index":null,"id":2,"function":{"name":"g","arguments":"{\"x\":"}}`
	half := `{"index":null,"id":1,"function":{"name":"f","arguments":"{"}}`
	for what, list := range map[string][]string{
		"no index":         {first, second, `{"index":null,"function":{"arguments":"1}"}}`},
		"interleaved":      {half, second, `{"index":null,"id":1,"function":{"arguments":"}"}}`, `{"index":null,"id":2,"function":{"arguments":"1}"}}`},
		"all with index 0": {strings.Replace(half, "null", "0", 1), strings.Replace(second, "null", "0", 1), `{"index":0,"id":1,"function":{"arguments":"}"}}`, `{"index":0,"id":2,"function":{"arguments":"1}"}}`},
	} {
		t.Run(what, func(t *testing.T) {
			got := calls(streamed(t, stream(`"tool_calls"`, toolDeltas(list...)...)))
			if len(got) != 2 || got[0].ID == got[1].ID {
				t.Fatalf("%+v", got)
			}
			sameCalls(t, got, call(got[0].ID, "f", `{}`), call(got[1].ID, "g", `{"x":1}`))
			for _, c := range got {
				if !c.Synthetic || c.ID == "1" || c.ID == "2" || c.Problem != nil {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

// vLLM and others finish a forced call with "stop" and empty content.
func TestQuirkE10_ForcedCallWithFinishReasonStop(t *testing.T) {
	const call = `"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]`
	for _, content := range []string{`null`, `""`} {
		whole, _, err := codec.DecodeResponse([]byte(`{"choices":[{"index":0,"message":{"role":"assistant","content":`+content+`,`+call+`},"finish_reason":"stop"}]}`), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		streamed, err := dragoman.Collect(dialect.Events(codec.NewStreamDecoder(dialect.DecodeOptions{}), strings.NewReader(
			`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":`+content+`,`+call+`}}]}`+"\n\n"+
				`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")))
		if err != nil {
			t.Fatal(err)
		}
		for _, resp := range []*dragoman.Response{whole, streamed} {
			if c := resp.ToolCalls(); resp.Stop.Reason != dragoman.StopToolCalls || len(c) != 1 || c[0].Problem != nil || resp.Text() != "" {
				t.Errorf("%+v", resp)
			}
		}
	}
}
