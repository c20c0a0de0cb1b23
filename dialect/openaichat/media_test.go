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

func video() *dragoman.Media {
	return &dragoman.Media{Media: codes.MediaVideo, URL: "https://x/a.mp4"}
}

// oneSerious checks that the report has exactly one loss, which is serious and has the given
// path.
func oneSerious(t *testing.T, rep dragoman.Report, path string) {
	t.Helper()
	if len(rep.Losses) != 1 || rep.Losses[0].Severity != dragoman.Serious || rep.Losses[0].Path != path {
		t.Errorf("want one serious loss at %s:\n%s", path, rep)
	}
}

func TestMedia_OnlyInUserMessages(t *testing.T) {
	for name, media := range map[string]*dragoman.Media{
		"image": {Media: codes.MediaImage, MIME: "image/png", Base64: "AA==", Name: "a"},
		"file":  {Media: codes.MediaFile, FileID: "a"},
		"audio": {Media: codes.MediaAudio, MIME: "audio/wav", Base64: "AA==", Name: "a"},
		"video": {Media: codes.MediaVideo, URL: "a", Name: "a"},
	} {
		for _, role := range []dragoman.Role{dragoman.RoleAssistant, dragoman.RoleSystem, dragoman.RoleDeveloper} {
			t.Run(name+" in "+string(role), func(t *testing.T) {
				note := "[" + media.Media + " a not shown]"
				ms, rep := messages(t, targets.Target{Provider: "kin"}, dragoman.Message{Role: role, Parts: []dragoman.Part{media}})
				sameJSON(t, ms[0], `{"role":"`+string(role)+`","content":"`+note+`"}`)
				oneSerious(t, rep, "/messages/0/parts/0")
			})
		}
		t.Run(name+" in instructions", func(t *testing.T) {
			m, rep := encodeRequest(t, &dragoman.Request{Model: "m", Instructions: []dragoman.Part{text("see"), media}}, dialect.EncodeOptions{})
			sameJSON(t, string(m["messages"]), `[{"role":"system","content":[{"type":"text","text":"see"},{"type":"text","text":"[`+media.Media+` a not shown]"}]}]`)
			oneSerious(t, rep, "/instructions/1")
		})
	}
	t.Run("text documents are text in every role", func(t *testing.T) {
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
		oneSerious(t, enc.Report, "/output/0/parts/0")
	})
}

func TestMedia_NativeMessagesKeepTheirMedia(t *testing.T) {
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

func TestMedia_VideoIsNotSentToOpenAI(t *testing.T) {
	user := dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{video()}}
	for _, provider := range []string{"", "openai", "openai-chat", "work"} { // the name of a provider has no effect
		ms, rep := messages(t, targets.Target{Provider: provider}, user)
		sameJSON(t, ms[0], `{"role":"user","content":"[video https://x/a.mp4 not shown]"}`)
		oneSerious(t, rep, "/messages/0/parts/0")
	}
	ms, rep := messages(t, targets.Target{Provider: "zai", Caps: targets.Capabilities{AnyMedia: true}}, user)
	sameJSON(t, ms[0], `{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://x/a.mp4"}}]}`)
	lossless(t, rep)

	// The media of a result moves to a user message; the same rule applies.
	result := dragoman.Message{Role: dragoman.RoleTool, Parts: []dragoman.Part{&dragoman.ToolResult{CallID: "a", Content: []dragoman.Part{video(), png()}}}}
	ms, rep = messages(t, targets.Target{}, result)
	has(t, ms[1], `[video https://x/a.mp4 not shown]`)
	has(t, ms[1], `data:image/png;base64,AA==`)
	hasNot(t, ms[1], "video_url")
	lost(t, rep, dragoman.Dropped, "OpenAI does not accept video")
}

