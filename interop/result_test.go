package interop_test

import (
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

var png = &dragoman.Media{Media: codes.MediaImage, MIME: "image/png", Base64: "iVBORw0="}

func result(parts ...dragoman.Part) *dragoman.ToolResult {
	return &dragoman.ToolResult{CallID: "c", Name: "f", Content: parts}
}

func TestR9_EnvelopeIsSentOnlyToItsFormat(t *testing.T) {
	res := result(text("three results"))
	res.Envelope = &dragoman.Native{Format: toolformat.AnthropicResult, JSON: json.RawMessage(`[{"type":"search_result","title":"x","source":"y","content":[]}]`)}
	out, _, rep := writeResult(t, registry(dialectname.Anthropic, nil), res)
	sameJSON(t, out, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"search_result","title":"x","source":"y","content":[]}]}`)
	lossless(t, rep)
	for _, d := range []dragoman.Dialect{dialectname.OpenAIChat, dialectname.OpenAIResponses} {
		out, _, rep := writeResult(t, registry(d, nil), res)
		mustContain(t, out, `"three results"`)
		mustNotContain(t, out, "search_result")
		lost(t, rep, dragoman.Lowered, "native result of anthropic.messages")
	}
	for d, f := range map[dragoman.Dialect]dragoman.Format{dialectname.OpenAIChat: toolformat.ChatResult, dialectname.OpenAIResponses: toolformat.ResponsesResult} {
		res.Envelope = &dragoman.Native{Format: f, JSON: json.RawMessage(`[{"type":"odd"}]`)}
		out, _, rep := writeResult(t, registry(d, nil), res)
		mustContain(t, out, `[{"type":"odd"}]`)
		mustNotContain(t, out, "three results")
		lossless(t, rep)
		failed := *res
		failed.Outcome = codes.OutcomeError
		_, _, rep = writeResult(t, registry(d, nil), &failed)
		lost(t, rep, dragoman.Dropped, "error flag")
	}
}

func TestR9_PrivateFieldsNeverReachAWire(t *testing.T) {
	res := result(text("for the model"))
	res.Display, res.Synthetic = "for humans", true
	for _, d := range threeDialects {
		out, _, _ := writeResult(t, registry(d, nil), res)
		mustNotContain(t, out, "for humans")
		mustNotContain(t, out, "ynthetic")
		mustNotContain(t, out, "provider_native_tool_result")
	}
}

func TestR9_DataIsWrittenAsJSON(t *testing.T) {
	res := result(&dragoman.Data{JSON: json.RawMessage(`{"z":1.0,"a":"<"}`)})
	for d, want := range map[dragoman.Dialect]string{
		dialectname.OpenAIChat:      `{"role":"tool","tool_call_id":"c","content":"{\"z\":1.0,\"a\":\"<\"}"}`,
		dialectname.OpenAIResponses: `{"type":"function_call_output","call_id":"c","output":"{\"z\":1.0,\"a\":\"<\"}"}`,
		dialectname.Anthropic:       `{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"{\"z\":1.0,\"a\":\"<\"}"}]}`,
	} {
		out, _, rep := writeResult(t, registry(d, nil), res)
		if out != want {
			t.Errorf("%s: got  %s\nwant %s", d, out, want)
		}
		lossless(t, rep)
	}
}

func TestQuirkD12_ErrorIsAFlagOrAPrefix(t *testing.T) {
	res := result(text("no such file"))
	res.Outcome = codes.OutcomeError
	out, _, rep := writeResult(t, registry(dialectname.Anthropic, nil), res)
	sameJSON(t, out, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"no such file"}],"is_error":true}`)
	lossless(t, rep)
	for _, d := range []dragoman.Dialect{dialectname.OpenAIChat, dialectname.OpenAIResponses} {
		out, _, rep := writeResult(t, registry(d, nil), res)
		mustContain(t, out, `"ERROR: no such file"`)
		mustNotContain(t, out, "is_error")
		lost(t, rep, dragoman.Lowered, "error flag")
	}
	// The prefix is not written twice.
	res.Content = []dragoman.Part{text("ERROR: twice?")}
	out, _, _ = writeResult(t, registry(dialectname.OpenAIChat, nil), res)
	if strings.Count(out, "ERROR: ") != 1 {
		t.Errorf("%s", out)
	}
	// An error without content, or with only a picture, is still an error.
	for _, parts := range [][]dragoman.Part{nil, {png}} {
		res.Content = parts
		for _, d := range []dragoman.Dialect{dialectname.OpenAIChat, dialectname.OpenAIResponses} {
			out, _, _ := writeResult(t, registry(d, nil), res)
			mustContain(t, out, "ERROR: ")
		}
	}
	if res.Content = []dragoman.Part{text("kept")}; res.Text() != "kept" {
		t.Error("the result was changed")
	}
}

