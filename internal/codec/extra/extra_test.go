package extra_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"pgregory.net/rapid"
)

func write(e *dragoman.Extra, d dragoman.Dialect, prefix string) string {
	var w jsonwire.Writer
	w.BeginObject()
	extra.Write(&w, e, d, prefix)
	w.EndObject()
	return string(w.Buf)
}

func TestFieldsAreWrittenToTheirOwnDialectInOrder(t *testing.T) {
	var e *dragoman.Extra
	extra.Add(&e, dialectname.OpenAIChat, "", []byte("z"), []byte(`{ "x":1.0 }`))
	extra.Add(&e, dialectname.OpenAIChat, "", []byte("a/b~c"), []byte("null"))
	extra.Add(&e, dialectname.OpenAIChat, "/delta", []byte("é"), []byte(`"<"`))
	extra.Add(&e, dialectname.OpenAIChat, "", []byte(""), []byte("0"))
	want := &dragoman.Extra{Dialect: dialectname.OpenAIChat, Fields: []dragoman.Field{
		{Path: "/z", Value: []byte(`{ "x":1.0 }`)}, {Path: "/a~1b~0c", Value: []byte("null")}, {Path: "/delta/é", Value: []byte(`"<"`)}, {Path: "/", Value: []byte("0")},
	}}
	if d := gen.Diff(want, e); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := write(e, dialectname.OpenAIChat, ""); got != `{"z":{ "x":1.0 },"a/b~c":null,"":0}` {
		t.Errorf("top: %s", got)
	}
	if got := write(e, dialectname.OpenAIChat, "/delta"); got != `{"é":"<"}` {
		t.Errorf("below delta: %s", got)
	}
	for _, d := range []dragoman.Dialect{dialectname.Anthropic, ""} {
		if got := write(e, d, ""); got != "{}" || extra.Has(e, d, "") {
			t.Errorf("%q sees %s", d, got)
		}
	}
	if write(nil, dialectname.OpenAIChat, "") != "{}" || extra.Has(nil, dialectname.OpenAIChat, "") {
		t.Error("a nil Extra has fields")
	}
	if !extra.Has(e, dialectname.OpenAIChat, "") || !extra.Has(e, dialectname.OpenAIChat, "/delta") || extra.Has(e, dialectname.OpenAIChat, "/delt") {
		t.Error("Has")
	}
	if v, ok := extra.Get(e, dialectname.OpenAIChat, "/delta/é"); !ok || string(v) != `"<"` {
		t.Errorf("Get: %s, %v", v, ok)
	}
	if _, ok := extra.Get(e, dialectname.Anthropic, "/z"); ok {
		t.Error("Get of another dialect")
	}
}

func TestR7_DuplicateFieldKeepsLastValue(t *testing.T) {
	// Long lists are settled differently from short ones.
	for _, others := range []int{0, 10, 63, 64, 65, 500} {
		var e *dragoman.Extra
		extra.Add(&e, dialectname.Anthropic, "", []byte("a"), []byte("1"))
		want := []string{`"a":2`}
		for i := range others {
			extra.Add(&e, dialectname.Anthropic, "", []byte("k"+strconv.Itoa(i)), []byte("0"))
			want = append(want, fmt.Sprintf(`"k%d":0`, i))
		}
		extra.Add(&e, dialectname.Anthropic, "", []byte("a"), []byte("2"))
		if got := write(e, dialectname.Anthropic, ""); got != "{"+strings.Join(want, ",")+"}" {
			t.Errorf("with %d others: %.100s", others, got)
		}
		if v, _ := extra.Get(e, dialectname.Anthropic, "/a"); string(v) != "2" {
			t.Errorf("with %d others: Get says %s", others, v)
		}
		var rep dragoman.Report
		extra.Report(&rep, e, dialectname.OpenAIChat, extra.At(""))
		if len(rep.Losses) != 1+others {
			t.Errorf("with %d others: %d losses", others, len(rep.Losses))
		}
	}
}

