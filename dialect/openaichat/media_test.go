package openaichat_test

import (
	"errors"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/targets"
)

func png() *dragoman.Media {
	return &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "AA==", Name: "a.png"}
}

func film() *dragoman.Media {
	return &dragoman.Media{Media: codes.MediaVideo, URL: "https://x/a.mp4"}
}

// seriously checks that the report holds exactly one loss, and that it is
// serious and at this place.
func seriously(t *testing.T, rep dragoman.Report, path string) {
	t.Helper()
	if len(rep.Losses) != 1 || rep.Losses[0].Severity != dragoman.Serious || rep.Losses[0].Path != path {
		t.Errorf("want one serious loss at %s:\n%s", path, rep)
	}
}

func TestMedia_OnlyTheUserSendsAny(t *testing.T) {
	for name, media := range map[string]*dragoman.Media{
		"an image": {Media: codes.MediaImage, MIME: "image/png", Base64: "AA==", Name: "a"},
		"a file":   {Media: codes.MediaFile, FileID: "a"},
		"a sound":  {Media: codes.MediaAudio, MIME: "audio/wav", Base64: "AA==", Name: "a"},
		"a film":   {Media: codes.MediaVideo, URL: "a", Name: "a"},
	} {
		for _, role := range []dragoman.Role{dragoman.RoleAssistant, dragoman.RoleSystem, dragoman.RoleDeveloper} {
			t.Run(name+" in "+string(role), func(t *testing.T) {
				note := "[" + media.Media + " a not shown]"
				ms, rep := messages(t, targets.Target{Provider: "kin"}, dragoman.Message{Role: role, Parts: []dragoman.Part{media}})
				sameJSON(t, ms[0], `{"role":"`+string(role)+`","content":"`+note+`"}`)
				seriously(t, rep, "/messages/0/parts/0")
			})
		}
		t.Run(name+" in instructions", func(t *testing.T) {
			m, rep := encodeRequest(t, &dragoman.Request{Model: "m", Instructions: []dragoman.Part{text("see"), media}}, dialect.EncodeOptions{})
			sameJSON(t, string(m["messages"]), `[{"role":"system","content":[{"type":"text","text":"see"},{"type":"text","text":"[`+media.Media+` a not shown]"}]}]`)
			seriously(t, rep, "/instructions/1")
		})
	}
	t.Run("a text document is text anywhere", func(t *testing.T) {
		ms, rep := messages(t, targets.Target{}, dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Media{Media: codes.MediaFile, Text: "words"}}})
		has(t, ms[0], `"words"`)
		if rep.Err(dragoman.Warn) != nil {
			t.Errorf("%s", rep)
		}
	})
	t.Run("in a response", func(t *testing.T) {
		enc, err := codec.EncodeResponse(&dragoman.Response{ID: "r", Created: time.Unix(1, 0), Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{png()}}}}, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		has(t, string(enc.Body), `"content":"[image a.png not shown]"`)
		seriously(t, enc.Report, "/output/0/parts/0")
	})
}

func TestMedia_AMessageOfThisDialectKeepsWhatItHad(t *testing.T) {
	for _, msg := range []string{
		`{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}`,
		`{"role":"system","content":[{"type":"file","file":{"file_id":"f"}}]}`,
		`{"role":"developer","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}]}`,
		`{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://x/a.mp4"}}]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":""}},{"type":"file","file":{}}]}`,
	} {
		req, _ := decodeRequest(t, `{"model":"m","messages":[`+msg+`]}`)
		m, rep := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
		sameJSON(t, string(m["messages"]), `[`+msg+`]`)
		lossless(t, rep)
	}
}

func TestMedia_AFilmGoesOnlyToServersThatAreNotOpenAIs(t *testing.T) {
	user := dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{film()}}
	for _, provider := range []string{"", "openai", "openai-chat", "work"} { // a name says nothing
		ms, rep := messages(t, targets.Target{Provider: provider}, user)
		sameJSON(t, ms[0], `{"role":"user","content":"[video https://x/a.mp4 not shown]"}`)
		seriously(t, rep, "/messages/0/parts/0")
	}
	ms, rep := messages(t, targets.Target{Provider: "zai", Caps: targets.Capabilities{AnyMedia: true}}, user)
	sameJSON(t, ms[0], `{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://x/a.mp4"}}]}`)
	lossless(t, rep)

	// The media of a result follows in a user message, under the same rule.
	result := dragoman.Message{Role: dragoman.RoleTool, Parts: []dragoman.Part{&dragoman.ToolResult{CallID: "a", Content: []dragoman.Part{film(), png()}}}}
	ms, rep = messages(t, targets.Target{}, result)
	has(t, ms[1], `[video https://x/a.mp4 not shown]`)
	has(t, ms[1], `data:image/png;base64,AA==`)
	hasNot(t, ms[1], "video_url")
	lost(t, rep, dragoman.Dropped, "OpenAI takes no video")
}

func TestMedia_ContentThatIsMissingOrMisplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		media *dragoman.Media
		want  string
		kind  dragoman.LossKind // of the one loss; empty means none
		sev   dragoman.Severity
	}{
		"no content":               {&dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Name: "a"}, `{"type":"text","text":"[image a not shown]"}`, dragoman.Dropped, dragoman.Serious},
		"no content of a file":     {&dragoman.Media{Media: codes.MediaFile}, `{"type":"text","text":"[file not shown]"}`, dragoman.Dropped, dragoman.Serious},
		"an image without a type":  {&dragoman.Media{Media: codes.MediaImage, Base64: "AA=="}, `{"type":"image_url","image_url":{"url":"data:application/octet-stream;base64,AA=="}}`, dragoman.Synthesized, dragoman.Warn},
		"a sound without a type":   {&dragoman.Media{Media: codes.MediaAudio, Base64: "AA=="}, `{"type":"input_audio","input_audio":{"data":"AA=="}}`, dragoman.Dropped, dragoman.Warn},
		"an image's data URI":      {&dragoman.Media{Media: codes.MediaImage, Base64: "data:image/png;base64,AA=="}, `{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}`, "", 0},
		"the type of the URI wins": {&dragoman.Media{Media: codes.MediaImage, MIME: "image/gif", Base64: "data:image/png;base64,AA=="}, `{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}`, "", 0},
		"a sound's data URI":       {&dragoman.Media{Media: codes.MediaAudio, Base64: "data:audio/mpeg;base64,AA=="}, `{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}}`, "", 0},
		"a file's data URI":        {&dragoman.Media{Media: codes.MediaFile, Base64: "data:application/pdf;base64,AA=="}, `{"type":"file","file":{"file_data":"data:application/pdf;base64,AA=="}}`, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			before := *tc.media
			ms, rep := messages(t, targets.Target{}, dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{tc.media}})
			sameJSON(t, ms[0], `{"role":"user","content":[`+tc.want+`]}`)
			if *tc.media != before {
				t.Error("the request was changed")
			}
			if tc.kind == "" {
				lossless(t, rep)
			} else if len(rep.Losses) != 1 || rep.Losses[0].Kind != tc.kind || rep.Losses[0].Severity != tc.sev {
				t.Errorf("%s", rep)
			}
		})
	}
}

func TestToolChoice_AnUnknownModeIsInvalid(t *testing.T) {
	for _, tools := range [][]dragoman.ToolSpec{nil, {fn("f")}} {
		for _, mode := range []string{"", "any", "sometimes"} {
			_, err := codec.EncodeRequest(&dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("x")}, Tools: tools, ToolChoice: &dragoman.ToolChoice{Mode: mode}}, dialect.EncodeOptions{})
			if !errors.Is(err, dragoman.ErrInvalid) {
				t.Fatalf("%q: %v", mode, err)
			}
			has(t, err.Error(), `"`+mode+`"`)
		}
	}
	// A mode that the wire knows and we do not goes back as it came.
	const choice = `{"type":"allowed_tools","allowed_tools":{"mode":"sometimes","tools":[{"type":"function","function":{"name":"f"}}]}}`
	req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":`+choice+`}`)
	m, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
	sameJSON(t, string(m["tool_choice"]), choice)
}

func TestReasoning_SettingsThatSayLittleOrTooMuch(t *testing.T) {
	for name, tc := range map[string]struct {
		set    dragoman.ReasoningSettings
		effort string
		loss   string // detail of the one loss; empty means none
	}{
		"off":                       {dragoman.ReasoningSettings{Mode: codes.ReasoningOff}, `"none"`, ""},
		"off, said twice":           {dragoman.ReasoningSettings{Mode: codes.ReasoningOff, Effort: "none"}, `"none"`, ""},
		"off beside an effort":      {dragoman.ReasoningSettings{Mode: codes.ReasoningOff, Effort: "high"}, `"none"`, `effort "high" contradicts mode off`},
		"off beside a budget":       {dragoman.ReasoningSettings{Mode: codes.ReasoningOff, BudgetTokens: ptr(int64(1024))}, `"none"`, "contradicts mode off"},
		"a number alone":            {dragoman.ReasoningSettings{BudgetTokens: ptr(int64(1024))}, `"low"`, "written as effort low"},
		"a budget":                  {dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: ptr(int64(20_000))}, `"high"`, "written as effort high"},
		"a budget without a number": {dragoman.ReasoningSettings{Mode: codes.ReasoningBudget}, "", "names no budget"},
		"an effort and a number":    {dragoman.ReasoningSettings{Effort: "low", BudgetTokens: ptr(int64(1024))}, `"low"`, "Chat has no budget"},
		"adaptive and a number":     {dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive, BudgetTokens: ptr(int64(1024))}, "", "contradicts mode adaptive"},
		"adaptive":                  {dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive}, "", "adaptive thinking is what the target does"},
		"an effort":                 {dragoman.ReasoningSettings{Effort: "xhigh"}, `"xhigh"`, ""},
		"nothing":                   {dragoman.ReasoningSettings{}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, rep := encodeRequest(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("x")}, Reasoning: &tc.set}, dialect.EncodeOptions{})
			if got := string(m["reasoning_effort"]); got != tc.effort {
				t.Errorf("effort %s, want %s", got, tc.effort)
			}
			if tc.loss == "" {
				lossless(t, rep)
				return
			}
			has(t, rep.String(), tc.loss)
			if len(rep.Losses) != 1 {
				t.Errorf("%s", rep)
			}
		})
	}
}

func TestOutput_ASchemaWithoutAKindIsASchema(t *testing.T) {
	m, _ := encodeRequest(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("x")}, Output: &dragoman.OutputFormat{Name: "n", Schema: []byte(`{"type":"object","properties":{}}`), Strict: codes.StrictOff}}, dialect.EncodeOptions{})
	sameJSON(t, string(m["response_format"]), `{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{}}}}`)
}
