// Package rulecheck checks encoded requests like their APIs do: from the bytes alone, by the
// rules of the wire reference. It shares no code with the encoders that it checks.
//
//	for _, v := range rulecheck.Request(dialectname.Anthropic, body, rulecheck.Options{}) {
//		t.Error(v)
//	}
//
// It knows the rules of a conversation: pairing, order and grouping of calls and results, ids,
// names, roles, and content that must not be empty. It accepts unknown block types, items and
// fields.
package rulecheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// Options selects the rules that depend on a model. The zero value selects those of a
// dialect's current models.
type Options struct {
	// NoSignatures: the model does not require signatures on calls (Gemini before 3).
	NoSignatures bool
	// NoPrefill: the conversation must not end with an assistant message.
	NoPrefill bool
	// MidSystem: the model accepts system messages inside the conversation.
	MidSystem bool
}

// Violation is one broken rule.
type Violation struct {
	// Path is the JSON pointer of the place in the request.
	Path string
	Rule string
}

func (v Violation) String() string { return v.Path + ": " + v.Rule }

// Request checks the body of a request and returns the broken rules, in the order of their
// paths.
func Request(d dragoman.Dialect, body []byte, o Options) []Violation {
	c := &checker{o: o}
	root, err := read(body)
	if err != nil {
		c.bad("", "not JSON: %v", err)
		return c.found
	}
	req, ok := root.(map[string]any)
	if !ok {
		c.bad("", "not an object")
		return c.found
	}
	switch d {
	case dialectname.OpenAIChat:
		c.chat(req)
	case dialectname.OpenAIResponses:
		c.responses(req)
	case dialectname.Anthropic:
		c.anthropic(req)
	case dialectname.Gemini:
		c.gemini(req)
	case dialectname.Ollama:
		c.ollama(req)
	case dialectname.Bedrock:
		c.bedrock(req)
	case "cohere.chat":
		c.cohere(req)
	default:
		c.bad("", "no rules for dialect %s", d)
	}
	return c.found
}

// read parses one JSON value. Numbers keep their digits.
func read(body []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err = dec.Decode(&v); err == nil && dec.More() {
		err = errors.New("more than one value")
	}
	return v, err
}

type checker struct {
	o     Options
	found []Violation
}

func (c *checker) bad(path, format string, args ...any) {
	c.found = append(c.found, Violation{path, fmt.Sprintf(format, args...)})
}

// object, list and text return a value of one type, and report any other type.
func (c *checker) object(path string, v any) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		c.bad(path, "want an object, have %T", v)
	}
	return m
}

func (c *checker) list(path string, v any) []any {
	l, ok := v.([]any)
	if !ok {
		c.bad(path, "want a list, have %T", v)
	}
	return l
}

func (c *checker) text(path string, v any) string {
	s, ok := v.(string)
	if !ok {
		c.bad(path, "want a string, have %T", v)
	}
	return s
}

// str returns a string field, or "".
func str(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func has(m map[string]any, key string) bool { return m[key] != nil }

func at(path string, i int) string { return fmt.Sprintf("%s/%d", path, i) }

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func (c *checker) match(path, what, s string, rule *regexp.Regexp, most int) {
	if !rule.MatchString(s) || most > 0 && len(s) > most {
		c.bad(path, "%s %.80q does not match %s with at most %d characters", what, s, rule, most)
	}
}

// jsonText checks a text that must be JSON.
func (c *checker) jsonText(path, text string) {
	if _, err := read([]byte(text)); err != nil {
		c.bad(path, "arguments %.80q are not valid JSON: %v", text, err)
	}
}

// fetchable checks a URL that the target's server must be able to fetch. It cannot read the
// storage of another provider. own lists the prefixes of the target's own storage.
func (c *checker) fetchable(path, url string, own ...string) {
	for _, prefix := range own {
		if strings.HasPrefix(url, prefix) {
			return
		}
	}
	scheme, _, _ := strings.Cut(url, ":")
	switch {
	case strings.Contains(url, "//generativelanguage.googleapis.com/"):
		c.bad(path, "a file in the storage of Gemini: %.80q", url)
	case scheme != "http" && scheme != "https" && scheme != "data":
		c.bad(path, "%.80q cannot be fetched", url)
	}
}

// roleTurn is one turn of a conversation, for the rule of budget.
type roleTurn struct {
	path string
	role string
	// kinds has a letter for each block: 't'hinking, 'c'all, 'r'esult, or 'e' for others.
	kinds string
}

// budget checks that a model with a thinking budget finds thinking before the calls whose
// results are in the last turn: in the turn with the calls, or in the first turn of the loop.
func (c *checker) budget(thinking any, turns []roleTurn) {
	t, _ := thinking.(map[string]any)
	i := len(turns) - 2
	if str(t, "type") != "enabled" || i < 0 || !strings.Contains(turns[i+1].kinds, "r") || !strings.Contains(turns[i].kinds, "c") {
		return
	}
	first := i
	for first >= 2 && strings.Trim(turns[first-1].kinds, "r") == "" && strings.Contains(turns[first-2].kinds, "c") {
		first -= 2
	}
	if !strings.HasPrefix(turns[i].kinds, "t") && !strings.HasPrefix(turns[first].kinds, "t") {
		c.bad(turns[i].path, "a thinking budget, but no thinking before the calls with results")
	}
}

// addBlock adds a block to the turns of a conversation.
func addBlock(turns []roleTurn, path, role string, kind byte) []roleTurn {
	if n := len(turns); n == 0 || turns[n-1].role != role {
		turns = append(turns, roleTurn{path: path, role: role})
	}
	turns[len(turns)-1].kinds += string(kind)
	return turns
}

// batch holds the calls that wait for results.
type batch struct {
	path  string
	ids   []string
	names map[string]string
	open  map[string]bool
}

func newBatch(path string) *batch {
	return &batch{path: path, names: map[string]string{}, open: map[string]bool{}}
}

func (c *checker) openCalls(b *batch, path, id, name string) {
	if id == "" {
		c.bad(path, "a call without an id")
	}
	if _, dup := b.names[id]; dup {
		c.bad(path, "duplicate call id %.60q in a turn", id)
	}
	b.ids = append(b.ids, id)
	b.names[id] = name
	b.open[id] = true
}

// checkResults checks that a result belongs to a pending call.
func (c *checker) checkResults(b *batch, path, id string) {
	switch {
	case b == nil:
		c.bad(path, "a result of %.60q without pending calls", id)
	case !b.open[id]:
		if _, known := b.names[id]; known {
			c.bad(path, "duplicate result of %.60q", id)
		} else {
			c.bad(path, "a result of %.60q, which is not a call of the previous turn", id)
		}
	default:
		b.open[id] = false
	}
}

// closeCalls checks that no call is pending.
func (c *checker) closeCalls(b *batch) {
	if b == nil {
		return
	}
	for _, id := range b.ids {
		if b.open[id] {
			c.bad(b.path, "call %.60q has no result directly after it", id)
		}
	}
}
