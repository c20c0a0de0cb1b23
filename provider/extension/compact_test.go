package extension_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider/extension"
)

// storedSession is a session with these messages.
type storedSession []dragoman.Message

func (storedSession) ID() string                           { return "s" }
func (s storedSession) Messages() []dragoman.Message       { return s }
func (storedSession) Metadata() map[string]json.RawMessage { return nil }

func TestX9_CompactKeepsCallsWithTheirResults(t *testing.T) {
	asks := dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.ToolCall{ID: "1", Name: "f", Arguments: "{}"}}}
	session := storedSession{
		dragoman.SystemText("be brief"), dragoman.UserText("a"), dragoman.AssistantText("b"),
		dragoman.UserText("c"), asks, dragoman.ToolResults(&dragoman.ToolResult{CallID: "1", Name: "f"}), dragoman.AssistantText("d"),
		dragoman.UserText("e"), dragoman.AssistantText("f"),
	}
	var native []json.RawMessage
	for i := range session {
		native = append(native, json.RawMessage(strconv.Itoa(i)))
	}
	run := func(params string, in extension.ActionInput) (string, extension.ActionResult, error) {
		r := resolve(t, set(t, extension.Compact{Keep: 3, OnSave: true}), extension.Switches{})
		in.Params = json.RawMessage(params)
		res, err := r.Run(t.Context(), "dragoman.compact", extension.CompactID, in)
		var kept []string
		for _, n := range res.Native {
			kept = append(kept, string(n))
		}
		return strings.Join(kept, " "), res, err
	}
	whole := extension.ActionInput{Session: session, Native: native}
	for params, want := range map[string]string{
		"": "0 3 4 5 6 7 8", `{"keep":2}`: "0 7 8", `{"keep":4}`: "0 3 4 5 6 7 8", `{"keep":6}`: "0 3 4 5 6 7 8", `{"keep":8}`: "", `{"keep":100}`: "",
	} {
		got, res, err := run(params, whole)
		if err != nil || got != want {
			t.Errorf("%s: %q, want %q: %v", params, got, want, err)
		}
		if (res.Native == nil) != (res.Metadata == nil) {
			t.Errorf("%s: %s next to %s", params, res.Metadata, res.Native)
		}
	}
	for params, code := range map[string]string{`{"keep":0}`: "invalid_params", `[]`: "invalid_params"} {
		var coded *extension.ActionError
		if _, _, err := run(params, whole); !errors.As(err, &coded) || coded.Code != code {
			t.Errorf("%s: %v", params, err)
		}
	}
	var coded *extension.ActionError
	if _, _, err := run("", extension.ActionInput{Session: session, Native: native[1:]}); !errors.As(err, &coded) || coded.Code != "not_aligned" {
		t.Error(err)
	}
	r := resolve(t, set(t, extension.Compact{Keep: 2, OnSave: true}, extension.Extension(infoExtension{Name: "x"})), extension.Switches{})
	if res, err := r.Triggered(t.Context(), extension.BeforeSave, whole); err != nil || len(res.Native) != 3 || !strings.Contains(string(res.Metadata), `"dropped":6`) {
		t.Errorf("%v %s %s", err, res.Native, res.Metadata)
	}
}
