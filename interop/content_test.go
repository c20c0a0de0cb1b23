package interop_test

import (
	"encoding/json"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

func read(d dragoman.Dialect, obj string) dragoman.Part {
	switch d {
	case dragoman.OpenAIChat:
		return interop.ReadChatPart(json.RawMessage(obj))
	case dragoman.OpenAIResponses:
		return interop.ReadResponsesPart(json.RawMessage(obj))
	default:
		return interop.ReadAnthropicPart(json.RawMessage(obj))
	}
}

func write(t *testing.T, d dragoman.Dialect, p dragoman.Part, caps dragoman.Capabilities) (string, dragoman.Report) {
	t.Helper()
	var w jsonwire.Writer
	var rep dragoman.Report
	reg := registry(d, nil, withCaps(caps))
	switch d {
	case dragoman.OpenAIChat:
		reg.WriteChatPart(&w, p, root, &rep)
	case dragoman.OpenAIResponses:
		reg.WriteResponsesPart(&w, p, false, root, &rep)
	default:
		switch p := p.(type) {
		case *dragoman.Text:
			interop.WriteAnthropicText(&w, p, root, &rep)
		case *dragoman.Media:
			reg.WriteAnthropicMedia(&w, p, root, &rep)
		case *dragoman.Opaque:
			w.Raw(p.JSON)
		}
	}
	return string(w.Buf), rep
}

func TestParts_EveryPartComesBackToItsOwnDialect(t *testing.T) {
	for d, parts := range map[dragoman.Dialect][]string{
		dragoman.OpenAIChat: {
			`{"type":"text","text":"x"}`, `{"type":"text","text":"x","new":1}`, `{"type":"refusal","refusal":"no","new":1}`,
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"high","new":1}}`, `{"type":"image_url","image_url":{"url":"https://x/y"}}`,
			`{"type":"image_url","image_url":"https://x/y"}`, `{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}}`, `{"type":"input_audio","input_audio":"AA=="}`,
			`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}}`, `{"type":"file","file":{"file_id":"f"}}`, `{"type":"file","file":{"file_data":"AA=="}}`,
			`{"type":"video_url","video_url":{"url":"https://x/y.mp4"}}`, `{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}`,
			`{"type":"unheard_of","a":[1.0]}`, `{"type":"text","text":5}`, `["not a part"]`, `5`,
		},
		dragoman.OpenAIResponses: {
			`{"type":"input_text","text":"x"}`, `{"type":"text","text":"x"}`, `{"type":"refusal","refusal":"no"}`,
			`{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"low"}`, `{"type":"input_image","file_id":"f","detail":"auto"}`,
			`{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}`, `{"type":"input_file","file_url":"https://x/a.pdf"}`,
			`{"type":"input_file","filename":"a","file_data":"AA=="}`, `{"type":"computer_screenshot","image_url":"x"}`, `null`,
		},
		dragoman.Anthropic: {
			`{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"},"citations":[{"type":"char_location"}]}`,
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}`, `{"type":"image","source":{"type":"url","url":"https://x/y"}}`,
			`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"},"title":"t"}`, `{"type":"document","source":{"type":"file","file_id":"f"},"context":"c"}`,
			`{"type":"document","source":{"type":"content","content":[]}}`, `{"type":"search_result","title":"x"}`,
		},
	} {
		for _, obj := range parts {
			t.Run(string(d)+"/"+obj, func(t *testing.T) {
				out, rep := write(t, d, read(d, obj), dragoman.Capabilities{})
				sameJSON(t, out, obj)
				lossless(t, rep)
			})
		}
	}
}

func TestParts_MediaMeansTheSameInEveryDialect(t *testing.T) {
	image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}`
	part := read(dragoman.OpenAIChat, image)
	out, rep := write(t, dragoman.OpenAIResponses, part, dragoman.Capabilities{})
	sameJSON(t, out, `{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"auto"}`)
	lossless(t, rep)
	out, _ = write(t, dragoman.Anthropic, read(dragoman.OpenAIResponses, out), dragoman.Capabilities{})
	sameJSON(t, out, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}`)
	out, _ = write(t, dragoman.OpenAIChat, read(dragoman.Anthropic, out), dragoman.Capabilities{})
	sameJSON(t, out, image)

	pdf := `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA=="},"title":"r.pdf"}`
	out, rep = write(t, dragoman.OpenAIChat, read(dragoman.Anthropic, pdf), dragoman.Capabilities{})
	sameJSON(t, out, `{"type":"file","file":{"file_data":"data:application/pdf;base64,AA=="}}`)
	lost(t, rep, dragoman.Dropped, "document title")
}

