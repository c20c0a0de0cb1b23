package jsonwire

import "bytes"

// Camel returns the lowerCamelCase spelling of a member's name, which servers
// that speak the JSON of protocol buffers take for the same as its snake_case
// one. A name without an underscore inside is returned as it is.
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
