package anthropic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// problems lists why the calls of a response must not run.
func problems(calls []*dragoman.ToolCall) string {
	var out []string
	for _, c := range calls {
		code := "runs"
		if c.Problem != nil {
			code = c.Problem.Code
		}
		out = append(out, c.Name+" "+code)
	}
	return strings.Join(out, ", ")
}

func typeOf(t *testing.T, body []byte) string {
	t.Helper()
	var v struct{ Type string }
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return v.Type
}

func TestErrorInResponseBlocksCalls(t *testing.T) {
	for _, body := range []string{
		`{"id":"m","type":"error","error":{"type":"api_error","message":"boom"},"content":[{"type":"tool_use","id":"t1","name":"rm","input":{"a":1}}],"stop_reason":"tool_use"}`,
		`{"id":"m","type":"message","error":{"type":"api_error","message":"boom"},"content":[{"type":"tool_use","id":"t1","name":"rm","input":{"a":1}}],"stop_reason":"tool_use"}`,
		`{"id":"m","type":"error","type":"message","content":[{"type":"tool_use","id":"t1","name":"rm","input":{"a":1}}],"stop_reason":"tool_use"}`,
	} {
		resp := decodeResponse(t, body)
		if got := problems(resp.ToolCalls()); resp.Error == nil || resp.Stop.Reason != dragoman.StopError || got != "rm stopped" {
			t.Errorf("%s\n%v, stop %s, %s", body, resp.Error, resp.Stop.Reason, got)
		}
		if enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{}); err != nil || resp.Native != nil || typeOf(t, enc.Body) != "error" {
			t.Errorf("%s\nwritten as %s, %v", body, enc.Body, err)
		}
	}
	if resp := decodeResponse(t, `{"id":"m","error":null,"content":[{"type":"tool_use","id":"t1","name":"rm","input":{}}],"stop_reason":"tool_use"}`); resp.Error != nil || problems(resp.ToolCalls()) != "rm runs" {
		t.Errorf("a null error must be ignored: %v, %s", resp.Error, problems(resp.ToolCalls()))
	}
}

const callLines = `
	{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"rm","input":{}}}
	{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}
	{"type":"content_block_stop","index":0}
	`

func TestBlockingStopReasonIsNotReplaced(t *testing.T) {
	const call = `"content":[{"type":"tool_use","id":"t","name":"rm","input":{"a":1}}]`
	for _, word := range []string{"max_tokens", "refusal", "from_the_future"} {
		for _, body := range []string{
			`{"id":"m",` + call + `,"stop_reason":"` + word + `","stop_reason":"tool_use"}`,
			`{"id":"m",` + call + `,"stop_reason":"tool_use","stop_reason":"` + word + `"}`,
		} {
			resp := decodeResponse(t, body)
			if resp.Stop.Native != word || resp.ToolCalls()[0].Problem == nil || resp.Native != nil {
				t.Errorf("%s\nstop %q, %s, native %v", body, resp.Stop.Native, problems(resp.ToolCalls()), resp.Native)
			}
		}
		stream := sseStream(startLine + callLines + `{"type":"message_delta","delta":{"stop_reason":"` + word + `"},"usage":{"output_tokens":2}}
			` + endLines("tool_use"))
		evs, err := drain(dialect.DecodeOptions{}, []byte(stream))
		if err != nil {
			t.Fatal(err)
		}
		resp := collect(t, stream)
		if resp.Stop.Native != word || resp.ToolCalls()[0].Problem == nil {
			t.Errorf("stream: stop %q, %s", resp.Stop.Native, problems(resp.ToolCalls()))
		}
		out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...)
		if strings.Contains(out, `"stop_reason":"tool_use"`) {
			t.Errorf("a client would run the call:\n%s", out)
		}
	}
}

