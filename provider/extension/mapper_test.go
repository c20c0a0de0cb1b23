package extension_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider/extension"
)

func TestX6_MismatchedMappingReturnsItsInput(t *testing.T) {
	messages := []dragoman.Message{dragoman.UserText("a"), dragoman.AssistantText("b")}
	native := []json.RawMessage{json.RawMessage(`{"role":"user"}`), json.RawMessage(`{"role":"assistant","mood":"good"}`)}
	add := func(m *dragoman.Message, o *extension.Object) error { return o.Set("says", m.Text()) }
	read := func(o *extension.Object, m *dragoman.Message) error {
		var mood string
		if found, err := o.Read("mood", &mood); !found || err != nil {
			return err
		}
		m.Parts = append(m.Parts, &dragoman.Text{Text: mood})
		return nil
	}
	out := extension.ToNative(messages, native, add)
	if string(out[0]) != `{"role":"user","says":"a"}` || string(out[1]) != `{"role":"assistant","mood":"good","says":"b"}` || string(native[0]) != `{"role":"user"}` {
		t.Errorf("%s", out)
	}
	back := extension.FromNative(native, messages, read)
	if back[1].Text() != "bgood" || len(messages[1].Parts) != 1 {
		t.Errorf("%q, and what was given is %q", back[1].Text(), messages[1].Text())
	}
	// A replaced part changes only the returned messages.
	back = extension.FromNative(native, messages, func(_ *extension.Object, m *dragoman.Message) error {
		m.Parts[0] = &dragoman.Text{Text: "other"}
		return nil
	})
	if back[0].Text() != "other" || messages[0].Text() != "a" {
		t.Errorf("%q, and what was given is %q", back[0].Text(), messages[0].Text())
	}
	// A single message is a list of one.
	if one := extension.ToNative(messages[:1], native[:1], add); string(one[0]) != `{"role":"user","says":"a"}` {
		t.Errorf("%s", one)
	}
	if out := extension.ToNative(messages[:1], native, add); &out[0] != &native[0] {
		t.Errorf("%s", out)
	}
	if out := extension.FromNative(native[:1], messages, read); &out[0] != &messages[0] {
		t.Errorf("%v", out)
	}
	fails := errors.New("no")
	if out := extension.ToNative(messages, native, func(*dragoman.Message, *extension.Object) error { return fails }); &out[0] != &native[0] {
		t.Errorf("%s", out)
	}
	if out := extension.FromNative([]json.RawMessage{native[0], json.RawMessage(`[]`)}, messages, read); &out[0] != &messages[0] {
		t.Errorf("%v", out)
	}
}

// A mapping changes copies of the messages, whether it succeeds or fails half-way.
func TestX6_MappingChangesCopies(t *testing.T) {
	messages := func() []dragoman.Message {
		var out []dragoman.Message
		for range 2 {
			extra := &dragoman.Extra{Dialect: dialectname.OpenAIChat, Fields: []dragoman.Field{{Path: "/mood", Value: json.RawMessage(`1`)}}}
			out = append(out, dragoman.Message{Role: dragoman.RoleAssistant, Cache: &dragoman.CacheHint{}, Extra: extra, Parts: []dragoman.Part{
				&dragoman.Text{Text: "a", Cache: &dragoman.CacheHint{}}, &dragoman.Reasoning{Text: "b", Summary: []string{"b"}}, &dragoman.Media{URL: "c"},
				&dragoman.ToolCall{ID: "d", Problem: &dragoman.CallProblem{Message: "d"}}, &dragoman.ToolResult{CallID: "e", Content: []dragoman.Part{&dragoman.Text{Text: "e"}}},
				&dragoman.Refusal{Text: "f"}, &dragoman.Data{JSON: json.RawMessage(`1`)}, &dragoman.Opaque{Type: "g"}, (*dragoman.Text)(nil), nil,
			}})
		}
		return out
	}
	scribble := func(m *dragoman.Message) {
		m.Cache.TTL, m.Extra.Fields[0].Path = "x", "/x"
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				if p != nil {
					p.Text, p.Cache.TTL = "x", "x"
				}
			case *dragoman.Reasoning:
				p.Text, p.Summary[0] = "x", "x"
			case *dragoman.Media:
				p.URL = "x"
			case *dragoman.ToolCall:
				p.ID, p.Problem.Message = "x", "x"
			case *dragoman.ToolResult:
				p.CallID, p.Content[0].(*dragoman.Text).Text = "x", "x"
			case *dragoman.Refusal:
				p.Text = "x"
			case *dragoman.Data:
				p.JSON = json.RawMessage(`2`)
			case *dragoman.Opaque:
				p.Type = "x"
			}
		}
	}
	native := []json.RawMessage{json.RawMessage(`{"role":"a"}`), json.RawMessage(`{"role":"b"}`)}
	for _, failing := range []string{"", `"b"`} {
		given := messages()
		out := extension.FromNative(native, given, func(o *extension.Object, m *dragoman.Message) error {
			scribble(m)
			if string(o.Get("role")) == failing {
				return errors.New("no")
			}
			return nil
		})
		if !reflect.DeepEqual(given, messages()) {
			t.Errorf("failing %q: the messages became %+v", failing, given)
		}
		if changed := out[0].Parts[0].(*dragoman.Text).Text == "x"; changed != (failing == "") {
			t.Errorf("failing %q: got %+v", failing, out[0])
		}
		extension.ToNative(given, native, func(m *dragoman.Message, _ *extension.Object) error {
			scribble(m)
			return nil
		})
		if !reflect.DeepEqual(given, messages()) {
			t.Errorf("ToNative: the messages became %+v", given)
		}
	}
}
