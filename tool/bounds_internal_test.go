package tool

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
)

// The tests in this file check limits and branches that mutation testing showed to be
// untested.

func text(s string) dragoman.Part { return &dragoman.Text{Text: s} }

func TestT8_CutsFallBetweenCharacters(t *testing.T) {
	for _, tc := range []struct {
		s          string
		n          int
		head, tail string
	}{
		{"abc", 0, "", "abc"},
		{"abc", 2, "ab", "c"},
		{"abc", 3, "abc", ""},
		{"abc", 4, "abc", ""},
		{"aäb", 1, "a", "äb"},
		{"aäb", 2, "a", "b"},
		{"aäb", 3, "aä", "b"},
		{"ä", 1, "", ""},
		{"\x80\x80", 1, "", ""},
	} {
		if got := cutAt(tc.s, tc.n); got != tc.head {
			t.Errorf("cutAt(%q, %d) = %q, want %q", tc.s, tc.n, got, tc.head)
		}
		if got := cutFrom(tc.s, tc.n); got != tc.tail {
			t.Errorf("cutFrom(%q, %d) = %q, want %q", tc.s, tc.n, got, tc.tail)
		}
	}
}

func TestT8_LongErrorsKeepBothEnds(t *testing.T) {
	whole := strings.Repeat("x", maxMessage)
	if got := shortened(whole); got != whole {
		t.Errorf("an error of %d bytes was cut to %d", len(whole), len(got))
	}
	long := "a" + strings.Repeat("x", maxMessage-1) + "b"
	want := fmt.Sprintf("%s\n[… 1 byte cut here …]\n%s", long[:maxMessage/2], long[len(long)-maxMessage/2:])
	if got := shortened(long); got != want {
		t.Errorf("%d bytes: %q … %q", len(got), got[:60], got[len(got)-60:])
	}
	longer := long + strings.Repeat("y", 100)
	if got := shortened(longer); !strings.Contains(got, "[… 101 bytes cut here …]") {
		t.Errorf("%d bytes: the count is wrong", len(got))
	}
}

func TestT8_NativeResultMayUseTheSumOfTheLimits(t *testing.T) {
	native := func(n int) *dragoman.Native { return &dragoman.Native{JSON: json.RawMessage(strings.Repeat("x", n))} }
	for _, tc := range []struct {
		limits Limits
		bytes  int
		fits   bool
	}{
		{Limits{Chars: 10, Binary: 30}, 80, true}, // 10 characters of 4 bytes, and 30 bytes as base64
		{Limits{Chars: 10, Binary: 30}, 81, false},
		{Limits{Chars: 0, Binary: 30}, 40, true},
		{Limits{Chars: 0, Binary: 30}, 41, false},
		{Limits{Chars: 10, Binary: 0}, 40, true},
		{Limits{Chars: 10, Binary: 0}, 41, false},
		{Limits{Chars: -1, Binary: 30}, 1000, true},
		{Limits{Chars: 10, Binary: -1}, 1000, true},
	} {
		if got := tc.limits.fits(native(tc.bytes)); got != tc.fits {
			t.Errorf("%+v: %d bytes: %t", tc.limits, tc.bytes, got)
		}
	}
}