func TestAmbiguousCallIsBlocked(t *testing.T) {
	for _, block := range []string{
		`{"type":"tool_use","id":"t","name":"rm","input":{"a":1},"input":{"a":2}}`,
		`{"type":"tool_use","id":"t","name":"ls","name":"rm","input":{}}`,
		`{"type":"text","text":"x","type":"tool_use","id":"t","name":"rm","input":{}}`,
		`{"type":"tool_use","id":"t","name":"rm","input":{},"type":"text","text":"x"}`,
		`{"type":"text","text":"x","Type":"tool_use","id":"t","name":"rm","input":{}}`,
	} {
		resp := decodeResponse(t, responseBody("tool_use", "["+block+"]"))
		if got := problems(resp.ToolCalls()); got != "rm duplicate_key" {
			t.Errorf("%s: %s", block, got)
		}
		if resp.Native != nil || resp.Output[0].Native != nil {
			t.Errorf("%s: the original bytes of the response are kept", block)
		}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil || strings.Count(string(enc.Body), `"input"`) != 1 || strings.Count(string(enc.Body), `"name"`) != 1 {
			t.Errorf("%v %s", err, enc.Body)
		}

		req := decode(t, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[`+block+`]}]}`)
		if req.Native != nil || req.Messages[0].Native == nil {
			t.Errorf("%s: the original bytes of the request are kept", block)
		}
		if _, enc := encode(t, req, dialect.EncodeOptions{}); bytes.Contains(enc.Body, []byte(block)) {
			t.Errorf("%s: passed through in %s", block, enc.Body)
		}

		stream := sseStream(startLine + "\n" + `{"type":"content_block_start","index":0,"content_block":` + block + `}
			{"type":"content_block_stop","index":0}
			` + endLines("tool_use"))
		if got := problems(collect(t, stream).ToolCalls()); got != "rm duplicate_key" {
			t.Errorf("stream: %s: %s", block, got)
		}
		evs, _ := drain(dialect.DecodeOptions{}, []byte(stream))
		if out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...); strings.Contains(out, block) || strings.Count(out, `"input":`) != 1 {
			t.Errorf("stream: passed through:\n%s", out)
		}
	}
}

func TestDuplicateContentBlocksCalls(t *testing.T) {
	resp := decodeResponse(t, `{"id":"m","content":[{"type":"tool_use","id":"t","name":"ls","input":{}}],"content":[{"type":"tool_use","id":"t","name":"rm","input":{}}],"stop_reason":"tool_use"}`)
	if got := problems(resp.ToolCalls()); got != "rm duplicate_key" || resp.Native != nil || resp.Output[0].Native != nil {
		t.Errorf("%s, native %v", got, resp.Native)
	}
}

func TestAmbiguousDeltaBlocksCall(t *testing.T) {
	stream := sseStream(startLine + `
		{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"rm","input":{}}}
		{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}","partial_json":"{\"a\":2}"}}
		{"type":"content_block_stop","index":0}
		` + endLines("tool_use"))
	if got := problems(collect(t, stream).ToolCalls()); got != "rm duplicate_key" {
		t.Error(got)
	}
	evs, _ := drain(dialect.DecodeOptions{}, []byte(stream))
	if out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...); strings.Contains(out, `{\"a\":1}`) {
		t.Errorf("passed through:\n%s", out)
	}
}

func TestInvalidCallIsKept(t *testing.T) {
	for block, want := range map[string]string{
		`{"type":"tool_use","id":"t","name":7,"input":{"a":1}}`: " unreadable",
	} {
		resp := decodeResponse(t, responseBody("tool_use", "["+block+"]"))
		if got := problems(resp.ToolCalls()); got != want {
			t.Fatalf("%s: %q", block, got)
		}
		if c := resp.ToolCalls()[0]; c.ID != "t" || c.Extra == nil || len(c.Extra.Fields) != 1 {
			t.Errorf("%s: %+v", block, c)
		}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
		if err != nil || strings.Count(string(enc.Body), `"name"`) != 1 {
			t.Errorf("%v %s", err, enc.Body)
		}
		stream := sseStream(startLine + "\n" + `{"type":"content_block_start","index":0,"content_block":` + block + `}
			{"type":"content_block_stop","index":0}
			` + endLines("tool_use"))
		if got := problems(collect(t, stream).ToolCalls()); got != want {
			t.Errorf("stream: %s: %q", block, got)
		}
	}
}

