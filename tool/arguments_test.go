package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
	"pgregory.net/rapid"
)

func argumentsTool(schema string, opts ...tool.Option) tool.Tool {
	return tool.Raw("f", "", json.RawMessage(schema), func(_ context.Context, args json.RawMessage) (any, error) {
		return tool.Output{Display: string(args)}, nil
	}, opts...)
}

func TestT4_RecordListsEveryStepOfReadingArguments(t *testing.T) {
	const n = `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"},"d":{"type":"string","default":"x"}},"required":["n"]}`
	coerce := tool.Set(func(s *tool.Settings) { s.Coerce = true })
	for _, tc := range []struct {
		name, args string
		opts       []tool.Option
		want       string // the arguments that run; empty if the call does not run
		steps      []string
	}{
		{"as it should be", `{"n":1,"d":"y"}`, nil, `{"n":1,"d":"y"}`, nil},
		{"a default", `{"n":1}`, nil, `{"n":1,"d":"x"}`, []string{"complete"}},
		{"encoded twice", `"{\"n\":1,\"d\":\"y\"}"`, nil, `{"n":1,"d":"y"}`, []string{"unwrap"}},
		{"encoded three times", `"\"{\\\"n\\\":1}\""`, nil, "", []string{"parse"}},
		{"a comma too many", `{"n":1,"d":"y",}`, nil, `{"n":1,"d":"y"}`, []string{"repair"}},
		{"in a Markdown fence", "```json\n{\"n\":1,\"d\":\"y\"}\n```", nil, `{"n":1,"d":"y"}`, []string{"repair"}},
		{"a line break in a string", "{\"n\":1,\"d\":\"a\nb\"}", nil, `{"n":1,"d":"a\nb"}`, []string{"repair"}},
		{"an apostrophe escaped", `{"n":1,"d":"it\'s"}`, nil, `{"n":1,"d":"it's"}`, []string{"repair"}},
		{"Python's words", `{"n":1,"d":"y","b":True,"c":None}`, nil, `{"n":1,"d":"y","b":true,"c":null}`, []string{"repair", "repair"}},
		{"Python's words in a string", `{"n":1,"d":"True, None,}"}`, nil, `{"n":1,"d":"True, None,}"}`, nil},
		{"cut off in a string", `{"n":1,"d":"rm -rf /tmp/x`, nil, "", []string{"parse"}},
		{"cut off after a member", `{"n":1,"d":"y"`, nil, "", []string{"parse"}},
		{"cut off after a comma", `{"n":1,`, nil, "", []string{"parse"}},
		{"two objects", `{"n":1}{"n":2}`, nil, "", []string{"parse"}},
		{"a key twice", `{"n":1,"n":2}`, nil, "", []string{"parse"}},
		{"a key twice behind a repair", `{"n":1,"n":2,}`, nil, "", []string{"parse"}},
		{"an escape that means nothing", `{"n":1,"d":"\d"}`, nil, "", []string{"parse"}},
		{"a list", `[1]`, nil, "", []string{"parse"}},
		{"text for a number", `{"n":"1","d":"y"}`, nil, "", []string{"validate"}},
		{"text for a number, allowed", `{"n":"1","d":"y"}`, []tool.Option{coerce}, `{"n":1,"d":"y"}`, []string{"complete"}},
		{"wrapped", `{"arguments":{"n":1,"d":"y"}}`, nil, "", []string{"complete", "validate"}},
		{"wrapped, allowed", `{"arguments":{"n":1,"d":"y"}}`, []tool.Option{coerce}, `{"n":1,"d":"y"}`, []string{"unwrap"}},
		{"wrapped, with text for a number", `{"arguments":{"n":"1"}}`, []tool.Option{coerce}, `{"n":1,"d":"x"}`, []string{"unwrap", "complete", "complete"}},
		{"wrapped, with a value that is not a number", `{"arguments":{"n":"one"}}`, []tool.Option{coerce}, "", []string{"complete", "validate"}},
		{"encoded twice and wrapped, with text for a number", `"{\"args\":{\"n\":\"1\",\"d\":\"y\"}}"`, []tool.Option{coerce}, `{"n":1,"d":"y"}`, []string{"unwrap", "unwrap", "complete"}},
		{"wrapped, with text for a number, and null as strict decoding has it", `{"input":{"n":"1","s":null,"d":"y"}}`, []tool.Option{coerce, toolopt.Strict(codes.StrictOn)}, `{"n":1,"d":"y"}`, []string{"unwrap", "complete", "complete"}},
		{"wrapped, beside another field", `{"arguments":{"n":1,"d":"y"},"n2":1}`, []tool.Option{coerce}, "", []string{"complete", "validate"}},
		{"wrapped twice under different names", `{"args":{"n":1,"d":"y"},"input":{"n":2,"d":"y"}}`, []tool.Option{coerce}, "", []string{"complete", "validate"}},
		{"wrapped, with text behind it", `{"arguments":{"n":1,"d":"y"}} {"n":2}`, []tool.Option{coerce}, "", []string{"parse"}},
		{"in a field with another name", `{"body":{"n":1,"d":"y"}}`, []tool.Option{coerce}, "", []string{"complete", "validate"}},
		{"nothing", "", nil, "", []string{"complete", "validate"}},
		{"null where strict decoding made the model say it", `{"n":1,"s":null,"d":"y"}`, []tool.Option{toolopt.Strict(codes.StrictOn)}, `{"n":1,"d":"y"}`, []string{"complete"}},
	} {
		box := mustBox(t, argumentsTool(n, tc.opts...))
		res, rec := do(t, &tool.Runner{}, box, call("1", "f", tc.args))
		var steps []string
		for _, s := range rec.Steps {
			steps = append(steps, s.Name)
		}
		kind := tool.ErrorKind("")
		if tc.want == "" {
			kind = tool.ErrorArguments
		}
		wantKind(t, res, rec, kind)
		if res.Display != tc.want || !slices.Equal(steps, tc.steps) || rec.Raw != tc.args || rec.Executed != (tc.want != "") {
			t.Errorf("%s: %s runs, by %v, want %s by %v", tc.name, res.Display, rec.Steps, tc.want, tc.steps)
		}
	}
}

