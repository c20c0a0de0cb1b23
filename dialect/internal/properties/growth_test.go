package properties_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
)

// Decision 126: a settled conversation grows only at its end. All elements of the
// encoded list except the last stay byte-identical; the last may gain blocks.

// elements encodes a request and returns the elements of its list.
func elements(c dialect.Codec, req *dragoman.Request, o dialect.EncodeOptions) ([]json.RawMessage, error) {
	enc, err := c.EncodeRequest(req, o)
	if err != nil {
		return nil, err
	}
	var body map[string]json.RawMessage
	var list []json.RawMessage
	if err := json.Unmarshal(enc.Body, &body); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, enc.Body)
	}
	raw, ok := body[listField(c.Dialect())]
	if !ok {
		return nil, fmt.Errorf("no %s list in %s", c.Dialect(), enc.Body)
	}
	return list, json.Unmarshal(raw, &list)
}

// listField names the field of a body that holds the conversation.
func listField(d dragoman.Dialect) string {
	switch d {
	case dialectname.OpenAIResponses:
		return "input"
	case dialectname.Gemini:
		return "contents"
	default:
		return "messages"
	}
}

// grown describes what is wrong with the growth of a list, or returns "".
func grown(short, long []json.RawMessage) string {
	if len(short) > len(long) {
		return fmt.Sprintf("%d elements became %d\n%s\n%s", len(short), len(long), short, long)
	}
	for i, el := range short {
		if bytes.Equal(el, long[i]) {
			continue
		}
		if i < len(short)-1 {
			return fmt.Sprintf("element %d of %d changed\n%s\n%s", i, len(short), el, long[i])
		}
		if why := lostFields(el, long[i]); why != "" {
			return fmt.Sprintf("the last element changed: %s\n%s\n%s", why, el, long[i])
		}
	}
	return ""
}

// lostFields describes what an element lost, or returns "". Every field must stay
// unchanged, except that a list may gain elements.
func lostFields(before, after json.RawMessage) string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil {
		return "not an object"
	}
	for key, was := range a {
		is, ok := b[key]
		if !ok {
			return key + " is missing"
		}
		if bytes.Equal(was, is) {
			continue
		}
		var list, longer []json.RawMessage
		if json.Unmarshal(was, &list) != nil || json.Unmarshal(is, &longer) != nil || list == nil {
			return key + " changed"
		}
		if len(list) > len(longer) || !slices.EqualFunc(list, longer[:len(list)], func(x, y json.RawMessage) bool { return bytes.Equal(x, y) }) {
			return key + " changed its elements"
		}
	}
	return ""
}

// settled reports whether every client call of the messages has its result.
func settled(ms []dragoman.Message) bool {
	open := map[string]bool{}
	for i := range ms {
		for _, p := range ms[i].Parts {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				if !p.Hosted {
					open[p.ID] = true
				}
			case *dragoman.ToolResult:
				delete(open, p.CallID)
			}
		}
	}
	return len(open) == 0
}

// growth is a conversation and the number of messages it had before.
type growth struct {
	req *dragoman.Request
	n   int
}

// growthStep is the growth of a conversation on the wire: the elements before and
// after.
type growthStep struct {
	growth
	o           dialect.EncodeOptions
	short, long []json.RawMessage
}

func (g growth) encode(c dialect.Codec, o dialect.EncodeOptions) (growthStep, error) {
	before := *g.req
	before.Messages = g.req.Messages[:g.n]
	short, err := elements(c, &before, o)
	if err != nil {
		return growthStep{}, err
	}
	long, err := elements(c, g.req, o)
	return growthStep{g, o, short, long}, err
}

// wrong describes what is wrong with a step, or returns "".
func (s growthStep) wrong() string { return grown(s.short, s.long) }

// wrongExcept is like wrong, but ignores the listed exceptions.
func (s growthStep) wrongExcept(exceptions []growthException) string {
	for _, e := range exceptions {
		s = e.forgive(s)
	}
	return s.wrong()
}

func growing(n int, ms ...dragoman.Message) growth {
	return growth{&dragoman.Request{Model: "m", Messages: ms}, n}
}

func callOf(id string) *dragoman.ToolCall {
	return &dragoman.ToolCall{ID: id, Name: "f", Arguments: "{}"}
}

func resultOf(id, text string) *dragoman.ToolResult {
	return &dragoman.ToolResult{CallID: id, Content: []dragoman.Part{&dragoman.Text{Text: text}}}
}

var image = &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "AA=="}

