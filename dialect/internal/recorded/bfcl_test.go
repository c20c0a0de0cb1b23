package recorded_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// toolTarget is a wire format with the rules of its servers for tools: the
// schema profile, and the legal property names, stated independently of the
// code that makes them.
type toolTarget struct {
	name    string
	codec   dialect.Codec
	caps    targets.Capabilities
	profile string
	legal   *regexp.Regexp
	schemas *interop.SchemaCache
}

func toolTargets() []toolTarget {
	open, claude, google := regexp.MustCompile(``), regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`), regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`)
	closed := targets.Capabilities{ClosedSchemas: true}
	return []toolTarget{
		{"chat", openaichat.Codec{}, targets.Capabilities{}, "openai.tool", open, new(interop.SchemaCache)},
		{"responses", openairesponses.Codec{}, targets.Capabilities{}, "openai.tool", open, new(interop.SchemaCache)},
		{"anthropic", anthropic.Codec{}, targets.Capabilities{}, "anthropic.tool", claude, new(interop.SchemaCache)},
		{"gemini", gemini.Codec{}, targets.Capabilities{}, "gemini.json_schema", google, new(interop.SchemaCache)},
		{"gemini, closed", gemini.Codec{}, closed, "gemini.parameters", google, new(interop.SchemaCache)},
		{"ollama", ollama.Codec{}, targets.Capabilities{}, "ollama.tool", open, new(interop.SchemaCache)},
		{"bedrock", bedrock.Codec{}, targets.Capabilities{}, "bedrock.tool", claude, new(interop.SchemaCache)},
		{"bedrock, nova", bedrock.Codec{}, closed, "bedrock.nova", claude, new(interop.SchemaCache)},
	}
}

// knownCall is a tool with arguments that a model should write for it.
type knownCall struct {
	spec dragoman.ToolSpec
	args string
}

// wire returns the call as the target's model would send it: with the name and
// arguments that the encoded tool asks for.
func (k knownCall) wire(t *testing.T, target toolTarget, body []byte) (name, args string) {
	t.Helper()
	seen, _, err := target.codec.DecodeRequest(body, dialect.DecodeOptions{})
	if err != nil || len(seen.Tools) != 1 {
		t.Fatalf("%s: %s: the request has %d tools, %v\n%s", target.name, k.spec.Name, len(seen.Tools), err, body)
	}
	low, err := schema.Lower(k.spec.Parameters, crosstest.Profile(t, target.profile))
	if err != nil {
		t.Fatalf("%s: %s: %v", target.name, k.spec.Name, err)
	}
	out, err := low.ToWire(json.RawMessage(k.args))
	if err != nil {
		t.Fatalf("%s: %s: %v", target.name, k.spec.Name, err)
	}
	declared, sent := propertiesOf(t, k.spec.Parameters), propertiesOf(t, seen.Tools[0].Parameters)
	var was, is map[string]json.RawMessage
	crosstest.Parse(t, []byte(k.args), &was)
	crosstest.Parse(t, out, &is)
	for property := range is {
		if _, same := was[property]; same && !declared[property] {
			continue // the author does not declare this property, so the encoded tool lacks it too
		}
		if !sent[property] || !target.legal.MatchString(property) {
			t.Errorf("%s: %s: the encoded tool lacks %q, or its name is illegal: %s", target.name, k.spec.Name, property, seen.Tools[0].Parameters)
		}
	}
	if len(was) != len(is) {
		t.Errorf("%s: %s: %s became %s", target.name, k.spec.Name, k.args, out)
	}
	return seen.Tools[0].Name, string(out)
}

func propertiesOf(t *testing.T, src json.RawMessage) map[string]bool {
	t.Helper()
	var s struct{ Properties map[string]json.RawMessage }
	if len(src) > 0 {
		crosstest.Parse(t, src, &s)
	}
	out := map[string]bool{}
	for name := range s.Properties {
		out[name] = true
	}
	return out
}

