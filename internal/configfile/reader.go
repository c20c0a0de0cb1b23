package configfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-go/dragoman/internal/textkit"
)

// Reader converts a tree to settings, and collects all errors.
type Reader struct {
	Errs []*Error
}

// Bad records what is wrong with a value, unless the value was already refused.
func (r *Reader) Bad(n *Node, format string, args ...any) {
	if n.Kind != Wrong {
		r.Errs = append(r.Errs, &Error{Line: n.Line, Column: n.Column, Reason: fmt.Sprintf(format, args...)})
	}
}

// Want reports whether a value has a kind, and refuses it otherwise.
func (r *Reader) Want(n *Node, kind Kind, what string) bool {
	if n.Kind != kind {
		r.Bad(n, "%s: want %s, have %s", what, kind, n.Kind)
	}
	return n.Kind == kind
}

// Fields calls the function for each field of a mapping by its name, and refuses
// unknown fields. unoffered are fields that exist only to be refused with a specific
// message; the message for an unknown field does not list them.
func (r *Reader) Fields(n *Node, what string, fields map[string]func(*Node), unoffered ...string) {
	r.Each(n, what, func(key, value *Node) {
		if set := fields[key.Text]; set != nil {
			set(value)
			return
		}
		known := make([]string, 0, len(fields))
		for name := range fields {
			if !slices.Contains(unoffered, name) {
				known = append(known, name)
			}
		}
		slices.Sort(known)
		r.Bad(key, "%s: unknown field %q: known fields are %s%s", what, key.Text, strings.Join(known, ", "), textkit.Suggest(key.Text, known))
	})
}

// Each calls each for the fields of a mapping with arbitrary names, in order.
func (r *Reader) Each(n *Node, what string, each func(key, value *Node)) {
	if !r.Want(n, Map, what) {
		return
	}
	seen := map[string]bool{}
	for i, key := range n.Keys {
		if seen[key.Text] {
			r.Bad(key, "%s: duplicate field %q", what, key.Text)
			continue
		}
		seen[key.Text] = true
		each(key, n.Items[i])
	}
}

// String returns a text.
func (r *Reader) String(n *Node, what string) string {
	if !r.Want(n, String, what) {
		return ""
	}
	return n.Text
}

// Strings returns a list of texts; a single text is a list of one.
func (r *Reader) Strings(n *Node, what string) []string {
	if n.Kind == String {
		return []string{n.Text}
	}
	if !r.Want(n, List, what) {
		return nil
	}
	var out []string
	for _, item := range n.Items {
		out = append(out, r.String(item, what))
	}
	return out
}

// Bool returns true or false.
func (r *Reader) Bool(n *Node, what string) bool {
	return r.Want(n, Bool, what) && n.Text == "true"
}

// Count returns a whole number that is at least least.
func (r *Reader) Count(n *Node, what string, least int) int {
	if !r.Want(n, Number, what) {
		return 0
	}
	v, err := strconv.Atoi(n.Text)
	if err != nil || v < least {
		r.Bad(n, "%s: want a whole number of at least %d, have %s", what, least, n.Text)
		return 0
	}
	return v
}

// Duration returns a positive duration. or describes alternatives, for the error.
func (r *Reader) Duration(n *Node, what, or string) time.Duration {
	if n.Kind == Number {
		r.Bad(n, "%s: want a time with its unit%s, have the number %s; write %ss for seconds", what, or, clip(n.Text), clip(n.Text))
		return 0
	}
	d, err := time.ParseDuration(r.String(n, what))
	if n.Kind == String && (err != nil || d <= 0) {
		r.Bad(n, "%s: want a time such as 30s or 2m%s, have %q", what, or, n.Text)
	}
	return d
}
