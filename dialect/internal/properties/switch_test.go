package properties_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
)

// withoutNative removes random native JSON of the generator: replayed, it would add content
// that the conversation does not have.
func withoutNative(req *dragoman.Request) *dragoman.Request {
	req.Native, req.ToolChoice, req.Output = nil, nil, nil
	for i := range req.Tools {
		if req.Tools[i].Kind != codes.ToolHosted {
			req.Tools[i].Source = nil
		}
	}
	withoutNativeMessages(req.Messages)
	return req
}

func withoutNativeMessages(ms []dragoman.Message) {
	for i := range ms {
		ms[i].Native = nil
		for _, p := range ms[i].Parts {
			switch p := p.(type) {
			case *dragoman.ToolResult:
				p.Envelope = nil
			case *dragoman.ToolCall:
				// A code fence around the whole input of a lowered freeform tool
				// is removed on purpose.
				if p.Payload == codes.PayloadText && strings.HasPrefix(p.Arguments, "```") {
					p.Arguments = "x" + p.Arguments
				}
			}
		}
	}
}

// callsWithResults lists the client calls of a conversation with their results, turn by turn.
// Results are matched by id, so their order and the split into messages do
// not matter.
func callsWithResults(ms []dragoman.Message) []string {
	var out []string
	var open []*dragoman.ToolCall
	results := map[string]string{}
	flush := func() {
		for _, c := range open {
			out = append(out, fmt.Sprintf("call %q %q %q payload=%q %q with result %s", c.ID, c.Namespace, c.Name, c.Payload, c.Arguments, results[c.ID]))
		}
		open = nil
		clear(results)
	}
	for i := range ms {
		hasResults := len(results) > 0
		for _, p := range ms[i].Parts {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				if hasResults {
					flush()
					hasResults = false
				}
				if !p.Hosted {
					open = append(open, p)
				}
			case *dragoman.ToolResult:
				// Media may only move; package matrix checks that.
				text := ""
				for _, c := range p.Content {
					switch c := c.(type) {
					case *dragoman.Text:
						text += c.Text
					case *dragoman.Data:
						text += string(c.JSON)
					}
				}
				if p.Outcome == codes.OutcomeError && text != "" {
					text = "ERROR: " + strings.TrimPrefix(text, "ERROR: ")
				}
				results[p.CallID] += fmt.Sprintf("%q %v", p.Namespace+p.Name, text)
			}
		}
	}
	flush()
	return out
}

// callsOf is like callsWithResults without the content of results, which package matrix checks.
func callsOf(ms []dragoman.Message) []string {
	bare := make([]dragoman.Message, len(ms))
	for i := range ms {
		bare[i].Role = ms[i].Role
		for _, p := range ms[i].Parts {
			if r, ok := p.(*dragoman.ToolResult); ok {
				p = &dragoman.ToolResult{CallID: r.CallID}
			}
			bare[i].Parts = append(bare[i].Parts, p)
		}
	}
	return callsWithResults(bare)
}

func sameLines(t *rapid.T, what string, want, got []string, body []byte) {
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("%s\nwant %s\ngot  %s\nin %s", what, strings.Join(want[min(i, len(want)):], "\n     "), strings.Join(got[min(i, len(got)):], "\n     "), body)
		}
	}
}

