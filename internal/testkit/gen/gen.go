// Package gen generates random canonical values for property tests: realistic
// conversations with hostile content.
//
//	rapid.Check(t, func(t *rapid.T) {
//		req := gen.Options{Tidy: true}.Request().Draw(t, "request")
//		...
//	})
//
// Every conversation is valid turn by turn: ids are unique within a turn, and the tool
// message after a turn has the result of every client call. Strings are always
// valid UTF-8; everything else that is legal in Go may occur.
package gen

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Options restrict what is generated. The zero value generates everything.
type Options struct {
	// Tidy omits values that no careful author writes: arguments that are not a
	// valid JSON object, calls with problems, odd names and ids, ids that are
	// reused in a later turn, duplicate metadata keys, and lists that are empty
	// but not nil.
	Tidy bool
	// Plain omits native state: opaque parts, extras, native forms, envelopes,
	// signatures, details, hosted tools and calls, origins.
	Plain bool
	// Dialect is the dialect of native state; empty draws one for each value.
	Dialect dragoman.Dialect
}

var dialects = []dragoman.Dialect{dialectname.OpenAIChat, dialectname.OpenAIResponses, dialectname.Anthropic}

var hostile = []string{
	"", " ", "\n", "a\r\nb", "\x00\x01\x1f\x7f", "<b>&amp;</b>", "\u2028\u2029", "\ufeff", "\ufffd",
	"日本語", "👩‍👩‍👧‍👦", "e\u0301", "\u202eabc", `"\`, "null", "{}", "ERROR: no", "data: x\n\n", "```json\n{}\n```",
	strings.Repeat("long ", 300),
}

// Text generates text that a model or a person might write.
func (o Options) Text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(hostile), rapid.StringN(0, 30, -1), rapid.StringMatching(`[A-Z][a-z ,]{0,40}\.`))
}

// words generates text that is never empty.
func (o Options) words() *rapid.Generator[string] { return rapid.StringN(1, 30, -1) }

// Name generates a tool name.
func (o Options) Name() *rapid.Generator[string] {
	tidy := rapid.StringMatching(`[a-z][a-z0-9_]{0,20}`)
	if o.Tidy {
		return tidy
	}
	odd := rapid.SampledFrom([]string{"get weather!", "名前", "a.b/c", "9lives", "-x", strings.Repeat("n", 100), "a__b", "Ünï"})
	return rapid.OneOf(tidy, tidy, odd)
}

func (o Options) id() *rapid.Generator[string] {
	tidy := rapid.StringMatching(`(call|toolu)_[A-Za-z0-9]{6}`)
	if o.Tidy {
		return tidy
	}
	odd := rapid.SampledFrom([]string{"0", "functions.x:0", "a b", "é", strings.Repeat("i", 90), "call|fc"})
	return rapid.OneOf(tidy, tidy, odd)
}

// JSON generates the text of a JSON value: ordered, with unique keys, odd spellings of
// numbers and escapes, and white space that must survive.
func JSON() *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage { return json.RawMessage(value(t, 3)) })
}

// Object generates the text of a JSON object.
func Object() *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage { return json.RawMessage(object(t, 3)) })
}

var scalars = []string{
	"null", "true", "false", "0", "-0", "1", "1.0", "1e400", "9007199254740993", "-1.50e-7", `""`, `"\u003c"`, `"\/"`,
	`"é"`, `"\u00e9"`, `"\ud83d\ude00"`, `"a\nb"`, `"<&>"`,
}

func value(t *rapid.T, depth int) string {
	if depth == 0 {
		return rapid.SampledFrom(scalars).Draw(t, "scalar")
	}
	switch rapid.IntRange(0, 4).Draw(t, "shape") {
	case 0:
		return object(t, depth-1)
	case 1:
		n := rapid.IntRange(0, 3).Draw(t, "elements")
		list := make([]string, n)
		for i := range list {
			list[i] = value(t, depth-1)
		}
		return "[" + strings.Join(list, comma(t)) + "]"
	default:
		return rapid.SampledFrom(scalars).Draw(t, "scalar")
	}
}

func object(t *rapid.T, depth int) string {
	n := rapid.IntRange(0, 3).Draw(t, "members")
	list := make([]string, n)
	for i := range list {
		key := rapid.SampledFrom([]string{"a", "b c", "名", "", `\"`, "x-y", "~/"}).Draw(t, "key")
		if i > 0 {
			key += strconv.Itoa(i) // keys stay unique
		}
		list[i] = `"` + key + `":` + value(t, max(depth-1, 0))
	}
	return "{" + strings.Join(list, comma(t)) + "}"
}

func comma(t *rapid.T) string {
	return rapid.SampledFrom([]string{",", ", ", " ,\n\t"}).Draw(t, "comma")
}

var broken = []string{
	"", " ", "null", `""`, "{", `{"a":`, `{"a":1}{"a":2}`, `{"a":1,"a":2}`, "[1]", `"text"`, "5", "nul", `{"a":"\ud800"}`,
	`{'a':1}`, `{"a":1,}`, `"{\"a\":1}"`, "{}x",
}

// Arguments generates the text of a call's arguments.
func (o Options) Arguments() *rapid.Generator[string] {
	sound := rapid.Map(Object(), func(b json.RawMessage) string { return string(b) })
	if o.Tidy {
		return sound
	}
	return rapid.OneOf(sound, sound, rapid.SampledFrom(broken), rapid.StringN(0, 20, -1))
}

