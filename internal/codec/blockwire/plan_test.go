package blockwire_test

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// toy is a minimal wire: it accepts every part and sends back native messages.
type toy struct{ plan *blockwire.Plan }

const toyDialect dragoman.Dialect = "toy"

func (w toy) Add(out []blockwire.Block, m *dragoman.Message, p dragoman.Part, at extra.Path, role string, rep *dragoman.Report) []blockwire.Block {
	b, ok := w.plan.BlockFor(m, p, at, role, rep, func(*dragoman.Message, *dragoman.Reasoning) bool { return true })
	if !ok {
		return out
	}
	return append(out, b)
}

func (w toy) Complete(blocks []blockwire.Block, m *dragoman.Message, at extra.Path, role string, rep *dragoman.Report) []blockwire.Block {
	blocks = blockwire.DropBlank(blocks, rep)
	blockwire.MarkLast(blocks, m.Cache, at, rep)
	return blocks
}

func (w toy) Replay(m *dragoman.Message) ([]byte, bool) {
	if m.Native == nil {
		return nil, false
	}
	return m.Native.Raw, true
}

func (w toy) FinishTurn(t *blockwire.Turn) { w.plan.CallsLast(t) }

// Constructors for the test tables: a message for each role, and its parts.

func user(parts ...dragoman.Part) dragoman.Message {
	return dragoman.Message{Role: dragoman.RoleUser, Parts: parts}
}

func model(parts ...dragoman.Part) dragoman.Message {
	return dragoman.Message{Role: dragoman.RoleAssistant, Parts: parts}
}

func system(parts ...dragoman.Part) dragoman.Message {
	return dragoman.Message{Role: dragoman.RoleSystem, Parts: parts}
}

func results(parts ...dragoman.Part) dragoman.Message {
	return dragoman.Message{Role: dragoman.RoleTool, Parts: parts}
}

func text(s string) *dragoman.Text { return &dragoman.Text{Text: s} }

func call(id string) *dragoman.ToolCall {
	return &dragoman.ToolCall{ID: id, Name: "f", Payload: codes.PayloadObject, Arguments: "{}"}
}

func result(id string) *dragoman.ToolResult {
	return &dragoman.ToolResult{CallID: id, Content: []dragoman.Part{text("r")}}
}

func thinking() *dragoman.Reasoning { return &dragoman.Reasoning{Text: "hm", Signature: "s"} }

// native returns m as a message that came from the toy wire.
func native(m dragoman.Message, raw string) dragoman.Message {
	m.Origin = &dragoman.Origin{Dialect: toyDialect}
	m.Native = &dragoman.Sidecar{Dialect: toyDialect, Raw: []byte(raw)}
	return m
}

// show formats a plan as in the test tables: the system prompt, then a line for each
// turn. A block in native form is in brackets.
func show(p *blockwire.Plan) string {
	var b strings.Builder
	if len(p.System) > 0 {
		b.WriteString("system: " + blocks(p.System) + "\n")
	}
	for _, t := range p.Turns {
		b.WriteString(t.Role + ": " + blocks(t.Blocks) + "\n")
	}
	return b.String()
}

func blocks(list []blockwire.Block) string {
	words := make([]string, len(list))
	for i, b := range list {
		switch p := b.Part.(type) {
		case *dragoman.Text:
			words[i] = p.Text
		case *dragoman.ToolCall:
			words[i] = "call " + p.ID
		case *dragoman.ToolResult:
			words[i] = "result " + p.CallID
		default:
			words[i] = p.Kind()
		}
		if b.Raw != nil {
			words[i] = "[" + words[i] + "]"
		}
		if b.Cache != nil {
			words[i] += "*"
		}
	}
	return strings.Join(words, ", ")
}

func arrange(rules blockwire.Rules, req *dragoman.Request) (*blockwire.Plan, *dragoman.Report) {
	rules.Dialect, rules.Assistant, rules.List, rules.Turn, rules.Prompt = toyDialect, "model", "blocks", "turn", "prompt"
	rep := new(dragoman.Report)
	p := &blockwire.Plan{Rules: rules}
	p.Arrange(req, toy{p}, rep)
	p.Open()
	return p, rep
}

