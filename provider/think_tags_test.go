package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/provider"
)

// describeParts describes the parts of a response.
func describeParts(resp *dragoman.Response) string {
	var out []string
	for _, m := range resp.Output {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				out = append(out, "text:"+p.Text)
			case *dragoman.Reasoning:
				out = append(out, "thought:"+p.Text)
			case *dragoman.ToolCall:
				out = append(out, "call:"+p.Name)
			}
		}
	}
	return strings.Join(out, "|")
}

// A stream gives the same parts as a complete response, in any fragments: here of three bytes, so
// that every tag is split.
func TestQuirkG7_ThinkTagsAreSplitOffOnRequest(t *testing.T) {
	const off, marked, open = "", "marked", "open"
	for _, tc := range []struct {
		tags string
		text string
		want string
	}{
		{off, "<think>hm</think>Yes.", "text:<think>hm</think>Yes."},
		{marked, "<think>hm</think>Yes.", "thought:hm|text:Yes."},
		{marked, "\n<think>\nhm, 2 < 3 </thin> so\n</think>\n\nYes <think>.", "thought:\nhm, 2 < 3 </thin> so\n|text:Yes <think>."},
		{marked, "<thinking>hm</thinking>Yes.", "thought:hm|text:Yes."},
		{marked, "Yes, <think>hm</think>.", "text:Yes, <think>hm</think>."},
		{marked, "<thi", "text:<thi"},
		{marked, "<thirteen>", "text:<thirteen>"},
		{marked, "<think>hm", "thought:hm"},
		{marked, "<think>hm</thi", "thought:hm</thi"},
		{marked, "<think>hm</think>", "thought:hm"},
		{marked, "<think>hm</think>\n\n", "thought:hm"},
		{marked, "<think></think>Yes.", "thought:|text:Yes."},
		{marked, "<think>let me <tool_call>{}", "thought:let me |text:<tool_call>{}"},
		{marked, strings.Repeat(" ", 65) + "<think>hm</think>", "text:" + strings.Repeat(" ", 65) + "<think>hm</think>"},
		{marked, "hm</think>Yes.", "text:hm</think>Yes."},
		{open, "hm</think>Yes.", "thought:hm|text:Yes."},
		{open, "<think>hm</think>Yes.", "thought:hm|text:Yes."},
		{open, "hm", "thought:hm"},
	} {
		for _, calls := range []bool{false, true} {
			body, want := textResponse(tc.text), tc.want
			if calls {
				body.Output[0].Parts = append(body.Output[0].Parts, callResponse(`{"city":"Oslo"}`).Output[0].Parts...)
				body.Stop.Reason = dragoman.StopToolCalls
				want += "|call:get_weather"
			}
			s := serve(t, openaichat.Codec{}, respond(body))
			c := s.client(&provider.Client{ThinkTags: tc.tags, Chunks: true})
			resp, err := c.Generate(t.Context(), newRequest())
			if err != nil || describeParts(resp) != want {
				t.Errorf("%q, %s, whole: %v %q, want %q", tc.text, tc.tags, err, describeParts(resp), want)
			}
			var whole dragoman.Collector
			var shown strings.Builder
			last := -1
			for ev, err := range c.Stream(t.Context(), newRequest()) {
				if err != nil {
					t.Fatal(err)
				}
				whole.Add(ev)
				switch ev := ev.(type) {
				case *dragoman.PartStart:
					if ev.Index != last+1 {
						t.Errorf("%q: part %d behind part %d", tc.text, ev.Index, last)
					}
					if last = ev.Index; (ev.Header != nil) != (last == 0) {
						t.Errorf("%q: the header is at part %d", tc.text, last)
					}
				case *dragoman.PartDelta:
					if ev.Kind != codes.KindToolCall {
						shown.WriteString(ev.Text)
					}
				}
			}
			resp, err = whole.Response()
			if err != nil || describeParts(resp) != want {
				t.Errorf("%q, %s, streamed: %v %q, want %q", tc.text, tc.tags, err, describeParts(resp), want)
			}
			bare := strings.NewReplacer("thought:", "", "|text:", "", "text:", "", "|call:get_weather", "").Replace(want)
			if shown.String() != bare {
				t.Errorf("%q, %s: %q was shown, want %q", tc.text, tc.tags, shown.String(), bare)
			}
		}
	}
}

// In every dialect, and if the caller leaves the stream at any event.
func TestQuirkG7_ThinkTagsAreSplitInEveryDialect(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		s := serve(t, codec, respond(textResponse("<think>hm, well</think>\nYes.")))
		c := s.client(&provider.Client{ThinkTags: "marked"})
		var kinds []string
		for ev, err := range c.Stream(t.Context(), newRequest()) {
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, fmt.Sprint(ev.Type()))
		}
		if resp, err := dragoman.Collect(c.Stream(t.Context(), newRequest())); err != nil || describeParts(resp) != "thought:hm, well|text:Yes." {
			t.Errorf("%v %q", err, describeParts(resp))
		}
		for stop := range kinds {
			n := 0
			for range c.Stream(t.Context(), newRequest()) {
				if n++; n > stop {
					break
				}
			}
			if n != stop+1 {
				t.Errorf("left at %d, told %d", stop, n)
			}
		}
		if !slices.Contains(kinds, "response_end") {
			t.Errorf("%q", kinds)
		}
	})
}

func TestQuirkG7_ConfigFileSetsThinkTags(t *testing.T) {
	c, err := provider.Parse("c.yaml", []byte("version: 1\nproviders:\n  vllm: {think_tags: open}\n"))
	if err != nil {
		t.Fatal(err)
	}
	c.Getenv = env()
	if m, err := c.Open("vllm/m"); err != nil || m.(*provider.Client).ThinkTags != "open" {
		t.Errorf("%v %v", m, err)
	}
	if _, err := provider.Parse("c.yaml", []byte("version: 1\nproviders:\n  vllm: {think_tags: closed}\n")); err == nil || !strings.Contains(err.Error(), "marked or open") {
		t.Errorf("%v", err)
	}
}