// request encodes a request that offers the tool; history follows the user message.
func (k knownCall) request(t *testing.T, target toolTarget, history ...dragoman.Message) dialect.Encoded {
	t.Helper()
	req := &dragoman.Request{
		Model: "m", Tools: []dragoman.ToolSpec{k.spec},
		Messages: append([]dragoman.Message{crosstest.Message(dragoman.RoleUser, &dragoman.Text{Text: "Call it."})}, history...),
	}
	enc, err := target.codec.EncodeRequest(req, dialect.EncodeOptions{Target: targets.Target{Caps: target.caps}, Schemas: target.schemas})
	if err != nil {
		t.Fatalf("%s: %s: %v", target.name, k.spec.Name, err)
	}
	return enc
}

// response returns the target server's response with one call.
func response(t *testing.T, target toolTarget, name, args string) []byte {
	t.Helper()
	resp := &dragoman.Response{
		ID: "r_1", Model: "m", Stop: dragoman.Stop{Reason: dragoman.StopToolCalls},
		Usage:  dragoman.Usage{Input: dragoman.Count{N: 30, Known: true}, Output: dragoman.Count{N: 9, Known: true}},
		Output: []dragoman.Message{crosstest.Message(dragoman.RoleAssistant, &dragoman.ToolCall{ID: "call_000001", Name: name, Arguments: args})},
	}
	enc, err := target.codec.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil {
		t.Fatalf("%s: %v", target.name, err)
	}
	return enc.Body
}

// is checks that calls holds exactly this call, with the author's name and
// arguments.
func (k knownCall) is(t *testing.T, what string, calls []*dragoman.ToolCall) {
	t.Helper()
	if len(calls) != 1 {
		t.Errorf("%s: %s: %d calls came back", what, k.spec.Name, len(calls))
		return
	}
	if c := calls[0]; c.Name != k.spec.Name || !sameJSON(c.Arguments, k.args) || c.Problem != nil {
		t.Errorf("%s: %s with %s came back as %s with %s, %v", what, k.spec.Name, k.args, c.Name, c.Arguments, c.Problem)
	}
}

// sameJSON compares two documents, ignoring white space and the escapes of
// strings; numbers must have the same text.
func sameJSON(a, b string) bool {
	plain := func(s string) string {
		v, err := decodeJSON([]byte(s))
		if err != nil {
			return "not JSON: " + s
		}
		return crosstest.JSON(v)
	}
	return plain(a) == plain(b)
}

// roundTrip takes the call from its definition to the wire and back, in a
// response and in a history.
func (k knownCall) roundTrip(t *testing.T, target toolTarget) (changed bool) {
	t.Helper()
	enc := k.request(t, target)
	name, args := k.wire(t, target, enc.Body)
	resp, _, err := target.codec.DecodeResponse(response(t, target, name, args), dialect.DecodeOptions{Registry: enc.Registry})
	if err != nil {
		t.Errorf("%s: %s: %v", target.name, k.spec.Name, err)
		return false
	}
	k.is(t, target.name, resp.ToolCalls())

	const id = "call_000001"
	sent := k.request(t, target,
		crosstest.Message(dragoman.RoleAssistant, &dragoman.ToolCall{ID: id, Name: k.spec.Name, Arguments: k.args}),
		crosstest.Message(dragoman.RoleTool, &dragoman.ToolResult{CallID: id, Name: k.spec.Name, Content: []dragoman.Part{&dragoman.Text{Text: "done"}}}))
	seen, _, err := target.codec.DecodeRequest(sent.Body, dialect.DecodeOptions{})
	if err != nil {
		t.Fatalf("%s: %s: %v", target.name, k.spec.Name, err)
	}
	asWritten := knownCall{dragoman.ToolSpec{Name: name}, args}
	asWritten.is(t, target.name+", history", calls(seen.Messages))
	return name != k.spec.Name || args != k.args
}

func calls(ms []dragoman.Message) (out []*dragoman.ToolCall) {
	for _, p := range crosstest.AllParts(ms) {
		if c, ok := p.(*dragoman.ToolCall); ok {
			out = append(out, c)
		}
	}
	return out
}

