package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
)

type order struct {
	Item  string         `json:"item" doc:"what to order"`
	Count int            `json:"count,omitempty" jsonschema:"minimum=1,maximum=9"`
	Size  string         `json:"size,omitempty" jsonschema:"enum=small,enum=large"`
	When  *time.Time     `json:"when,omitempty"`
	Notes map[string]any `json:"notes,omitempty"`
	Next  *order         `json:"next,omitempty"`
}

func TestT1_ATypedFunctionBecomesATool(t *testing.T) {
	var got order
	order := tool.New("order", "Orders.", func(_ context.Context, o order) (map[string]int, error) {
		got = o
		return map[string]int{"id": 7}, nil
	})
	box := mustBox(t, order)
	res, rec := do(t, &tool.Runner{}, box, call("1", "order", `{"item":"tea","count":2,"size":"large","when":"2026-01-02T03:04:05Z","notes":{"a":1},"next":{"item":"cake"}}`))
	wantKind(t, res, rec, "")
	if got.Item != "tea" || got.Count != 2 || got.Size != "large" || got.When.Year() != 2026 || got.Next.Item != "cake" || len(got.Notes) != 1 {
		t.Errorf("%+v", got)
	}
	if text := withoutFence(t, res.Text()); text != `{"id":7}` {
		t.Errorf("%q", text)
	}
	for args, want := range map[string]string{
		`{"item":"tea","count":10}`:       "/count",
		`{"item":"tea","size":"medium"}`:  "/size",
		`{"count":1}`:                     "item",
		`{"item":"x","when":"yesterday"}`: "/when",
		`{"item":1}`:                      "/item",
		`{"item":"x","next":{}}`:          "/next",
	} {
		res, rec := do(t, &tool.Runner{}, box, call("1", "order", args))
		if wantKind(t, res, rec, tool.ErrorArguments); !strings.Contains(res.Text(), want) {
			t.Errorf("%s: %s", args, res.Text())
		}
	}
}

func TestT1_ToolboxRefusesInvalidDefinitions(t *testing.T) {
	ok := func(context.Context, city) (string, error) { return "", nil }
	for name, tl := range map[string]tool.Tool{
		"an empty tag": tool.New("a", "", func(context.Context, struct {
			N int `json:"n" jsonschema:"minimum=many"`
		},
		) (string, error) {
			return "", nil
		}),
		"an input that is not an object":  tool.New("a", "", func(context.Context, int) (string, error) { return "", nil }),
		"a map without string keys":       tool.New("a", "", func(context.Context, map[int]string) (string, error) { return "", nil }),
		"no function":                     tool.New[city, string]("a", "", nil),
		"no name":                         tool.New("", "", ok),
		"an invalid raw schema":           tool.Raw("a", "", json.RawMessage(`{"type":"objec"}`), func(context.Context, json.RawMessage) (any, error) { return nil, nil }),
		"a regular expression that fails": tool.Freeform("a", "", &dragoman.Grammar{Syntax: "regex", Definition: "("}, func(context.Context, string) (any, error) { return nil, nil }),
		"a regular expression in pieces":  tool.Freeform("a", "", &dragoman.Grammar{Syntax: "regex", Definition: "a)|(?:b"}, func(context.Context, string) (any, error) { return nil, nil }),
		"a Lark grammar without a start":  tool.Freeform("a", "", &dragoman.Grammar{Syntax: "lark", Definition: "x: y"}, func(context.Context, string) (any, error) { return nil, nil }),
		"a grammar of no syntax":          tool.Freeform("a", "", &dragoman.Grammar{Syntax: "peg", Definition: "x"}, func(context.Context, string) (any, error) { return nil, nil }),
		"a hosted tool":                   tool.Remote(dragoman.ToolSpec{Kind: codes.ToolHosted, Name: "a"}, func(context.Context, tool.Input) (tool.Output, error) { return tool.Output{}, nil }),
		"structured without a schema":     tool.Raw("a", "", nil, func(context.Context, json.RawMessage) (any, error) { return nil, nil }, toolopt.Structured()),
		"nil":                             nil,
		"one that panics":                 panicky{},
	} {
		if _, err := tool.NewBox(tl); !errors.Is(err, tool.ErrDefinition) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := tool.Make("a", "", func(context.Context, int) (string, error) { return "", nil }); !errors.Is(err, tool.ErrDefinition) {
		t.Errorf("Make: %v", err)
	}
}

type panicky struct{}

func (panicky) Spec() *dragoman.ToolSpec { panic("no") }
func (panicky) Call(context.Context, tool.Input) (tool.Output, error) {
	return tool.Output{}, nil
}

func TestT1_ResultTypes(t *testing.T) {
	image := dragoman.Image("image/png", []byte("x"))
	for _, tc := range []struct {
		name string
		out  any
		want []string
		text string
	}{
		{"nothing", nil, nil, ""},
		{"an empty struct", struct{}{}, nil, ""},
		{"a string", "hi", []string{codes.KindText}, "hi"},
		{"text", tool.Text("hi"), []string{codes.KindText}, "hi"},
		{"a struct", city{"<Oslo>"}, []string{codes.KindText}, `{"name":"<Oslo>"}`},
		{"a number", 5, []string{codes.KindText}, "5"},
		{"raw JSON", json.RawMessage(`{"b":1,"a":2}`), []string{codes.KindText}, `{"b":1,"a":2}`},
		{"a part", image, []string{image.Kind()}, ""},
		{"parts", []dragoman.Part{&dragoman.Text{Text: "hi"}, image}, []string{codes.KindText, image.Kind()}, "hi"},
		{"an output", tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "hi"}}, Display: "shown"}, []string{codes.KindText}, "hi"},
		{"a result", dragoman.ToolResult{CallID: "another", Content: []dragoman.Part{&dragoman.Text{Text: "hi"}}}, []string{codes.KindText}, "hi"},
	} {
		box := mustBox(t, tool.New("a", "", func(context.Context, struct{}) (any, error) { return tc.out, nil }))
		res, rec := do(t, &tool.Runner{}, box, call("1", "a", ""))
		wantKind(t, res, rec, "")
		var kinds []string
		for _, p := range res.Content {
			kinds = append(kinds, p.Kind())
			if x, ok := p.(*dragoman.Text); ok {
				if got := withoutFence(t, x.Text); got != tc.text {
					t.Errorf("%s: %q", tc.name, got)
				}
			}
		}
		if !slices.Equal(kinds, tc.want) || res.CallID != "1" {
			t.Errorf("%s: %v, of call %s", tc.name, kinds, res.CallID)
		}
	}
}