func TestAddIsLinear(t *testing.T) {
	var e *dragoman.Extra
	start := time.Now()
	const n = 200_000 // quadratic time would take minutes
	for i := range n {
		extra.Add(&e, dialectname.OpenAIChat, "", strconv.AppendInt(nil, int64(i), 10), []byte("1"))
	}
	out := write(e, dialectname.OpenAIChat, "")
	if took := time.Since(start); took > 20*time.Second || len(e.Fields) != n || strings.Count(out, ":") != n {
		t.Errorf("%d fields, %d written, in %v", len(e.Fields), strings.Count(out, ":"), took)
	}
}

func TestAddCopyCopiesTheValue(t *testing.T) {
	var e *dragoman.Extra
	buf := []byte("111")
	extra.AddCopy(&e, dialectname.OpenAIChat, "", []byte("a"), buf)
	copy(buf, "222")
	if v, _ := extra.Get(e, dialectname.OpenAIChat, "/a"); string(v) != "111" {
		t.Errorf("it became %s", v)
	}
	extra.AddCopy(&e, dialectname.OpenAIChat, "", []byte("a"), buf)
	if v, _ := extra.Get(e, dialectname.OpenAIChat, "/a"); string(v) != "222" || len(e.Fields) != 1 {
		t.Errorf("the later value is %s of %d", v, len(e.Fields))
	}
	name := []byte("a")
	if n := testing.AllocsPerRun(10, func() { extra.AddCopy(&e, dialectname.OpenAIChat, "", name, buf) }); n != 0 {
		t.Errorf("%v allocations for a repeated value", n)
	}
}

func TestNamesRoundTripThroughPointers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.OneOf(rapid.SampledFrom([]string{"", "~", "/", "~0", "~1", "~01", "a/b", "~~//"}), rapid.String()), 0, 80, rapid.ID).Draw(t, "names")
		var e *dragoman.Extra
		for i, name := range names {
			extra.Add(&e, dialectname.Anthropic, "/x", []byte(name), strconv.AppendInt(nil, int64(i), 10))
		}
		r := jsonwire.NewReader([]byte(write(e, dialectname.Anthropic, "/x")))
		var got []string
		for key := range r.Object() {
			got = append(got, string(key))
			if n := r.Int(); n != int64(len(got)-1) {
				t.Fatalf("member %q has value %d", got[len(got)-1], n)
			}
		}
		if r.End() != nil || !slices.Equal(got, names) {
			t.Fatalf("%q came back as %q, %v", names, got, r.Err())
		}
	})
}

func TestR11_ForeignFieldsAreReported(t *testing.T) {
	var e *dragoman.Extra
	for _, f := range [][2]string{{"a", "null"}, {"b", "[]"}, {"c", "{}"}, {"d", `""`}, {"e", "false"}, {"stream", "false"}} {
		extra.Add(&e, dialectname.OpenAIChat, "", []byte(f[0]), []byte(f[1]))
	}
	extra.Add(&e, dialectname.OpenAIChat, "", []byte("logprobs"), []byte("{ }"))
	extra.Add(&e, dialectname.OpenAIChat, "/x", []byte("n"), []byte("0"))
	var rep dragoman.Report
	extra.Report(&rep, e, dialectname.Anthropic, extra.Elem("/messages", 3).Elem("content", 1))
	want := dragoman.Report{Losses: []dragoman.Loss{
		{Kind: dragoman.Dropped, Severity: dragoman.Info, Path: "/messages/3/content/1/c", Detail: "anthropic.messages has no such field"},
		{Kind: dragoman.Dropped, Severity: dragoman.Info, Path: "/messages/3/content/1/e", Detail: "anthropic.messages has no such field"},
		{Kind: dragoman.Dropped, Severity: dragoman.Warn, Path: "/messages/3/content/1/logprobs", Detail: "anthropic.messages has no such field"},
		{Kind: dragoman.Dropped, Severity: dragoman.Warn, Path: "/messages/3/content/1/x/n", Detail: "anthropic.messages has no such field"},
	}}
	if d := gen.Diff(want, rep); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	rep = dragoman.Report{}
	extra.ReportEcho(&rep, e, dialectname.Anthropic, extra.At(""))
	if len(rep.Losses) != 2 || rep.Err(dragoman.Warn) != nil {
		t.Errorf("fields about the provider are reported as %v", rep)
	}
	rep = dragoman.Report{}
	extra.Report(&rep, e, dialectname.OpenAIChat, extra.At(""))
	extra.Report(&rep, nil, dialectname.Anthropic, extra.At(""))
	if len(rep.Losses) != 0 {
		t.Errorf("unexpected losses: %v", rep)
	}
}