func TestPlanArrangesTurns(t *testing.T) {
	for _, tc := range []struct {
		name     string
		rules    blockwire.Rules
		messages []dragoman.Message
		want     string
		// lost are the paths in the report, each with its kind.
		lost string
	}{
		{
			name:     "leading system messages are the system prompt",
			messages: []dragoman.Message{system(text("a")), system(text("b")), user(text("hi"))},
			want:     "system: a, b\nuser: hi\n",
		},
		{
			name:     "consecutive messages of one role are one turn",
			messages: []dragoman.Message{user(text("a")), user(text("b")), model(text("c")), model(text("d")), user(text("e"))},
			want:     "user: a, b\nmodel: c, d\nuser: e\n",
		},
		{
			name:     "results are in a user turn, in the order of the calls (quirks D1, D2)",
			messages: []dragoman.Message{user(text("q")), model(call("1"), call("2")), results(result("2")), results(result("1"))},
			want:     "user: q\nmodel: call 1, call 2\nuser: result 1, result 2\n",
			lost:     "moved /messages/3/parts/0",
		},
		{
			name:     "results come before other user content (quirk D3)",
			messages: []dragoman.Message{user(text("q")), model(call("1")), user(text("well?")), results(result("1"))},
			want:     "user: q\nmodel: call 1\nuser: result 1, well?\n",
			lost:     "moved /messages/3/parts/0",
		},
		{
			name:     "the last of two results replaces the first (quirk D4)",
			messages: []dragoman.Message{user(text("q")), model(call("1"), call("2")), results(result("1"), result("2"), result("1"))},
			want:     "user: q\nmodel: call 1, call 2\nuser: result 1, result 2\n",
			lost:     "dropped /messages/2/parts/0",
		},
		{
			name:     "a synthetic result does not replace a real one",
			messages: []dragoman.Message{user(text("q")), model(call("1")), results(result("1"), &dragoman.ToolResult{CallID: "1", Synthetic: true})},
			want:     "user: q\nmodel: call 1\nuser: result 1\n",
			lost:     "dropped /messages/2/parts/1",
		},
		{
			name:     "a result without a call stays in place",
			messages: []dragoman.Message{user(text("q")), model(call("1")), results(result("1")), user(text("so?")), results(result("9"))},
			want:     "user: q\nmodel: call 1\nuser: result 1, so?, result 9\n",
		},
		{
			name:     "calls move to the end of their turn (quirk B26)",
			messages: []dragoman.Message{user(text("q")), model(call("1"), text("wait")), results(result("1"))},
			want:     "user: q\nmodel: wait, call 1\nuser: result 1\n",
			lost:     "moved /messages/1/parts/0",
		},
		{
			name:     "thinking between calls fixes the order (quirk D25)",
			messages: []dragoman.Message{user(text("q")), model(call("1"), thinking(), text("wait")), results(result("1"))},
			want:     "user: q\nmodel: call 1, reasoning, wait\nuser: result 1\n",
		},
		{
			name:     "a conversation starts with a user turn (quirk D17)",
			messages: []dragoman.Message{model(text("hello"))},
			want:     "user: (conversation continues)\nmodel: hello\n",
			lost:     "synthesized /messages",
		},
		{
			name:     "a native conversation may start with the model",
			messages: []dragoman.Message{native(model(text("hello")), `{"role":"model","blocks":[{"t":"hello"}]}`)},
			want:     "model: [hello]\n",
		},
		{
			name:     "a later system message becomes user text",
			messages: []dragoman.Message{user(text("q")), system(text("be brief")), model(text("a"))},
			want:     "user: q, be brief\nmodel: a\n",
			lost:     "lowered /messages/1",
		},
		{
			name:     "a later system message keeps its role if allowed",
			rules:    blockwire.Rules{SystemTurns: true, MidSystem: true},
			messages: []dragoman.Message{user(text("q")), system(text("be brief")), model(text("a")), system(text("now")), user(text("b"))},
			want:     "user: q\nsystem: be brief\nmodel: a\nuser: now, b\n",
			lost:     "lowered /messages/3",
		},
		{
			name:     "an empty message is dropped and its neighbors merge",
			messages: []dragoman.Message{user(text("a")), model(text(" ")), user(text("b"))},
			want:     "user: a, b\n",
			lost:     "dropped /messages/1/parts/0, dropped /messages/1",
		},
		{
			name:     "an unknown role becomes user",
			messages: []dragoman.Message{{Role: "narrator", Parts: []dragoman.Part{text("once")}}},
			want:     "user: once\n",
			lost:     "lowered /messages/0",
		},
		{
			name: "a message cache hint goes to its last eligible block",
			messages: []dragoman.Message{
				{Role: dragoman.RoleUser, Parts: []dragoman.Part{text("a"), text("b")}, Cache: &dragoman.CacheHint{}},
				{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{text("c"), thinking()}, Cache: &dragoman.CacheHint{}},
			},
			want: "user: a, b*\nmodel: c*, reasoning\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, rep := arrange(tc.rules, &dragoman.Request{Messages: tc.messages})
			if got := show(p); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
			var lost []string
			for _, l := range rep.Losses {
				lost = append(lost, fmt.Sprintf("%s %s", l.Kind, l.Path))
			}
			if got := strings.Join(lost, ", "); got != tc.lost {
				t.Errorf("reported %q, want %q", got, tc.lost)
			}
		})
	}
}