// bfclCalls reads the functions of the Berkeley leaderboard and the calls it
// expects. The leaderboard lists the correct values of each argument; bfclCalls
// takes the first.
func bfclCalls(t *testing.T) (out []knownCall) {
	t.Helper()
	files, _ := filepath.Glob(testkit.Shared(t, "toolzoo", "answer_BFCL*.json"))
	if len(files) == 0 {
		t.Skip("no expected calls: shared/toolzoo is missing")
	}
	for _, file := range files {
		type function struct {
			Name, Description string
			Parameters        json.RawMessage
		}
		type question struct {
			ID       string
			Function []function
		}
		type expected struct {
			ID    string
			Truth []map[string]map[string][]json.RawMessage `json:"ground_truth"`
		}
		functions := map[string]function{}
		for _, q := range linesOf[question](t, filepath.Join(filepath.Dir(file), strings.TrimPrefix(filepath.Base(file), "answer_"))) {
			for _, f := range q.Function {
				functions[q.ID+" "+f.Name] = f
			}
		}
		for _, a := range linesOf[expected](t, file) {
			for _, call := range a.Truth {
				for name, values := range call {
					f, ok := functions[a.ID+" "+name]
					if !ok {
						t.Fatalf("%s: no function %s", a.ID, name)
					}
					args := map[string]json.RawMessage{}
					for arg, right := range values {
						if len(right) > 0 {
							args[arg] = right[0]
						}
					}
					out = append(out, knownCall{dragoman.ToolSpec{Name: name, Description: f.Description, Parameters: f.Parameters}, crosstest.JSON(args)})
				}
			}
		}
	}
	return out
}

func linesOf[T any](t *testing.T, file string) (out []T) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var v T
		crosstest.Parse(t, lines.Bytes(), &v)
		out = append(out, v)
	}
	return out
}

func TestExpectedCallsKeepNameAndArguments(t *testing.T) {
	expected := bfclCalls(t)
	if len(expected) < 800 {
		t.Errorf("only %d calls found", len(expected))
	}
	for _, target := range toolTargets() {
		t.Run(target.name, func(t *testing.T) {
			t.Parallel()
			changed := 0
			for _, k := range expected {
				if k.roundTrip(t, target) {
					changed++
				}
			}
			t.Logf("%d of %d calls differ on the wire", changed, len(expected))
		})
	}
}

// aliasedTool is a tool that every target must alter: some because of its property
// names, others because of the numeric enum or the map.
var aliasedTool = knownCall{
	spec: dragoman.ToolSpec{
		Name: "files.query", Description: "Finds files.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"$filter":{"type":"string"},"año":{"type":"integer"},"page size":{"type":"integer","enum":[10,20]},` +
			`"tags":{"type":"object","additionalProperties":{"type":"object","properties":{"@id":{"type":"string"}}}}},"required":["$filter"]}`),
	},
	args: `{"$filter":"name eq 'a'","año":2026,"page size":20,"tags":{"x y":{"@id":"1"},"z":{}}}`,
}

func TestQuirkA23_AliasedArgumentsRoundTrip(t *testing.T) {
	for _, target := range toolTargets() {
		changed := aliasedTool.roundTrip(t, target)
		if !changed && target.legal.String() != "" {
			t.Errorf("%s: the call is unchanged on the wire, so the test checks nothing", target.name)
		}
	}
}

// callStream returns the target server's stream for a response with one call.
func callStream(t *testing.T, target toolTarget, name, args string) []byte {
	t.Helper()
	if target.codec.Dialect() == dialectname.Gemini {
		return crosstest.GeminiCalls(fmt.Sprintf(`{"name":%s,"args":%s}`, crosstest.JSON(name), args))
	}
	return crosstest.StreamOf(t, target.codec.Dialect(), response(t, target, name, args))
}

