package strictupstream

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shape defines the fields that a JSON value may have. A nil shape allows everything. Lists
// are checked element by element. Values that are neither lists nor objects are allowed,
// because a shape defines only names.
type shape struct {
	// fields are the names that an object may have, each with the shape of its value.
	fields map[string]*shape
	// tag is the field that selects one of variants. An object with another tag may have any
	// fields; see [shape.unknownTag].
	tag      string
	variants map[string]*shape
	// others are tags that are allowed besides those of variants; nil allows every tag.
	others []string
	// values is the shape of every value of an object that has names of its own.
	values *shape
}

// names returns a closed object with the given names, separated by spaces.
func names(list string, inner map[string]*shape) *shape {
	s := &shape{fields: map[string]*shape{}}
	for _, name := range strings.Fields(list) {
		s.fields[name] = inner[name]
	}
	for name := range inner {
		if _, ok := s.fields[name]; !ok {
			panic("strictupstream: " + name + " has a shape and is not allowed")
		}
	}
	return s
}

func union(tag string, variants map[string]*shape) *shape {
	return &shape{tag: tag, variants: variants}
}

// closedUnion returns a union that allows only the tags of variants and others. others is
// separated by spaces.
func closedUnion(tag string, variants map[string]*shape, others string) *shape {
	return &shape{tag: tag, variants: variants, others: strings.Fields(others)}
}

// unknownTag returns the place and the tag of the first object in a closed union whose tag
// is unknown; nil if there is none.
func (s *shape) unknownTag(v any, path []any) (at []any, tag string) {
	if s == nil {
		return nil, ""
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if at, tag = s.unknownTag(e, append(slices.Clone(path), i)); at != nil {
				return at, tag
			}
		}
	case map[string]any:
		if s.tag != "" {
			tag = str(v, s.tag)
			inner, known := s.variants[tag]
			if !known && s.others != nil && !slices.Contains(s.others, tag) {
				return append(slices.Clone(path), s.tag), tag
			}
			return inner.unknownTag(v, path)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if at, tag = s.fields[key].unknownTag(v[key], append(slices.Clone(path), key)); at != nil {
				return at, tag
			}
		}
	}
	return nil, ""
}

// unknown returns the place of the first field that a shape does not have, in the order of
// the names; nil if there is none. With camel, snake_case names count as lowerCamelCase.
func (s *shape) unknown(v any, camel bool) []any { return s.find(v, nil, camel) }

func (s *shape) find(v any, path []any, camel bool) []any {
	if s == nil {
		return nil
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if at := s.find(e, append(slices.Clone(path), i), camel); at != nil {
				return at
			}
		}
	case map[string]any:
		return s.findIn(v, path, camel)
	}
	return nil
}

func (s *shape) findIn(m map[string]any, path []any, camel bool) []any {
	if s.tag != "" {
		return s.variants[str(m, s.tag)].find(m, path, camel)
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		here := append(slices.Clone(path), key)
		if s.values != nil {
			if at := s.values.find(m[key], here, camel); at != nil {
				return at
			}
			continue
		}
		name := key
		if camel {
			name = lowerCamel(key)
		}
		inner, ok := s.fields[name]
		if !ok {
			return here
		}
		if at := inner.find(m[key], here, camel); at != nil {
			return at
		}
	}
	return nil
}

func lowerCamel(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

// brackets writes a place as OpenAI does: messages[0].name.
func brackets(path []any) string {
	var b strings.Builder
	for _, p := range path {
		switch p := p.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", p)
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(p)
		}
	}
	return b.String()
}

// dots writes a place as Anthropic does: messages.0.content.1.
func dots(path []any) string {
	parts := make([]string, len(path))
	for i, p := range path {
		parts[i] = fmt.Sprint(p)
	}
	return strings.Join(parts, ".")
}

// The helpers below read values of one kind, and the zero value for any other.

func str(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func obj(m map[string]any, key string) map[string]any {
	o, _ := m[key].(map[string]any)
	return o
}

func list(m map[string]any, key string) []any {
	l, _ := m[key].([]any)
	return l
}

func objects(m map[string]any, key string) []map[string]any {
	var out []map[string]any
	for _, v := range list(m, key) {
		o, _ := v.(map[string]any)
		out = append(out, o)
	}
	return out
}

// set reports whether a field is there and not null.
func set(m map[string]any, key string) bool { return m[key] != nil }