// A loop keeps the author's tools and decodes responses with the registry of their request; a gateway
// has only the request it received.
func TestProperty_DialectSwitchKeepsCallsAndResults(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, a dialect.Codec) {
		req := withoutNative(gen.Options{Tidy: true}.Request().Draw(t, "request"))
		loop := rapid.Bool().Draw(t, "as a loop")
		first, err := a.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var o dialect.DecodeOptions
		if loop {
			o.Registry = first.Registry
		}
		middle, _, err := a.DecodeRequest(first.Body, o)
		if err != nil {
			t.Fatalf("%v\n%s", err, first.Body)
		}
		want := callsOf(middle.Messages)
		if loop {
			want = callsOf(req.Messages)
			sameLines(t, "decoded from "+string(a.Dialect()), want, callsOf(middle.Messages), first.Body)
			ms := middle.Messages
			*middle = *req
			middle.Messages = ms
		} else if len(want) != len(callsOf(req.Messages)) {
			t.Fatalf("%d calls of %d\n%s", len(want), len(callsOf(req.Messages)), first.Body)
		}
		for _, b := range crosstest.Codecs {
			second, err := b.EncodeRequest(middle, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			back, _, err := b.DecodeRequest(second.Body, dialect.DecodeOptions{Registry: second.Registry})
			if err != nil {
				t.Fatalf("%v\n%s", err, second.Body)
			}
			sameLines(t, fmt.Sprintf("%s to %s", a.Dialect(), b.Dialect()), want, callsOf(back.Messages), second.Body)
		}
	})
}

func TestProperty_DialectSwitchKeepsResultText(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, a dialect.Codec) {
		req := withoutNative(gen.Options{Tidy: true, Plain: true}.Request().Draw(t, "request"))
		for i := range req.Messages {
			for _, p := range req.Messages[i].Parts {
				if r, ok := p.(*dragoman.ToolResult); ok {
					text := "said " + gen.Options{Tidy: true}.Text().Draw(t, "result")
					r.Content = []dragoman.Part{&dragoman.Text{Text: text}}
					r.Name, r.Namespace = "", "" // not on every wire
				}
			}
		}
		for i := range req.Tools {
			req.Tools[i].OutputSchema = nil // with a schema, results are JSON
		}
		want := callsWithResults(req.Messages)
		ms := req.Messages
		for range 3 { // then to other dialects
			b := rapid.SampledFrom(crosstest.Codecs).Draw(t, "to")
			next := *req
			next.Messages = ms
			enc, err := b.EncodeRequest(&next, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			back, _, err := b.DecodeRequest(enc.Body, dialect.DecodeOptions{Registry: enc.Registry, LiftErrors: true})
			if err != nil {
				t.Fatalf("%v\n%s", err, enc.Body)
			}
			for i := range back.Messages {
				for _, p := range back.Messages[i].Parts {
					if r, ok := p.(*dragoman.ToolResult); ok {
						r.Name, r.Namespace = "", ""
					}
				}
			}
			sameLines(t, "to "+string(b.Dialect()), want, callsWithResults(back.Messages), enc.Body)
			ms = back.Messages
		}
	})
}

// secret is a text that a redaction must be able to remove from a conversation.
const secret = "hunter2-8f14e45f"

const redacted = "[redacted]"

// editor replaces strings in place, wherever a redaction would.
type editor struct {
	from, to string
	hits     int
}

func (e *editor) text(s *string) {
	if strings.Contains(*s, e.from) {
		e.hits++
		*s = strings.ReplaceAll(*s, e.from, e.to)
	}
}

func (e *editor) raw(b *json.RawMessage) {
	s := string(*b)
	e.text(&s)
	if s != string(*b) {
		*b = json.RawMessage(s)
	}
}

func (e *editor) parts(ps []dragoman.Part) {
	for _, p := range ps {
		switch p := p.(type) {
		case *dragoman.Text:
			e.text(&p.Text)
		case *dragoman.Refusal:
			e.text(&p.Text)
		case *dragoman.Reasoning:
			e.text(&p.Text)
			for i := range p.Summary {
				e.text(&p.Summary[i])
			}
		case *dragoman.ToolCall:
			e.text(&p.Arguments)
		case *dragoman.ToolResult:
			e.parts(p.Content)
		case *dragoman.Data:
			e.raw(&p.JSON)
		case *dragoman.Media:
			e.text(&p.Text)
			e.encoded(&p.Base64)
		}
	}
}

