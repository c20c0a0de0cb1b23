package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// aliasNames replaces property names that the target forbids with an allowed alias, wherever
// the name occurs (quirk A23). The alias depends on the name alone, so that it is the same in
// every request.
func (l *lowerer) aliasNames() {
	if l.p.names.max == 0 {
		return
	}
	legal, illegal := map[string]bool{}, map[string]*node{}
	l.eachProperties(func(props *node) {
		for _, m := range props.fields {
			if l.p.names.allows(m.key) {
				legal[m.key] = true
			} else if illegal[m.key] == nil {
				illegal[m.key] = m.val
			}
		}
	})
	if len(illegal) == 0 {
		return
	}
	wire := make(map[string]string, len(illegal))
	for _, name := range slices.Sorted(maps.Keys(illegal)) {
		alias := l.p.names.alias(name, legal)
		legal[alias] = true
		wire[name] = alias
		l.undo.alias(name, alias)
	}
	for _, name := range slices.Sorted(maps.Keys(illegal)) {
		l.addLossf(dragoman.Renamed, dragoman.Warn, illegal[name], "property %.80q is written as %q; arguments are translated back", name, wire[name])
	}
	l.eachProperties(func(props *node) {
		for i := range props.fields {
			if alias, ok := wire[props.fields[i].key]; ok {
				props.fields[i].key = alias
			}
		}
	})
	reach(l.root, func(n *node) { renameIn(n, wire) })
}

// eachProperties calls f for each map of properties, each once.
func (l *lowerer) eachProperties(f func(props *node)) {
	seen := map[*node]bool{}
	reach(l.root, func(n *node) {
		if p := n.get(kwProperties); n.kind == isSchema && p != nil && p.kind == isMap && !seen[p] {
			seen[p] = true
			f(p)
		}
	})
}

// renameIn writes aliases where a schema names properties of other schemas.
func renameIn(n *node, wire map[string]string) {
	if n.kind != isSchema {
		return
	}
	for i, m := range n.fields {
		switch m.kw {
		case kwRequired, kwPropertyOrdering:
			names, changed := renamed(m.val.raw, wire)
			if changed {
				n.fields[i].val = (&node{raw: names}).at(m.val)
			}
		case kwDependentRequired:
			var w jsonwire.Writer
			r := jsonwire.NewReader(m.val.raw)
			w.BeginObject()
			for key := range r.Object() {
				name := string(key)
				if alias, ok := wire[name]; ok {
					name = alias
				}
				w.QuotedKey(name)
				names, _ := renamed(r.Raw(), wire)
				w.Raw(names)
			}
			w.EndObject()
			n.fields[i].val = (&node{raw: w.Buf}).at(m.val)
		case kwDependentSchemas, kwDependencies:
			for j := range m.val.fields {
				e := &m.val.fields[j]
				if alias, ok := wire[e.key]; ok {
					e.key = alias
				}
				if e.val.kind == isData {
					if names, changed := renamed(e.val.raw, wire); changed {
						e.val = (&node{raw: names}).at(e.val)
					}
				}
			}
		}
	}
}

// renamed replaces names in a list of names.
func renamed(list []byte, wire map[string]string) (out []byte, changed bool) {
	var w jsonwire.Writer
	r := jsonwire.NewReader(list)
	w.BeginArray()
	for range r.Array() {
		name := r.String()
		if alias, ok := wire[name]; ok {
			name, changed = alias, true
		}
		w.String(name)
	}
	w.EndArray()
	if r.Err() != nil || !changed {
		return list, false
	}
	return w.Buf, true
}

// alias returns a valid name for an invalid one: its valid characters, and a hash that makes it
// unique.
func (r nameRule) alias(name string, taken map[string]bool) string {
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:])
	for size := 8; ; size += 8 {
		if size > r.max/2 {
			sum = sha256.Sum256([]byte(hash))
			hash, size = hex.EncodeToString(sum[:]), 8
		}
		if a := r.clean(name, r.max-size-1) + "_" + hash[:size]; !taken[a] {
			return a
		}
	}
}

// clean returns the valid characters of a name.
func (r nameRule) clean(name string, max int) string {
	var b strings.Builder
	if r.letterFirst && name != "" && name[0] >= '0' && name[0] <= '9' {
		b.WriteByte('_')
	}
	for i := 0; i < len(name) && b.Len() < max; i++ {
		switch c := name[i]; {
		case !r.char(c):
			if s := b.String(); s != "" && s[len(s)-1] != '_' {
				b.WriteByte('_')
			}
		case r.letterFirst && b.Len() == 0 && !isLetter(c) && c != '_':
			b.WriteByte('_')
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimRight(b.String(), "_")
}
