package policy

import (
	"slices"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// index finds the rules that a tool can match without looking at the others.
//
// What a rule says of a tool's name, namespace, annotations and tags has the same
// answer for every call of that tool, so it is asked once per tool and the answer
// is kept. It is asked of few rules: those filed under the tool's name, its
// namespace or one of its tags, and those that can be filed nowhere. What a rule
// says of a call is asked for every call.
type index struct {
	rules       []*compiled
	byName      map[string][]int32
	byNamespace map[string][]int32
	byTag       map[string][]int32
	rest        []int32

	mu   sync.RWMutex
	kept map[tool.Key]*kept
}

// kept are the rules that one tool can match. They hold for exactly this content
// of its definition.
type kept struct {
	hints hints
	tags  []string
	rules []*compiled
}

// hints are annotations in a form that compares with ==.
type hints [4]int8

func hintsOf(a dragoman.Annotations) hints {
	var h hints
	for i, b := range [...]*bool{a.ReadOnly, a.Destructive, a.Idempotent, a.OpenWorld} {
		switch {
		case isTrue(b):
			h[i] = 1
		case isFalse(b):
			h[i] = 2
		}
	}
	return h
}

// maxKept bounds the memory for tools that come and go.
const maxKept = 4096

// newIndex files the enabled rules, which are in order.
func newIndex(rules []*compiled) *index {
	x := &index{
		rules: rules, kept: map[tool.Key]*kept{},
		byName: map[string][]int32{}, byNamespace: map[string][]int32{}, byTag: map[string][]int32{},
	}
	for i, r := range rules {
		if !r.Disabled {
			x.file(int32(i), &r.When) //nolint:gosec // maxRules is far below
		}
	}
	return x
}

// file puts a rule where it is looked for.
func (x *index) file(i int32, w *When) {
	switch {
	case len(w.Tools) > 0 && !slices.ContainsFunc(w.Tools, func(p string) bool { return !isExact(p) }):
		add(x.byName, w.Tools, i)
	case len(w.Namespaces) > 0:
		add(x.byNamespace, w.Namespaces, i)
	case len(w.Tags) > 0:
		add(x.byTag, w.Tags, i)
	default:
		x.rest = append(x.rest, i)
	}
}

func add(to map[string][]int32, keys []string, i int32) {
	for _, k := range keys {
		to[k] = append(to[k], i)
	}
}

// candidates are the rules that a question's tool can match, in order.
func (x *index) candidates(q *tool.Question) []*compiled {
	h, tags := hintsOf(annotationsOf(q)), tagsOf(q)
	x.mu.RLock()
	k := x.kept[q.Key]
	x.mu.RUnlock()
	if k == nil || k.hints != h || !slices.Equal(k.tags, tags) {
		k = &kept{hints: h, tags: slices.Clone(tags), rules: x.find(q)}
		x.keep(q.Key, k)
	}
	return k.rules
}

func (x *index) keep(key tool.Key, k *kept) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.kept) >= maxKept {
		clear(x.kept)
	}
	x.kept[key] = k
}

// find asks the rules that may match a tool whether they can.
func (x *index) find(q *tool.Question) []*compiled {
	at := slices.Clone(x.rest)
	at = append(at, x.byName[q.Key.QualifiedName()]...)
	at = append(at, x.byNamespace[q.Key.Namespace]...)
	for _, t := range tagsOf(q) {
		at = append(at, x.byTag[t]...)
	}
	slices.Sort(at)
	var out []*compiled
	for _, i := range slices.Compact(at) {
		if ok, _ := x.rules[i].static(q); ok {
			out = append(out, x.rules[i])
		}
	}
	return out
}
