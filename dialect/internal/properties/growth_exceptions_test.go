package properties_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/targets"
)

// growthException is one entry of a dialect's Limits.GrowthExceptions.
type growthException struct {
	// starts is the start of the entry's text.
	starts string
	// shows returns a conversation in which the exception is the only reason of a change.
	shows func() (growth, dialect.EncodeOptions)
	// forgive removes the effect of the exception from a step, and nothing
	// else. Two exceptions may combine, so the result may still be wrong.
	forgive func(s growthStep) growthStep
}

// mediaMoves covers media of tool results, which follow the whole batch of results.
var mediaMoves = growthException{
	starts: "a user message with the media of tool results moves",
	shows: func() (growth, dialect.EncodeOptions) {
		with := resultOf("1", "r")
		with.Content = append(with.Content, image)
		return growing(3, dragoman.UserText("q"), crosstest.Message(dragoman.RoleAssistant, callOf("1")), dragoman.ToolResults(with), dragoman.ToolResults(resultOf("1", "late"))), dialect.EncodeOptions{}
	},
	forgive: func(s growthStep) growthStep {
		n := len(s.short)
		if was, is, ok := s.last(); ok && was.Role == "user" && is.Role == "tool" &&
			slices.ContainsFunc(s.long[n:], func(el json.RawMessage) bool { return lostFields(s.short[n-1], el) == "" }) {
			s.short = s.short[:n-1]
		}
		return s
	},
}

// growthExceptions lists the exceptions of each dialect, in the order in which they
// are removed from a step.
var growthExceptions = map[dragoman.Dialect][]growthException{
	dialectname.OpenAIResponses: {
		{starts: "cache markers", shows: fiveMarkers, forgive: forgiveMarkers},
	},
	dialectname.Gemini:  geminiGrowth,
	dialectname.Ollama:  {assistantGains},
	dialectname.Bedrock: bedrockGrowth,
	dialectname.OpenAIChat: {
		{starts: "cache markers", shows: fiveMarkers, forgive: forgiveMarkers},
		assistantGains,
		mediaMoves,
	},
	"cohere.chat": {assistantGains, mediaMoves},
	dialectname.Anthropic: {
		{starts: "cache markers", shows: fiveMarkers, forgive: forgiveMarkers},
		{
			starts: "the message synthesized to open an empty conversation",
			shows: func() (growth, dialect.EncodeOptions) {
				return growing(1, dragoman.SystemText("s"), dragoman.UserText("q")), dialect.EncodeOptions{}
			},
			forgive: func(s growthStep) growthStep {
				opening := map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": "(conversation continues)"}}}
				if len(s.short) == 1 && reflect.DeepEqual(fields(s.short[0]), opening) {
					s.short = nil
				}
				return s
			},
		},
		{
			starts: "a system message inside the conversation",
			shows: func() (growth, dialect.EncodeOptions) {
				return growing(2, dragoman.UserText("q"), dragoman.SystemText("s"), dragoman.UserText("more")),
					dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{MidSystem: true}}}
			},
			forgive: func(s growthStep) growthStep {
				n := len(s.short) - 1
				if n < 1 || n > len(s.long) || !s.o.Target.Caps.MidSystem || messageOf(s.short[n]).Role != "system" {
					return s
				}
				// It follows the previous content, in the message before it.
				before, system, is := messageOf(s.short[n-1]), messageOf(s.short[n]), messageOf(s.long[n-1])
				if at := len(before.Content) + len(system.Content); before.Role == is.Role && at <= len(is.Content) &&
					slices.EqualFunc(system.Content, is.Content[len(before.Content):at], equal) {
					s.short = s.short[:n]
				}
				return s
			},
		},
		{
			starts: "a late duplicate result",
			shows: func() (growth, dialect.EncodeOptions) {
				return growing(3, dragoman.UserText("q"), crosstest.Message(dragoman.RoleAssistant, callOf("1")), dragoman.ToolResults(resultOf("1", "r")), dragoman.ToolResults(resultOf("1", "late"))), dialect.EncodeOptions{}
			},
			forgive: func(s growthStep) growthStep {
				late := map[any]bool{}
				for _, m := range s.req.Messages[s.n:] {
					for _, p := range m.Parts {
						if res, ok := p.(*dragoman.ToolResult); ok {
							late[res.CallID] = true
						}
					}
				}
				return s.forgiveBlocks(func(_ int, was, is json.RawMessage) bool {
					id := fields(was)["tool_use_id"]
					return late[id] && id == fields(is)["tool_use_id"]
				})
			},
		},
		{
			starts: "white space at the end of an assistant message",
			shows: func() (growth, dialect.EncodeOptions) {
				return growing(2, dragoman.UserText("q"), dragoman.AssistantText("a \n"), dragoman.UserText("more")), dialect.EncodeOptions{}
			},
			forgive: func(s growthStep) growthStep {
				was, _, _ := s.last()
				return s.forgiveBlocks(func(i int, cut, whole json.RawMessage) bool {
					a, b := fields(cut), fields(whole)
					if text, ok := b["text"].(string); ok {
						b["text"] = strings.TrimRightFunc(text, unicode.IsSpace)
					}
					return was.Role == "assistant" && i == len(was.Content)-1 && reflect.DeepEqual(a, b)
				})
			},
		},
	},
}

