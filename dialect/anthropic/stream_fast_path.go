package anthropic

import (
	"bytes"
	"unicode/utf8"
)

// quickDelta reads a block delta in the form that Anthropic's own servers
// write, which is nearly all of a stream: its fields in their usual order, and
// only white space before the last brace. It returns false for any other form,
// which readAny reads, and then leaves v unchanged except for its text buffer.
func (v *wireEvent) quickDelta(data []byte) bool {
	rest, ok := bytes.CutPrefix(data, []byte(`{"type":"content_block_delta","index":`))
	if !ok {
		return false
	}
	index, rest, ok := quickIndex(rest)
	if !ok {
		return false
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(`,"delta":{"type":"`)); !ok {
		return false
	}
	kind, rest, ok := quickKind(rest)
	if !ok {
		return false
	}
	if v.text, rest, ok = quickText(v.text[:0], rest); !ok {
		return false
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(`}`)); !ok || string(skipSpace(rest)) != "}" {
		return false
	}
	v.clear([]byte("content_block_delta"))
	v.index, v.hasDelta = index, true
	v.kind = append(v.kind[:0], kind...)
	v.delta = delta{fields: v.delta.fields[:0], text: string(v.text), exact: true}
	return true
}

// skipSpace returns p after its leading JSON white space. Anthropic pads deltas with it.
func skipSpace(p []byte) []byte {
	for len(p) > 0 && (p[0] == ' ' || p[0] == '\t' || p[0] == '\r' || p[0] == '\n') {
		p = p[1:]
	}
	return p
}

// quickIndex reads a small JSON number.
func quickIndex(p []byte) (n int64, rest []byte, ok bool) {
	i := 0
	for i < len(p) && p[i] >= '0' && p[i] <= '9' {
		n = n*10 + int64(p[i]-'0')
		i++
	}
	return n, p[i:], i == 1 || i > 1 && i < 10 && p[0] != '0'
}

// quickKind reads the kind of a delta up to the opening quote of its text.
func quickKind(p []byte) (kind string, rest []byte, ok bool) {
	for _, k := range [...]struct{ kind, begins string }{
		{"input_json_delta", `input_json_delta","partial_json":"`},
		{"text_delta", `text_delta","text":"`},
		{"thinking_delta", `thinking_delta","thinking":"`},
		{"signature_delta", `signature_delta","signature":"`},
	} {
		if rest, ok := bytes.CutPrefix(p, []byte(k.begins)); ok {
			return k.kind, rest, true
		}
	}
	return "", nil, false
}

// quickText appends the text of a string, from after its opening quote, to dst.
// It returns the input after the closing quote. It does not accept \u escapes.
func quickText(dst, p []byte) (text, rest []byte, ok bool) {
	start := 0 // start of the text that is not appended yet
	ascii := true
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c >= utf8.RuneSelf:
			ascii = false
		case c == '"':
			dst = append(dst, p[start:i]...)
			return dst, p[i+1:], ascii || utf8.Valid(dst)
		case c == '\\' && i+1 < len(p):
			dst = append(dst, p[start:i]...)
			i++
			c = unescaped(p[i])
			if c == 0 {
				return dst, nil, false
			}
			dst = append(dst, c)
			start = i + 1
		case c < ' ' || c == '\\':
			return dst, nil, false
		}
	}
	return dst, nil, false
}

// unescaped returns the character for the letter after a backslash; 0 if the
// escape is not a single letter.
func unescaped(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	default:
		return 0
	}
}