func TestCallEndContradictingFragmentsIsError(t *testing.T) {
	start := []dragoman.Event{
		&dragoman.ResponseStart{},
		&dragoman.PartStart{Part: &dragoman.ToolCall{ID: "t", Name: "ls"}},
		&dragoman.PartDelta{Kind: codes.KindToolCall, Text: `{"a":1}`},
	}
	end := &dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}}
	for what, final := range map[string]dragoman.Part{
		"another name":      call("t", "rm", `{"a":1}`),
		"another namespace": &dragoman.ToolCall{ID: "t", Name: "ls", Namespace: "x", Arguments: `{"a":1}`},
		"other arguments":   call("t", "ls", `{"b":22222}`),
		"fewer arguments":   call("t", "ls", `{"a"`),
		"not a call":        &dragoman.Text{Text: "hello"},
		"hosted call":       &dragoman.ToolCall{ID: "t", Name: "ls", Arguments: `{"a":1}`, Hosted: true},
	} {
		out, rep := encodeEvents(t, dialect.EncodeOptions{}, append(start[:3:3], &dragoman.PartEnd{Part: final}, end)...)
		if strings.Contains(out, "content_block_stop") || strings.Contains(out, "message_stop") || !strings.HasSuffix(strings.TrimSpace(out), `"}}`) || !strings.Contains(out, "event: error") {
			t.Errorf("%s:\n%s", what, out)
		}
		if rep.Err(dragoman.Serious) == nil {
			t.Errorf("%s: the loss is not reported: %s", what, rep)
		}
	}
	for what, final := range map[string]dragoman.Part{
		"same call":            call("t", "ls", `{"a":1}`),
		"more white space":     call("t", "ls", `{"a": 1}`),
		"call with a problem":  &dragoman.ToolCall{ID: "t", Name: "ls", Arguments: `{"a":1}`, Problem: &dragoman.CallProblem{Code: codes.ProblemStopped}},
		"trailing white space": call("t", "ls", `{"a":1} `),
	} {
		if out, _ := encodeEvents(t, dialect.EncodeOptions{}, append(start[:3:3], &dragoman.PartEnd{Part: final}, end)...); !strings.Contains(out, "message_stop") || strings.Contains(out, "event: error") {
			t.Errorf("%s:\n%s", what, out)
		}
	}
	// A text part cannot become a call, because its block is already open.
	out, _ := encodeEvents(t, dialect.EncodeOptions{}, &dragoman.ResponseStart{}, &dragoman.PartStart{Part: &dragoman.Text{}},
		&dragoman.PartEnd{Part: call("t", "rm", "{}")}, end)
	if strings.Contains(out, "message_stop") {
		t.Errorf("text to call:\n%s", out)
	}
}

func TestEditedCallAfterNativeBlockIsError(t *testing.T) {
	evs, err := drain(dialect.DecodeOptions{}, []byte(sseStream(startLine+callLines+endLines("tool_use"))))
	if err != nil {
		t.Fatal(err)
	}
	for i, ev := range evs {
		if end, ok := ev.(*dragoman.PartEnd); ok {
			edited := *end.Part.(*dragoman.ToolCall)
			edited.Arguments = `{"a":2}`
			evs[i] = &dragoman.PartEnd{Index: end.Index, Part: &edited}
			evs[i-1] = &dragoman.Chunk{}
		}
	}
	if out, rep := encodeEvents(t, dialect.EncodeOptions{}, evs...); strings.Contains(out, "message_stop") || !strings.Contains(out, "event: error") || rep.Err(dragoman.Serious) == nil {
		t.Errorf("%s\n%s", rep, out)
	}
}

// linear fails the test if the time does not grow linearly.
func linear(t *testing.T, n int, run func(n int)) {
	t.Helper()
	codectest.Linear(t, t.Name(), 4*n, func(n int) error { run(n); return nil })
}