func TestDecision133_ErrorPrefixIsLiftedOnRequest(t *testing.T) {
	for d, obj := range map[dragoman.Dialect]string{
		dialectname.OpenAIChat:      `{"role":"tool","tool_call_id":"c","content":"ERROR: no"}`,
		dialectname.OpenAIResponses: `{"type":"function_call_output","call_id":"c","output":"ERROR: no"}`,
	} {
		t.Run(string(d), func(t *testing.T) {
			reg := registry(d, nil)
			var rep dragoman.Report
			r, err := reg.ReadResult(json.RawMessage(obj), false, extra.At(""), &rep)
			if err != nil || r.Outcome != codes.OutcomeUnknown || r.Text() != "ERROR: no" {
				t.Errorf("without asking: %+v, %v", r, err)
			}
			lossless(t, rep)
			r, err = reg.ReadResult(json.RawMessage(obj), true, extra.At("/at"), &rep)
			if err != nil || r.Outcome != codes.OutcomeError || r.Text() != "no" {
				t.Errorf("asked: %+v, %v", r, err)
			}
			if l := lost(t, rep, dragoman.Moved, "error flag"); l.Path != "/at" {
				t.Errorf("reported at %q", l.Path)
			}
			rep = dragoman.Report{}
			r, err = reg.ReadResult(json.RawMessage(strings.ReplaceAll(obj, "ERROR: ", "An ERROR: ")), true, extra.At(""), &rep)
			if err != nil || r.Outcome != codes.OutcomeUnknown {
				t.Errorf("elsewhere in the text: %+v, %v", r, err)
			}
			lossless(t, rep)
		})
	}
	// Anthropic has the flag: without it the result is a success, whatever its text.
	reg := registry(dialectname.Anthropic, nil)
	for obj, want := range map[string]string{
		`{"type":"tool_result","tool_use_id":"c","content":"ERROR: x"}`:                 codes.OutcomeOK,
		`{"type":"tool_result","tool_use_id":"c","content":"x","is_error":true}`:        codes.OutcomeError,
		`{"type":"tool_result","tool_use_id":"c","content":"x","is_error":false}`:       codes.OutcomeOK,
		`{"type":"tool_result","tool_use_id":"c","content":"ERROR: x","is_error":null}`: codes.OutcomeOK,
	} {
		r, err := reg.ReadResult(json.RawMessage(obj), true, extra.At(""), new(dragoman.Report))
		if err != nil || r.Outcome != want || (strings.Contains(obj, "ERROR") && r.Text() != "ERROR: x") {
			t.Errorf("%s: %+v, %v", obj, r, err)
		}
	}
}

func TestQuirkD11_EmptyResultByWire(t *testing.T) {
	for _, res := range []*dragoman.ToolResult{result(), result(text(""))} {
		for d, want := range map[dragoman.Dialect]string{
			dialectname.OpenAIChat:      `{"role":"tool","tool_call_id":"c","content":""}`,
			dialectname.OpenAIResponses: `{"type":"function_call_output","call_id":"c","output":""}`,
			dialectname.Anthropic:       `{"type":"tool_result","tool_use_id":"c"}`,
		} {
			out, _, rep := writeResult(t, registry(d, nil), res)
			sameJSON(t, out, want)
			lossless(t, rep)
		}
	}
}

func TestQuirkD11_EmptyResultsAreRead(t *testing.T) {
	for _, n := range []dragoman.Native{
		native(toolformat.ChatResult, `{"role":"tool","tool_call_id":"c","content":null}`),
		native(toolformat.ChatResult, `{"role":"tool","tool_call_id":"c","content":[]}`),
		native(toolformat.ChatResult, `{"role":"tool","tool_call_id":"c"}`),
		native(toolformat.ResponsesResult, `{"type":"function_call_output","call_id":"c","output":null}`),
		native(toolformat.ResponsesResult, `{"type":"function_call_output","call_id":"c","output":""}`),
		native(toolformat.AnthropicResult, `{"type":"tool_result","tool_use_id":"c"}`),
		native(toolformat.AnthropicResult, `{"type":"tool_result","tool_use_id":"c","content":[]}`),
	} {
		r, _, err := all.Registry(interop.Options{}).InspectResult(n)
		if err != nil || r.CallID != "c" || r.Text() != "" {
			t.Errorf("%s: %+v, %v", n.JSON, r, err)
		}
	}
}

