package openairesponses

import (
	"fmt"
	"strings"
	"testing"
)

// textStream returns the stream of a message whose parts have the given content indexes. The
// content of the final item is final, or the same texts in order if final is empty.
func textStream(final string, parts ...struct {
	index int
	text  string
},
) []byte {
	out := []string{created, added(0, `{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}`)}
	var content []string
	for _, p := range parts {
		at := fmt.Sprintf(`"output_index":0,"item_id":"msg_1","content_index":%d`, p.index)
		out = append(out, fmt.Sprintf(`{"type":"response.content_part.added",%s,"part":{"type":"output_text","text":"","annotations":[]}}`, at))
		for _, fragment := range strings.SplitAfter(p.text, " ") {
			out = append(out, fmt.Sprintf(`{"type":"response.output_text.delta",%s,"delta":%q}`, at, fragment))
		}
		out = append(out, fmt.Sprintf(`{"type":"response.output_text.done",%s,"text":%q}`, at, p.text))
		content = append(content, fmt.Sprintf(`{"type":"output_text","text":%q,"annotations":[]}`, p.text))
	}
	if final == "" {
		final = strings.Join(content, ",")
	}
	item := `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[` + final + `]}`
	return events(append(out, done(0, item), strings.Replace(completed, `"output":[]`, `"output":[`+item+`]`, 1))...)
}

// Some servers number the parts of a message from 1, or leave gaps.
func TestContentIndexesMayStartAtOneOrHaveGaps(t *testing.T) {
	type part = struct {
		index int
		text  string
	}
	for about, tc := range map[string]struct {
		final string
		parts []part
		want  string
	}{
		"from 0":     {"", []part{{0, "Hello there"}}, "Hello there"},
		"from 1":     {"", []part{{1, "Hello there"}}, "Hello there"},
		"two from 1": {"", []part{{1, "Hello "}, {2, "there"}}, "Hello there"},
		"gap":        {"", []part{{0, "Hello "}, {5, "there"}}, "Hello there"},
		"from 1, one part not streamed": {
			`{"type":"output_text","text":"Hello ","annotations":[]},{"type":"output_text","text":"there","annotations":[]}`, []part{{1, "Hello "}}, "Hello there",
		},
	} {
		resp, _, _ := run(t, textStream(tc.final, tc.parts...))
		var texts []string
		for _, p := range resp.Output[0].Parts {
			texts = append(texts, textOf(p))
		}
		got := strings.Join(strings.Fields(strings.Join(texts, " ")), " ")
		if len(resp.Output) != 1 || got != tc.want {
			t.Errorf("%s: %q, want %q", about, got, tc.want)
		}
	}
}