// encoded replaces a text inside Base64. It does not count as a hit, because a
// search for the replacement cannot find it.
func (e *editor) encoded(s *string) {
	if plain, err := base64.StdEncoding.DecodeString(*s); err == nil && strings.Contains(string(plain), e.from) {
		*s = base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(string(plain), e.from, e.to)))
	}
}

func (e *editor) request(r *dragoman.Request) {
	e.parts(r.Instructions)
	for i := range r.Messages {
		e.parts(r.Messages[i].Parts)
	}
	for i := range r.Tools {
		e.text(&r.Tools[i].Description)
		e.text(&r.Tools[i].NamespaceDescription)
		e.raw(&r.Tools[i].Parameters)
	}
}

// drawSecret writes the secret to one place in the parts or tools.
func drawSecret(t *rapid.T, parts []dragoman.Part, tools []dragoman.ToolSpec) string {
	type place struct {
		name string
		set  func()
	}
	var places []place
	add := func(name string, set func()) { places = append(places, place{name, set}) }
	var walk func(ps []dragoman.Part, inside string)
	walk = func(ps []dragoman.Part, inside string) {
		for _, p := range ps {
			switch p := p.(type) {
			case *dragoman.Text:
				add(inside+"text", func() { p.Text += secret })
			case *dragoman.Refusal:
				add("refusal", func() { p.Text += secret })
			case *dragoman.Reasoning:
				add("reasoning", func() { p.Text += secret })
			case *dragoman.ToolCall:
				add("arguments", func() {
					p.Arguments = `{"password": "` + secret + `"}`
					if p.Payload == codes.PayloadText {
						p.Arguments = secret
					}
				})
			case *dragoman.Data:
				add(inside+"data", func() { p.JSON = json.RawMessage(`{"password":"` + secret + `"}`) })
			case *dragoman.Media:
				if p.Text != "" {
					add(inside+"document", func() { p.Text += secret })
				}
			case *dragoman.ToolResult:
				walk(p.Content, "result ")
			}
		}
	}
	walk(parts, "")
	for i := range tools {
		if tools[i].Kind != codes.ToolHosted {
			add("tool description", func() { tools[i].Description += secret })
		}
	}
	if len(places) == 0 {
		return ""
	}
	p := places[rapid.IntRange(0, len(places)-1).Draw(t, "place")]
	p.set()
	return p.name
}

func TestProperty_RedactedRequestNeverLeaksTheSecret(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		req := withoutNative(gen.Options{Tidy: true}.Request().Draw(t, "request"))
		place := drawSecret(t, append(crosstest.AllParts(req.Messages), req.Instructions...), req.Tools)
		first, err := c.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := c.DecodeRequest(first.Body, dialect.DecodeOptions{Registry: first.Registry})
		if err != nil {
			t.Fatalf("%v\n%s", err, first.Body)
		}
		e := editor{from: secret, to: redacted}
		e.request(back)
		if e.hits == 0 && bytes.Contains(first.Body, []byte(secret)) {
			t.Fatalf("the %s is not found for editing\n%s", place, first.Body)
		}
		for _, out := range crosstest.Codecs {
			for _, o := range []dialect.EncodeOptions{{}, {Rebuild: true}, {Registry: first.Registry}} {
				if o.Registry != nil && out.Dialect() != c.Dialect() {
					continue
				}
				again, err := out.EncodeRequest(back, o)
				if err != nil {
					t.Fatal(err)
				}
				if bytes.Contains(again.Body, []byte(secret)) {
					t.Fatalf("the %s leaks from %s\nfirst %s\nagain %s", place, out.Dialect(), first.Body, again.Body)
				}
				if out.Dialect() == c.Dialect() && e.hits > 0 && !bytes.Contains(again.Body, []byte(redacted)) && place != "reasoning" {
					t.Fatalf("the edit of the %s is lost\nfirst %s\nagain %s", place, first.Body, again.Body)
				}
			}
		}
	})
}

