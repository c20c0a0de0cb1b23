package jsonwire

import "bytes"

// Camel returns the lowerCamelCase spelling of a field name. Servers that use the JSON
// mapping of protocol buffers treat it the same as the snake_case spelling. A name
// without an inner underscore is returned unchanged.
func Camel(name []byte) []byte {
	if bytes.IndexByte(name, '_') <= 0 { // a leading one is part of the name
		return name
	}
	out := make([]byte, 0, len(name))
	up := false
	for i, c := range name {
		switch {
		case c == '_' && i > 0:
			up = true
		case up && 'a' <= c && c <= 'z':
			out, up = append(out, c-'a'+'A'), false
		default:
			out, up = append(out, c), false
		}
	}
	return out
}
