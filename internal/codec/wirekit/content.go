package wirekit

import "github.com/dragoman-go/dragoman/internal/jsonwire"

// HasText consumes a value and reports whether it contains a non-empty string, at any
// depth. Names of fields do not count, nor do the fields in except. Codecs use it to find
// events without content.
func HasText(r *jsonwire.Reader, except ...string) (has bool) {
	switch r.Kind() {
	case '"':
		return r.String() != ""
	case '{':
		for name := range r.Object() {
			if isOneOf(name, except) {
				r.Skip()
				continue
			}
			has = HasText(r, except...) || has
		}
	case '[':
		for range r.Array() {
			has = HasText(r, except...) || has
		}
	default:
		r.Skip()
	}
	return has
}

func isOneOf(name []byte, list []string) bool {
	for _, s := range list {
		if string(name) == s {
			return true
		}
	}
	return false
}
