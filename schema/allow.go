package schema

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// keepAllowed applies the allowlist of keywords, formats and patterns to the keywords of n
// (quirks A1, A16, A17, A22, A27).
func (l *lowerer) keepAllowed(n *node) {
	if c := n.get(kwConst); c != nil && !l.p.accepts(kwConst) && l.p.accepts(kwEnum) && !n.has(kwEnum) {
		l.addLoss(dragoman.Lowered, dragoman.Info, c, "const becomes an enum of one value")
		n.del(kwConst)
		n.set(kwEnum, arrayOf([][]byte{c.raw}).at(c))
	}
	var types []string
	if l.p.formats != nil && n.has(kwFormat) {
		types = n.types()
	}
	l.removeEach(n, func(m field) (why string) {
		text := ""
		if m.kw == kwFormat || m.kw == kwPattern {
			text, _ = m.val.str()
		}
		switch {
		case m.kw == kwDescription && n == l.root:
			// liftNote handles it.
		case !l.p.acceptsAt(m.kw, n == l.root):
			why = "not supported by this target"
		case m.kw == kwFormat && !l.p.acceptsFormat(text, types):
			why = "a format that this target does not support"
		case m.kw == kwPattern && !l.p.acceptsRegexp(text):
			why = "a pattern that this target cannot parse"
		case m.kw == kwMinItems && l.p.minItemsMax > 0 && !smallCount(m.val.raw, l.p.minItemsMax):
			why = "more than this target can require"
		}
		return why
	}, func(m field, why string) {
		if isDefault(m) {
			l.addLossf(dragoman.Dropped, dragoman.Info, m.val, "%s: has no effect", m.key)
			return
		}
		if m.kw == kwAdditionalProperties && (m.val.kind == isBool || m.val.empty()) {
			l.addLoss(dragoman.Dropped, dragoman.Info, m.val, "additionalProperties: this target cannot restrict other properties")
			return
		}
		l.describe(n, m, why)
	})
}

// liftNote moves the root's description to the tool's own description.
func (l *lowerer) liftNote() {
	d := l.root.get(kwDescription)
	if d == nil || l.p.acceptsAt(kwDescription, true) {
		return
	}
	l.rootNote, _ = d.str()
	l.root.del(kwDescription)
	l.addLoss(dragoman.Moved, dragoman.Info, d, "the target accepts no description at the root; moved to the description of the tool")
}

func smallCount(raw []byte, max int) bool {
	return len(raw) == 1 && raw[0] >= '0' && int(raw[0]-'0') <= max
}

// isDefault reports whether the value of a keyword is its default.
func isDefault(m field) bool {
	if m.val.kind != isData {
		return false
	}
	switch m.kw {
	case kwUniqueItems, kwDeprecated:
		return string(m.val.raw) == "false"
	case kwMinLength, kwMinProperties, kwMinItems:
		return string(m.val.raw) == "0"
	default:
		return false
	}
}

// plainRegexp reports whether a pattern has no look-around, back references or inline flags.
func plainRegexp(s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i < len(s) && (s[i] >= '1' && s[i] <= '9' || s[i] == 'k') {
				return false
			}
		case '(':
			if strings.HasPrefix(s[i:], "(?") && !strings.HasPrefix(s[i:], "(?:") {
				return false
			}
		}
	}
	return true
}
