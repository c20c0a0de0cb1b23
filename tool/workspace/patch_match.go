package workspace

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// textLine is a line of a file: what it says and how it ends.
type textLine struct{ text, end string }

// splitLines takes a file apart. Joined again, the lines are its bytes.
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

// lineEnd is how lines that are added to a file end: as all its others do, or
// else plainly.
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

// applyHunks changes a file's content. Lines that a patch keeps are those of the
// file, to the byte.
func applyHunks(ctx context.Context, rel string, data []byte, hunks []hunk) ([]byte, error) {
	lines := splitLines(data)
	end := lineEnd(lines)
	var out []textLine
	done := 0 // lines before here are in out
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
			l.end = end // it was the last line of the file, and is not any more
		}
		b.WriteString(l.text)
		b.WriteString(l.end)
	}
	return b.Bytes(), nil
}

// old are the lines that the file has now.
func (h *hunk) old() []string {
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

// find returns the line at which a hunk begins, at from or after it.
func (h *hunk) find(ctx context.Context, rel string, lines []textLine, from int) (int, error) {
	after := from // where what follows the anchors begins
	for _, a := range h.anchors {
		at, err := h.anchor(rel, lines, after, a)
		if err != nil {
			return 0, err
		}
		from, after = at, at+1 // a hunk may repeat its anchor as its first line
	}
	old := h.old()
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
	for _, same := range [...]func(a, b string) bool{exactly, butForTheEnd} {
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

func exactly(a, b string) bool { return a == b }

// butForTheEnd forgives spaces and tabs at the end of a line, which models do not
// see.
func butForTheEnd(a, b string) bool {
	return strings.TrimRight(a, " \t\r") == strings.TrimRight(b, " \t\r")
}

// over reports whether the time for a search is. Files and hunks that repeat one line
// make it long, and nobody else changes files meanwhile. It is asked about each line,
// and looks now and then.
func over(ctx context.Context, at int) bool {
	const every = 64
	return at%every == 0 && ctx.Err() != nil
}

// matches are all places at which the old lines are.
func (h *hunk) matches(ctx context.Context, lines []textLine, from int, old []string, same func(a, b string) bool) []int {
	var found []int
	for at := from; at+len(old) <= len(lines) && !over(ctx, at); at++ {
		if h.eof && at+len(old) != len(lines) {
			continue
		}
		if matching(lines[at:], old, same) == len(old) {
			found = append(found, at)
		}
	}
	return found
}

// matching counts how many lines from the first on are the same.
func matching(lines []textLine, old []string, same func(a, b string) bool) int {
	for i, want := range old {
		if i >= len(lines) || !same(lines[i].text, want) {
			return i
		}
	}
	return len(old)
}

// anchor finds the one line that an @@ names.
func (h *hunk) anchor(rel string, lines []textLine, from int, text string) (int, error) {
	for _, same := range [...]func(a, b string) bool{exactly, butForTheEnd, butForSpaceAround} {
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

// butForSpaceAround is enough to find a place; nothing of an anchor is written.
func butForSpaceAround(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }

// missing says where the file comes nearest to what a hunk wants, and differs.
func (h *hunk) missing(ctx context.Context, rel string, lines []textLine, from int, old []string) error {
	if h.eof && matchesAnywhere(ctx, lines, from, old) {
		return h.errorf("the lines of this hunk are in %s, but not at its end, which %q requires", quoteShort(rel), endOfFile)
	}
	best, at := 0, -1
	for i := from; i < len(lines) && !over(ctx, i); i++ {
		if n := matching(lines[i:], old, butForTheEnd); n > best {
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
	return len((&hunk{}).matches(ctx, lines, from, old, butForTheEnd)) > 0
}

// numbers are lines as people count them, the first few.
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