// Schema generates the JSON Schema of an object.
func Schema() *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		types := []string{
			`{"type":"string"}`, `{"type":"integer","minimum":0}`, `{ "type" : "boolean" }`, `{"type":"number"}`,
			`{"type":"array","items":{"type":"string"}}`, `{"enum":["a","b"]}`, `{"type":["string","null"]}`,
			`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}`,
		}
		n := rapid.IntRange(0, 3).Draw(t, "properties")
		var props, required []string
		for i := range n {
			name := fmt.Sprintf(`"p%d"`, n-i)
			props = append(props, name+":"+rapid.SampledFrom(types).Draw(t, "type"))
			if rapid.Bool().Draw(t, "required") {
				required = append(required, name)
			}
		}
		s := `{"type":"object","properties":{` + strings.Join(props, ",") + `}`
		if len(required) > 0 {
			s += `,"required":[` + strings.Join(required, ",") + `]`
		}
		if rapid.Bool().Draw(t, "closed") {
			s += `,"additionalProperties":false`
		}
		return json.RawMessage(s + "}")
	})
}

func (o Options) dialect(t *rapid.T) dragoman.Dialect {
	if o.Dialect != "" {
		return o.Dialect
	}
	return rapid.SampledFrom(dialects).Draw(t, "dialect")
}

// native draws whether to add native state here.
func (o Options) native(t *rapid.T) bool {
	return !o.Plain && rapid.IntRange(0, 3).Draw(t, "native") == 0
}

func (o Options) extra(t *rapid.T) *dragoman.Extra {
	if !o.native(t) {
		return nil
	}
	e := &dragoman.Extra{Dialect: o.dialect(t)}
	for i := range rapid.IntRange(0, 2).Draw(t, "fields") {
		e.Fields = append(e.Fields, dragoman.Field{Path: "/x" + strconv.Itoa(i), Value: JSON().Draw(t, "value")})
	}
	return e
}

func (o Options) nativeObject(t *rapid.T) *dragoman.Native {
	if !o.native(t) {
		return nil
	}
	return &dragoman.Native{Format: dragoman.Format(o.dialect(t)), JSON: Object().Draw(t, "native")}
}

func (o Options) origin(t *rapid.T) *dragoman.Origin {
	if !o.native(t) {
		return nil
	}
	return &dragoman.Origin{
		Dialect:  o.dialect(t),
		Provider: rapid.SampledFrom([]string{"", "openai", "anthropic"}).Draw(t, "provider"),
		Scope:    rapid.SampledFrom([]string{"", "k1:abc"}).Draw(t, "scope"),
		Model:    rapid.SampledFrom([]string{"", "m-1"}).Draw(t, "model"),
	}
}

func (o Options) cache(t *rapid.T) *dragoman.CacheHint {
	if rapid.IntRange(0, 7).Draw(t, "cache") > 0 {
		return nil
	}
	return &dragoman.CacheHint{TTL: rapid.SampledFrom([]string{"", "5m", "1h"}).Draw(t, "ttl")}
}

// sidecar draws the native form of a value with fingerprint f; mostly nil.
func (o Options) sidecar(t *rapid.T, f func() dragoman.Fingerprint) *dragoman.Sidecar {
	if !o.native(t) {
		return nil
	}
	raw := []byte(Object().Draw(t, "raw"))
	if !o.Tidy && rapid.IntRange(0, 9).Draw(t, "not UTF-8") == 0 {
		raw = append(raw, 0xff, 0xfe)
	}
	return &dragoman.Sidecar{Dialect: o.dialect(t), Raw: raw, Mirror: f()}
}

// list returns an empty list as nil or, now and then, as an empty list.
func list[T any](t *rapid.T, o Options, v []T) []T {
	if len(v) > 0 {
		return v
	}
	if !o.Tidy && rapid.IntRange(0, 3).Draw(t, "empty, not nil") == 0 {
		return []T{}
	}
	return nil
}

func maybe[T any](t *rapid.T, label string, g *rapid.Generator[T]) *T {
	return rapid.Ptr(g, true).Draw(t, label)
}

func text(t *rapid.T, o Options, label string) string { return o.Text().Draw(t, label) }

// optional draws a string that is mostly empty.
func optional(t *rapid.T, label string, values ...string) string {
	return rapid.SampledFrom(append([]string{"", "", ""}, values...)).Draw(t, label)
}

// seldom is true in one of eight cases.
func seldom(t *rapid.T, label string) bool { return rapid.IntRange(0, 7).Draw(t, label) == 0 }

// Diff compares canonical values. It compares the cause of an API error by its text and
// by the errors of this module that it wraps, because its type may be anything.
func Diff(want, got any) string {
	if reflect.DeepEqual(want, got) { // the common case, without the cost of cmp
		return ""
	}
	cause := cmp.FilterPath(func(p cmp.Path) bool {
		return p.Last().String() == ".Err" && p.Last().Type() == reflect.TypeFor[error]()
	}, cmp.Comparer(func(a, b error) bool {
		if a == nil || b == nil {
			return a == nil && b == nil
		}
		for _, s := range []error{dragoman.ErrIncompleteStream, dragoman.ErrTooLarge, dragoman.ErrUnsupported, dragoman.ErrVersion} {
			if errors.Is(a, s) != errors.Is(b, s) {
				return false
			}
		}
		return a.Error() == b.Error()
	}))
	return cmp.Diff(want, got, cause)
}
