package interop_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// The rules of three wires, for these tests. The behavior of a registry must follow from this
// data, not from the package that provides it.
func limitsOf(d dragoman.Dialect) targets.Limits {
	switch d {
	case dialectname.OpenAIChat:
		return targets.Limits{
			Dialect: d, Name: targets.NameRule{Rest: "a-zA-Z0-9_-", Max: 64}, ID: targets.IDRule{Max: 40},
			SchemaFormats: []dragoman.Format{toolformat.ChatFunction, toolformat.ChatCustom},
		}
	case dialectname.OpenAIResponses:
		return targets.Limits{
			Dialect: d, Name: targets.NameRule{Rest: "a-zA-Z0-9_-", Max: 128}, ID: targets.IDRule{Max: 64},
			SchemaFormats: []dragoman.Format{toolformat.ResponsesFunction, toolformat.ResponsesCustom, toolformat.ResponsesNamespace},
		}
	default:
		return targets.Limits{
			Dialect: d, Name: targets.NameRule{Rest: "a-zA-Z0-9_-", Max: 128}, ID: targets.IDRule{Chars: "a-zA-Z0-9_-"},
			SchemaFormats: []dragoman.Format{toolformat.AnthropicTool}, ResultMedia: true, ErrorFlag: true,
		}
	}
}

var threeDialects = []dragoman.Dialect{dialectname.OpenAIChat, dialectname.OpenAIResponses, dialectname.Anthropic}

func functionFormat(d dragoman.Dialect) dragoman.Format {
	return map[dragoman.Dialect]dragoman.Format{
		dialectname.OpenAIChat:      toolformat.ChatFunction,
		dialectname.OpenAIResponses: toolformat.ResponsesFunction,
		dialectname.Anthropic:       toolformat.AnthropicTool,
	}[d]
}

// registry returns a registry for d; edit may change the options.
func registry(d dragoman.Dialect, tools []dragoman.ToolSpec, edit ...func(*interop.Options)) *interop.Registry {
	o := interop.Options{Target: targets.Target{Dialect: d}, Limits: limitsOf(d), Tools: tools}
	for _, e := range edit {
		e(&o)
	}
	return all.Registry(o)
}

func profile(t *testing.T, name string) schema.Profile {
	t.Helper()
	p, ok := all.Profile(name)
	if !ok {
		t.Fatal("no profile", name)
	}
	return p
}

func codecOf(d dragoman.Dialect) toolwire.Codec {
	for _, c := range all.Codecs() {
		if c.Traits().Dialect == d {
			return c
		}
	}
	return nil
}

// toolFormat and callFormat return the format of a tool or call of dialect d.
func toolFormat(d dragoman.Dialect, obj json.RawMessage) dragoman.Format {
	return codecOf(d).ToolFormat(obj)
}

func callFormat(d dragoman.Dialect, obj json.RawMessage) dragoman.Format {
	return codecOf(d).CallFormat(jsonwire.Value{Raw: obj})
}

func withCaps(c targets.Capabilities) func(*interop.Options) {
	return func(o *interop.Options) { o.Target.Caps = c }
}

func contributed(cs ...dragoman.Contribution) func(*interop.Options) {
	return func(o *interop.Options) { o.Contributions = cs }
}

// writeTools returns the array of tools that the target of the registry gets.
func writeTools(t *testing.T, reg *interop.Registry, tools []dragoman.ToolSpec) (string, dragoman.Report) {
	t.Helper()
	var w jsonwire.Writer
	var rep dragoman.Report
	w.BeginArray()
	n, err := reg.WriteTools(&w, tools, &rep)
	w.EndArray()
	if err != nil {
		t.Fatalf("WriteTools: %v", err)
	}
	var elems []json.RawMessage
	if err := json.Unmarshal(w.Buf, &elems); err != nil {
		t.Fatalf("not a JSON array: %v\n%s", err, w.Buf)
	}
	if n != len(elems) {
		t.Errorf("WriteTools says %d elements, wrote %d: %s", n, len(elems), w.Buf)
	}
	return string(w.Buf), rep
}

func writeCall(t *testing.T, reg *interop.Registry, c *dragoman.ToolCall) (string, dragoman.Report) {
	t.Helper()
	var w jsonwire.Writer
	var rep dragoman.Report
	if err := reg.WriteCall(&w, c, extra.At(""), &rep); err != nil {
		t.Fatalf("WriteCall: %v", err)
	}
	valid(t, w.Buf)
	return string(w.Buf), rep
}

func writeResult(t *testing.T, reg *interop.Registry, r *dragoman.ToolResult) (string, []dragoman.Part, dragoman.Report) {
	t.Helper()
	var w jsonwire.Writer
	var rep dragoman.Report
	spill, err := reg.WriteResult(&w, r, extra.At(""), &rep)
	if err != nil {
		t.Fatalf("WriteResult: %v", err)
	}
	valid(t, w.Buf)
	return string(w.Buf), spill, rep
}

// valid fails unless b is JSON without a duplicate key.
func valid(t *testing.T, b []byte) {
	t.Helper()
	if err := jsonwire.Check(b); err != nil {
		t.Fatalf("wrote unsound JSON: %v\n%s", err, b)
	}
}

// sameJSON compares JSON values, not their text.
func sameJSON(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("got no JSON: %v\n%s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("want no JSON: %v\n%s", err, want)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func mustContain(t *testing.T, s, part string) {
	t.Helper()
	if !strings.Contains(s, part) {
		t.Errorf("no %q in\n%s", part, s)
	}
}

func mustNotContain(t *testing.T, s, part string) {
	t.Helper()
	if strings.Contains(s, part) {
		t.Errorf("%q occurs in\n%s", part, s)
	}
}

// lost fails unless the report has a loss of this kind whose text contains part.
func lost(t *testing.T, rep dragoman.Report, kind dragoman.LossKind, part string) dragoman.Loss {
	t.Helper()
	for _, l := range rep.Losses {
		if l.Kind == kind && strings.Contains(l.Detail, part) {
			return l
		}
	}
	t.Errorf("no %s loss with %q in the report:\n%s", kind, part, rep)
	return dragoman.Loss{}
}

func lossless(t *testing.T, rep dragoman.Report) {
	t.Helper()
	if len(rep.Losses) > 0 {
		t.Errorf("unexpected losses:\n%s", rep)
	}
}

func native(f dragoman.Format, obj string) dragoman.Native {
	return dragoman.Native{Format: f, JSON: json.RawMessage(obj)}
}

func fn(name string) dragoman.ToolSpec {
	return dragoman.ToolSpec{Name: name, Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}
}

func text(s string) *dragoman.Text { return &dragoman.Text{Text: s} }

var root = extra.At("")
