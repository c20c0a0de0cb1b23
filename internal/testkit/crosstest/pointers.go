package crosstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	dragoman "github.com/dragoman-go/dragoman"
)

// CheckLossPaths fails for a loss whose pointer does not resolve in v.
func CheckLossPaths(t rapid.TB, v any, rep dragoman.Report) {
	stored, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(stored, &doc); err != nil {
		t.Fatal(err)
	}
	for i, l := range rep.Losses {
		if slices.Contains(rep.Losses[:i], l) {
			t.Errorf("duplicate loss: %s", l)
		}
		there, err := pointsTo(doc, l)
		if err != nil {
			t.Errorf("%s\n%v in %s", l, err, stored)
		}
		if l.From != "" && err == nil && !strings.Contains(flat(there), l.From) && qualified(there) != l.From {
			t.Errorf("%s\nthe original value is not at its path: %v", l, there)
		}
	}
}

// qualified returns the name of a tool or call with its namespace.
func qualified(v any) string {
	ns, _ := fieldAt(v, "namespace")
	name, _ := fieldAt(v, "name")
	return strings.TrimSpace(flat(ns)) + "." + strings.TrimSpace(flat(name))
}

// flat returns all text in a JSON value.
func flat(v any) string {
	switch v := v.(type) {
	case string:
		return v + "\n"
	case []any:
		all := ""
		for _, e := range v {
			all += flat(e)
		}
		return all
	case map[string]any:
		all := ""
		for _, e := range v {
			all += flat(e)
		}
		return all
	default:
		return ""
	}
}

// pointsTo returns the value at the pointer of a loss; nil if no field of the canonical form
// has it.
func pointsTo(doc any, l dragoman.Loss) (there any, err error) {
	if l.Path == "" {
		return doc, nil
	}
	rest, ok := strings.CutPrefix(l.Path, "/")
	if !ok {
		return nil, errors.New("not a JSON pointer")
	}
	at := ""
	for rest != "" || at == "" {
		name, after, more := strings.Cut(rest, "/")
		next, ok := fieldAt(doc, unescaped(name))
		if !ok {
			if isNativeField(doc, "/"+rest) || l.Kind == dragoman.Synthesized && !more {
				return nil, nil
			}
			return nil, fmt.Errorf("no value at %s of %q", "/"+rest, at)
		}
		doc, rest, at = next, after, at+"/"+name
	}
	return doc, nil
}

func unescaped(name string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(name) }

func fieldAt(doc any, name string) (any, bool) {
	switch doc := doc.(type) {
	case string: // native JSON; the pointer continues in it
		var inside any
		if json.Unmarshal([]byte(doc), &inside) != nil {
			return nil, false
		}
		if _, text := inside.(string); text {
			return nil, false
		}
		return fieldAt(inside, name)
	case map[string]any:
		v, ok := doc[name]
		return v, ok
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(doc) {
			return nil, false
		}
		return doc[i], true
	default:
		return nil, false
	}
}

// isNativeField reports whether an object has a native field at a pointer, or one that contains
// it.
func isNativeField(doc any, path string) bool {
	extra, _ := fieldAt(doc, "extra")
	fields, _ := fieldAt(extra, "fields")
	list, _ := fields.([]any)
	return slices.ContainsFunc(list, func(f any) bool {
		kept, _ := fieldAt(f, "path")
		s, _ := kept.(string)
		return path == s || strings.HasPrefix(path, s+"/")
	})
}