func TestMedia_MissingOrMisplacedContent(t *testing.T) {
	for name, tc := range map[string]struct {
		media *dragoman.Media
		want  string
		kind  dragoman.LossKind // kind of the only loss; empty for no loss
		sev   dragoman.Severity
	}{
		"no content":              {&dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Name: "a"}, `{"type":"text","text":"[image a not shown]"}`, dragoman.Dropped, dragoman.Serious},
		"file without content":    {&dragoman.Media{Media: codes.MediaFile}, `{"type":"text","text":"[file not shown]"}`, dragoman.Dropped, dragoman.Serious},
		"image without a type":    {&dragoman.Media{Media: codes.MediaImage, Base64: "AA=="}, `{"type":"image_url","image_url":{"url":"data:application/octet-stream;base64,AA=="}}`, dragoman.Synthesized, dragoman.Warn},
		"audio without a type":    {&dragoman.Media{Media: codes.MediaAudio, Base64: "AA=="}, `{"type":"input_audio","input_audio":{"data":"AA=="}}`, dragoman.Dropped, dragoman.Warn},
		"data URI of an image":    {&dragoman.Media{Media: codes.MediaImage, Base64: "data:image/png;base64,AA=="}, `{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}`, "", 0},
		"type of the URI is used": {&dragoman.Media{Media: codes.MediaImage, MIME: "image/gif", Base64: "data:image/png;base64,AA=="}, `{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}`, "", 0},
		"data URI of audio":       {&dragoman.Media{Media: codes.MediaAudio, Base64: "data:audio/mpeg;base64,AA=="}, `{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}}`, "", 0},
		"data URI of a file":      {&dragoman.Media{Media: codes.MediaFile, Base64: "data:application/pdf;base64,AA=="}, `{"type":"file","file":{"file_data":"data:application/pdf;base64,AA=="}}`, "", 0},
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

func TestToolChoice_UnknownModeIsInvalid(t *testing.T) {
	for _, tools := range [][]dragoman.ToolSpec{nil, {fn("f")}} {
		for _, mode := range []string{"", "any", "sometimes"} {
			_, err := codec.EncodeRequest(&dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("x")}, Tools: tools, ToolChoice: &dragoman.ToolChoice{Mode: mode}}, dialect.EncodeOptions{})
			if !errors.Is(err, dragoman.ErrInvalid) {
				t.Fatalf("%q: %v", mode, err)
			}
			has(t, err.Error(), `"`+mode+`"`)
		}
	}
	// An unknown mode of a decoded request is sent back unchanged.
	const choice = `{"type":"allowed_tools","allowed_tools":{"mode":"sometimes","tools":[{"type":"function","function":{"name":"f"}}]}}`
	req, _ := decodeRequest(t, `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":`+choice+`}`)
	m, _ := encodeRequest(t, req, dialect.EncodeOptions{Rebuild: true})
	sameJSON(t, string(m["tool_choice"]), choice)
}

func TestReasoning_PartialAndContradictorySettings(t *testing.T) {
	for name, tc := range map[string]struct {
		set    dragoman.ReasoningSettings
		effort string
		loss   string // detail of the only loss; empty for no loss
	}{
		"off":                     {dragoman.ReasoningSettings{Mode: codes.ReasoningOff}, `"none"`, ""},
		"off in both fields":      {dragoman.ReasoningSettings{Mode: codes.ReasoningOff, Effort: "none"}, `"none"`, ""},
		"off and an effort":       {dragoman.ReasoningSettings{Mode: codes.ReasoningOff, Effort: "high"}, `"none"`, `effort "high" contradicts mode off`},
		"off and a budget":        {dragoman.ReasoningSettings{Mode: codes.ReasoningOff, BudgetTokens: ptr(int64(1024))}, `"none"`, "contradicts mode off"},
		"number alone":            {dragoman.ReasoningSettings{BudgetTokens: ptr(int64(1024))}, `"low"`, "written as effort low"},
		"budget":                  {dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: ptr(int64(20_000))}, `"high"`, "written as effort high"},
		"budget without a number": {dragoman.ReasoningSettings{Mode: codes.ReasoningBudget}, "", "no budget is set"},
		"effort and a number":     {dragoman.ReasoningSettings{Effort: "low", BudgetTokens: ptr(int64(1024))}, `"low"`, "Chat has no token budgets"},
		"adaptive and a number":   {dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive, BudgetTokens: ptr(int64(1024))}, "", "contradicts mode adaptive"},
		"adaptive":                {dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive}, "", "adaptive thinking is the default"},
		"effort":                  {dragoman.ReasoningSettings{Effort: "xhigh"}, `"xhigh"`, ""},
		"empty":                   {dragoman.ReasoningSettings{}, "", ""},
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

func TestOutput_SchemaImpliesKind(t *testing.T) {
	m, _ := encodeRequest(t, &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("x")}, Output: &dragoman.OutputFormat{Name: "n", Schema: []byte(`{"type":"object","properties":{}}`), Strict: codes.StrictOff}}, dialect.EncodeOptions{})
	sameJSON(t, string(m["response_format"]), `{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{}}}}`)
}
