package dialect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/gen"
)

// Decision 6: a settled conversation only grows at its end. The elements of
// the encoded list but the last stay byte-identical; the last may gain blocks.

// elements encodes a request and returns the elements of its list.
func elements(c dialect.Codec, req *dragoman.Request, o dialect.EncodeOptions) ([]json.RawMessage, error) {
	enc, err := c.EncodeRequest(req, o)
	if err != nil {
		return nil, err
	}
	var body struct{ Messages, Input []json.RawMessage }
	if err := json.Unmarshal(enc.Body, &body); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, enc.Body)
	}
	return append(body.Messages, body.Input...), nil
}

// grown says what is wrong with how a list grew, or nothing.
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
		if why := gained(el, long[i]); why != "" {
			return fmt.Sprintf("the last element did more than gain: %s\n%s\n%s", why, el, long[i])
		}
	}
	return ""
}

// gained says what an element lost when it became another: every member must
// stay as it was, and a list may only get longer.
func gained(before, after json.RawMessage) string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil {
		return "no object"
	}
	for key, was := range a {
		is, ok := b[key]
		if !ok {
			return key + " is gone"
		}
		if bytes.Equal(was, is) {
			continue
		}
		var list, longer []json.RawMessage
		if json.Unmarshal(was, &list) != nil || json.Unmarshal(is, &longer) != nil || list == nil {
			return key + " changed"
		}
		if len(list) > len(longer) || !slices.EqualFunc(list, longer[:len(list)], func(x, y json.RawMessage) bool { return bytes.Equal(x, y) }) {
			return key + " changed what it held"
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

// growth is a conversation and the number of its messages that were there
// before.
type growth struct {
	req *dragoman.Request
	n   int
}

func (g growth) last() *dragoman.Message { return &g.req.Messages[g.n-1] }
func (g growth) next() *dragoman.Message { return &g.req.Messages[g.n] }

func (g growth) check(c dialect.Codec, o dialect.EncodeOptions) (string, error) {
	before := *g.req
	before.Messages = g.req.Messages[:g.n]
	short, err := elements(c, &before, o)
	if err != nil {
		return "", err
	}
	long, err := elements(c, g.req, o)
	if err != nil {
		return "", err
	}
	return grown(short, long), nil
}

// allowedGrowth is one entry of a dialect's Limits.GrowthExceptions: a
// conversation in which it shows, and what a conversation must have for it to
// be the reason.
type allowedGrowth struct {
	dialect dragoman.Dialect
	// starts is how the entry of the limits starts.
	starts string
	shows  func() (growth, dialect.EncodeOptions)
	may    func(g growth, o dialect.EncodeOptions) bool
}

func talk(n int, ms ...dragoman.Message) growth {
	return growth{&dragoman.Request{Model: "m", Messages: ms}, n}
}

func says(role dragoman.Role, parts ...dragoman.Part) dragoman.Message {
	return dragoman.Message{Role: role, Parts: parts}
}

func callOf(id string) *dragoman.ToolCall {
	return &dragoman.ToolCall{ID: id, Name: "f", Arguments: "{}"}
}

func resultOf(id, text string) *dragoman.ToolResult {
	return &dragoman.ToolResult{CallID: id, Content: []dragoman.Part{&dragoman.Text{Text: text}}}
}

var image = &dragoman.Media{Media: dragoman.MediaImage, MIME: "image/png", Base64: "AA=="}

// nativeTalk is a conversation that came over the wire.
func nativeTalk(c dialect.Codec, n int, body string, more ...dragoman.Message) growth {
	req, _, err := c.DecodeRequest([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		panic(err)
	}
	req.Messages = append(req.Messages, more...)
	req.Native = nil // a request that grew is not the one that came
	return growth{req, n}
}

// codecOf returns the codec of a dialect.
func codecOf(d dragoman.Dialect) dialect.Codec {
	return codecs[slices.IndexFunc(codecs, func(c dialect.Codec) bool { return c.Dialect() == d })]
}

// speaker is the side a message stands on: what is not the assistant's may be
// merged into user text.
func speaker(m *dragoman.Message) dragoman.Role {
	if m.Role == dragoman.RoleAssistant {
		return m.Role
	}
	return dragoman.RoleUser
}

// fiveMarkers is a conversation with one breakpoint too many.
func fiveMarkers() (growth, dialect.EncodeOptions) {
	var ms []dragoman.Message
	for range 5 {
		q := dragoman.UserText("q")
		q.Cache = &dragoman.CacheHint{}
		ms = append(ms, q, dragoman.AssistantText("a"))
	}
	return talk(8, ms...), dialect.EncodeOptions{Target: dragoman.Target{Caps: dragoman.Capabilities{CacheBreakpoints: true}}}
}

// mayMark: more breakpoints are asked for than there may be.
func mayMark(g growth, _ dialect.EncodeOptions) bool {
	n := 0
	count := func(hint *dragoman.CacheHint) {
		if hint != nil {
			n++
		}
	}
	count(g.req.Cache)
	for i := range g.req.Tools {
		count(g.req.Tools[i].Cache)
	}
	hints(g.req.Instructions, count)
	for i := range g.req.Messages {
		count(g.req.Messages[i].Cache)
		hints(g.req.Messages[i].Parts, count)
	}
	return n > 4
}

func hints(ps []dragoman.Part, count func(*dragoman.CacheHint)) {
	for _, p := range ps {
		switch p := p.(type) {
		case *dragoman.Text:
			count(p.Cache)
		case *dragoman.Media:
			count(p.Cache)
		case *dragoman.ToolCall:
			count(p.Cache)
		case *dragoman.ToolResult:
			count(p.Cache)
			hints(p.Content, count)
		}
	}
}

var allowed = []allowedGrowth{
	{
		dialect: dragoman.OpenAIChat, starts: "an assistant message that ends the list gains text and calls",
		shows: func() (growth, dialect.EncodeOptions) {
			return talk(2, dragoman.UserText("q"), dragoman.AssistantText("a"), says(dragoman.RoleAssistant, &dragoman.Text{Text: "b"}, callOf("1")), dragoman.ToolResults(resultOf("1", "r"))), dialect.EncodeOptions{}
		},
		may: func(g growth, _ dialect.EncodeOptions) bool {
			return g.last().Role == dragoman.RoleAssistant && g.next().Role == dragoman.RoleAssistant
		},
	},
	{
		dialect: dragoman.OpenAIChat, starts: "a user message with the media of tool results moves",
		shows: func() (growth, dialect.EncodeOptions) {
			with := resultOf("1", "r")
			with.Content = append(with.Content, image)
			return talk(3, dragoman.UserText("q"), says(dragoman.RoleAssistant, callOf("1")), dragoman.ToolResults(with), dragoman.ToolResults(resultOf("1", "late"))), dialect.EncodeOptions{}
		},
		may: func(g growth, _ dialect.EncodeOptions) bool {
			media := false
			for i := g.n - 1; i >= 0 && g.req.Messages[i].Role == dragoman.RoleTool; i-- {
				for _, p := range g.req.Messages[i].Parts {
					r, ok := p.(*dragoman.ToolResult)
					media = media || ok && slices.ContainsFunc(r.Content, func(p dragoman.Part) bool { return p.Kind() == dragoman.KindMedia })
				}
			}
			return media && g.next().Role == dragoman.RoleTool
		},
	},
	{dialect: dragoman.OpenAIChat, starts: "cache markers", shows: fiveMarkers, may: mayMark},
	{dialect: dragoman.OpenAIResponses, starts: "cache markers", shows: fiveMarkers, may: mayMark},
	{dialect: dragoman.Anthropic, starts: "cache markers", shows: fiveMarkers, may: mayMark},
	{
		dialect: dragoman.Anthropic, starts: "a late duplicate result",
		shows: func() (growth, dialect.EncodeOptions) {
			return talk(3, dragoman.UserText("q"), says(dragoman.RoleAssistant, callOf("1")), dragoman.ToolResults(resultOf("1", "r")), dragoman.ToolResults(resultOf("1", "late"))), dialect.EncodeOptions{}
		},
		may: func(g growth, _ dialect.EncodeOptions) bool { return g.next().Role == dragoman.RoleTool },
	},
	{
		dialect: dragoman.Anthropic, starts: "a message that came in another spelling than ours",
		shows: func() (growth, dialect.EncodeOptions) {
			return nativeTalk(codecOf(dragoman.Anthropic), 1, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"text":"hi","type":"text"}]}]}`, dragoman.UserText("more")), dialect.EncodeOptions{}
		},
		may: func(g growth, o dialect.EncodeOptions) bool {
			m := g.last()
			return m.Native != nil && !stringContent(m.Native.Raw) && !o.Rebuild && speaker(m) == speaker(g.next())
		},
	},
	{
		dialect: dragoman.Anthropic, starts: "white space at the end of an assistant message",
		shows: func() (growth, dialect.EncodeOptions) {
			return talk(2, dragoman.UserText("q"), dragoman.AssistantText("a \n"), dragoman.UserText("more")), dialect.EncodeOptions{}
		},
		may: func(g growth, _ dialect.EncodeOptions) bool {
			text := ""
			for _, p := range g.last().Parts {
				switch p := p.(type) {
				case *dragoman.Text:
					text = p.Text
				case *dragoman.Refusal:
					text = p.Text
				}
			}
			return g.last().Role == dragoman.RoleAssistant && strings.TrimRightFunc(text, unicode.IsSpace) != text
		},
	},
	{
		dialect: dragoman.Anthropic, starts: "a system message inside the conversation",
		shows: func() (growth, dialect.EncodeOptions) {
			return talk(2, dragoman.UserText("q"), dragoman.SystemText("s"), dragoman.UserText("more")),
				dialect.EncodeOptions{Target: dragoman.Target{Caps: dragoman.Capabilities{MidSystem: true}}}
		},
		may: func(g growth, o dialect.EncodeOptions) bool {
			return o.Target.Caps.MidSystem && (g.last().Role == dragoman.RoleSystem || g.last().Role == dragoman.RoleDeveloper) && g.next().Role != dragoman.RoleAssistant
		},
	},
	{
		dialect: dragoman.Anthropic, starts: "blocks of a turn that is still growing move",
		shows: func() (growth, dialect.EncodeOptions) {
			return talk(4, dragoman.UserText("q"), says(dragoman.RoleAssistant, callOf("1")), dragoman.ToolResults(resultOf("1", "r")), dragoman.UserText("more"), dragoman.ToolResults(resultOf("2", "of no call"))), dialect.EncodeOptions{}
		},
		may: func(g growth, _ dialect.EncodeOptions) bool {
			return g.next().Role == dragoman.RoleTool && speaker(g.last()) == dragoman.RoleUser
		},
	},
	{
		dialect: dragoman.Anthropic, starts: "the message that opens a conversation without any",
		shows: func() (growth, dialect.EncodeOptions) {
			return talk(1, dragoman.SystemText("s"), dragoman.UserText("q")), dialect.EncodeOptions{}
		},
		may: func(g growth, o dialect.EncodeOptions) bool {
			before := *g.req
			before.Messages = g.req.Messages[:g.n]
			short, err := elements(codecOf(dragoman.Anthropic), &before, o)
			return err == nil && len(short) == 1 && strings.Contains(string(short[0]), "(conversation continues)")
		},
	},
}

func TestEveryGrowthExceptionOfTheLimitsReallyOccurs(t *testing.T) {
	for _, c := range codecs {
		listed := c.Limits().GrowthExceptions
		for _, text := range listed {
			if !slices.ContainsFunc(allowed, func(a allowedGrowth) bool { return a.dialect == c.Dialect() && strings.HasPrefix(text, a.starts) }) {
				t.Errorf("%s lists an exception that no test shows: %q", c.Dialect(), text)
			}
		}
	}
	for _, a := range allowed {
		t.Run(string(a.dialect)+"/"+a.starts, func(t *testing.T) {
			c := codecOf(a.dialect)
			if !slices.ContainsFunc(c.Limits().GrowthExceptions, func(text string) bool { return strings.HasPrefix(text, a.starts) }) {
				t.Fatal("the limits do not list it")
			}
			g, o := a.shows()
			why, err := g.check(c, o)
			if err != nil {
				t.Fatal(err)
			}
			if why == "" {
				t.Fatal("the conversation only grew at its end: take the exception away")
			}
			if !a.may(g, o) {
				t.Fatal("the example is none of its exception")
			}
			t.Log(why)
			for _, other := range allowed {
				if other.dialect == a.dialect && other.starts != a.starts && other.may(g, o) {
					t.Logf("it might also be: %s", other.starts)
				}
			}
		})
	}
}

// oneText is a list of one text block, for which Anthropic's wire also takes a
// string.
var oneText = regexp.MustCompile(`"content":\[\{"type":"text","text":("(?:[^"\\]|\\.)*")\}\]`)

// stringContent reports whether the content of a native message is a string.
func stringContent(raw json.RawMessage) bool {
	var m struct{ Content json.RawMessage }
	return json.Unmarshal(raw, &m) == nil && len(m.Content) > 0 && m.Content[0] == '"'
}

// Merging dialects always write lists of blocks, never a string that later
// becomes one; what did not change at all is still sent as it came.
func TestAStringThatMayLaterBeMergedIsWrittenAsABlock(t *testing.T) {
	c := codecOf(dragoman.Anthropic)
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
		why, err := nativeTalk(c, 1, body, more).check(c, dialect.EncodeOptions{})
		if err != nil || why != "" {
			t.Errorf("%v %s", err, why)
		}
	}
}

// drawGrowing draws a conversation with what makes growth hard: results that
// come late and twice, system messages in the middle, conversations without a
// user, and messages in their native form.
func drawGrowing(t *rapid.T, c dialect.Codec) *dragoman.Request {
	g := gen.Options{Tidy: true, Dialect: rapid.SampledFrom([]dragoman.Dialect{"", c.Dialect()}).Draw(t, "native dialect")}
	req := honest(g.Request().Draw(t, "request"))
	if rapid.Bool().Draw(t, "no cache hints") { // else they explain too much
		for i := range req.Messages {
			req.Messages[i].Cache = nil
			unhint(req.Messages[i].Parts)
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "native") == 0 {
		if enc, err := c.EncodeRequest(req, dialect.EncodeOptions{}); err == nil {
			body := enc.Body
			if rapid.Bool().Draw(t, "strings") {
				body = oneText.ReplaceAll(body, []byte(`"content":$1`))
			}
			if rapid.Bool().Draw(t, "another spelling") {
				var b bytes.Buffer
				if err := json.Indent(&b, body, "", " "); err != nil {
					t.Fatal(err)
				}
				body = b.Bytes()
			}
			back, _, err := c.DecodeRequest(body, dialect.DecodeOptions{})
			if err != nil {
				t.Fatalf("%v\n%s", err, body)
			}
			back.Native = nil
			req = back
		}
	}
	var ms []dragoman.Message
	for i, m := range req.Messages {
		if i == 0 && m.Role == dragoman.RoleUser && rapid.IntRange(0, 9).Draw(t, "nobody asks") == 0 && len(req.Messages) > 1 {
			continue
		}
		ms = append(ms, m)
		if m.Role == dragoman.RoleTool && len(m.Parts) > 0 && rapid.IntRange(0, 4).Draw(t, "a result comes twice") == 0 {
			again := *m.Parts[0].(*dragoman.ToolResult)
			again.Content = []dragoman.Part{&dragoman.Text{Text: "late"}}
			ms = append(ms, dragoman.ToolResults(&again))
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

func unhint(ps []dragoman.Part) {
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
			unhint(p.Content)
		}
	}
}

func TestProperty_AConversationOnlyGrowsAtItsEndButForTheListedExceptions(t *testing.T) {
	forEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		req := drawGrowing(t, c)
		o := dialect.EncodeOptions{Target: drawServer(t)}
		if !settled(req.Messages) {
			return
		}
		for n := 1; n < len(req.Messages); n++ {
			if !settled(req.Messages[:n]) {
				continue
			}
			g := growth{req, n}
			why, err := g.check(c, o)
			if err != nil {
				t.Fatal(err)
			}
			if why == "" {
				continue
			}
			if !slices.ContainsFunc(allowed, func(a allowedGrowth) bool { return a.dialect == c.Dialect() && a.may(g, o) }) {
				t.Fatalf("after %d of %d messages, %s\nand no exception of the limits allows it", n, len(req.Messages), why)
			}
		}
	})
}

// Tools keep list and order; later ones are appended.
func TestProperty_AToolThatIsAppendedLeavesTheOthersAlone(t *testing.T) {
	forEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		req := honest(gen.Options{Tidy: true}.Request().Draw(t, "request"))
		req.Tools = slices.DeleteFunc(req.Tools, func(s dragoman.ToolSpec) bool { return s.Namespace != "" || s.Kind == dragoman.ToolHosted })
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
			var body struct{ Tools []json.RawMessage }
			if err := json.Unmarshal(enc.Body, &body); err != nil {
				t.Fatal(err)
			}
			return body.Tools
		}
		all := tools(len(req.Tools))
		for n := 1; n < len(req.Tools); n++ {
			for i, el := range tools(n) {
				if !bytes.Equal(el, all[i]) {
					t.Fatalf("tool %d of %d changed\n%s\n%s", i, n, el, all[i])
				}
			}
		}
	})
}