func TestQuirkD13_UnsupportedImagesAreReturned(t *testing.T) {
	res := result(text("a chart"), png)
	out, spill, rep := writeResult(t, registry(dialectname.OpenAIChat, nil), res)
	mustContain(t, out, "a chart")
	mustContain(t, out, "attached image below")
	mustNotContain(t, out, "iVBORw0=")
	if len(spill) != 1 || spill[0] != dragoman.Part(png) {
		t.Errorf("spilled %v", spill)
	}
	lossless(t, rep) // the dialect places the media and reports it

	out, spill, rep = writeResult(t, registry(dialectname.OpenAIResponses, nil), res)
	sameJSON(t, out, `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a chart"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0=","detail":"auto"}]}`)
	if spill != nil {
		t.Errorf("spilled %v", spill)
	}
	lossless(t, rep)

	out, spill, rep = writeResult(t, registry(dialectname.Anthropic, nil), res)
	sameJSON(t, out, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a chart"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0="}}]}`)
	if spill != nil {
		t.Errorf("spilled %v", spill)
	}
	lossless(t, rep)

	_, rep, err := all.Registry(interop.Options{}).ConvertResults([]dragoman.Native{native(toolformat.AnthropicResult,
		`{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]}`)}, toolformat.ChatResult)
	if err != nil {
		t.Fatal(err)
	}
	if l := lost(t, rep, dragoman.Dropped, "media in a result"); l.Severity != dragoman.Serious {
		t.Errorf("a picture with nowhere to go is only %v", l)
	}
}

func TestQuirkD13_MixedMediaIsNamedContent(t *testing.T) {
	out, spill, _ := writeResult(t, registry(dialectname.OpenAIChat, nil), result(png, &dragoman.Media{Media: codes.MediaFile, MIME: "application/pdf", Base64: "JVBE"}))
	mustContain(t, out, "attached content below")
	if len(spill) != 2 {
		t.Errorf("spilled %v", spill)
	}
}

func TestQuirkD14_TargetWithoutImagesGetsANote(t *testing.T) {
	none := withCaps(targets.Capabilities{NoImages: true})
	for _, d := range []dragoman.Dialect{dialectname.OpenAIResponses, dialectname.Anthropic} {
		out, _, rep := writeResult(t, registry(d, nil, none), result(&dragoman.Media{Media: codes.MediaImage, URL: "https://x/y.png"}))
		mustContain(t, out, "[image https://x/y.png not shown]")
		lost(t, rep, dragoman.Dropped, "image")
	}
}

func TestQuirkD33_ToolNameIsWrittenOnceIfWanted(t *testing.T) {
	want := withCaps(targets.Capabilities{ToolResultName: true})
	out, _, _ := writeResult(t, registry(dialectname.OpenAIChat, nil), result(text("x")))
	mustNotContain(t, out, `"name"`)
	out, _, _ = writeResult(t, registry(dialectname.OpenAIChat, nil, want), result(text("x")))
	sameJSON(t, out, `{"role":"tool","name":"f","tool_call_id":"c","content":"x"}`)
	// A result that has a name keeps it, in both cases.
	r, _, err := all.Registry(interop.Options{}).InspectResult(native(toolformat.ChatResult, `{"role":"tool","tool_call_id":"c","name":"f","content":"x"}`))
	if err != nil || r.Name != "f" {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, reg := range []*interop.Registry{registry(dialectname.OpenAIChat, nil), registry(dialectname.OpenAIChat, nil, want)} {
		out, _, _ = writeResult(t, reg, r) // a duplicate key would be an error here
		sameJSON(t, out, `{"role":"tool","name":"f","tool_call_id":"c","content":"x"}`)
	}
}

func TestResults_CustomCallsGetCustomResults(t *testing.T) {
	res := result(text("x"))
	res.Payload = codes.PayloadText
	out, _, _ := writeResult(t, registry(dialectname.OpenAIResponses, nil), res)
	mustContain(t, out, `"custom_tool_call_output"`)
	out, _, _ = writeResult(t, registry(dialectname.OpenAIResponses, nil, withCaps(targets.Capabilities{NoCustomTools: true})), res)
	mustContain(t, out, `"function_call_output"`)
	r, _, err := all.Registry(interop.Options{}).InspectResult(native(toolformat.ResponsesResult, `{"type":"custom_tool_call_output","call_id":"c","output":"x"}`))
	if err != nil || r.Payload != codes.PayloadText {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCacheHints_UnsupportedHintsAreReported(t *testing.T) {
	res := &dragoman.ToolResult{CallID: "c", Content: []dragoman.Part{&dragoman.Text{Text: "x", Cache: &dragoman.CacheHint{}}}, Cache: &dragoman.CacheHint{TTL: "1h"}}
	out, _, rep := writeResult(t, registry(dialectname.Anthropic, nil), res)
	sameJSON(t, out, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],"cache_control":{"type":"ephemeral","ttl":"1h"}}`)
	lossless(t, rep)
	out, _, rep = writeResult(t, registry(dialectname.OpenAIChat, nil), res)
	sameJSON(t, out, `{"role":"tool","tool_call_id":"c","content":"x"}`) // still a string (quirk D34)
	if len(rep.Losses) != 2 {
		t.Errorf("two hints, but the report has\n%s", rep)
	}
	res.Cache = nil
	res.Content = append(res.Content, text("y"))
	out, _, rep = writeResult(t, registry(dialectname.OpenAIChat, nil, withCaps(targets.Capabilities{CacheBreakpoints: true})), res)
	sameJSON(t, out, `{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"x","prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"text","text":"y"}]}`)
	lossless(t, rep)
}

