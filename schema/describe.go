package schema

import (
	"strings"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
)

// note appends text in brackets to a schema's description, so that the model still reads what
// the target cannot enforce.
func (l *lowerer) note(n *node, text string) {
	have, _ := n.get(kwDescription).str()
	have = strings.TrimRight(have, " ")
	add := "(" + text + ")"
	if strings.HasSuffix(have, add) {
		return
	}
	if have != "" {
		have += " "
	}
	n.set(kwDescription, dataString(have+add))
}

// describe moves a keyword into the description, or drops it if the model does not need it.
func (l *lowerer) describe(n *node, m field, why string) {
	name := m.key
	if m.kw == kwOther || keywords[m.kw].loss == dropSilently {
		l.addLossf(dragoman.Dropped, dragoman.Info, m.val, "%s: %s", name, why)
		return
	}
	l.note(n, name+": "+noteValue(m.val))
	l.addLossf(dragoman.Moved, dragoman.Warn, m.val, "%s: %s; moved to the description", name, why)
}

func noteValue(v *node) string {
	text, ok := v.str()
	if !ok {
		text = string(v.text())
	}
	return cut(text, maxNote)
}

// cut shortens s to at most max bytes, at a rune boundary.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + "…"
}
