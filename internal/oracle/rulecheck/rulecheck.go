// Package rulecheck judges encoded requests the way their APIs do: from the
// bytes alone, by the rules of the wire reference, without a line shared with
// the encoders it judges.
//
//	for _, v := range rulecheck.Request(dialectname.Anthropic, body, rulecheck.Options{}) {
//		t.Error(v)
//	}
//
// It knows the rules of a conversation: pairing, order and grouping of calls
// and results, ids, names, roles, and content that must not be empty. What it
// does not know (a block type, an item, a member) it lets pass.
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

// Options say which of the rules that depend on a model apply. The zero value
// applies those of a dialect's current models.
type Options struct {
	// NoSignatures: the model demands no signatures on calls (Gemini before 3).
	NoSignatures bool
	// NoPrefill: the conversation may not end with the assistant's words.
	NoPrefill bool
	// MidSystem: the model takes system messages inside the conversation.
	MidSystem bool
}

// Violation is one broken rule.
type Violation struct {
	// Path is the JSON pointer of the place in the request.
	Path string
	Rule string
}

func (v Violation) String() string { return v.Path + ": " + v.Rule }

// Request judges the body of a request and returns the rules it breaks, in the
// order of their places.
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

// read reads one JSON value; numbers of any size are numbers.
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

// object, list and text read a value of one kind, and report any other.
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

// str reads a string where there is one.
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

// jsonText checks text that must hold JSON.
func (c *checker) jsonText(path, text string) {
	if _, err := read([]byte(text)); err != nil {
		c.bad(path, "arguments %.80q are no JSON: %v", text, err)
	}
}

// fetchable checks a URL that anybody's server is to fetch from: the storage of
// another provider is closed to it. own lists what those of the target's begin
// with.
func (c *checker) fetchable(path, url string, own ...string) {
	for _, prefix := range own {
		if strings.HasPrefix(url, prefix) {
			return
		}
	}
	scheme, _, _ := strings.Cut(url, ":")
	switch {
	case strings.Contains(url, "//generativelanguage.googleapis.com/"):
		c.bad(path, "a file that Gemini stores: %.80q", url)
	case scheme != "http" && scheme != "https" && scheme != "data":
		c.bad(path, "nothing can be fetched from %.80q", url)
	}
}

// spoken is one turn of a conversation, for the rule of budget.
type spoken struct {
	path string
	role string
	// kinds of its blocks: 't'hinking, 'c'all, 'r'esult, or anything 'e'lse.
	kinds string
}

// budget checks that a model that thinks with a budget finds its thinking before
// the calls that are being answered: in the turn that made them, or in the first
// of the loop.
func (c *checker) budget(thinking any, turns []spoken) {
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
		c.bad(turns[i].path, "a thinking budget, but no thinking before the calls that are answered")
	}
}

// say adds a block to the turns of a conversation.
func say(turns []spoken, path, role string, kind byte) []spoken {
	if n := len(turns); n == 0 || turns[n-1].role != role {
		turns = append(turns, spoken{path: path, role: role})
	}
	turns[len(turns)-1].kinds += string(kind)
	return turns
}

// batch is the calls that wait for results.
type batch struct {
	path  string
	ids   []string
	names map[string]string
	open  map[string]bool
}

func newBatch(path string) *batch {
	return &batch{path: path, names: map[string]string{}, open: map[string]bool{}}
}

func (c *checker) opens(b *batch, path, id, name string) {
	if id == "" {
		c.bad(path, "a call without an id")
	}
	if _, dup := b.names[id]; dup {
		c.bad(path, "two calls of a turn have the id %.60q", id)
	}
	b.ids = append(b.ids, id)
	b.names[id] = name
	b.open[id] = true
}

// answers checks that a result belongs to a call that still waits.
func (c *checker) answers(b *batch, path, id string) {
	switch {
	case b == nil:
		c.bad(path, "a result of %.60q where no calls wait", id)
	case !b.open[id]:
		if _, known := b.names[id]; known {
			c.bad(path, "a second result of %.60q", id)
		} else {
			c.bad(path, "a result of %.60q, which is no call of the turn before", id)
		}
	default:
		b.open[id] = false
	}
}

// closes checks that no call waits any more.
func (c *checker) closes(b *batch) {
	if b == nil {
		return
	}
	for _, id := range b.ids {
		if b.open[id] {
			c.bad(b.path, "call %.60q has no result directly behind it", id)
		}
	}
}