func TestT4_AllErrorsAreReportedWithPaths(t *testing.T) {
	box := mustBox(t, tool.New("order", "", func(context.Context, order) (string, error) { return "", nil }))
	res, rec := do(t, &tool.Runner{}, box, call("1", "order", `{"count":0,"size":"x","next":{"item":3}}`))
	wantKind(t, res, rec, tool.ErrorArguments)
	for _, want := range []string{"/count", "/size", "/next/item", `missing property "item"`, `"minimum":1`, "call the tool again"} {
		if !strings.Contains(res.Text(), want) {
			t.Errorf("the error lacks %q:\n%s", want, res.Text())
		}
	}
	if n := strings.Count(res.Text(), "\n"); n > 8 || len(res.Text()) > 2000 {
		t.Errorf("%d lines, %d bytes:\n%s", n, len(res.Text()), res.Text())
	}
}

func TestQuirkB31_WholeNumberInAnyNotationIsAnInteger(t *testing.T) {
	type in struct {
		N    int    `json:"n"`
		List []int8 `json:"list,omitempty"`
		F    float64
	}
	typed := tool.New("typed", "", func(_ context.Context, v in) (string, error) { return fmt.Sprint(v.N, v.List, v.F), nil })
	raw := tool.Raw("raw", "", typed.Spec().Parameters, func(_ context.Context, args json.RawMessage) (any, error) { return string(args), nil })
	for args, want := range map[string][2]string{
		`{"n":5.0,"F":5.0}`:                 {"5 [] 5", `{"n":5,"F":5.0}`},
		`{"n":1.2e2,"F":1,"list":[-3.0,7]}`: {"120 [-3 7] 1", `{"n":120,"F":1,"list":[-3,7]}`},
		`{"n":9007199254740993.0,"F":0.5}`:  {"9007199254740993 [] 0.5", `{"n":9007199254740993,"F":0.5}`},
	} {
		for i, name := range []string{"typed", "raw"} {
			res, rec := do(t, &tool.Runner{}, mustBox(t, typed, raw), call("1", name, args))
			if wantKind(t, res, rec, ""); res.PlainText() != want[i] {
				t.Errorf("%s of %s: %s, want %s", name, args, res.PlainText(), want[i])
			}
		}
	}
	res, rec := do(t, &tool.Runner{}, mustBox(t, typed), call("1", "typed", `{"n":5.5,"F":1}`))
	wantKind(t, res, rec, tool.ErrorArguments)
}

func TestT4_DecodingErrorsHaveAPath(t *testing.T) {
	f := tool.New("f", "", func(context.Context, struct {
		N struct {
			Small uint8 `json:"small"`
		} `json:"n"`
	},
	) (string, error) {
		return "", nil
	})
	f.Spec().Parameters = json.RawMessage(`{"type":"object"}`)
	res, rec := do(t, &tool.Runner{}, mustBox(t, f), call("1", "f", `{"n":{"small":300}}`))
	if wantKind(t, res, rec, tool.ErrorArguments); !strings.Contains(res.Text(), `300 into Go uint8 within "/n/small"`) {
		t.Error(res.Text())
	}
}

func TestCallWithAProblemNeverRuns(t *testing.T) {
	box := mustBox(t, argumentsTool(`{"type":"object"}`), tool.Freeform("free", "", nil, func(context.Context, string) (any, error) { return "ran", nil }))
	for _, code := range []string{
		codes.ProblemTruncated, codes.ProblemDuplicateKey, codes.ProblemNoName, codes.ProblemUnreadable, codes.ProblemStopped, "new",
	} {
		for _, name := range []string{"f", "free"} {
			c := call("1", name, `{}`)
			c.Problem = &dragoman.CallProblem{Code: code, Message: "because", Offset: -1}
			res, rec := do(t, &tool.Runner{}, box, c)
			if wantKind(t, res, rec, tool.ErrorNotRun); rec.Executed || !strings.Contains(res.Text(), "because") {
				t.Errorf("%s: %s", code, res.Text())
			}
		}
	}
	c := call("1", "f", `{}`)
	c.Hosted = true
	res, rec := do(t, &tool.Runner{}, box, c)
	wantKind(t, res, rec, tool.ErrorNotRun)
}