func TestCacheHints_TTLIsMappedToTheNearest(t *testing.T) {
	for ttl, want := range map[string]string{"": "", "5m": "5m", "1h": "1h", "24h": "1h", "30m": "1h", "odd": ""} {
		tool := fn("f")
		tool.Cache = &dragoman.CacheHint{TTL: ttl}
		out, rep := writeTools(t, registry(dialectname.Anthropic, nil), []dragoman.ToolSpec{tool})
		if want == "" {
			mustNotContain(t, out, "ttl")
		} else {
			mustContain(t, out, `"ttl":"`+want+`"`)
		}
		if ttl == want {
			lossless(t, rep)
		} else {
			lost(t, rep, dragoman.Lowered, "cache lifetime")
		}
	}
}

func TestResults_UnknownFieldsAreWrittenToTheirOwnDialectOnly(t *testing.T) {
	for d, obj := range map[dragoman.Dialect]string{
		dialectname.OpenAIChat:      `{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"x","new":1},{"type":"odd","a":1}],"prefix":true}`,
		dialectname.OpenAIResponses: `{"type":"function_call_output","id":"fco","call_id":"c","output":[{"type":"input_text","text":"x"},{"type":"odd","a":1}],"status":"completed"}`,
		dialectname.Anthropic:       `{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"x","citations":[]},{"type":"odd","a":1}],"new":1}`,
	} {
		t.Run(string(d), func(t *testing.T) {
			reg := registry(d, nil)
			r, err := reg.ReadResult(json.RawMessage(obj), false, extra.At(""), new(dragoman.Report))
			if err != nil {
				t.Fatal(err)
			}
			out, _, rep := writeResult(t, reg, r)
			sameJSON(t, out, obj)
			lossless(t, rep)
			for _, other := range threeDialects {
				if other == d {
					continue
				}
				out, _, rep := writeResult(t, registry(other, nil), r)
				mustNotContain(t, out, "odd")
				lost(t, rep, dragoman.Dropped, "odd block")
			}
		})
	}
}

func TestResults_ContentOfAnyShapeIsRead(t *testing.T) {
	for _, n := range []dragoman.Native{
		native(toolformat.ChatResult, `{"role":"tool","tool_call_id":"c","content":{"a":1}}`),
		native(toolformat.ResponsesResult, `{"type":"function_call_output","call_id":"c","output":{"a":1}}`),
		native(toolformat.AnthropicResult, `{"type":"tool_result","tool_use_id":"c","content":{"a":1}}`),
	} {
		r, _, err := all.Registry(interop.Options{}).InspectResult(n)
		if err != nil || r.Text() != `{"a":1}` {
			t.Errorf("%s: %+v, %v", n.JSON, r, err)
		}
	}
}

func TestResults_UnsupportedPartIsReported(t *testing.T) {
	for _, d := range threeDialects {
		_, _, rep := writeResult(t, registry(d, nil), result(text("x"), &dragoman.Reasoning{Text: "y"}))
		lost(t, rep, dragoman.Dropped, "reasoning part")
	}
}