// nativeGrowing decodes a conversation from the wire and appends messages.
func nativeGrowing(c dialect.Codec, n int, body string, more ...dragoman.Message) growth {
	req, _, err := c.DecodeRequest([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		panic(err)
	}
	req.Messages = append(req.Messages, more...)
	req.Native = nil // the request has grown, so its native bytes are stale
	return growth{req, n}
}

// oneText matches a list of one text block, for which Anthropic also accepts a
// string.
var oneText = regexp.MustCompile(`"content":\[\{"type":"text","text":("(?:[^"\\]|\\.)*")\}\]`)

// Dialects that merge messages always write lists of blocks, never a string that becomes a list
// later. An unchanged request still passes through.
func TestMergeableStringIsWrittenAsBlock(t *testing.T) {
	c := crosstest.CodecOf(dialectname.Anthropic)
	body := `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`
	req, _, err := c.DecodeRequest([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same, err := c.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil || string(same.Body) != body {
		t.Fatalf("%v\n%s", err, same.Body)
	}
	for _, more := range []dragoman.Message{dragoman.UserText("more"), dragoman.AssistantText("yes")} {
		step, err := nativeGrowing(c, 1, body, more).encode(c, dialect.EncodeOptions{})
		if err != nil || step.wrong() != "" {
			t.Errorf("%v %s", err, step.wrong())
		}
	}
}

// A message with a native spelling keeps it when another message is merged into it.
func TestMessageKeepsItsSpellingWhenItGrows(t *testing.T) {
	c := crosstest.CodecOf(dialectname.Anthropic)
	body := `{"model":"m","max_tokens":1,"messages":[{"content":[ {"text":"\u0068i","type":"text"} ], "role":"user"}]}`
	for _, more := range []dragoman.Message{dragoman.UserText("more"), dragoman.SystemText("mind"), dragoman.ToolResults(resultOf("1", "of no call"))} {
		step, err := nativeGrowing(c, 1, body, more).encode(c, dialect.EncodeOptions{})
		if err != nil || step.wrong() != "" || len(step.long) != 1 {
			t.Errorf("%v %s\n%s", err, step.wrong(), step.long)
		}
	}
}

// drawGrowing draws a conversation that makes growth hard: results that come late,
// twice or without a call, system messages in the middle, conversations without a
// user, and messages in native form.
func drawGrowing(t *rapid.T, c dialect.Codec) *dragoman.Request {
	g := gen.Options{Tidy: true, Dialect: rapid.SampledFrom([]dragoman.Dialect{"", c.Dialect()}).Draw(t, "native dialect")}
	req := withoutNative(g.Request().Draw(t, "request"))
	if rapid.Bool().Draw(t, "no cache hints") { // hints would explain too much
		for i := range req.Messages {
			req.Messages[i].Cache = nil
			dropHints(req.Messages[i].Parts)
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "native") == 0 {
		if enc, err := c.EncodeRequest(req, dialect.EncodeOptions{}); err == nil {
			back, _, err := c.DecodeRequest(rewriteBody(t, c, enc.Body), dialect.DecodeOptions{})
			if err != nil {
				t.Fatalf("%v\n%s", err, enc.Body)
			}
			back.Native = nil
			for i := range back.Messages {
				if rapid.IntRange(0, 4).Draw(t, "edited") == 0 {
					back.Messages[i].Native = nil
				}
			}
			req = back
		}
	}
	var ms []dragoman.Message
	var results []string
	for i, m := range req.Messages {
		if i == 0 && m.Role == dragoman.RoleUser && rapid.IntRange(0, 9).Draw(t, "no user message") == 0 && len(req.Messages) > 1 {
			continue
		}
		ms = append(ms, m)
		for _, p := range m.Parts {
			if res, ok := p.(*dragoman.ToolResult); ok {
				results = append(results, res.CallID)
			}
		}
		if settled(ms) && len(results) > 0 && rapid.IntRange(0, 4).Draw(t, "late result") == 0 {
			id := rapid.SampledFrom(append(results, "call_unheard_of")).Draw(t, "of call")
			ms = append(ms, dragoman.ToolResults(resultOf(id, "late")))
		}
		if settled(ms) && rapid.IntRange(0, 7).Draw(t, "system") == 0 {
			ms = append(ms, dragoman.SystemText("mind the gap"))
		}
		if settled(ms) && rapid.IntRange(0, 7).Draw(t, "user") == 0 {
			ms = append(ms, dragoman.UserText("and"))
		}
	}
	req.Messages = ms
	return req
}

// rewriteBody rewrites a body as another client might: strings for lists of one text,
// another order of fields, turns in several messages, white space.
func rewriteBody(t *rapid.T, c dialect.Codec, body []byte) []byte {
	if rapid.Bool().Draw(t, "strings") {
		body = oneText.ReplaceAll(body, []byte(`"content":$1`))
	}
	if c.Dialect() == dialectname.Anthropic && rapid.Bool().Draw(t, "fields in another order") {
		body = split(t, body)
	}
	if rapid.Bool().Draw(t, "white space") {
		var b bytes.Buffer
		if err := json.Indent(&b, body, "", " "); err != nil {
			t.Fatal(err)
		}
		body = b.Bytes()
	}
	return body
}

// split writes each list of blocks before the role of its message, and splits some
// messages in two.
func split(t *rapid.T, body []byte) []byte {
	var fields map[string]json.RawMessage
	var list, out []map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || json.Unmarshal(fields["messages"], &list) != nil {
		t.Fatalf("no messages in %s", body)
	}
	for _, m := range list {
		var blocks []json.RawMessage
		if json.Unmarshal(m["content"], &blocks) != nil || len(blocks) < 2 || rapid.Bool().Draw(t, "not split") {
			out = append(out, m)
			continue
		}
		n := rapid.IntRange(1, len(blocks)-1).Draw(t, "blocks of the first message")
		for _, piece := range [][]json.RawMessage{blocks[:n], blocks[n:]} {
			half := maps.Clone(m)
			half["content"], _ = json.Marshal(piece)
			out = append(out, half)
		}
	}
	fields["messages"], _ = json.Marshal(out)
	body, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func dropHints(ps []dragoman.Part) {
	for _, p := range ps {
		switch p := p.(type) {
		case *dragoman.Text:
			p.Cache = nil
		case *dragoman.Media:
			p.Cache = nil
		case *dragoman.ToolCall:
			p.Cache = nil
		case *dragoman.ToolResult:
			p.Cache = nil
			dropHints(p.Content)
		}
	}
}

func TestProperty_ConversationGrowsAtItsEndExceptListed(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		req := drawGrowing(t, c)
		o := dialect.EncodeOptions{Target: crosstest.DrawServer(t)}
		if !settled(req.Messages) {
			return
		}
		was := 0 // number of messages at the last settled point
		for n := 1; n <= len(req.Messages); n++ {
			if !settled(req.Messages[:n]) {
				continue
			}
			now := *req
			now.Messages = req.Messages[:n]
			from := was
			was = n
			if from > 0 {
				step, err := growth{&now, from}.encode(c, o)
				if crosstest.WithoutMessages(err) {
					continue // no message of it can be sent
				}
				if err != nil {
					t.Fatal(err)
				}
				if step.wrong() == "" {
					continue
				}
				if why := step.wrongExcept(growthExceptions[c.Dialect()]); why != "" {
					t.Fatalf("from %d to %d messages, apart from listed exceptions: %s", from, n, why)
				}
			}
		}
	})
}

// definitions returns the tool definitions of a body, one by one.
func definitions(d dragoman.Dialect, body []byte) ([]json.RawMessage, error) {
	var in struct {
		Tools      []json.RawMessage
		ToolConfig struct{ Tools []json.RawMessage }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	switch d {
	case dialectname.Bedrock:
		return in.ToolConfig.Tools, nil
	case dialectname.Gemini: // all functions are in one element
		if len(in.Tools) != 1 {
			return nil, fmt.Errorf("%d elements with functions", len(in.Tools))
		}
		var group struct{ FunctionDeclarations []json.RawMessage }
		err := json.Unmarshal(in.Tools[0], &group)
		return group.FunctionDeclarations, err
	default:
		return in.Tools, nil
	}
}

// The list of tools keeps its order; later tools are appended.
func TestProperty_AppendedToolLeavesOthersUnchanged(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		req := withoutNative(gen.Options{Tidy: true}.Request().Draw(t, "request"))
		req.Tools = slices.DeleteFunc(req.Tools, func(s dragoman.ToolSpec) bool { return s.Namespace != "" || s.Kind == codes.ToolHosted })
		for i := range req.Tools {
			req.Tools[i].Cache = nil
		}
		if len(req.Tools) < 2 {
			return
		}
		tools := func(n int) []json.RawMessage {
			part := *req
			part.Tools = req.Tools[:n]
			enc, err := c.EncodeRequest(&part, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			list, err := definitions(c.Dialect(), enc.Body)
			if err != nil {
				t.Fatalf("%v\n%s", err, enc.Body)
			}
			return list
		}
		all := tools(len(req.Tools))
		if len(all) == 0 {
			t.Fatal("no tool on the wire")
		}
		for n := 1; n < len(req.Tools); n++ {
			list := tools(n)
			if len(list) > len(all) {
				t.Fatalf("%d tools have %d definitions, all tools have %d", n, len(list), len(all))
			}
			for i, el := range list {
				if !bytes.Equal(el, all[i]) {
					t.Fatalf("tool %d of %d changed\n%s\n%s", i, n, el, all[i])
				}
			}
		}
	})
}