func TestParts_WhatAWireCannotCarryIsANoteAndALoss(t *testing.T) {
	for _, tc := range []struct {
		name string
		d    dragoman.Dialect
		part dragoman.Part
		caps dragoman.Capabilities
		want string
		sev  dragoman.Severity
	}{
		{"a file by URL in Chat", dragoman.OpenAIChat, &dragoman.Media{Media: dragoman.MediaFile, URL: "https://x/a.pdf"}, dragoman.Capabilities{}, `{"type":"text","text":"[file https://x/a.pdf not shown]"}`, dragoman.Serious},
		{"an image by id in Chat", dragoman.OpenAIChat, &dragoman.Media{Media: dragoman.MediaImage, FileID: "f"}, dragoman.Capabilities{}, `{"type":"text","text":"[image f not shown]"}`, dragoman.Serious},
		{"sound by URL in Chat", dragoman.OpenAIChat, &dragoman.Media{Media: dragoman.MediaAudio, URL: "https://x/a.wav", Name: "a.wav"}, dragoman.Capabilities{}, `{"type":"text","text":"[audio a.wav not shown]"}`, dragoman.Serious},
		{"a text document in Chat", dragoman.OpenAIChat, &dragoman.Media{Media: dragoman.MediaFile, Text: "words"}, dragoman.Capabilities{}, `{"type":"text","text":"words"}`, dragoman.Info},
		{"a text document in Responses", dragoman.OpenAIResponses, &dragoman.Media{Media: dragoman.MediaFile, Text: "words"}, dragoman.Capabilities{}, `{"type":"input_text","text":"words"}`, dragoman.Info},
		{"a film in Anthropic", dragoman.Anthropic, &dragoman.Media{Media: dragoman.MediaVideo, URL: "https://x/a.mp4"}, dragoman.Capabilities{}, `{"type":"text","text":"[video https://x/a.mp4 not shown]"}`, dragoman.Serious},
		{"sound in Responses", dragoman.OpenAIResponses, &dragoman.Media{Media: dragoman.MediaAudio, MIME: "audio/wav", Base64: "AA=="}, dragoman.Capabilities{}, `{"type":"input_text","text":"[audio not shown]"}`, dragoman.Serious},
		{"an image for a blind model in Chat", dragoman.OpenAIChat, png, dragoman.Capabilities{NoImages: true}, `{"type":"text","text":"[image not shown]"}`, dragoman.Serious},
		{"a file without a name in Responses", dragoman.OpenAIResponses, &dragoman.Media{Media: dragoman.MediaFile, MIME: "application/pdf", Base64: "AA=="}, dragoman.Capabilities{}, `{"type":"input_file","filename":"file","file_data":"data:application/pdf;base64,AA=="}`, dragoman.Info},
		{"mp3 by its other name", dragoman.OpenAIChat, &dragoman.Media{Media: dragoman.MediaAudio, MIME: "audio/mpeg", Base64: "AA=="}, dragoman.Capabilities{}, `{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}}`, -1},
		{"a breakpoint where the model takes one", dragoman.OpenAIChat, &dragoman.Text{Text: "x", Cache: &dragoman.CacheHint{TTL: "1h"}}, dragoman.Capabilities{CacheBreakpoints: true}, `{"type":"text","text":"x","prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}}`, dragoman.Info},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, rep := write(t, tc.d, tc.part, tc.caps)
			sameJSON(t, out, tc.want)
			if tc.sev < 0 {
				lossless(t, rep)
				return
			}
			if rep.Err(tc.sev) == nil || rep.Err(tc.sev+1) != nil {
				t.Errorf("want a loss that is %v:\n%s", tc.sev, rep)
			}
		})
	}
}

func TestParts_ABlockOfAnotherDialectIsNeverWritten(t *testing.T) {
	o := &dragoman.Opaque{Dialect: dragoman.Anthropic, Type: "search_result", JSON: json.RawMessage(`{"type":"search_result"}`)}
	for _, d := range []dragoman.Dialect{dragoman.OpenAIChat, dragoman.OpenAIResponses} {
		out, rep := write(t, d, o, dragoman.Capabilities{})
		if out != "" {
			t.Errorf("%s: %s", d, out)
		}
		if l := lost(t, rep, dragoman.Dropped, "search_result"); l.Severity != dragoman.Serious {
			t.Errorf("only %v", l)
		}
	}
}

func TestParts_ACacheBreakpointIsReadInItsOwnDialectsSpelling(t *testing.T) {
	const explicit, ephemeral = `"prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}`, `"cache_control":{"type":"ephemeral","ttl":"12h"}`
	for _, tc := range []struct {
		d      dragoman.Dialect
		member string
		hint   bool // it is understood
		kept   bool // its spelling is kept
	}{
		{dragoman.OpenAIChat, explicit, true, false},
		{dragoman.OpenAIChat, ephemeral, true, true}, // of a compatible server
		{dragoman.OpenAIResponses, explicit, true, false},
		{dragoman.OpenAIResponses, ephemeral, false, true},
		{dragoman.Anthropic, explicit, false, true},
		{dragoman.Anthropic, ephemeral, true, false},
	} {
		parts := map[dragoman.Dialect][2]string{
			dragoman.OpenAIChat:      {`{"type":"text","text":"x",`, `{"type":"image_url","image_url":{"url":"https://x"},`},
			dragoman.OpenAIResponses: {`{"type":"input_text","text":"x",`, `{"type":"input_image","image_url":"https://x",`},
			dragoman.Anthropic:       {`{"type":"text","text":"x",`, `{"type":"image","source":{"type":"url","url":"https://x"},`},
		}[tc.d]
		for _, part := range parts {
			var hint *dragoman.CacheHint
			var kept *dragoman.Extra
			switch p := read(tc.d, part+tc.member+"}").(type) {
			case *dragoman.Text:
				hint, kept = p.Cache, p.Extra
			case *dragoman.Media:
				hint, kept = p.Cache, p.Extra
			default:
				t.Errorf("%s: read as %T", part, p)
			}
			if understood := hint != nil && hint.TTL == "12h"; understood != tc.hint || (kept != nil) != tc.kept {
				t.Errorf("%s %s%s}: hint %+v, kept %+v", tc.d, part, tc.member, hint, kept)
			}
		}
	}
}