func TestT1_RawFreeformAndRemoteToolsRun(t *testing.T) {
	raw := tool.Raw("raw", "", json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
		func(_ context.Context, args json.RawMessage) (any, error) { return "got " + string(args), nil })
	free := tool.Freeform("free", "", &dragoman.Grammar{Syntax: "regex", Definition: "[a-z]+|[0-9]+"},
		func(_ context.Context, text string) (any, error) { return "got " + text, nil })
	sums := tool.Freeform("sums", "", &dragoman.Grammar{Syntax: "lark", Definition: "start: INT (\"+\" INT)*\n%import common.INT"},
		func(_ context.Context, text string) (any, error) { return "got " + text, nil })
	typed := tool.New("typed", "", func(_ context.Context, text tool.Text) (tool.Text, error) { return "got " + text, nil })
	remote := tool.Remote(dragoman.ToolSpec{Name: "remote", Parameters: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, in tool.Input) (tool.Output, error) {
			return tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "got " + string(in.Arguments)}}}, nil
		})
	box := mustBox(t, raw, free, sums, typed, remote)
	text := func(id, name, in string) *dragoman.ToolCall {
		return &dragoman.ToolCall{ID: id, Name: name, Arguments: in, Payload: codes.PayloadText}
	}
	for _, tc := range []struct {
		call *dragoman.ToolCall
		kind tool.ErrorKind
		want string
	}{
		{call("1", "raw", `{"n":1}`), "", `got {"n":1}`},
		{call("1", "raw", `{}`), tool.ErrorArguments, ""},
		{text("1", "free", "abc"), "", "got abc"},
		{text("1", "free", "abc1"), tool.ErrorArguments, ""},
		{text("1", "free", "abc\n"), tool.ErrorArguments, ""},
		{call("1", "free", `{"input":"123"}`), "", "got 123"},
		{call("1", "free", `{"inputs":"123"}`), tool.ErrorArguments, ""},
		{text("1", "sums", "1+22"), "", "got 1+22"},
		{text("1", "sums", "1+"), tool.ErrorArguments, ""},
		{text("1", "typed", "{ not JSON"), "", "got { not JSON"},
		{call("1", "remote", `{"x":[1]}`), "", `got {"x":[1]}`},
	} {
		res, rec := do(t, &tool.Runner{}, box, tc.call)
		wantKind(t, res, rec, tc.kind)
		if tc.kind == "" && withoutFence(t, res.Text()) != tc.want {
			t.Errorf("%s: %s", tc.call.Name, res.Text())
		}
	}
}

