package extension_test

import (
	"encoding/json"
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider/extension"
)

func TestX6_AMappingThatDoesNotLineUpReturnsWhatItWasGiven(t *testing.T) {
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
	// A part that is replaced is replaced in what is returned alone.
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
