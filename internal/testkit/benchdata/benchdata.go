// Package benchdata makes the streams and requests of benchmarks, so that the benchmarks of
// each dialect and those against other libraries decode the same bytes. Only tests
// import it.
package benchdata

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// The documented figures are for this stream: this many argument deltas, spread over a few
// parallel calls, with one or two tokens each.
const (
	StreamChunks   = 2000
	StreamFragment = 8
	streamCalls    = 4
)

// ToolStream returns a response of a few parallel calls with [StreamChunks] argument
// deltas in total.
func ToolStream(d dragoman.Dialect) []byte {
	args := make([]string, streamCalls)
	for i := range args {
		args[i] = Arguments(StreamChunks / streamCalls * StreamFragment)
	}
	return Stream(d, args, StreamFragment)
}

// Arguments returns a JSON object of exactly size bytes (at least 64), with content like a
// file that a model writes: quotes, line ends, escapes.
func Arguments(size int) string {
	const head, tail = `{"path":"internal/framing/sse/parser.go","content":"`, `"}`
	const line = `\tif err := p.next(\"data\"); err != nil { return fmt.Errorf(\"frame %d: %w\", n, err) }\n`
	var b strings.Builder
	b.Grow(size)
	b.WriteString(head)
	for b.Len()+len(line)+len(tail) <= size {
		b.WriteString(line)
	}
	for b.Len()+len(tail) < size {
		b.WriteByte('x')
	}
	b.WriteString(tail)
	return b.String()
}

// Stream returns a streamed response with one call per element of args, each split into
// fragments of the given size, with the envelope that the vendor's servers write
// around every delta. If the dialect does not stream arguments, a text with the same
// fragments precedes each call.
func Stream(d dragoman.Dialect, args []string, fragment int) []byte {
	write := streams[d]
	if write == nil {
		panic("benchdata: no stream of " + d)
	}
	return write(args, fragment)
}

// CallID returns the id of the i-th call of a stream.
func CallID(d dragoman.Dialect, i int) string {
	if d == dialectname.Anthropic {
		return fmt.Sprintf("toolu_01XvP3HqZ8mN2kRt5Yw7%04d", i)
	}
	return fmt.Sprintf("call_XvP3HqZ8mN2kRt5Yw7%04d", i)
}

// CallName is the name of every call in a stream.
const CallName = "write_file"

func fragments(s string, size int) []string {
	out := make([]string, 0, len(s)/size+1)
	for len(s) > size {
		out = append(out, s[:size])
		s = s[size:]
	}
	return append(out, s)
}

func quote(s string) string {
	var w jsonwire.Writer
	w.String(s)
	return string(w.Buf)
}

func chatStream(args []string, fragment int) []byte {
	var out []byte
	const chunk = `{"id":"chatcmpl-CqG7vX2mN9bT4kLw8ZsRf1Yd3Hj6P","object":"chat.completion.chunk","created":1794700001,` +
		`"model":"gpt-5.6-sol-2026-08-11","service_tier":"default","system_fingerprint":"fp_5a7c29e1b4","choices":[%s],"usage":%s,"obfuscation":%q}`
	delta := func(body string) {
		out = sse.Append(out, "", fmt.Appendf(nil, chunk, `{"index":0,"delta":`+body+`,"logprobs":null,"finish_reason":null}`, "null", "aK3xZ9"))
	}
	delta(`{"role":"assistant","content":null,"refusal":null}`)
	for i, a := range args {
		delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, i, CallID(dialectname.OpenAIChat, i), CallName))
		for _, f := range fragments(a, fragment) {
			delta(`{"tool_calls":[{"index":` + strconv.Itoa(i) + `,"function":{"arguments":` + quote(f) + `}}]}`)
		}
	}
	out = sse.Append(out, "", fmt.Appendf(nil, chunk, `{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}`, "null", "b"))
	out = sse.Append(out, "", fmt.Appendf(nil, chunk, "", `{"prompt_tokens":812,"completion_tokens":2011,"total_tokens":2823,`+
		`"prompt_tokens_details":{"cached_tokens":768},"completion_tokens_details":{"reasoning_tokens":64}}`, "c"))
	return sse.Append(out, "", []byte("[DONE]"))
}

func anthropicStream(args []string, fragment int) []byte {
	var out []byte
	add := func(name, format string, a ...any) {
		out = sse.Append(out, name, fmt.Appendf(nil, `{"type":%q,`+format+`}`, append([]any{name}, a...)...))
	}
	add("message_start", `"message":{"id":"msg_01Tq8Zk3","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[],`+
		`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":812,"cache_creation_input_tokens":0,"cache_read_input_tokens":768,"output_tokens":1}}`)
	for i, a := range args {
		add("content_block_start", `"index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}`, i, CallID(dialectname.Anthropic, i), CallName)
		for _, f := range fragments(a, fragment) {
			add("content_block_delta", `"index":%d,"delta":{"type":"input_json_delta","partial_json":%s}`, i, quote(f))
		}
		add("content_block_stop", `"index":%d`, i)
	}
	add("message_delta", `"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":2011}`)
	return sse.Append(out, "message_stop", []byte(`{"type":"message_stop"}`))
}

