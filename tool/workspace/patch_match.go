package workspace

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// textLine is a line of a file: its text and its line ending.
type textLine struct{ text, end string }

// splitLines splits a file into lines. Joined, they are the same bytes.
func splitLines(data []byte) []textLine {
	var lines []textLine
	for l := range strings.Lines(string(data)) {
		text, end := strings.CutSuffix(l, "\n")
		line := textLine{text: text}
		if end {
			line.end = "\n"
			if t, cr := strings.CutSuffix(text, "\r"); cr {
				line = textLine{text: t, end: "\r\n"}
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// lineEnd returns the line ending for added lines: the one that all other lines have, or "\n".
func lineEnd(lines []textLine) string {
	windows := false
	for _, l := range lines {
		if l.end == "\n" {
			return "\n"
		}
		windows = windows || l.end == "\r\n"
	}
	if windows {
		return "\r\n"
	}
	return "\n"
}

// applyHunks applies hunks to the content of a file. Lines that a patch keeps do not change by
// a single byte.
func applyHunks(ctx context.Context, rel string, data []byte, hunks []hunk) ([]byte, error) {
	lines := splitLines(data)
	end := lineEnd(lines)
	var out []textLine
	done := 0 // lines before this one are in out
	for i := range hunks {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		h := &hunks[i]
		at, err := h.find(ctx, rel, lines, done)
		if err != nil {
			return nil, err
		}
		out = append(out, lines[done:at]...)
		done = at
		for _, l := range h.lines {
			switch l.op {
			case '+':
				out = append(out, textLine{l.text, end})
			case ' ':
				out = append(out, lines[done])
				done++
			default:
				done++
			}
		}
	}
	out = append(out, lines[done:]...)
	var b bytes.Buffer
	for i, l := range out {
		if l.end == "" && i < len(out)-1 {
			l.end = end // it was the last line of the file and no longer is
		}
		b.WriteString(l.text)
		b.WriteString(l.end)
	}
	return b.Bytes(), nil
}

// oldLines returns the lines that the file must contain: those kept and those removed.
func (h *hunk) oldLines() []string {
	var old []string
	for _, l := range h.lines {
		if l.op != '+' {
			old = append(old, l.text)
		}
	}
	return old
}

func (h *hunk) errorf(format string, args ...any) error {
	return patchError{h.line, fmt.Sprintf(format, args...)}
}

// find returns the line at which a hunk begins, at or after from.
func (h *hunk) find(ctx context.Context, rel string, lines []textLine, from int) (int, error) {
	after := from // the first line after the anchors
	for _, a := range h.anchors {
		at, err := h.anchor(rel, lines, after, a)
		if err != nil {
			return 0, err
		}
		from, after = at, at+1 // a hunk may repeat its anchor as its first line
	}
	old := h.oldLines()
	switch {
	case len(old) == 0 && h.eof:
		return len(lines), nil
	case len(old) == 0 && len(h.anchors) > 0:
		return after, nil
	case len(old) == 0 && len(lines) == 0:
		return 0, nil
	case len(old) == 0:
		return 0, h.errorf("nothing says where in %s these lines go: add unchanged lines around them, or \"@@ \" and the line before them, or %q", quoteShort(rel), endOfFile)
	}
	for _, same := range [...]func(a, b string) bool{equalLines, equalExceptTrailingSpace} {
		found := h.matches(ctx, lines, from, old, same)
		switch {
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case len(found) == 0:
			continue
		case len(found) > 1 && len(h.anchors) == 0:
			return 0, h.errorf("the lines of this hunk are in %s %d times, at lines %s: add more unchanged lines, or \"@@ \" and a line that stands before them", quoteShort(rel), len(found), numbers(found))
		}
		return found[0], nil
	}
	return 0, h.missing(ctx, rel, lines, from, old)
}

func equalLines(a, b string) bool { return a == b }

// equalExceptTrailingSpace ignores spaces and tabs at the end of a line, which models do not
// see.
func equalExceptTrailingSpace(a, b string) bool {
	return strings.TrimRight(a, " \t\r") == strings.TrimRight(b, " \t\r")
}

// searchCanceled reports whether ctx has ended. Files and hunks that repeat one line make a search
// long, and it blocks other changes. It is called for each line and checks ctx only now and
// then.
func searchCanceled(ctx context.Context, at int) bool {
	const every = 64
	return at%every == 0 && ctx.Err() != nil
}

// matches returns all places that contain the old lines.
func (h *hunk) matches(ctx context.Context, lines []textLine, from int, old []string, same func(a, b string) bool) []int {
	var found []int
	for at := from; at+len(old) <= len(lines) && !searchCanceled(ctx, at); at++ {
		if h.eof && at+len(old) != len(lines) {
			continue
		}
		if matching(lines[at:], old, same) == len(old) {
			found = append(found, at)
		}
	}
	return found
}

// matching returns the number of equal lines at the beginning.
func matching(lines []textLine, old []string, same func(a, b string) bool) int {
	for i, want := range old {
		if i >= len(lines) || !same(lines[i].text, want) {
			return i
		}
	}
	return len(old)
}

// anchor finds the only line that an @@ line names.
func (h *hunk) anchor(rel string, lines []textLine, from int, text string) (int, error) {
	for _, same := range [...]func(a, b string) bool{equalLines, equalExceptTrailingSpace, equalExceptSpace} {
		var found []int
		for i := from; i < len(lines); i++ {
			if same(lines[i].text, text) {
				found = append(found, i)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return 0, h.errorf("%s has the line of this @@, %s, %d times, at lines %s: use a line that occurs only once", quoteShort(rel), quoteShort(text), len(found), numbers(found))
		}
	}
	where := ""
	if from > 0 {
		where = fmt.Sprintf(" after line %d", from)
	}
	return 0, h.errorf("%s has no line%s that equals %s, the line after @@: it must be a whole line of the file", quoteShort(rel), where, quoteShort(text))
}

// equalExceptSpace ignores leading and trailing space. This is enough to find an anchor,
// because its text is not written.
func equalExceptSpace(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }

// missing returns the error for a hunk that was not found: the place that matches best, and
// the first difference.
func (h *hunk) missing(ctx context.Context, rel string, lines []textLine, from int, old []string) error {
	if h.eof && matchesAnywhere(ctx, lines, from, old) {
		return h.errorf("the lines of this hunk are in %s, but not at its end, which %q requires", quoteShort(rel), endOfFile)
	}
	best, at := 0, -1
	for i := from; i < len(lines) && !searchCanceled(ctx, i); i++ {
		if n := matching(lines[i:], old, equalExceptTrailingSpace); n > best {
			best, at = n, i
		}
	}
	where := ""
	if from > 0 {
		where = fmt.Sprintf(" after line %d", from)
	}
	if at < 0 {
		return h.errorf("%s has no line%s that equals %s, the first line of this hunk: read the file again", quoteShort(rel), where, quoteShort(old[0]))
	}
	found := "it ends there"
	if at+best < len(lines) {
		found = "it has " + quoteShort(lines[at+best].text)
	}
	return h.errorf("%s does not have the lines of this hunk%s; nearest is line %d, but in line %d, where the hunk has %s, %s",
		quoteShort(rel), where, at+1, at+best+1, quoteShort(old[best]), found)
}

func matchesAnywhere(ctx context.Context, lines []textLine, from int, old []string) bool {
	return len((&hunk{}).matches(ctx, lines, from, old, equalExceptTrailingSpace)) > 0
}

// numbers formats line numbers from 1, only the first few.
func numbers(found []int) string {
	const most = 5
	var s []string
	for _, at := range found[:min(len(found), most)] {
		s = append(s, strconv.Itoa(at+1))
	}
	if len(found) > most {
		s = append(s, "…")
	}
	return strings.Join(slices.Clip(s), ", ")
}