// written returns a turn as the toy wire writes it.
func written(p *blockwire.Plan, t *blockwire.Turn) string {
	if t.Untouched() {
		return string(t.Native())
	}
	var w jsonwire.Writer
	p.Begin(&w, t, t.Role)
	for _, b := range t.Blocks {
		if b.Raw != nil {
			w.Raw(b.Raw)
			continue
		}
		w.BeginObject()
		w.StringField("t", blocks([]blockwire.Block{b}))
		w.EndObject()
	}
	p.End(&w, t)
	return string(w.Buf)
}

// What was sent once must not change when the conversation continues: the prompt cache
// would be lost, and signatures would fail.
func TestNativeMessageKeepsItsBytes(t *testing.T) {
	const raw = `{ "role":"user", "blocks" : [ {"t":"a" ,"x":1.0} ] ,"mood":"é" }`
	nativeMessage := native(user(text("a")), raw)
	for _, tc := range []struct {
		name     string
		messages []dragoman.Message
		want     string
	}{
		{"alone", []dragoman.Message{nativeMessage}, raw},
		{"with another merged after it", []dragoman.Message{nativeMessage, user(text("b"))}, `{ "role":"user", "blocks" : [{"t":"a" ,"x":1.0},{"t":"b"}] ,"mood":"é" }`},
		{"merged into an earlier one: only its blocks", []dragoman.Message{user(text("b")), nativeMessage}, `{"role":"user","blocks":[{"t":"b"},{"t":"a" ,"x":1.0}]}`},
		{
			"blocks that do not match the parts",
			[]dragoman.Message{native(user(text("a")), `{"role":"user","blocks":[{"t":"a"},{"t":"z"}]}`)},
			`{"role":"user","blocks":[{"t":"a"}]}`,
		},
		{
			"content that is a string",
			[]dragoman.Message{native(user(text("a")), `{"role":"user","blocks":"a"}`)},
			`{"role":"user","blocks":[{"t":"a"}]}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, _ := arrange(blockwire.Rules{}, &dragoman.Request{Messages: tc.messages})
			if len(p.Turns) != 1 {
				t.Fatalf("%d turns", len(p.Turns))
			}
			if got := written(p, &p.Turns[0]); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestNativeResultsKeepTheirOrder(t *testing.T) {
	nativeMessage := native(results(result("2"), result("1")), `{"role":"user","blocks":[{"r":2},{"r":1}]}`)
	p, rep := arrange(blockwire.Rules{}, &dragoman.Request{Messages: []dragoman.Message{user(text("q")), model(call("1"), call("2")), nativeMessage, user(text("go on"))}})
	if got, want := show(p), "user: q\nmodel: call 1, call 2\nuser: [result 2], [result 1], go on\n"; got != want || len(rep.Losses) > 0 {
		t.Errorf("got\n%s%s", got, rep)
	}
}

func TestTrimPrefill(t *testing.T) {
	for _, tc := range []struct {
		name, last, want string
		lost             bool
	}{
		{"trailing white space", "So: \n", "So:", true},
		{"leading white space stays", " So:", " So:", false},
		{"blank text stays", "\u00a0", "\u00a0", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			last := text(tc.last)
			req := &dragoman.Request{Messages: []dragoman.Message{user(text("q")), model(thinking(), last)}}
			p, rep := arrange(blockwire.Rules{}, req)
			p.TrimPrefill()
			blocks := p.Turns[1].Blocks
			if got := blocks[len(blocks)-1].Part.(*dragoman.Text).Text; got != tc.want || tc.lost != (len(rep.Losses) > 0) {
				t.Errorf("%q\n%s", got, rep)
			}
			if last.Text != tc.last {
				t.Error("the request was changed")
			}
		})
	}
}
