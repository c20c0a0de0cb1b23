package workspace

import (
	"fmt"
	"regexp"
	"strings"
)

// patch is a parsed patch.
type patch struct{ changes []change }

type changeKind string

const (
	addFile    changeKind = "*** Add File: "
	deleteFile changeKind = "*** Delete File: "
	updateFile changeKind = "*** Update File: "
)

// Other lines of the patch format.
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	moveTo     = "*** Move to: "
	endOfFile  = "*** End of File"
)

// change is the change to one file.
type change struct {
	kind         changeKind
	path, moveTo string
	// line is the line of the patch where the change begins, from 1.
	line int
	// content holds the lines of an added file.
	content []string
	hunks   []hunk
}

// hunk is a change at one place of a file.
type hunk struct {
	line int
	// anchors are lines of the file before the place, in order.
	anchors []string
	lines   []hunkLine
	// eof reports that the last line of the hunk is the last line of the file.
	eof bool
}

// hunkLine is a kept (' '), removed ('-') or added ('+') line.
type hunkLine struct {
	op   byte
	text string
}

// patchError is a syntax error in a patch, with its line.
type patchError struct {
	line int
	msg  string
}

func (e patchError) Error() string { return fmt.Sprintf("line %d of the patch: %s", e.line, e.msg) }

// maxChanges limits the changes of a patch, because the directories of all its files are open
// while it is applied.
const maxChanges = 500

// parsePatch parses a patch. It refuses everything that is ambiguous.
func parsePatch(text string) (*patch, error) {
	p := patchParser{lines: strings.Split(text, "\n")}
	if strings.HasSuffix(p.lines[0], "\r") { // the whole patch has these line endings
		for i, l := range p.lines {
			p.lines[i] = strings.TrimSuffix(l, "\r")
		}
	}
	for len(p.lines) > 0 && strings.TrimSpace(p.lines[len(p.lines)-1]) == "" {
		p.lines = p.lines[:len(p.lines)-1]
	}
	return p.patch()
}

type patchParser struct {
	lines []string
	at    int
}

// peek returns the next line; ok is false at the end.
func (p *patchParser) peek() (string, bool) {
	if p.at < len(p.lines) {
		return p.lines[p.at], true
	}
	return "", false
}

// take consumes the next line if it is exactly want.
func (p *patchParser) take(want string) bool {
	l, ok := p.peek()
	if ok && l == want {
		p.at++
		return true
	}
	return false
}

// expected returns an error for an unexpected next line; what names the expected one.
func (p *patchParser) expected(what string) error {
	l, ok := p.peek()
	if !ok {
		return patchError{p.at + 1, "expected " + what + ", but the patch ends"}
	}
	return patchError{p.at + 1, fmt.Sprintf("expected %s, got %s", what, quoteShort(l))}
}

func (p *patchParser) patch() (*patch, error) {
	if !p.take(beginPatch) {
		return nil, p.expected(`"` + beginPatch + `"`)
	}
	out := &patch{}
	for !p.take(endPatch) {
		c, err := p.change()
		if err != nil {
			return nil, err
		}
		if out.changes = append(out.changes, c); len(out.changes) > maxChanges {
			return nil, patchError{c.line, fmt.Sprintf("a patch may change at most %d files", maxChanges)}
		}
	}
	if _, more := p.peek(); more {
		return nil, p.expected(`nothing after "` + endPatch + `"`)
	}
	if len(out.changes) == 0 {
		return nil, patchError{p.at, "the patch changes no file"}
	}
	return out, nil
}

func (p *patchParser) change() (change, error) {
	l, _ := p.peek()
	for _, kind := range [...]changeKind{addFile, deleteFile, updateFile} {
		name, ok := strings.CutPrefix(l, string(kind))
		if !ok {
			continue
		}
		c := change{kind: kind, path: strings.Trim(name, " \t"), line: p.at + 1}
		if c.path == "" {
			return c, p.expected(`a path after "` + strings.TrimSpace(string(kind)) + `"`)
		}
		p.at++
		switch kind {
		case addFile:
			return p.added(c)
		case updateFile:
			return p.update(c)
		}
		return c, nil
	}
	return change{}, p.expected(`"*** Add File: path", "*** Delete File: path", "*** Update File: path" or "` + endPatch + `"`)
}

// structural reports whether the next line is part of the patch format rather than of a file.
func (p *patchParser) structural() bool {
	l, ok := p.peek()
	return !ok || strings.HasPrefix(l, "***")
}

func (p *patchParser) added(c change) (change, error) {
	for !p.structural() {
		l, _ := p.peek()
		text, ok := strings.CutPrefix(l, "+")
		if !ok {
			return c, p.expected("a line of the new file, which begins with + (an empty line is a + alone)")
		}
		c.content = append(c.content, text)
		p.at++
	}
	return c, nil
}

func (p *patchParser) update(c change) (change, error) {
	if l, _ := p.peek(); strings.HasPrefix(l, moveTo) {
		if c.moveTo = strings.Trim(l[len(moveTo):], " \t"); c.moveTo == "" {
			return c, p.expected(`a path after "` + strings.TrimSpace(moveTo) + `"`)
		}
		p.at++
	}
	for !p.structural() {
		h, err := p.hunk()
		if err != nil {
			return c, err
		}
		c.hunks = append(c.hunks, h)
		if h.eof && !p.structural() {
			return c, p.expected(`the next file, because nothing follows "` + endOfFile + `"`)
		}
	}
	if len(c.hunks) == 0 && c.moveTo == "" {
		return c, p.expected("a hunk: lines that begin with @@, a space, - or +")
	}
	return c, nil
}

// lineNumbers matches the line numbers that other diff formats have after @@.
var lineNumbers = regexp.MustCompile(`^[-+]\d+(,\d+)? `)

func (p *patchParser) hunk() (hunk, error) {
	h := hunk{line: p.at + 1}
	for {
		l, _ := p.peek()
		if l == "@@" {
			p.at++
			continue
		}
		text, ok := strings.CutPrefix(l, "@@ ")
		switch {
		case !ok && strings.HasPrefix(l, "@@"):
			return h, p.expected(`"@@" alone, or "@@ " and a line of the file`)
		case ok && lineNumbers.MatchString(text):
			return h, p.expected(`"@@" alone, or "@@ " and a line of the file, because line numbers are not used`)
		case ok && strings.TrimSpace(text) != "":
			h.anchors = append(h.anchors, text)
		}
		if !ok {
			break
		}
		p.at++
	}
	changes := false
	for !p.structural() {
		l, _ := p.peek()
		if strings.HasPrefix(l, "@@") {
			break
		}
		line := hunkLine{op: ' '} // an empty line means an empty line of the file
		if l != "" {
			line = hunkLine{op: l[0], text: l[1:]}
		}
		if strings.IndexByte(" -+", line.op) < 0 {
			return h, p.expected("a line of a hunk, which begins with a space, - or +")
		}
		changes = changes || line.op != ' '
		h.lines = append(h.lines, line)
		p.at++
	}
	if !changes {
		return h, p.expected("a line that begins with - or +, because this hunk changes nothing")
	}
	h.eof = p.take(endOfFile)
	return h, nil
}
