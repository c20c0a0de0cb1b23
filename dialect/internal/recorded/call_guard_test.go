package recorded_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// guardOf returns a call guard for one response of the codec's dialect.
func guardOf(codec dialect.Codec) wire.CallGuard {
	return wire.Of(codec).CallGuard(dialect.DecodeOptions{})
}

// guards maps files of recorded traffic to constructors of their guards.
var guards = map[string]func() wire.CallGuard{
	"openai_chat":      func() wire.CallGuard { return guardOf(openaichat.Codec{}) },
	"openai_responses": func() wire.CallGuard { return guardOf(openairesponses.Codec{}) },
}

// guardStream passes a stream through a guard, the given number of events at a time.
func guardStream(g wire.CallGuard, body string, events int) string {
	var out, part strings.Builder
	n := 0
	for _, event := range strings.SplitAfter(body, "\n\n") {
		part.WriteString(event)
		if n++; n%events == 0 {
			out.Write(g.Pass([]byte(part.String())))
			part.Reset()
		}
	}
	out.Write(g.Pass([]byte(part.String())))
	out.Write(g.Close())
	return out.String()
}

// Recorded responses pass a guard unchanged, unless they have a call with invalid arguments.
func TestRecordedResponsesPassTheCallGuardUnchanged(t *testing.T) {
	for _, a := range apis() {
		newGuard, ok := guards[a.File]
		if !ok {
			continue
		}
		calls, blocked := 0, 0
		for _, x := range traffic.Recorded(t, a.File) {
			body, kind := a.response(t, &x)
			var got string
			g := newGuard()
			switch kind {
			case wholeResponse:
				got = string(g.Response([]byte(body)))
			case streamResponse:
				got = guardStream(g, body, 1)
				if again := guardStream(newGuard(), body, 7); again != got {
					t.Errorf("%s: the result depends on how many events come at once", x.ID())
				}
			default:
				continue
			}
			if strings.Contains(body, "tool_calls") || strings.Contains(body, "function_call") {
				calls++
			}
			if g.Blocked() {
				blocked++
				if !invalidCall(a.Codec, body, kind) {
					t.Errorf("%s: blocked, but has no invalid call:\n%s", x.ID(), body)
				}
			} else if got != body {
				t.Errorf("%s: changed", x.ID())
			}
		}
		t.Logf("%s: %d responses with calls, %d of them blocked", a.File, calls, blocked)
	}
}

// invalidCall reports whether a response has a call whose arguments are not valid JSON.
func invalidCall(codec dialect.Codec, body string, kind responseKind) bool {
	var resp *dragoman.Response
	if kind == wholeResponse {
		resp, _, _ = codec.DecodeResponse([]byte(body), dialect.DecodeOptions{})
	} else {
		resp, _ = dragoman.Collect(dialect.Events(codec.NewStreamDecoder(dialect.DecodeOptions{}), strings.NewReader(body)))
	}
	if resp == nil {
		return false
	}
	for _, c := range resp.ToolCalls() {
		if p := dragoman.CheckArguments(c.Arguments); p != nil && p.Code == codes.ProblemInvalidJSON {
			return true
		}
	}
	return false
}

// chatStream returns a Chat stream in which each chunk has the given choices.
func chatStream(choices ...string) string {
	var b strings.Builder
	for _, c := range choices {
		b.WriteString(`data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[` + c + "]}\n\n")
	}
	return b.String() + "data: [DONE]\n\n"
}