func TestFieldNamesAreCaseSensitive(t *testing.T) {
	type in struct {
		Path string            `json:"path,omitempty"`
		Rest map[string]string `json:"rest,omitempty"`
	}
	var got in
	open := tool.New("f", "", func(_ context.Context, i in) (string, error) { got = i; return "", nil },
		tool.Set(func(*tool.Settings) {}))
	open.Spec().Parameters = json.RawMessage(`{"type":"object"}`) // accepts anything
	res, rec := do(t, &tool.Runner{}, mustBox(t, open), call("1", "f", `{"path":"safe","PATH":"evil"}`))
	wantKind(t, res, rec, "")
	if got.Path != "safe" {
		t.Errorf("%q runs", got.Path)
	}
}

// Repair never invents content: everything that runs was in the text of the model, in order,
// except for the parts that repair says it drops or rewrites.
func TestRepairNeverClosesTruncatedArguments(t *testing.T) {
	box := mustBox(t, argumentsTool(`{"type":"object"}`))
	whole := `{"a":"x\"y","b":[1,2,{"c":null}],"d":"e"}`
	rapid.Check(t, func(rt *rapid.T) {
		cut := rapid.IntRange(1, len(whole)-1).Draw(rt, "cut")
		tail := rapid.SampledFrom([]string{"", " ", "\n", ",", "```"}).Draw(rt, "tail")
		res, rec := do(t, &tool.Runner{}, box, call("1", "f", whole[:cut]+tail))
		if rec.ErrorKind != tool.ErrorArguments {
			rt.Fatalf("%q runs as %s", whole[:cut]+tail, res.Display)
		}
	})
}

// hostileText decodes itself: it fails, panics, or ends its goroutine.
type hostileText string

func (h *hostileText) UnmarshalText(text []byte) error {
	switch string(text) {
	case "panic":
		panic("the database password is 12345")
	case "exit":
		runtime.Goexit()
	}
	return errors.New("no such color")
}

// The error of a tool's own decoding is for the model, which can correct its arguments. A panic
// is not: the model reads only that decoding failed, and the log has the rest.
func TestT7_ModelsDoNotReadPanicsOfDecoding(t *testing.T) {
	var log bytes.Buffer
	box := mustBox(t, tool.New("paint", "", func(context.Context, map[string]hostileText) (string, error) { return "", nil }))
	r := &tool.Runner{Log: slog.New(slog.NewTextHandler(&log, nil))}
	const hidden = "the arguments cannot be decoded into the types of the tool"
	for text, want := range map[string]string{"red": "no such color", "panic": hidden, "exit": hidden} {
		log.Reset()
		res, rec := do(t, r, box, call("1", "paint", `{"a":"`+text+`"}`))
		wantKind(t, res, rec, tool.ErrorArguments)
		if got := res.Text(); !strings.Contains(got, want) || strings.Contains(got, "12345") {
			t.Errorf("%s: the model reads %q", text, got)
		}
		if logged := log.Len() > 0; logged != (want == hidden) || strings.Contains(log.String(), "12345") != (text == "panic") {
			t.Errorf("%s: the log has %s", text, &log)
		}
	}
}

func TestFreeformToolWithoutGrammarDescribesItsInput(t *testing.T) {
	box := mustBox(t, tool.Freeform("note", "Takes a note.", nil, func(_ context.Context, text string) (any, error) { return text, nil }))
	res, rec := do(t, &tool.Runner{}, box, call("1", "note", `{"text":"x"}`))
	wantKind(t, res, rec, tool.ErrorArguments)
	if got := res.Text(); !strings.Contains(got, "the tool takes text") || strings.Contains(got, "grammar") {
		t.Errorf("%s", got)
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{}`, `{"n":1,}`, "```json\n{\"n\":\"1\"}\n```", `"{\"n\":1}"`, `{"n":True}`, `{"arguments":{"n":1}}`, `{"n":"`, "\xff", `{"n":1e999}`, `[[[[`} {
		f.Add(s)
	}
	box := mustBox(f, argumentsTool(`{"type":"object","properties":{"n":{"type":"integer","default":1},"o":{"type":"object"}},"additionalProperties":false}`,
		tool.Set(func(s *tool.Settings) { s.Coerce = true })))
	f.Fuzz(func(t *testing.T, args string) {
		res, rec := do(t, &tool.Runner{}, box, call("1", "f", args))
		if rec.OK && dragoman.CheckArguments(res.Display) != nil {
			t.Fatalf("%q runs as %q", args, res.Display)
		}
		if !rec.OK && rec.ErrorKind != tool.ErrorArguments {
			t.Fatalf("%q: %s", args, rec.ErrorKind)
		}
	})
}