func responsesStream(args []string, fragment int) []byte {
	var out []byte
	seq := 0
	add := func(name, format string, a ...any) {
		out = sse.Append(out, name, fmt.Appendf(nil, `{"type":%q,"sequence_number":%d,`+format+`}`, append([]any{name, seq}, a...)...))
		seq++
	}
	response := func(status, output, usage string) string {
		return `{"id":"resp_68f1","object":"response","created_at":1794700001,"status":"` + status + `","background":false,"error":null,` +
			`"incomplete_details":null,"instructions":null,"max_output_tokens":null,"model":"gpt-5.6-sol","output":[` + output + `],` +
			`"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":"medium","summary":null},"service_tier":"default",` +
			`"store":false,"temperature":1.0,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled",` +
			`"usage":` + usage + `,"user":null,"metadata":{}}`
	}
	add("response.created", `"response":%s`, response("in_progress", "", "null"))
	add("response.in_progress", `"response":%s`, response("in_progress", "", "null"))
	var items []string
	for i, a := range args {
		id := fmt.Sprintf("fc_68f1c0de%04d", i)
		item := func(status, arguments string) string {
			return fmt.Sprintf(`{"id":%q,"type":"function_call","status":%q,"arguments":%s,"call_id":%q,"name":%q}`,
				id, status, quote(arguments), CallID(dialectname.OpenAIResponses, i), CallName)
		}
		add("response.output_item.added", `"output_index":%d,"item":%s`, i, item("in_progress", ""))
		for _, f := range fragments(a, fragment) {
			add("response.function_call_arguments.delta", `"item_id":%q,"output_index":%d,"delta":%s,"obfuscation":"aK3xZ9"`, id, i, quote(f))
		}
		add("response.function_call_arguments.done", `"item_id":%q,"output_index":%d,"arguments":%s`, id, i, quote(a))
		items = append(items, item("completed", a))
		add("response.output_item.done", `"output_index":%d,"item":%s`, i, items[i])
	}
	add("response.completed", `"response":%s`, response("completed", strings.Join(items, ","),
		`{"input_tokens":812,"input_tokens_details":{"cached_tokens":768},"output_tokens":2011,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":2823}`))
	return out
}

// Request returns a long agent session, built by hand as in a program: a hundred tools, two
// hundred messages, about 200 kB on the wire, and no native forms.
func Request() *dragoman.Request {
	limit := int64(4096)
	r := &dragoman.Request{
		Model:           "bench-model",
		Instructions:    []dragoman.Part{&dragoman.Text{Text: prose("You are a careful engineer.", 1200)}},
		MaxOutputTokens: &limit,
		Stream:          true,
	}
	for i := range 100 {
		r.Tools = append(r.Tools, tool(i))
	}
	for i := 0; len(r.Messages) < 200; i++ {
		call := &dragoman.ToolCall{ID: fmt.Sprintf("call_bench%04d", i), Name: r.Tools[i%100].Name, Arguments: Arguments(380)}
		r.Messages = append(r.Messages,
			dragoman.UserText(prose("Please look at the parser again.", 420)),
			dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Text{Text: prose("I will read the file first.", 240)}, call}},
			dragoman.ToolResults(&dragoman.ToolResult{CallID: call.ID, Outcome: codes.OutcomeOK, Content: []dragoman.Part{&dragoman.Text{Text: prose("package sse // Parser splits \"events\"", 500)}}}),
			dragoman.AssistantText(prose("The frame is cut at the carriage return.", 300)),
		)
	}
	return r
}

// LoweredRequest is [Request] with tools as generators and MCP servers write them: with
// references, a $schema and a union at the root, so that every target must lower
// them.
func LoweredRequest() *dragoman.Request {
	r := Request()
	for i := range r.Tools {
		r.Tools[i].Parameters = json.RawMessage(fmt.Sprintf(`{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{`+
			`"line":{"type":"object","properties":{"number":{"type":"integer","minimum":1},"text":{"type":"string"}},"required":["number","text"]},`+
			`"unused":{"type":"string"}},"type":"object","properties":{`+
			`"path":{"type":"string","format":"uri-reference","description":"Path of the file, relative to the root of repository %d."},`+
			`"mode":{"oneOf":[{"const":"read"},{"const":"write"},{"const":"append"}],"description":"What to do with the file."},`+
			`"lines":{"type":"array","items":{"$ref":"#/$defs/line"},"description":"The lines to change."},`+
			`"limit":{"type":["integer","null"],"minimum":0,"maximum":10000,"default":100,"description":"How many lines to return at most."},`+
			`"options":{"type":"object","properties":{"follow":{"type":"boolean"},"encoding":{"type":"string","nullable":true}},"if":{"required":["follow"]},"then":{"required":["encoding"]}}`+
			`},"required":["path","mode"],"anyOf":[{"required":["lines"]},{"required":["limit"]}]}`, i))
	}
	return r
}

func prose(start string, size int) string {
	const more = " A line ends with \"\\n\"; what follows belongs to the next event, not to this one.\n"
	var b strings.Builder
	b.WriteString(start)
	for b.Len() < size {
		b.WriteString(more)
	}
	return b.String()
}

func tool(i int) dragoman.ToolSpec {
	return dragoman.ToolSpec{
		Name:        fmt.Sprintf("repo_tool_%03d", i),
		Description: prose("Edits files in the repository.", 100),
		Parameters: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{`+
			`"path":{"type":"string","description":"Path of the file, relative to the root of repository %d."},`+
			`"mode":{"type":"string","enum":["read","write","append"],"description":"What to do with the file."},`+
			`"lines":{"type":"array","items":{"type":"object","properties":{"number":{"type":"integer","minimum":1},"text":{"type":"string"}},"required":["number","text"],"additionalProperties":false},"description":"The lines to change."},`+
			`"limit":{"type":"integer","minimum":0,"maximum":10000,"default":100,"description":"How many lines to return at most."},`+
			`"options":{"type":"object","properties":{"follow":{"type":"boolean"},"encoding":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`+
			`},"required":["path","mode"],"additionalProperties":false}`, i)),
	}
}
