package specs_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// violation is one place of a body that violates a schema.
type violation struct {
	path  string // pointer with * for array positions
	rule  string // rule of the schema
	value any
}

func (v violation) String() string {
	return fmt.Sprintf("%s: %s (value %.200s)", v.path, v.rule, traffic.JSONText(v.value))
}

// leaves lists the violations that explain why a body is invalid. In an anyOf it
// follows the alternative that matches best: the one whose type tag matches, or
// else the one with the deepest violations.
func leaves(doc any, e *jsonschema.ValidationError) []violation {
	if len(e.Causes) == 0 {
		return []violation{{starred(e.InstanceLocation), ruleOf(e), valueAt(doc, e.InstanceLocation)}}
	}
	if keyword(e) == "anyOf" {
		best := e.Causes[0]
		for _, c := range e.Causes[1:] {
			if better(c, best) {
				best = c
			}
		}
		return leaves(doc, best)
	}
	var out []violation
	for _, c := range e.Causes {
		out = append(out, leaves(doc, c)...)
	}
	return out
}

// better reports whether alternative a is more likely intended than b.
func better(a, b *jsonschema.ValidationError) bool {
	at, bt := rejectsTag(a), rejectsTag(b)
	if at != bt {
		return bt
	}
	return depth(a) > depth(b)
}

// rejectsTag reports whether an alternative fails because of the value's type tag
// or JSON type, so that it cannot be the intended one.
func rejectsTag(e *jsonschema.ValidationError) bool {
	at := len(e.InstanceLocation)
	var walk func(e *jsonschema.ValidationError) bool
	walk = func(e *jsonschema.ValidationError) bool {
		if len(e.Causes) == 0 {
			n := len(e.InstanceLocation)
			if n == at && keyword(e) == "type" {
				return true
			}
			last := ""
			if n > 0 {
				last = e.InstanceLocation[n-1]
			}
			return n == at+1 && (last == "type" || last == "role") && (keyword(e) == "enum" || keyword(e) == "const")
		}
		if keyword(e) == "anyOf" {
			for _, c := range e.Causes {
				if !walk(c) {
					return false
				}
			}
			return true
		}
		for _, c := range e.Causes {
			if walk(c) {
				return true
			}
		}
		return false
	}
	return walk(e)
}

func depth(e *jsonschema.ValidationError) int {
	n := len(e.InstanceLocation)
	for _, c := range e.Causes {
		n = max(n, depth(c))
	}
	return n
}

func keyword(e *jsonschema.ValidationError) string {
	path := e.ErrorKind.KeywordPath()
	if len(path) == 0 {
		return ""
	}
	return path[0]
}

func ruleOf(e *jsonschema.ValidationError) string {
	_, rule, _ := strings.Cut(e.Error(), ": ")
	if i := strings.LastIndex(e.Error(), "\n"); i >= 0 {
		_, rule, _ = strings.Cut(e.Error()[i:], ": ")
	}
	return strings.TrimSpace(rule)
}

func starred(location []string) string {
	var b strings.Builder
	for _, token := range location {
		if _, err := strconv.Atoi(token); err == nil {
			token = "*"
		}
		b.WriteString("/" + token)
	}
	return b.String()
}

func valueAt(doc any, location []string) any {
	for _, token := range location {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(v) {
				return nil
			}
			doc = v[i]
		}
	}
	return doc
}
