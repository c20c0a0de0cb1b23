package policy

import (
	"slices"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// index finds the rules that can match a tool without evaluating all rules.
// / The conditions on the name, namespace, annotations and tags of a tool give the same result
// for every call of that tool. They are evaluated once per tool, and the result is cached.
// Only few rules are evaluated: those that are indexed under the name of the tool, its
// namespace or one of its tags, and those that cannot be indexed. The conditions on the call
// itself are evaluated for every call.
type index struct {
	rules       []*compiled
	byName      map[string][]int32
	byNamespace map[string][]int32
	byTag       map[string][]int32
	unindexed   []int32

	mu    sync.RWMutex
	cache map[tool.Key]*cachedRules
}

// cachedRules holds the rules that can match one tool. It is valid only for these values of
// its definition.
type cachedRules struct {
	hints hints
	tags  []string
	rules []*compiled
}

// hints holds annotations in a form that is comparable with ==.
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

// maxCachedTools limits the cache, for hosts whose tools change often.
const maxCachedTools = 4096

// newIndex indexes the enabled rules, which must be in order.
func newIndex(rules []*compiled) *index {
	x := &index{
		rules: rules, cache: map[tool.Key]*cachedRules{},
		byName: map[string][]int32{}, byNamespace: map[string][]int32{}, byTag: map[string][]int32{},
	}
	for i, r := range rules {
		if !r.Disabled {
			x.add(int32(i), &r.When) //nolint:gosec // maxRules is far below the limit of int32
		}
	}
	return x
}

// add indexes a rule under one of its conditions.
func (x *index) add(i int32, w *When) {
	switch {
	case len(w.Tools) > 0 && !slices.ContainsFunc(w.Tools, func(p string) bool { return !isExact(p) }):
		add(x.byName, w.Tools, i)
	case len(w.Namespaces) > 0:
		add(x.byNamespace, w.Namespaces, i)
	case len(w.Tags) > 0:
		add(x.byTag, w.Tags, i)
	default:
		x.unindexed = append(x.unindexed, i)
	}
}

func add(to map[string][]int32, keys []string, i int32) {
	for _, k := range keys {
		to[k] = append(to[k], i)
	}
}

// candidates returns the rules that can match the tool of a question, in order.
func (x *index) candidates(q *tool.Question) []*compiled {
	h, tags := hintsOf(annotationsOf(q)), tagsOf(q)
	x.mu.RLock()
	k := x.cache[q.Key]
	x.mu.RUnlock()
	if k == nil || k.hints != h || !slices.Equal(k.tags, tags) {
		k = &cachedRules{hints: h, tags: slices.Clone(tags), rules: x.find(q)}
		x.store(q.Key, k)
	}
	return k.rules
}

func (x *index) store(key tool.Key, k *cachedRules) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.cache) >= maxCachedTools {
		clear(x.cache)
	}
	x.cache[key] = k
}

// find evaluates the conditions on the tool of the rules that may match it.
func (x *index) find(q *tool.Question) []*compiled {
	at := slices.Clone(x.unindexed)
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