func TestT8_EveryLimitIsInclusive(t *testing.T) {
	image := func(n int) dragoman.Part {
		return &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: strings.Repeat("A", n/3*4)}
	}
	data := func(n int) dragoman.Part {
		return &dragoman.Data{JSON: json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`)}
	}
	for _, tc := range []struct {
		name   string
		limits Limits
		count  func(string) int
		parts  []dragoman.Part
		cut    bool
	}{
		{"characters", Limits{Chars: 10, Binary: -1, Items: -1}, nil, []dragoman.Part{text("0123456789")}, false},
		{"one character more", Limits{Chars: 10, Binary: -1, Items: -1}, nil, []dragoman.Part{text("0123456789a")}, true},
		{"characters of two bytes", Limits{Chars: 10, Binary: -1, Items: -1}, nil, []dragoman.Part{text("ääääääääää")}, false},
		{"characters of two bytes, one more", Limits{Chars: 10, Binary: -1, Items: -1}, nil, []dragoman.Part{text("äääääääääää")}, true},
		{"no characters", Limits{Chars: 0, Binary: -1, Items: -1}, nil, []dragoman.Part{text("a")}, true},
		{"characters without a bound", Limits{Chars: -1, Binary: -1, Items: -1}, nil, []dragoman.Part{text(strings.Repeat("x", 100_000))}, false},
		{"parts", Limits{Chars: -1, Binary: -1, Items: 2}, nil, []dragoman.Part{text("a"), text("b")}, false},
		{"one part more", Limits{Chars: -1, Binary: -1, Items: 2}, nil, []dragoman.Part{text("a"), text("b"), text("c")}, true},
		{"no parts", Limits{Chars: -1, Binary: -1, Items: 0}, nil, []dragoman.Part{text("a")}, true},
		{"media", Limits{Chars: -1, Binary: 6, Items: -1}, nil, []dragoman.Part{image(3), image(3)}, false},
		{"media, one more", Limits{Chars: -1, Binary: 6, Items: -1}, nil, []dragoman.Part{image(3), image(3), image(3)}, true},
		{"no media", Limits{Chars: -1, Binary: 0, Items: -1}, nil, []dragoman.Part{image(3)}, true},
		{"long addresses", Limits{Chars: -1, Binary: 6, Items: -1}, nil, []dragoman.Part{&dragoman.Media{URL: "data:abc"}}, false},
		{"longer addresses", Limits{Chars: -1, Binary: 6, Items: -1}, nil, []dragoman.Part{&dragoman.Media{URL: "data:abcdefg"}}, true},
		{"a URL and data", Limits{Chars: -1, Binary: 8, Items: -1}, nil, []dragoman.Part{&dragoman.Media{URL: "data:abc", Base64: "AAAA"}}, true},
		{"tokens by length", Limits{Chars: -1, Tokens: 2, Binary: -1, Items: -1}, nil, []dragoman.Part{text("01234567")}, false},
		{"tokens by length, one more", Limits{Chars: -1, Tokens: 2, Binary: -1, Items: -1}, nil, []dragoman.Part{text("012345678")}, true},
		{"counted tokens", Limits{Chars: -1, Tokens: 3, Binary: -1, Items: -1}, func(s string) int { return len(s) }, []dragoman.Part{text("abc")}, false},
		{"counted tokens, one more", Limits{Chars: -1, Tokens: 3, Binary: -1, Items: -1}, func(s string) int { return len(s) }, []dragoman.Part{text("abcd")}, true},
		{"tokens that are off", Limits{Chars: -1, Tokens: 0, Binary: -1, Items: -1}, func(s string) int { return len(s) }, []dragoman.Part{text("abcd")}, false},
		{"fewer characters than tokens", Limits{Chars: 2, Tokens: 100, Binary: -1, Items: -1}, nil, []dragoman.Part{text("abc")}, true},
		{"data", Limits{Chars: 10, Binary: -1, Items: -1}, nil, []dragoman.Part{data(10)}, false},
		{"data with a long string", Limits{Chars: 3000, Binary: -1, Items: -1}, nil, []dragoman.Part{data(3000)}, false},
		{"data with a long string, one more", Limits{Chars: 3000, Binary: -1, Items: -1}, nil, []dragoman.Part{data(3001)}, true},
		{"data, one more", Limits{Chars: 10, Binary: -1, Items: -1}, nil, []dragoman.Part{data(11)}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := fmt.Sprintf("%+v", render(tc.parts))
			b := &bounder{limits: tc.limits, count: tc.count}
			after := fmt.Sprintf("%+v", render(b.bound(context.Background(), tc.parts)))
			if (before != after) != tc.cut {
				t.Errorf("%s\nbecame %s", before, after)
			}
		})
	}
}

// Media are kept if they fit into the remaining limit.
func TestT8_MediaMayUseTheWholeLimit(t *testing.T) {
	image := func(n int) dragoman.Part { return &dragoman.Media{Base64: strings.Repeat("A", n/3*4)} }
	b := &bounder{limits: Limits{Chars: -1, Binary: 9, Items: -1}}
	got := b.bound(context.Background(), []dragoman.Part{image(6), image(6), image(3), image(3)})
	var kept []int
	for i, p := range got {
		if _, ok := p.(*dragoman.Media); ok {
			kept = append(kept, i)
		}
	}
	if fmt.Sprint(kept) != "[0 2]" || b.cut.Bytes != 9 {
		t.Errorf("kept are %v, cut is %+v", kept, b.cut)
	}
}

func render(parts []dragoman.Part) []string {
	var out []string
	for _, p := range parts {
		switch p := p.(type) {
		case *dragoman.Text:
			out = append(out, p.Text)
		case *dragoman.Data:
			out = append(out, string(p.JSON))
		case *dragoman.Media:
			out = append(out, p.URL+p.Base64)
		}
	}
	return out
}

// The limit on tokens covers the beginning and the end of all texts and data, in whole characters.
func TestT8_TokenLimitCoversWhatIsKept(t *testing.T) {
	b := &bounder{limits: Limits{Chars: -1, Tokens: 10}}
	for chars, want := range map[int]int{0: 0, 1: 1, 4: 2, 5: 2, 9: 3, 10: 3, 20: 3} {
		if got := b.tokens("0123456789", 10, chars); got != want {
			t.Errorf("%d characters: %d tokens, want %d", chars, got, want)
		}
	}
	runes := func(s string) int { return utf8.RuneCountInString(s) }
	last := func(s string) int { return strings.Count(s, "x") }
	long := strings.Repeat("ä", 1000)
	for name, tc := range map[string]struct {
		parts []dragoman.Part
		count func(string) int
		want  int
	}{
		"characters of two bytes":            {[]dragoman.Part{text(long)}, runes, 10},
		"characters of two bytes, by length": {[]dragoman.Part{text(long)}, nil, 20},
		"data":                               {[]dragoman.Part{&dragoman.Data{JSON: json.RawMessage(`"` + long + `"`)}}, runes, 10},
		"several texts":                      {[]dragoman.Part{text(long), text(long)}, runes, 10},
		"tokens only at the end":             {[]dragoman.Part{text(strings.Repeat(" ", 1000) + strings.Repeat("x", 1000))}, last, 20},
		"short":                              {[]dragoman.Part{text("äöü")}, runes, 3},
		"a counter of one":                   {[]dragoman.Part{text(long)}, func(string) int { return 1 }, 1000},
	} {
		b := &bounder{limits: Limits{Chars: -1, Tokens: 10}, count: tc.count}
		if got := b.chars(tc.parts); got > tc.want || got < tc.want*3/4 {
			t.Errorf("%s: %d characters, want %d", name, got, tc.want)
		}
	}
	if got := (&bounder{limits: Limits{Chars: -1, Tokens: 1}, count: func(string) int { return 5 }}).chars([]dragoman.Part{text(long)}); got != 1 {
		t.Errorf("a limit that nothing fits keeps %d characters", got)
	}
}

func TestT8_DataStringsOver2000BytesAreShortened(t *testing.T) {
	quoted := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	b := &bounder{}
	where := func(string) string { return b.stored(context.Background()) }
	if got := string(shortenStrings([]byte(quoted(longString)), where)); got != quoted(longString) {
		t.Errorf("%d bytes were cut to %d", longString, len(got))
	}
	if got := string(shortenStrings([]byte(quoted(longString+1)), where)); !strings.Contains(got, "[… 1 byte cut; the rest was not stored …]") {
		t.Errorf("%d bytes: %s", longString+1, got[990:1030])
	}
	long := quoted(3 * longString)
	short := shortenStrings([]byte(long), where)
	size := utf8.RuneCount(short)
	for chars, isData := range map[int]bool{size: true, size - 1: false} {
		parts := b.shorterData(context.Background(), []dragoman.Part{&dragoman.Data{JSON: []byte(long)}}, chars)
		if _, ok := parts[0].(*dragoman.Data); ok != isData {
			t.Errorf("%d characters for %d: %T", chars, size, parts[0])
		}
	}
}

// Only the texts in the middle are cut. The note is in the first of them.
func TestT8_HeadAndTailSpanAllTexts(t *testing.T) {
	b := &bounder{limits: Limits{Chars: 6, Binary: -1, Items: -1}}
	got := render(b.bound(context.Background(), []dragoman.Part{text("abc"), text("defg"), text("hij"), text("klm")}))
	want := []string{"abc", "\n[… 7 characters cut here; the rest was not stored …]\n", "klm"}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	b = &bounder{limits: Limits{Chars: 8, Binary: -1, Items: -1}}
	got = render(b.bound(context.Background(), []dragoman.Part{text("abc"), text("defgh"), text("ijk")}))
	want = []string{"abc", "d\n[… 3 characters cut here; the rest was not stored …]\nh", "ijk"}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestT8_MemorySpillRespectsMaxBytes(t *testing.T) {
	m := &MemorySpill{MaxBytes: 10}
	put := func(id, content string) (string, error) {
		return m.Put(context.Background(), CallRef{Run: "run", CallID: id}, 0, content)
	}
	if _, err := put("a", strings.Repeat("x", 11)); err == nil {
		t.Error("more than the bound is kept")
	}
	whole, err := put("b", strings.Repeat("x", 10))
	if err != nil {
		t.Fatalf("as much as the bound: %v", err)
	}
	if _, _, err := m.Read(context.Background(), "run", whole, 0, 100); err != nil {
		t.Errorf("as much as the bound: %v", err)
	}
	first, _ := put("c", "12345")
	second, _ := put("d", "67890")
	for _, name := range []string{first, second} {
		if _, _, err := m.Read(context.Background(), "run", name, 0, 100); err != nil {
			t.Errorf("two that fill the bound: %v", err)
		}
	}
	if _, _, err := m.Read(context.Background(), "run", whole, 0, 100); !errors.Is(err, ErrNoSpill) {
		t.Errorf("the oldest: %v", err)
	}
	if _, _, err := m.Read(context.Background(), "other", first, 0, 100); !errors.Is(err, ErrNoSpill) {
		t.Errorf("another run: %v", err)
	}
}

func TestT8_MemorySpillReadsWholeCharacters(t *testing.T) {
	m := &MemorySpill{}
	name, err := m.Put(context.Background(), CallRef{Run: "run"}, 0, "aäbcdef")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		offset, n int
		want      string
		fails     bool
	}{
		{0, 4, "aäb", false},
		{1, 4, "äbc", false},
		{2, 4, "äbc", false}, // inside ä
		{3, 4, "bcde", false},
		{0, 100, "aäbcdef", false},
		{8, 10, "", false},
		{9, 10, "", true},
		{-1, 10, "", true},
	} {
		got, total, err := m.Read(context.Background(), "run", name, tc.offset, tc.n)
		if got != tc.want || total != 8 || (err != nil) != tc.fails {
			t.Errorf("%d bytes at %d: %q of %d, %v", tc.n, tc.offset, got, total, err)
		}
	}
}

func TestT8_MemorySpillReadsInvalidUTF8(t *testing.T) {
	m := &MemorySpill{}
	name, err := m.Put(context.Background(), CallRef{Run: "run"}, 0, "\x80abc")
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := m.Read(context.Background(), "run", name, 0, 10); err != nil || got != "\x80abc" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestR10_ContributionWithAnyFieldIsNotEmpty(t *testing.T) {
	schemas, calls, results, adapters := make([]dragoman.SchemaAccessor, 1), make([]dragoman.CallAccessor, 1), make([]dragoman.ResultAccessor, 1), make([]dragoman.Adapter, 1)
	for _, c := range []dragoman.Contribution{
		{Schemas: schemas},
		{Calls: calls},
		{Results: results},
		{Adapters: adapters},
		{Schemas: schemas, Calls: calls},
		{Calls: calls, Results: results},
		{Schemas: schemas, Results: results},
		{Schemas: schemas, Adapters: adapters},
	} {
		if isEmpty(&c) {
			t.Errorf("%+v is empty", c)
		}
	}
	if !isEmpty(&dragoman.Contribution{Source: "x"}) {
		t.Error("a contribution without contents is not empty")
	}
}

func TestT14_SecretAtTheStartOfBase64IsRedacted(t *testing.T) {
	r := &Redactor{Secrets: []string{"hunter22"}}
	for before, text := range []string{"hunter22and more", "xhunter22and more", "xyhunter22and more"} {
		got := r.Redact(base64.StdEncoding.EncodeToString([]byte(text)))
		if i := strings.Index(got, mask); i != (before*8+5)/6 {
			t.Errorf("%d bytes before: %q", before, got)
		}
	}
}

func TestT4_SpacesInRepairedStringsAreNotControlCharacters(t *testing.T) {
	r := &repairer{}
	if n, ok := r.text(`"a b"`); n != 5 || !ok || r.out.String() != `"a b"` {
		t.Errorf("%d, %t: %s", n, ok, r.out.String())
	}
	r = &repairer{}
	if _, ok := r.text("\"a\x1fb\""); !ok || r.out.String() != `"a\u001fb"` {
		t.Errorf("%s", r.out.String())
	}
}

func TestT14_EveryEncodingOfASecretIsRedacted(t *testing.T) {
	const secret = `p/s"w<rd+é` + "\n"
	r := &Redactor{Secrets: []string{secret}}
	encoded, _ := json.Marshal(secret)
	var plain strings.Builder
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(secret); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{secret, string(encoded), plain.String(), strings.ReplaceAll(plain.String(), "/", `\/`), strings.ReplaceAll(string(encoded), "/", `\/`)} {
		if got := r.Redact("<" + text + ">"); !strings.Contains(got, mask) || strings.Contains(got, "rd") {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestT14_ShortKeysAndKeysWithoutDigitsAreNotRedacted(t *testing.T) {
	r := &Redactor{}
	for _, k := range &shapes {
		body := strings.Repeat("a", k.min-1) + "0"
		for _, digit := range []string{"0", "9"} {
			key := k.begins + strings.Repeat("a", k.min-1) + digit
			if got := r.Redact(key); !strings.Contains(got, mask) || strings.Contains(got, body) {
				t.Errorf("%q: %q", key, got)
			}
			first := k.begins + digit + strings.Repeat("a", k.min-1)
			if got := r.Redact(first); !strings.Contains(got, mask) {
				t.Errorf("%q: %q", first, got)
			}
		}
		if got := r.Redact(k.begins + body[1:]); strings.Contains(got, mask) && !shorterShape(k, body[1:]) {
			t.Errorf("%q is too short: %q", k.begins+body[1:], got)
		}
		if word := k.begins + strings.Repeat("a", k.min); k.digit && r.Redact(word) != word && !shorterShape(k, strings.Repeat("a", k.min)) {
			t.Errorf("%q has no digit: %q", word, r.Redact(word))
		}
	}
}

// shorterShape reports whether a shorter shape matches the same text.
func shorterShape(of shape, body string) bool {
	s := of.begins + body
	for _, k := range &shapes {
		if rest, ok := strings.CutPrefix(s, k.begins); ok && k != of && len(rest) >= k.min && (!k.digit || strings.ContainsAny(rest, "0123456789")) {
			return true
		}
	}
	return false
}

func TestT14_AdjacentKeysAreRedacted(t *testing.T) {
	r := &Redactor{}
	key := "sk-" + strings.Repeat("a1", 20)
	for _, between := range []string{" ", ",", "\n", `\n`, `\t`, `\b`, `"`} {
		if got := r.Redact(key + between + key); strings.Contains(got, "a1") || strings.Count(got, mask) != 2 {
			t.Errorf("with %q between: %q", between, got)
		}
	}
	if got := r.Redact("x" + key); got != "x"+key {
		t.Errorf("amid a word: %q", got)
	}
	if got := r.Redact(`\n` + key); strings.Contains(got, "a1") {
		t.Errorf("after an escaped line break: %q", got)
	}
}

func TestT14_PolicyReasonsAreRedacted(t *testing.T) {
	r := &Redactor{Secrets: []string{"hunter22"}}
	if r.decision(nil) != nil {
		t.Error("no decision became one")
	}
	d := &Decision{Effect: Allow}
	if r.decision(d) != d {
		t.Error("a decision without texts was copied")
	}
	got := r.decision(&Decision{Reason: "because hunter22"})
	if strings.Contains(got.Reason, "hunter22") {
		t.Errorf("%+v", got)
	}
	got = r.decision(&Decision{Edits: []Edit{{Value: json.RawMessage(`"hunter22"`)}}})
	if strings.Contains(string(got.Edits[0].Value), "hunter22") {
		t.Errorf("%+v", got)
	}
}

func TestT14_TextAfterAnUnterminatedPrivateKeyIsMasked(t *testing.T) {
	open := "-----BEGIN PRIVATE KEY-----\nabc"
	raw, err := json.Marshal([]string{open, "the rest"})
	if err != nil {
		t.Fatal(err)
	}
	if got := string((&Redactor{}).json(raw)); strings.Contains(got, "the rest") {
		t.Errorf("%s", got)
	}
	if got := string((*Redactor)(nil).json(raw)); strings.Contains(got, "the rest") {
		t.Errorf("without a redactor of its own: %s", got)
	}
	if got := string((&Redactor{NoShapes: true}).json(raw)); !strings.Contains(got, "the rest") {
		t.Errorf("without shapes: %s", got)
	}
}

func TestT14_PrivateKeyWithoutBodyEnds(t *testing.T) {
	const kind = "PRIVATE KEY-----"
	if got := (&Redactor{}).Redact("-----BEGIN " + kind + kind + " and the rest"); !strings.HasSuffix(got, " and the rest") {
		t.Errorf("%q", got)
	}
}

func TestChangedToolPinsHaveEveryField(t *testing.T) {
	yes := true
	full := dragoman.ToolSpec{
		Kind: codes.ToolFreeform, Description: "d", NamespaceDescription: "n", Parameters: json.RawMessage(`{ "type": "object" }`),
		OutputSchema: json.RawMessage(`{ }`), Examples: []json.RawMessage{json.RawMessage(`{"\u0061": 1}`)},
		Annotations: dragoman.Annotations{Title: "t", ReadOnly: &yes}, Strict: codes.StrictOn, Deferred: true,
		Source: &dragoman.ToolSource{Format: "f", JSON: json.RawMessage(`{"b": 2}`)},
		Extra:  &dragoman.Extra{Dialect: "x", Fields: []dragoman.Field{{Path: "y", Value: json.RawMessage(`1`)}}}, NamespaceExtra: &dragoman.Extra{Dialect: "z"},
	}
	got := pinOf(&full)
	for field, want := range map[string]string{
		"kind": strconv.Quote(codes.ToolFreeform), "description": `"d"`, "namespace_description": `"n"`, "parameters": `{"type":"object"}`, "output_schema": `{}`,
		"examples": `[{"a":1}]`, "strict": `"on"`, "deferred": `true`,
	} {
		if string(got[field]) != want {
			t.Errorf("%s is %s, want %s", field, got[field], want)
		}
	}
	for field, part := range map[string]string{"annotations": `"title":"t"`, "source": `"b":2`, "extra": `"y"`, "namespace_extra": `"z"`} {
		if !strings.Contains(string(got[field]), part) {
			t.Errorf("%s is %s, want %s in it", field, got[field], part)
		}
	}
	if bare := pinOf(&dragoman.ToolSpec{Description: "d"}); len(bare) != 1 {
		t.Errorf("a bare tool has %v", bare)
	}
	if titled := annotationsOf(dragoman.Annotations{ReadOnly: &yes}); len(titled) != 1 {
		t.Errorf("annotations without a title: %v", titled)
	}
	broken := pinOf(&dragoman.ToolSpec{Parameters: json.RawMessage(`{broken`)})
	if string(broken["parameters"]) != `"{broken"` {
		t.Errorf("parameters that are not JSON: %s", broken["parameters"])
	}
}

func TestI9_HandoffNamesKeepLettersAndDigits(t *testing.T) {
	if got := toolname.Handoff("azAZ09_`{@[/:é", nil); got != "transfer_to_azaz09________" {
		t.Errorf("%s", got)
	}
}

func TestI2_NearestNamesAreSuggestedFirst(t *testing.T) {
	keys := []Key{bare("abcz"), bare("abxy"), bare("axyz"), bare("abcd")}
	if got := fmt.Sprint(nearest(bare("abce"), keys, 5)); got != "[abcz abcd abxy]" {
		t.Errorf("%s", got)
	}
	if got := fmt.Sprint(nearest(bare("abce"), keys, 1)); got != "[abcz]" {
		t.Errorf("%s", got)
	}
}

func TestT16_ABreakerHasDefaults(t *testing.T) {
	if newBreaker(Breaker{}) != nil {
		t.Error("the zero value opens")
	}
	b := newBreaker(Breaker{Failures: 1})
	b.RecordFailure()
	if left := b.RemainingDelay(); left <= 29*time.Second || left > 30*time.Second {
		t.Errorf("it stays open for %v, want 30 s", left)
	}
	b = newBreaker(Breaker{Failures: 1, Pause: time.Hour})
	b.RecordFailure()
	if left := b.RemainingDelay(); left <= 59*time.Minute {
		t.Errorf("it stays open for %v, want an hour", left)
	}
}

func TestT16_BreakerCountsFailuresWithinOneMinute(t *testing.T) {
	for apart, opens := range map[time.Duration]bool{50 * time.Second: true, 70 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBreaker(Breaker{Failures: 2})
			b.RecordFailure()
			time.Sleep(apart)
			b.RecordFailure()
			if b.IsOpen() != opens {
				t.Errorf("two failures %v apart: open is %t", apart, b.IsOpen())
			}
		})
	}
}

func TestA4_HashOfWrongLengthIsAnError(t *testing.T) {
	var h Hash
	for text, ok := range map[string]bool{
		strings.Repeat("0a", len(h)): true, strings.Repeat("0a", len(h)-1): false, strings.Repeat("0g", len(h)): false, "": false,
	} {
		var h Hash
		if err := h.UnmarshalText([]byte(text)); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestT7_NoErrorHasNoCause(t *testing.T) {
	same := func(s string) string { return s }
	if cause(nil, same) != nil {
		t.Error("nothing has a cause")
	}
	own := errors.New("own")
	if got := cause(own, same); !errors.Is(got, own) {
		t.Errorf("%v", got)
	}
}