// assistantGains is the exception of wire formats with a single content string for each
// assistant turn.
var assistantGains = growthException{
	starts: "an assistant message that ends the list gains text and calls",
	shows: func() (growth, dialect.EncodeOptions) {
		return growing(2, dragoman.UserText("q"), dragoman.AssistantText("a"), crosstest.Message(dragoman.RoleAssistant, &dragoman.Text{Text: "b"}, callOf("1")), dragoman.ToolResults(resultOf("1", "r"))), dialect.EncodeOptions{}
	},
	forgive: func(s growthStep) growthStep {
		if was, is, ok := s.last(); ok && was.Role == "assistant" && is.Role == "assistant" {
			s.short = append(slices.Clone(s.short[:len(s.short)-1]), s.long[len(s.short)-1])
		}
		return s
	},
}

// message holds the fields of a list element that the exceptions need. String
// content is not read.
type message struct {
	Role    string
	Content []json.RawMessage
}

func messageOf(el json.RawMessage) message {
	var m struct {
		Role           string
		Content, Parts []json.RawMessage // Gemini has parts
	}
	_ = json.Unmarshal(el, &m)
	return message{m.Role, append(m.Content, m.Parts...)}
}

// fields decodes an object.
func fields(raw json.RawMessage) (m map[string]any) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	_ = dec.Decode(&m)
	return m
}

func equal(a, b json.RawMessage) bool { return bytes.Equal(a, b) }

// last returns the previously last element, before and after the step.
func (s growthStep) last() (was, is message, ok bool) {
	n := len(s.short) - 1
	if n < 0 || n >= len(s.long) {
		return was, is, false
	}
	return messageOf(s.short[n]), messageOf(s.long[n]), true
}

// forgiveBlocks removes changes of single blocks from the previously last
// element.
func (s growthStep) forgiveBlocks(forgive func(i int, was, is json.RawMessage) bool) growthStep {
	was, is, ok := s.last()
	if !ok || was.Role != is.Role || len(was.Content) > len(is.Content) {
		return s
	}
	forgiven := false
	for i, b := range was.Content {
		if !equal(b, is.Content[i]) && forgive(i, b, is.Content[i]) {
			was.Content[i], forgiven = is.Content[i], true
		}
	}
	if forgiven {
		n := len(s.short) - 1
		s.short = append(slices.Clone(s.short[:n]), withBlocks(s.short[n], was.Content))
	}
	return s
}

// withBlocks returns an element with its blocks replaced.
func withBlocks(el json.RawMessage, blocks []json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(el, &m)
	list := make([][]byte, len(blocks))
	for i, b := range blocks {
		list[i] = b
	}
	member := "content"
	if m["parts"] != nil {
		member = "parts"
	}
	m[member] = slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]"))
	var pairs [][]byte
	for _, key := range slices.Sorted(maps.Keys(m)) {
		quoted, _ := json.Marshal(key)
		pairs = append(pairs, slices.Concat(quoted, []byte(":"), m[key]))
	}
	return slices.Concat([]byte("{"), bytes.Join(pairs, []byte(",")), []byte("}"))
}

// fiveMarkers returns a conversation with one cache breakpoint too many.
func fiveMarkers() (growth, dialect.EncodeOptions) {
	var ms []dragoman.Message
	for range 5 {
		q := dragoman.UserText("q")
		q.Cache = &dragoman.CacheHint{}
		ms = append(ms, q, dragoman.AssistantText("a"))
	}
	return growing(8, ms...), dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{CacheBreakpoints: true}}}
}

// forgiveMarkers removes the markers of every element if the request has too many.
// A block that loses its marker also loses its native spelling.
func forgiveMarkers(s growthStep) growthStep {
	if markers(s.req) <= 4 {
		return s
	}
	without := func(els []json.RawMessage) []json.RawMessage {
		out := make([]json.RawMessage, len(els))
		for i, el := range els {
			out[i], _ = json.Marshal(unmark(fields(el)))
		}
		return out
	}
	s.short, s.long = without(s.short), without(s.long)
	return s
}

func unmark(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "cache_control")
		delete(v, "prompt_cache_breakpoint")
		for _, member := range v {
			unmark(member)
		}
	case []any:
		for _, el := range v {
			unmark(el)
		}
	}
	return v
}

// markers counts the cache breakpoints of a request.
func markers(req *dragoman.Request) int {
	n := 0
	count := func(hint *dragoman.CacheHint) {
		if hint != nil {
			n++
		}
	}
	count(req.Cache)
	for i := range req.Tools {
		count(req.Tools[i].Cache)
	}
	hints(req.Instructions, count)
	for i := range req.Messages {
		count(req.Messages[i].Cache)
		hints(req.Messages[i].Parts, count)
	}
	return n
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

func TestGrowthExceptionsOfLimitsOccur(t *testing.T) {
	for _, c := range crosstest.Codecs {
		t.Run(string(c.Dialect()), func(t *testing.T) {
			exceptions := growthExceptions[c.Dialect()]
			for _, text := range c.Limits().GrowthExceptions {
				if !slices.ContainsFunc(exceptions, func(e growthException) bool { return strings.HasPrefix(text, e.starts) }) {
					t.Errorf("the limits list an exception that no test shows: %q", text)
				}
			}
			for _, e := range exceptions {
				if !slices.ContainsFunc(c.Limits().GrowthExceptions, func(text string) bool { return strings.HasPrefix(text, e.starts) }) {
					t.Errorf("the limits do not list %q", e.starts)
				}
				g, o := e.shows()
				step, err := g.encode(c, o)
				if err != nil {
					t.Fatal(err)
				}
				if step.wrong() == "" {
					t.Errorf("%q does not occur: remove it", e.starts)
				}
				for _, other := range exceptions {
					if right := step.wrongExcept([]growthException{other}) == ""; right != (other.starts == e.starts) {
						t.Errorf("%q also covers the example of %q: %v\n%s", other.starts, e.starts, right, step.wrong())
					}
				}
			}
		})
	}
}