func TestQuirkA23_StreamedDeltasUseOriginalNames(t *testing.T) {
	for _, target := range toolTargets() {
		enc := aliasedTool.request(t, target)
		name, args := aliasedTool.wire(t, target, enc.Body)
		streamed, back := streamedCall(t, target, enc.Registry, callStream(t, target, name, args))
		aliasedTool.is(t, target.name+", stream", back)
		if streamed != "" && !sameJSON(streamed, aliasedTool.args) {
			t.Errorf("%s: the deltas have %s", target.name, streamed)
		}
		if streamed == "" && args == aliasedTool.args {
			t.Errorf("%s: unchanged arguments are not streamed", target.name)
		}
	}
}

func TestQuirkA23_PartialArgumentsRoundTrip(t *testing.T) {
	k := knownCall{aliasedTool.spec, `{"$filter":"name eq 'a'"}`}
	for _, target := range toolTargets() {
		if target.codec.Dialect() != dialectname.Gemini {
			continue
		}
		enc := k.request(t, target)
		name, args := k.wire(t, target, enc.Body)
		alias := strings.Split(args, `"`)[1]
		streamed, back := streamedCall(t, target, enc.Registry, crosstest.GeminiCalls(
			fmt.Sprintf(`{"name":%s,"partialArgs":[{"jsonPath":"$.%s","stringValue":"name eq","willContinue":true}],"willContinue":true}`, crosstest.JSON(name), alias),
			fmt.Sprintf(`{"partialArgs":[{"jsonPath":"$.%s","stringValue":" 'a'"}],"willContinue":false}`, alias)))
		k.is(t, target.name+", partial arguments", back)
		if streamed != "" && !sameJSON(streamed, k.args) {
			t.Errorf("%s: the deltas have %s", target.name, streamed)
		}
	}
}

// streamedCall reads a stream and returns the text of its call deltas, and the calls.
func streamedCall(t *testing.T, target toolTarget, reg *interop.Registry, body []byte) (streamed string, back []*dragoman.ToolCall) {
	t.Helper()
	d := target.codec.NewStreamDecoder(dialect.DecodeOptions{Registry: reg})
	resp, err := dragoman.Collect(func(yield func(dragoman.Event, error) bool) {
		for ev, err := range dialect.Events(d, bytes.NewReader(body)) {
			if delta, ok := ev.(*dragoman.PartDelta); ok && delta.Kind == codes.KindToolCall {
				streamed += delta.Text
			}
			if !yield(ev, err) {
				return
			}
		}
	})
	if err != nil {
		t.Fatalf("%s: %v\n%s", target.name, err, body)
	}
	return streamed, resp.ToolCalls()
}

func TestQuirkA23_AliasNextToItsNameIsBlocked(t *testing.T) {
	for _, target := range toolTargets() {
		enc := aliasedTool.request(t, target)
		name, args := aliasedTool.wire(t, target, enc.Body)
		if args == aliasedTool.args {
			continue
		}
		both := strings.TrimSuffix(args, "}") + `,"$filter":"everything"}`
		resp, _, err := target.codec.DecodeResponse(response(t, target, name, both), dialect.DecodeOptions{Registry: enc.Registry})
		if err != nil {
			t.Fatalf("%s: %v", target.name, err)
		}
		if c := resp.ToolCalls()[0]; c.Problem == nil || c.Problem.Code != codes.ProblemDuplicateKey {
			t.Errorf("%s: %s would run: %v", target.name, c.Arguments, c.Problem)
		}
	}
}

func TestUnchangedToolStreamsArgumentsDirectly(t *testing.T) {
	plain := knownCall{
		spec: dragoman.ToolSpec{Name: "weather", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)},
		args: `{"city":"Oslo"}`,
	}
	for _, target := range toolTargets() {
		enc := plain.request(t, target)
		if enc.Registry.Translates("", "weather") {
			t.Errorf("%s: arguments are translated without need", target.name)
		}
		name, args := plain.wire(t, target, enc.Body)
		streamed, back := streamedCall(t, target, enc.Registry, callStream(t, target, name, args))
		if plain.is(t, target.name, back); streamed != plain.args {
			t.Errorf("%s: the deltas have %s", target.name, streamed)
		}
	}
}