func TestQuirkB9_ChatGuardBlocksInvalidCallsOnly(t *testing.T) {
	const start = `{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]},"finish_reason":null}`
	const rest = `{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":null}`
	const bad = `{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"x}"}}]},"finish_reason":null}`
	const end = `{"index":0,"delta":{},"finish_reason":"tool_calls"}`
	whole := func(choice int, arguments string) string {
		return `{"index":` + string(rune('0'+choice)) + `,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"` + arguments + `"}}]},"finish_reason":"tool_calls"}`
	}
	blockedEnd := strings.Replace(end, "tool_calls", "content_filter", 1)
	for name, tc := range map[string]struct{ in, want string }{
		"valid":   {chatStream(start, rest, end), ""},
		"invalid": {chatStream(start, bad, end), chatStream(start, bad, blockedEnd)},
		"quirk C12: arguments after the finish reason":                {chatStream(start, end, rest), ""},
		"a finish reason in every chunk":                              {chatStream(start, end, rest, end), ""},
		"a finish reason in every chunk, invalid":                     {chatStream(start, end, bad, end), chatStream(start, blockedEnd, bad, blockedEnd)},
		"no finish reason":                                            {chatStream(start, bad), chatStream(start, bad, `{"index":0,"delta":{},"finish_reason":"content_filter"}`)},
		"length":                                                      {chatStream(start, strings.Replace(end, "tool_calls", "length", 1)), ""},
		"one choice of two":                                           {chatStream(whole(0, "{}") + "," + whole(1, "{")), chatStream(whole(0, "{}") + "," + strings.Replace(whole(1, "{"), `"finish_reason":"tool_calls"`, `"finish_reason":"content_filter"`, 1))},
		"quirk C2: two calls without an index":                        {chatStream(strings.ReplaceAll(start, `"index":0,"id":"a"`, `"id":"a"`), strings.Replace(rest, `[{"index":0,`, `[{`, 1), strings.Replace(whole(0, "{}"), `"index":0,"id":"a"`, `"id":"b"`, 1)), ""},
		"text that mentions tool_calls":                               {chatStream(`{"index":0,"delta":{"content":"\"tool_calls\": [{"},"finish_reason":"stop"}`), ""},
		"tool_calls null":                                             {chatStream(`{"index":0,"delta":{"content":"a","tool_calls":null,"function_call":null},"finish_reason":"stop"}`), ""},
		"quirk C7: arguments that are an object":                      {chatStream(strings.Replace(whole(0, "X"), `"X"`, `{"a":1}`, 1)), ""},
		"duplicate fields are valid JSON and pass":                    {chatStream(whole(0, `{\"a\":1,\"a\":2}`)), ""},
		"carriage returns, comments and an end without a blank line":  {": hi\r\n\r\n" + strings.ReplaceAll(strings.TrimSuffix(chatStream(start, rest, end), "\n\n"), "\n", "\r\n"), ""},
		"carriage returns, comments and no blank line, invalid calls": {": hi\r\n\r\n" + strings.ReplaceAll(strings.TrimSuffix(chatStream(start, bad, end), "\n\n"), "\n", "\r\n"), ": hi\r\n\r\n" + strings.ReplaceAll(strings.TrimSuffix(chatStream(start, bad, blockedEnd), "\n\n"), "\n", "\r\n")},
	} {
		want := tc.want
		if want == "" {
			want = tc.in
		}
		for _, events := range []int{1, 2, 100} {
			g := guardOf(openaichat.Codec{})
			if got := guardStream(g, tc.in, events); got != want || g.Blocked() != (tc.want != "") {
				t.Errorf("%s, %d events at once, blocked %v:\n%s\nwant\n%s", name, events, g.Blocked(), got, want)
			}
		}
	}
}

func TestQuirkB9_ResponsesGuardChecksTheArgumentsOfDeltas(t *testing.T) {
	const delta = `data: {"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_1","delta":"{\"a\": b}"}` + "\n\n"
	const done = `data: {"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"c","name":"f","status":"completed"}}` + "\n\n"
	const end = `data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}` + "\n\n"
	g := guardOf(openairesponses.Codec{})
	got := guardStream(g, delta+done+end, 1)
	want := delta + strings.Replace(done, "completed", "incomplete", 1) +
		`data: {"type":"response.incomplete","response":{"id":"r","status":"incomplete","output":[],"incomplete_details":{"reason":"content_filter"}}}` + "\n\n"
	if got != want || !g.Blocked() {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := guardStream(guardOf(openairesponses.Codec{}), done+end, 1); got != done+end {
		t.Errorf("without arguments:\n%s", got)
	}
}
