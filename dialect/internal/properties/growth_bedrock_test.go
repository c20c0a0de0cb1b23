package properties_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/framing/eventstream"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/targets"
)

// validFrames is like validStream, for frames of the binary event stream.
func validFrames(t *rapid.T, body []byte) {
	var p eventstream.Parser
	err := p.Feed(body, func(f eventstream.Frame) error {
		validJSON(t, "a payload", f.Payload)
		return nil
	})
	if err != nil || p.Close() != nil {
		t.Fatalf("%v, %v: %q", err, p.Close(), body)
	}
}

func isCachePoint(block json.RawMessage) bool {
	m := fields(block)
	return len(m) == 1 && m["cachePoint"] != nil
}

// withoutCachePoints removes the cache points of an element.
func withoutCachePoints(el json.RawMessage) json.RawMessage {
	m := messageOf(el)
	return withBlocks(el, slices.DeleteFunc(m.Content, isCachePoint))
}

// numbered matches the name of a document that shares its name with another.
var numbered = regexp.MustCompile(`("name":"[^"]*) \(\d+\)"`)

func unnumbered(block json.RawMessage) json.RawMessage {
	return numbered.ReplaceAll(block, []byte(`$1"`))
}

// bedrockGrowth lists the exceptions of Bedrock: those of Anthropic in Bedrock's
// form, and one more.
var bedrockGrowth = []growthException{
	{starts: "cache markers", shows: fiveMarkers, forgive: func(s growthStep) growthStep {
		if markers(s.req) <= 4 {
			return s
		}
		s.short, s.long = slices.Clone(s.short), slices.Clone(s.long)
		for _, els := range [][]json.RawMessage{s.short, s.long} {
			for i, el := range els {
				els[i] = withoutCachePoints(el)
			}
		}
		return s
	}},
	{
		starts: "the cache point at the end of the prompt",
		shows: func() (growth, dialect.EncodeOptions) {
			g := growing(1, dragoman.UserText("q"), dragoman.AssistantText("a"))
			g.req.Cache = &dragoman.CacheHint{}
			return g, dialect.EncodeOptions{}
		},
		forgive: func(s growthStep) growthStep {
			n := len(s.short) - 1
			if s.req.Cache == nil || n < 0 {
				return s
			}
			m := messageOf(s.short[n])
			if last := len(m.Content) - 1; last >= 0 && isCachePoint(m.Content[last]) {
				s.short = append(slices.Clone(s.short[:n]), withBlocks(s.short[n], m.Content[:last]))
			}
			return s
		},
	},
	{
		starts: "the message synthesized to open an empty conversation",
		shows: func() (growth, dialect.EncodeOptions) {
			return growing(1, dragoman.SystemText("s"), dragoman.UserText("q")), dialect.EncodeOptions{}
		},
		forgive: func(s growthStep) growthStep {
			opening := map[string]any{"role": "user", "content": []any{map[string]any{"text": "(conversation continues)"}}}
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
			id := func(raw json.RawMessage) any {
				res, _ := fields(raw)["toolResult"].(map[string]any)
				return res["toolUseId"]
			}
			return s.forgiveBlocks(func(_ int, was, is json.RawMessage) bool {
				// Documents in the earlier result cause numbers in later documents of the same name.
				return late[id(was)] && id(was) == id(is) || len(late) > 0 && equal(unnumbered(was), unnumbered(is))
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
			return s.forgiveBlocks(func(_ int, cut, whole json.RawMessage) bool {
				a, b := fields(cut), fields(whole)
				if text, ok := b["text"].(string); ok {
					b["text"] = strings.TrimRightFunc(text, unicode.IsSpace)
				}
				return was.Role == "assistant" && reflect.DeepEqual(a, b)
			})
		},
	},
}