func TestProperty_RedactedResponseNeverLeaksTheSecret(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		resp := gen.Options{Tidy: true}.Response().Draw(t, "response")
		resp.Native = nil
		withoutNativeMessages(resp.Output)
		parts := crosstest.AllParts(resp.Output)
		for i := range resp.Alternatives {
			withoutNativeMessages(resp.Alternatives[i].Output)
			parts = append(parts, crosstest.AllParts(resp.Alternatives[i].Output)...)
		}
		place := drawSecret(t, parts, nil)
		first, err := c.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := c.DecodeResponse(first.Body, dialect.DecodeOptions{})
		if err != nil {
			t.Fatalf("%v\n%s", err, first.Body)
		}
		e := editor{from: secret, to: redacted}
		e.parts(crosstest.AllParts(back.Output))
		for i := range back.Alternatives {
			e.parts(crosstest.AllParts(back.Alternatives[i].Output))
		}
		if e.hits == 0 && bytes.Contains(first.Body, []byte(secret)) {
			t.Fatalf("the %s is not found for editing\n%s", place, first.Body)
		}
		for _, out := range crosstest.Codecs {
			again, err := out.EncodeResponse(back, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(again.Body, []byte(secret)) {
				t.Fatalf("the %s leaks from %s\nfirst %s\nagain %s", place, out.Dialect(), first.Body, again.Body)
			}
			if e.hits > 0 && out.Dialect() == c.Dialect() && !bytes.Contains(again.Body, []byte(redacted)) {
				t.Fatalf("the edit of the %s is lost\n%s", place, again.Body)
			}
			// The response becomes history.
			next := &dragoman.Request{Model: "m", Messages: append([]dragoman.Message{dragoman.UserText("go on")}, back.Output...)}
			history, err := out.EncodeRequest(next, dialect.EncodeOptions{})
			if err == nil && bytes.Contains(history.Body, []byte(secret)) {
				t.Fatalf("the %s leaks in the history of %s\nfirst %s\nagain %s", place, out.Dialect(), first.Body, history.Body)
			}
		}
	})
}

func TestProperty_RedactedStreamNeverLeaksTheSecret(t *testing.T) {
	crosstest.ForEveryDialect(t, func(t *rapid.T, c dialect.Codec) {
		g := gen.Options{Tidy: true}
		resp := g.Response().Draw(t, "response")
		withoutNativeMessages(resp.Output)
		for i := range resp.Alternatives {
			withoutNativeMessages(resp.Alternatives[i].Output)
		}
		place := drawSecret(t, crosstest.AllParts(resp.Output), nil)
		first, _, err := crosstest.Streamed(c, crosstest.WithoutChunks(g.Stream(t, resp)), dialect.EncodeOptions{StreamUsage: true})
		if err != nil {
			t.Fatal(err)
		}
		// A redactor holds back the deltas of a part and edits its end.
		var evs []dragoman.Event
		chunk := -1
		for _, ev := range read(t, c, first, dialect.DecodeOptions{}) {
			e := editor{from: secret, to: redacted}
			switch ev := ev.(type) {
			case *dragoman.Chunk:
				chunk = len(evs)
			case *dragoman.PartStart:
				e.parts([]dragoman.Part{ev.Part})
			case *dragoman.PartDelta:
				if chunk >= 0 {
					evs[chunk] = &dragoman.Chunk{}
				}
				continue
			case *dragoman.PartEnd:
				e.parts([]dragoman.Part{ev.Part})
				if ev.Header != nil {
					e.parts(ev.Header.Parts)
				}
			}
			if e.hits > 0 && chunk >= 0 {
				evs[chunk] = &dragoman.Chunk{}
			}
			evs = append(evs, ev)
		}
		for _, out := range crosstest.Codecs {
			again, _, err := crosstest.Streamed(out, evs, dialect.EncodeOptions{StreamUsage: true})
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(again, []byte(secret)) {
				t.Fatalf("the %s leaks from %s\nfirst %s\nagain %s", place, out.Dialect(), first, again)
			}
		}
	})
}