func TestPathIsJSONPointer(t *testing.T) {
	for want, p := range map[string]extra.Path{
		"": extra.At(""), "/system": extra.At("/system"), "/messages/0": extra.Elem("/messages", 0), "/a/1/b/2": extra.Elem("/a", 1).Elem("b", 2),
		"/system/parts/0": extra.At("/system").Elem("parts", 0), "/a/1/b/2/c/3": extra.Elem("/a", 1).Elem("b", 2).Elem("c", 3), "/0": extra.Elem("", 0),
	} {
		if p.String() != want {
			t.Errorf("%q, want %q", p, want)
		}
	}
}

func TestR11_StreamPartPaths(t *testing.T) {
	var places extra.Places
	for _, step := range []struct {
		start         dragoman.PartStart
		part, message string
	}{
		{dragoman.PartStart{Index: 0, Message: 0}, "/output/0/parts/0", "/output/0"},
		{dragoman.PartStart{Index: 1, Message: 0}, "/output/0/parts/1", "/output/0"},
		{dragoman.PartStart{Index: 2, Message: 1}, "/output/1/parts/0", "/output/1"},
		{dragoman.PartStart{Index: 3, Message: 0}, "/output/0/parts/2", "/output/0"}, // messages may overlap
		{dragoman.PartStart{Choice: 1, Index: 0, Message: 0}, "/alternatives/0/output/0/parts/0", "/alternatives/0/output/0"},
		{dragoman.PartStart{Choice: 2, Index: 0, Message: 3}, "/alternatives/1/output/3/parts/0", "/alternatives/1/output/3"},
		{dragoman.PartStart{Index: 4, Message: 1}, "/output/1/parts/1", "/output/1"},
	} {
		if part, message := places.Next(&step.start); part.String() != step.part || message.String() != step.message {
			t.Errorf("%+v: %s in %s, want %s", step.start, part, message, step.part)
		}
	}
}

func TestStoredConversationIsSeriousLoss(t *testing.T) {
	for d, members := range map[dragoman.Dialect][]string{
		dialectname.OpenAIResponses: {"/conversation", "/prompt"},
		dialectname.Gemini:          {"/cachedContent", "/continuationToken"},
	} {
		for _, path := range members {
			e := &dragoman.Extra{Dialect: d, Fields: []dragoman.Field{{Path: path, Value: []byte(`"x"`)}}}
			var ofRequest, echoed, inside dragoman.Report
			extra.Report(&ofRequest, e, dialectname.Anthropic, extra.At(""))
			extra.ReportEcho(&echoed, e, dialectname.Anthropic, extra.At(""))
			extra.Report(&inside, e, dialectname.Anthropic, extra.Elem("/messages", 0))
			if len(ofRequest.Losses) != 1 || ofRequest.Losses[0].Severity != dragoman.Serious || ofRequest.Losses[0].Path != path {
				t.Errorf("%s of a request: %v", path, ofRequest.Losses)
			}
			if len(echoed.Losses) != 1 || echoed.Losses[0].Severity != dragoman.Info {
				t.Errorf("%s of a response, which only echoes it: %v", path, echoed.Losses)
			}
			if len(inside.Losses) != 1 || inside.Losses[0].Severity != dragoman.Warn {
				t.Errorf("%s of a message: %v", path, inside.Losses)
			}
		}
	}
}

func TestArticle(t *testing.T) {
	for word, want := range map[string]string{
		"executableCode": "an executableCode", "item_reference": "an item_reference", "document": "a document",
		"mcp_tool_use": "an mcp_tool_use", "": "something without a type", strings.Repeat("x", 61): "a " + strings.Repeat("x", 60),
	} {
		if got := extra.WithArticle(word); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
