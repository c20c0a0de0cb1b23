package quirks_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/targets"
)

// A required call of tools that are not sent cannot be satisfied.
func TestQuirkE5_RequiredCallOfUnsentToolsIsAnError(t *testing.T) {
	tools := []dragoman.ToolSpec{
		{Name: "f", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)},
		{Name: "broken", Parameters: json.RawMessage(`{"type":`)},
	}
	ref := func(names ...string) []dragoman.ToolRef {
		refs := []dragoman.ToolRef{}
		for _, n := range names {
			refs = append(refs, dragoman.ToolRef{Name: n})
		}
		return refs
	}
	for _, c := range crosstest.Codecs {
		for _, narrowed := range []bool{false, true} { // the target has no list of allowed tools
			encode := func(mode string, refs []dragoman.ToolRef) (dialect.Encoded, error) {
				return c.EncodeRequest(&dragoman.Request{
					Model: "m", Messages: []dragoman.Message{dragoman.UserText("hi")}, Tools: tools,
					ToolChoice: &dragoman.ToolChoice{Mode: mode, Tools: refs},
				}, dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{NoAllowedTools: narrowed}}})
			}
			for _, refs := range [][]dragoman.ToolRef{ref("gone"), ref("broken"), ref("gone", "broken"), ref()} {
				_, err := encode(dragoman.ChoiceRequired, refs)
				if !errors.Is(err, dragoman.ErrUnsupported) || !strings.Contains(err.Error(), "none of the allowed tools is sent") {
					t.Errorf("%s (narrowed: %v), a call of %v is required: %v", c.Dialect(), narrowed, refs, err)
				}
			}
			for _, gone := range []string{"gone", "broken"} {
				_, err := encode(dragoman.ChoiceTool, ref(gone))
				if !errors.Is(err, dragoman.ErrUnsupported) || !strings.Contains(err.Error(), "names a tool that is not sent") {
					t.Errorf("%s (narrowed: %v), a call of %s is forced: %v", c.Dialect(), narrowed, gone, err)
				}
				// With mode auto, a model without tools can still respond with text.
				enc, err := encode(dragoman.ChoiceAuto, ref(gone))
				if err != nil || strings.Contains(string(enc.Body), gone) ||
					!strings.Contains(enc.Report.String(), "/tool_choice") && !strings.Contains(enc.Report.String(), "allowed tools") {
					t.Errorf("%s (narrowed: %v), %s is allowed: %v %s\n%s", c.Dialect(), narrowed, gone, err, enc.Body, enc.Report)
				}
				if enc, err = encode(dragoman.ChoiceRequired, ref(gone, "f")); err != nil || strings.Contains(string(enc.Body), gone) {
					t.Errorf("%s (narrowed: %v), a call of f or %s is required: %v %s", c.Dialect(), narrowed, gone, err, enc.Body)
				}
			}
		}
	}
}

// If all tools of a request were dropped, a choice that names one of them is an error in every
// dialect. A request that declares no tools has no choice (quirk E3, requirement R6).
func TestQuirkE5_ForcedToolIsAnErrorIfAllToolsWereDropped(t *testing.T) {
	off := false
	for _, c := range crosstest.Codecs {
		encode := func(mode string, tools ...dragoman.ToolSpec) (dialect.Encoded, error) {
			choice := &dragoman.ToolChoice{Mode: mode}
			if mode == dragoman.ChoiceTool {
				choice.Tools = []dragoman.ToolRef{{Name: "broken"}}
			}
			return c.EncodeRequest(&dragoman.Request{
				Model: "m", Messages: []dragoman.Message{dragoman.UserText("hi")}, Tools: tools, ToolChoice: choice, ParallelToolCalls: &off,
			}, dialect.EncodeOptions{})
		}
		broken := dragoman.ToolSpec{Name: "broken", Parameters: json.RawMessage(`{"type":`)}
		if _, err := encode(dragoman.ChoiceTool, broken); !errors.Is(err, dragoman.ErrUnsupported) || !strings.Contains(err.Error(), "names a tool that is not sent") {
			t.Errorf("%s, the forced tool was dropped: %v", c.Dialect(), err)
		}
		for _, mode := range []string{dragoman.ChoiceTool, dragoman.ChoiceRequired} {
			enc, err := encode(mode)
			if err != nil || strings.Contains(string(enc.Body), "tool") {
				t.Errorf("%s, %s without tools: %v %s", c.Dialect(), mode, err, enc.Body)
				continue
			}
			var serious *dragoman.LossError
			if !errors.As(enc.Report.Err(dragoman.Serious), &serious) || serious.Losses[0].Path != "/tool_choice" {
				t.Errorf("%s, %s without tools: %s", c.Dialect(), mode, enc.Report)
			}
		}
	}
}
