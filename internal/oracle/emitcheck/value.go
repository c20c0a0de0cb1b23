package emitcheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// check stores the first broken rule, with its place.
type check struct {
	// where is the event or line; empty for a whole body.
	where string
	// passThrough: rules about values that a codec passes through from another server do not apply.
	passThrough bool
	err         error
}

func (c *check) bad(at, rule string, args ...any) {
	if c.err != nil {
		return
	}
	place := c.where
	if at != "" {
		if place != "" {
			place += " "
		}
		place += at
	}
	if place != "" {
		place += ": "
	}
	c.err = fmt.Errorf("%s%s", place, fmt.Sprintf(rule, args...))
}

// root parses a body or the data of an event, which must be an object.
func (c *check) root(data []byte) object {
	v, err := parse(data, jsontext.AllowDuplicateNames(c.passThrough), jsontext.AllowInvalidUTF8(c.passThrough))
	if err != nil {
		c.bad("", "not JSON: %v", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		c.bad("", "not an object")
	}
	return object{c: c, m: m}
}

// parse parses exactly one JSON value. Names are unique unless an option allows duplicates,
// text is UTF-8, and numbers keep their digits.
func parse(data []byte, o ...jsontext.Options) (any, error) {
	d := jsontext.NewDecoder(bytes.NewReader(data), o...)
	v, err := value(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); err != io.EOF { //nolint:errorlint // jsontext returns io.EOF itself
		return nil, fmt.Errorf("more data after the value")
	}
	return v, nil
}

func value(d *jsontext.Decoder) (any, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return t.Bool(), nil
	case '"':
		return t.String(), nil
	case '0':
		return json.Number(t.String()), nil
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			v, err := value(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.ReadToken()
		return list, err
	default: // '{'
		m := map[string]any{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			if m[key], err = value(d); err != nil {
				return nil, err
			}
		}
		_, err = d.ReadToken()
		return m, err
	}
}

// isObject reports whether a text is one JSON object.
func isObject(text string) bool {
	v, err := parse([]byte(text))
	_, ok := v.(map[string]any)
	return err == nil && ok
}

// object is a JSON object and its path. Reads from a missing object return zero values; the
// check already has the broken rule.
type object struct {
	c  *check
	at string
	m  map[string]any
}

func (o object) bad(key, rule string, args ...any) {
	at := o.at
	if key != "" {
		at += "/" + key
	}
	o.c.bad(at, rule, args...)
}

// value reports a broken rule about values that a codec passes through from another server:
// which fields there are, and their contents.
func (o object) value(key, rule string, args ...any) {
	if !o.c.passThrough {
		o.bad(key, rule, args...)
	}
}

func (o object) has(key string) bool {
	_, ok := o.m[key]
	return ok
}

// need returns a required field.
func (o object) need(key string) (any, bool) {
	v, ok := o.m[key]
	if !ok {
		o.value(key, "missing")
	}
	return v, ok
}

func (o object) str(key string) string {
	v, ok := o.need(key)
	s, isText := v.(string)
	if ok && !isText {
		o.value(key, "not a string")
	}
	return s
}

// nonEmptyText returns a string that must not be empty.
func (o object) nonEmptyText(key string) string {
	s := o.str(key)
	if s == "" {
		o.value(key, "empty")
	}
	return s
}

func (o object) is(key, want string) {
	if s := o.str(key); s != want {
		o.value(key, "%q, want %q", s, want)
	}
}

// oneOf returns a string that must be one of words.
func (o object) oneOf(key string, words ...string) string {
	s := o.str(key)
	for _, w := range words {
		if s == w {
			return s
		}
	}
	o.value(key, "%q is not one of %q", s, words)
	return s
}

// text returns a string that may be absent, but not null.
func (o object) text(key string) (string, bool) {
	if !o.has(key) {
		return "", false
	}
	return o.str(key), true
}

// textOrNull returns a required field that is a string or null.
func (o object) textOrNull(key string) (string, bool) {
	if v, ok := o.need(key); ok && v == nil {
		return "", false
	}
	return o.str(key), o.m[key] != nil
}

// maybe returns a string that may be null or absent.
func (o object) maybe(key string) (string, bool) {
	if o.m[key] == nil {
		return "", false
	}
	return o.str(key), true
}

func (o object) flag(key string) bool {
	v, ok := o.need(key)
	b, isFlag := v.(bool)
	if ok && !isFlag {
		o.value(key, "not a boolean")
	}
	return b
}

// count returns an integer that must not be negative.
func (o object) count(key string) int {
	v, ok := o.need(key)
	digits, _ := v.(json.Number)
	n, err := strconv.Atoi(string(digits))
	if ok && (err != nil || n < 0) {
		o.value(key, "%v is not a non-negative integer", v)
	}
	return n
}

// named returns a string that must not be empty, unless it is from another server.
func (o object) named(key string) string {
	if o.c.passThrough {
		return o.str(key)
	}
	return o.nonEmptyText(key)
}

// called checks the name of a tool. A codec keeps a call without a name, so that it does not
// run.
func (o object) called() {
	if !o.c.passThrough {
		o.nonEmptyText("name")
	}
}

// tokens returns a count that a codec may pass through from another server.
func (o object) tokens(key string) int {
	if o.c.passThrough {
		o.need(key)
		return 0
	}
	return o.count(key)
}

// partOf checks a count that is part of another one, if it is present.
func (o object) partOf(key string, all int, what string) {
	if o.m[key] != nil && o.tokens(key) > all {
		o.bad(key, "more than the %d %s tokens that they are part of", all, what)
	}
}

// wordOrNull checks a word that may be null or absent.
func (o object) wordOrNull(key string, words ...string) {
	if o.m[key] != nil {
		o.word(key, words...)
	}
}

// word returns a string that must be one of words, unless it is from another server.
func (o object) word(key string, words ...string) string {
	if o.c.passThrough {
		v, _ := o.need(key)
		s, _ := v.(string)
		return s
	}
	return o.oneOf(key, words...)
}

// counts checks integers that may be absent.
func (o object) counts(keys ...string) {
	for _, k := range keys {
		if o.has(k) {
			o.tokens(k)
		}
	}
}

func (o object) numberOrNull(key string) {
	v, ok := o.need(key)
	if _, isNumber := v.(json.Number); ok && v != nil && !isNumber {
		o.value(key, "not a number or null")
	}
}

func (o object) obj(key string) object {
	v, ok := o.need(key)
	m, isObject := v.(map[string]any)
	if ok && !isObject {
		o.value(key, "not an object")
	}
	return object{c: o.c, at: o.at + "/" + key, m: m}
}

// objOrNull returns an object that may be null or absent.
func (o object) objOrNull(key string) (object, bool) {
	if o.m[key] == nil {
		return object{}, false
	}
	return o.obj(key), true
}

func (o object) list(key string) []any {
	v, ok := o.need(key)
	l, isList := v.([]any)
	if ok && !isList {
		o.value(key, "not an array")
	}
	return l
}

// objects returns an array of objects.
func (o object) objects(key string) []object {
	l := o.list(key)
	out := make([]object, 0, len(l))
	for i, v := range l {
		m, ok := v.(map[string]any)
		sub := object{c: o.c, at: o.at + "/" + key + "/" + strconv.Itoa(i), m: m}
		if !ok {
			sub.bad("", "not an object")
		}
		out = append(out, sub)
	}
	return out
}

// ids is a set of ids that must be unique.
type ids map[string]bool

func (s *ids) add(o object, key string) string {
	if o.c.passThrough {
		id, _ := o.m[key].(string)
		return id
	}
	id := o.nonEmptyText(key)
	if *s == nil {
		*s = ids{}
	}
	if (*s)[id] {
		o.value(key, "duplicate %q", id)
	}
	(*s)[id] = true
	return id
}