func TestManySystemMessagesAreLinear(t *testing.T) {
	linear(t, 10000, func(n int) {
		ms := []dragoman.Message{dragoman.UserText("x")}
		for range n {
			ms = append(ms, newMessage(dragoman.RoleSystem, &dragoman.Text{Text: "s"}))
		}
		if _, err := codec.EncodeRequest(requestOf(ms...), dialect.EncodeOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestManyAllowedToolsAreLinear(t *testing.T) {
	linear(t, 5000, func(n int) {
		req := requestOf(dragoman.UserText("x"))
		req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{}}
		for i := range n {
			name := "f" + strconv.Itoa(i)
			req.Tools = append(req.Tools, dragoman.ToolSpec{Name: name})
			req.ToolChoice.Tools = append(req.ToolChoice.Tools, dragoman.ToolRef{Name: name + "?"})
		}
		if _, err := codec.EncodeRequest(req, dialect.EncodeOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestErrorKeepsItsBytesOnlyIfObject(t *testing.T) {
	const format = "anthropic.messages.error"
	for _, raw := range []string{``, `{"a":`, `7`, `"x"`, `{} {}`, "{\"a\":1}\n\ndata: x"} {
		status, body, _ := codec.EncodeError(&dragoman.APIError{Class: dragoman.ErrorServer, Status: 9999, Message: "m", Native: &dragoman.Native{Format: format, JSON: json.RawMessage(raw)}})
		if status != 500 || string(body) != `{"type":"error","error":{"type":"api_error","message":"m"}}` {
			t.Errorf("%q: %d %s", raw, status, body)
		}
	}
	for status, want := range map[int]int{0: 500, 200: 500, 399: 500, 400: 400, 599: 599, 600: 500} {
		const own = `{"x":1,"type":"error","error":{"type":"api_error","message":"m"}}`
		e := codec.DecodeError(500, nil, []byte(own))
		e.Status = status
		body := own
		if status >= 200 && status <= 400 { // with such a status they would decode to another class
			body = strings.Replace(own, `"x":1,`, "", 1)
		}
		if got, written, _ := codec.EncodeError(e); got != want || string(written) != body {
			t.Errorf("status %d written as %d: %s", status, got, written)
		}
	}
	out, _ := encodeEvents(t, dialect.EncodeOptions{}, &dragoman.StreamError{Err: &dragoman.APIError{Type: "x", Message: "m", Native: &dragoman.Native{Format: format, JSON: json.RawMessage(`{"type":"error",`)}}})
	if !strings.Contains(out, `"message":"m"`) {
		t.Error(out)
	}
}

func TestNilArguments(t *testing.T) {
	if status, body, _ := codec.EncodeError(nil); status != 500 || !json.Valid(body) {
		t.Errorf("%d %s", status, body)
	}
	if _, err := codec.EncodeRequest(nil, dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrInvalid) {
		t.Error(err)
	}
	if _, err := codec.EncodeResponse(nil, dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrInvalid) {
		t.Error(err)
	}
}

func TestInvalidResponseIsError(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                      "is this an Anthropic message",
		`{"id":"x","choices":[]}`: "is this an Anthropic message",
		`{"content":7}`:           "/content",
		`{"content":{"a":1}}`:     "/content",
	} {
		_, _, err := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{})
		var at *dragoman.DecodeError
		if !errors.As(err, &at) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
		if want == "/content" && at.Offset != 11 {
			t.Errorf("%s: offset %d", body, at.Offset)
		}
	}
}

func TestTextOfBlockWithoutStartIsKept(t *testing.T) {
	stream := sseStream(startLine + `
		{"type":"content_block_start","index":0,"content_block":null}
		{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}
		{"type":"content_block_stop","index":0}
		` + endLines("end_turn"))
	if got := collect(t, stream).Text(); got != "hello" {
		t.Errorf("%q", got)
	}
	evs, _ := drain(dialect.DecodeOptions{}, []byte(stream))
	out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...)
	if got := collect(t, out).Text(); got != "hello" {
		t.Errorf("re-encoded: %q\n%s", got, out)
	}
}

func TestUnknownEventsAreReportedOnce(t *testing.T) {
	const odd = `{"type":"from_the_future","a":1}
		`
	stream := []byte(sseStream(startLine + "\n" + odd + odd + `{"type":"ping"}
		{"type":"another"}
		` + endLines("end_turn")))
	count := func(rep dragoman.Report) int {
		n := 0
		for _, l := range rep.Losses {
			if strings.Contains(l.Detail, "events of type") {
				n++
			}
		}
		return n
	}
	for native, want := range map[bool]int{true: 0, false: 2} {
		d := codec.NewStreamDecoder(dialect.DecodeOptions{NoNative: !native})
		if err := d.Feed(stream, func(dragoman.Event) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got := count(d.Report()); got != want {
			t.Errorf("decoder, native %v: %s", native, d.Report())
		}
	}
	evs, _ := drain(dialect.DecodeOptions{}, stream)
	for rebuild, want := range map[bool]int{false: 0, true: 2} {
		if _, rep := encodeEvents(t, dialect.EncodeOptions{Rebuild: rebuild}, evs...); count(rep) != want {
			t.Errorf("encoder, rebuild %v: %s", rebuild, rep)
		}
	}
}

func TestUnknownToolChoiceModeIsInvalid(t *testing.T) {
	for _, tools := range [][]dragoman.ToolSpec{nil, {tool("f")}} {
		req := requestOf(dragoman.UserText("x"))
		req.Tools, req.ToolChoice = tools, &dragoman.ToolChoice{Mode: "sometimes"}
		if _, err := codec.EncodeRequest(req, dialect.EncodeOptions{}); !errors.Is(err, dragoman.ErrInvalid) {
			t.Errorf("%d tools: %v", len(tools), err)
		}
	}
}

func TestThinkingBudgetIsAdjusted(t *testing.T) {
	for what, c := range map[string]struct {
		max    int64
		budget int64
		want   any
		kind   dragoman.LossKind
	}{
		"budget without a mode":    {8000, 2000, "2000", ""},
		"lowered below max_tokens": {3000, 3000, "2999", dragoman.Lowered},
		"no room for the minimum":  {1024, 4000, nil, dragoman.Dropped},
	} {
		req := requestOf(dragoman.UserText("x"))
		req.MaxOutputTokens, req.Reasoning = &c.max, &dragoman.ReasoningSettings{BudgetTokens: &c.budget}
		v, enc := encode(t, req, dialect.EncodeOptions{})
		thinking, _ := v["thinking"].(map[string]any)
		var got any
		if n, ok := thinking["budget_tokens"].(json.Number); ok {
			got = n.String()
		}
		if got != c.want {
			t.Errorf("%s: %v", what, v["thinking"])
		}
		if c.kind != "" {
			has(t, enc.Report, c.kind, "/reasoning/budget_tokens")
		}
	}
	// Interleaved thinking, enabled by a header, allows larger budgets, so the
	// numbers of an Anthropic client are kept.
	req := decode(t, `{"model":"m","max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":9000},"messages":[{"role":"user","content":"x"}]}`)
	if v, _ := encode(t, req, dialect.EncodeOptions{Rebuild: true}); v["thinking"].(map[string]any)["budget_tokens"] != json.Number("9000") {
		t.Error(v["thinking"])
	}
}

func TestOutputSchemaWithoutKind(t *testing.T) {
	req := requestOf(dragoman.UserText("x"))
	req.Output = &dragoman.OutputFormat{Schema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)}
	_, enc := encode(t, req, dialect.EncodeOptions{})
	if !strings.Contains(string(enc.Body), `"format":{"type":"json_schema"`) {
		t.Errorf("%s\n%s", enc.Body, enc.Report)
	}
}

func TestInputThatIsNotAStreamIsReported(t *testing.T) {
	for body, want := range map[string]string{
		`{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`: "busy",
		"<html>\n<body>Bad gateway</body>\n</html>":                             "Bad gateway",
	} {
		for _, sizes := range [][]int{nil, {1, 2, 3}} {
			evs, err := drain(dialect.DecodeOptions{}, []byte(body), sizes...)
			last, ok := evs[len(evs)-1].(*dragoman.StreamError)
			if !ok || !strings.Contains(last.Err.Error(), want) || !errors.Is(err, dragoman.ErrIncompleteStream) {
				t.Errorf("%v, %v", evs[len(evs)-1], err)
			}
		}
	}
}

func TestCitationsOnUserTextAreDropped(t *testing.T) {
	const cited = `[{"type":"text","text":"x","citations":[{"type":"char_location","cited_text":"c"}],"odd":1}]`
	body := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":` + cited + `},{"role":"assistant","content":` + cited + `}]}`
	req := decode(t, body)
	_, enc := encode(t, req, dialect.EncodeOptions{Rebuild: true})
	ms := messagesOf(t, enc.Body)
	if strings.Contains(ms[0], "citations") || !strings.Contains(ms[0], `"odd":1`) || !strings.Contains(ms[1], "citations") {
		t.Errorf("%s", ms)
	}
	has(t, enc.Report, dragoman.Dropped, "/messages/0/parts/0/citations")
	if same, err := codec.EncodeRequest(req, dialect.EncodeOptions{}); err != nil || string(same.Body) != body {
		t.Errorf("an unchanged request was changed: %v %s", err, same.Body)
	}
}

func TestNothingAfterTerminalEvent(t *testing.T) {
	second := sseStream(strings.Replace(startLine, "msg_1", "msg_2", 1) + callLines + endLines("tool_use"))
	for _, end := range []string{endLines("end_turn"), `{"type":"error","error":{"type":"api_error","message":"x"}}`} {
		evs, _ := drain(dialect.DecodeOptions{}, []byte(sseStream(startLine+"\n"+end)+second+": bye\n\n"))
		switch evs[len(evs)-1].(type) {
		case *dragoman.ResponseEnd, *dragoman.StreamError:
		default:
			t.Errorf("%T is last", evs[len(evs)-1])
		}
		evs = append(evs, &dragoman.Chunk{Dialect: dialectname.Anthropic, Raw: []byte(second)})
		if out, _ := encodeEvents(t, dialect.EncodeOptions{}, evs...); strings.Contains(out, "msg_2") {
			t.Errorf("a second response was passed through:\n%s", out)
		}
	}
}

func TestQuirkC19_EmptyInputIsPlaceholder(t *testing.T) {
	for what, c := range map[string]struct{ input, delta, want string }{
		"fragment replaces placeholder": {`{}`, `{\"a\":1}`, `{"a":1}`},
		"no fragments":                  {`{}`, ``, `{}`},
		"input without fragments":       {`{"a":2}`, ``, `{"a":2}`},
		"fragments replace input":       {`{"a":2}`, `{\"a\":1}`, `{"a":1}`},
		"empty string":                  {`""`, ``, `{}`},
		"blank fragments":               {`{}`, ` `, `{}`},
		"null input":                    {`null`, `{\"a\":1}`, `{"a":1}`},
	} {
		resp := collect(t, sseStream(startLine+"\n"+`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":`+c.input+`}}
			{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}
			{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"`+c.delta+`"}}
			{"type":"content_block_stop","index":0}
			`+endLines("tool_use")))
		got := resp.ToolCalls()[0]
		if obj, exact := got.Object(); got.Problem != nil || !exact || string(obj) != c.want {
			t.Errorf("%s: %s, %v", what, obj, got.Problem)
		}
	}
	out, _ := encodeEvents(t, dialect.EncodeOptions{}, &dragoman.ResponseStart{}, &dragoman.PartStart{Part: call("t", "f", "")},
		&dragoman.PartEnd{Part: call("t", "f", "{}")}, &dragoman.ResponseEnd{})
	if !strings.Contains(out, `"input":{}`) || strings.Contains(out, "input_json_delta") {
		t.Errorf("an empty input needs no fragment:\n%s", out)
	}
}

// failing is an accessor that always fails.
type failing struct{}

func (failing) Format() dragoman.Format { return toolformat.AnthropicToolUse }

func (failing) InspectCall(json.RawMessage) (*dragoman.ToolCall, dragoman.Report, error) {
	return nil, dragoman.Report{}, errors.New("no idea")
}

func TestUnreadableCallIsKept(t *testing.T) {
	req := requestOf(dragoman.UserText("x"))
	req.Contributions = []dragoman.Contribution{{Source: "test", Calls: []dragoman.CallAccessor{failing{}}}}
	_, enc := encode(t, req, dialect.EncodeOptions{})
	for block, want := range map[string]string{
		`{"type":"tool_use","id":"t","name":"rm","input":{"a":1},"odd":1}`: "rm invalid_json",
		`{"type":"tool_use","id":"t","name":7,"input":"{}"}`:               " no_name",
	} {
		resp, _, err := codec.DecodeResponse([]byte(responseBody("tool_use", "["+block+"]")), dialect.DecodeOptions{Registry: enc.Registry})
		if err != nil || problems(resp.ToolCalls()) != want {
			t.Fatalf("%s: %v, %q", block, err, problems(resp.ToolCalls()))
		}
		if c := resp.ToolCalls()[0]; c.ID != "t" || c.Extra == nil || len(c.Extra.Fields) != 1 || c.Arguments == "" {
			t.Errorf("%s: %+v", block, c)
		}
	}
}