func TestT2_ListingShowsTheSettingsOfATool(t *testing.T) {
	box, err := tool.Config{Timeout: time.Hour, Limits: tool.Limits{Items: 3}}.Box(
		echo("a", tool.Destructive(), toolopt.OpenWorld(), toolopt.Title("A"), toolopt.Tagged("x", "y"), tool.Timeout(time.Second),
			tool.NeedsApproval(), tool.InNamespace("n", "d"), tool.Deferred(),
			tool.Set(func(s *tool.Settings) { s.Limits.Chars, s.Exclusive = 5, true })),
		echo("b", tool.ReadOnly(), tool.Idempotent(), toolopt.NeedsApprovalFor(func(context.Context, tool.Input) (bool, error) { return false, nil })),
	)
	if err != nil {
		t.Fatal(err)
	}
	list := box.List()
	a, b := list[0], list[1]
	if a.Name != "n.a" || !*a.Annotations.Destructive || *a.Annotations.ReadOnly || !*a.Annotations.OpenWorld || a.Annotations.Title != "A" ||
		!slices.Equal(a.Tags, []string{"x", "y"}) || a.Timeout != time.Second || a.Limits != (tool.Limits{Chars: 5, Items: 3}) ||
		a.Approval != "always" || !a.Deferred || !a.Exclusive || a.Description != "Says it again." {
		t.Errorf("%+v", a)
	}
	if !*b.Annotations.ReadOnly || !*b.Annotations.Idempotent || b.Approval != "by arguments" || b.Timeout != time.Hour {
		t.Errorf("%+v", b)
	}
	raw, err := json.Marshal(list)
	if err != nil || !strings.Contains(string(raw), `"limits":{"chars":5,"items":3}`) {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestT3_WithKeepsOrderAndDoesNotChangeTheToolbox(t *testing.T) {
	box := mustBox(t, echo("c"), echo("a"), echo("b"))
	more, err := box.With(echo("0"), echo("z", tool.InNamespace("n", "d")))
	if err != nil {
		t.Fatal(err)
	}
	names := func(b *tool.Box) string {
		var out []string
		for _, s := range b.Specs() {
			out = append(out, s.QualifiedName())
		}
		return strings.Join(out, " ")
	}
	if names(box) != "c a b" || names(more) != "c a b 0 n.z" || len(more.Tools()) != 5 {
		t.Errorf("%q, %q", names(box), names(more))
	}
	if _, err := box.With(echo("a")); !errors.Is(err, tool.ErrNames) {
		t.Errorf("a second a: %v", err)
	}
	run := (&tool.Runner{}).Start("r")
	for i := range 150 {
		if _, err := run.Do(t.Context(), more, tool.Turn{Number: i, Calls: []*dragoman.ToolCall{call(fmt.Sprint(i), "a", "")}}); err != nil {
			t.Fatal(err)
		}
	}
	recent := more.Recent()
	if len(recent) != 100 || recent[0].CallID != "50" || recent[99].CallID != "149" || len(box.Recent()) != 0 {
		t.Errorf("%d recent calls, from %s", len(recent), recent[0].CallID)
	}
}

func TestT1_EveryDialectSendsArgumentDescriptions(t *testing.T) {
	weather := tool.New("get_weather", "Current weather in a city.",
		func(_ context.Context, c city) (string, error) { return "rain in " + c.Name, nil })
	req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("hi")}, Tools: mustBox(t, weather).Specs()}
	for _, c := range []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}, bedrock.Codec{}, cohere.Codec{}} {
		enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"the city's name, in English", "Current weather in a city.", "get_weather"} {
			if !strings.Contains(string(enc.Body), want) {
				t.Errorf("%s does not say %q: %s", c.Dialect(), want, enc.Body)
			}
		}
	}
}

// A number of encoding/json keeps the digits of the argument, wherever it is.
func TestT1_NumbersOfEncodingJSONAreDecoded(t *testing.T) {
	type args struct {
		N   json.Number            `json:"n"`
		Opt *json.Number           `json:"opt,omitempty"`
		All []json.Number          `json:"all,omitempty"`
		By  map[string]json.Number `json:"by,omitempty"`
	}
	var got args
	box := mustBox(t, tool.New("f", "F.", func(_ context.Context, in args) (string, error) { got = in; return "", nil }))
	opt := json.Number("-1.5e300")
	for arguments, want := range map[string]args{
		`{"n":12345678901234567890}`:                           {N: "12345678901234567890"},
		`{"n":1.50,"opt":-1.5e300,"all":[1,2.0],"by":{"a":0}}`: {N: "1.50", Opt: &opt, All: []json.Number{"1", "2.0"}, By: map[string]json.Number{"a": "0"}},
	} {
		got = args{}
		res, rec := do(t, &tool.Runner{}, box, call("1", "f", arguments))
		wantKind(t, res, rec, "")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v", arguments, got)
		}
	}
	for _, arguments := range []string{`{"n":"1"}`, `{"n":"x"}`, `{"n":null}`, `{"n":true}`} {
		res, rec := do(t, &tool.Runner{}, box, call("1", "f", arguments))
		wantKind(t, res, rec, tool.ErrorArguments)
	}
}
