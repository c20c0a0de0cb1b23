package dragoman_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
)

var update = flag.Bool("update", false, "rewrite golden files")

// everything has one value of each stored type, as in testdata/stored/v1.json.
type everything struct {
	Message  dragoman.Message           `json:"message"`
	Request  dragoman.Request           `json:"request"`
	Response dragoman.Response          `json:"response"`
	Tool     dragoman.ToolSpec          `json:"tool"`
	Hosted   dragoman.ToolSpec          `json:"hosted_tool"`
	Choice   dragoman.ToolChoice        `json:"tool_choice"`
	Parts    partList                   `json:"parts"`
	Events   eventList                  `json:"events"`
	Usage    dragoman.Usage             `json:"usage"`
	Counts   []dragoman.Count           `json:"counts"`
	Stop     dragoman.Stop              `json:"stop"`
	Report   dragoman.Report            `json:"report"`
	Origin   dragoman.Origin            `json:"origin"`
	Sidecar  dragoman.Sidecar           `json:"sidecar"`
	Bytes    dragoman.Sidecar           `json:"sidecar_not_utf8"`
	Extra    dragoman.Extra             `json:"extra"`
	Problem  dragoman.CallProblem       `json:"call_problem"`
	APIError dragoman.APIError          `json:"api_error"`
	Print    dragoman.Fingerprint       `json:"fingerprint"`
	Empty    dragoman.Message           `json:"empty_message"`
	NoTools  dragoman.ToolChoice        `json:"choice_of_no_tool"`
	Sampling dragoman.Sampling          `json:"sampling"`
	Output   dragoman.OutputFormat      `json:"output_format"`
	Source   dragoman.ToolSource        `json:"tool_source"`
	Field    dragoman.Field             `json:"field"`
	Native   dragoman.Native            `json:"native"`
	Cache    dragoman.CacheHint         `json:"cache_hint"`
	Notes    dragoman.Annotations       `json:"annotations"`
	Grammar  dragoman.Grammar           `json:"grammar"`
	Ref      dragoman.ToolRef           `json:"tool_ref"`
	KeyValue dragoman.KeyValue          `json:"key_value"`
	Thinking dragoman.ReasoningSettings `json:"reasoning_settings"`
	Other    dragoman.Candidate         `json:"candidate"`
}

type partList []dragoman.Part

func (l partList) MarshalJSON() ([]byte, error) { return marshalAll(l, dragoman.MarshalPart) }
func (l *partList) UnmarshalJSON(b []byte) (err error) {
	*l, err = unmarshalAll(b, dragoman.UnmarshalPart)
	return err
}

type eventList []dragoman.Event

func (l eventList) MarshalJSON() ([]byte, error) { return marshalAll(l, dragoman.MarshalEvent) }
func (l *eventList) UnmarshalJSON(b []byte) (err error) {
	*l, err = unmarshalAll(b, dragoman.UnmarshalEvent)
	return err
}

func marshalAll[T any](list []T, one func(T) ([]byte, error)) ([]byte, error) {
	raws := []json.RawMessage{}
	for _, v := range list {
		b, err := one(v)
		if err != nil {
			return nil, err
		}
		raws = append(raws, b)
	}
	return json.Marshal(raws)
}

func unmarshalAll[T any](data []byte, one func([]byte) (T, error)) ([]T, error) {
	var raws []json.RawMessage
	if err := json.Unmarshal(data, &raws); err != nil {
		return nil, err
	}
	var list []T
	for _, raw := range raws {
		v, err := one(raw)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func ptr[T any](v T) *T { return &v }

// richValue is written by hand and never changes once version 1 is released, because its
// golden file represents old sessions.
func richValue() everything {
	unknown := &dragoman.Extra{Dialect: dialectname.Anthropic, Fields: []dragoman.Field{{Path: "/delta/a", Value: json.RawMessage(`{ "b":1 }`)}}}
	extra := &dragoman.Extra{Dialect: dialectname.OpenAIChat, Fields: []dragoman.Field{
		{Path: "/logprobs", Value: json.RawMessage("{ \"b\":1.0,\n \"a\" : [\"<&>\"] }")},
		{Path: "/a~1b", Value: json.RawMessage("null")},
	}}
	origin := &dragoman.Origin{Dialect: dialectname.Anthropic, Provider: "anthropic", Scope: "k1:9f", Model: "claude-opus-5-5"}
	native := &dragoman.Native{Format: toolformat.AnthropicToolUse, JSON: json.RawMessage(`{"type":"tool_use",  "n":9007199254740993}`)}
	cache := &dragoman.CacheHint{TTL: "1h"}
	call := &dragoman.ToolCall{
		ID: "toolu_1", Synthetic: true, ItemID: "fc_1", Name: "find", Namespace: "crm", Payload: codes.PayloadText,
		Arguments: "{\"q\": \"<b>é</b>\u2028\"", Hosted: true, Status: codes.StatusIncomplete, Async: true,
		Problem: &dragoman.CallProblem{Code: codes.ProblemInvalidJSON, Message: "the arguments are not valid JSON", Offset: 17},
		Caller:  json.RawMessage(`{ "type":"code" }`), Signature: "c2ln", Cache: cache, Extra: extra,
		PayloadFormat: toolformat.ResponsesCustomCall, PayloadMetadata: json.RawMessage(`{ "lang":"sql" }`),
	}
	text := &dragoman.Text{Text: "Grüße, 世界 👩‍👩‍👧‍👦", Cache: cache, Signature: "c2ln", Extra: extra}
	media := &dragoman.Media{
		Media: codes.MediaFile, MIME: "text/plain", Base64: "aGk=", Text: "hi", URL: "https://example.com/?a=1&b=2",
		FileID: "file-1", Attachment: "att_1", Name: "hi.txt", Title: "Hi", Detail: "low", Cache: &dragoman.CacheHint{}, Extra: extra,
	}
	result := &dragoman.ToolResult{
		CallID: "toolu_1", Name: "find", Namespace: "crm", Payload: codes.PayloadText,
		Content: []dragoman.Part{text, media, &dragoman.Data{JSON: json.RawMessage(`{"rows": [1.50]}`)}},
		Outcome: codes.OutcomeError, Display: "1 row", Envelope: native, Synthetic: true, ItemID: "fco_1",
		Status: codes.StatusInProgress, Caller: json.RawMessage(`{"type":"code"}`), Cache: cache, Extra: extra,
	}
	parts := partList{
		text,
		&dragoman.Reasoning{
			Text: "hm", Summary: []string{"first", ""}, Signature: "c2ln", Encrypted: "ZW5j", Redacted: true, ID: "rs_1",
			Field: "reasoning_content", Details: []json.RawMessage{json.RawMessage(`{"type" : "x"}`), nil, {}},
			Status: codes.StatusIncomplete, Origin: origin, Extra: extra,
		},
		media, call, result,
		&dragoman.Refusal{Text: "no", Extra: extra},
		&dragoman.Data{JSON: json.RawMessage("[1,\t2]")},
		&dragoman.Opaque{Dialect: dialectname.Anthropic, Type: "server_tool_use", JSON: json.RawMessage(`{"type":"server_tool_use", "id":"s1"}`), CallID: "s1", Hosted: true},
	}
	message := dragoman.Message{
		Role: dragoman.RoleAssistant, Name: "ada", Phase: "commentary", Status: codes.StatusIncomplete,
		Parts: parts, Cache: cache, Origin: origin, Extra: extra,
	}
	message.Native = &dragoman.Sidecar{Dialect: dialectname.Anthropic, Raw: json.RawMessage("{\"role\":\"assistant\",\n\"content\":[ ]}"), Mirror: message.Fingerprint()}
	tool := dragoman.ToolSpec{
		Kind: codes.ToolFreeform, Name: "find", Namespace: "crm", NamespaceDescription: "Customers & orders", Description: "Finds <things>.",
		Parameters: json.RawMessage(`{"type":"object", "properties":{"z":{},"a":{}}}`),
		Grammar:    &dragoman.Grammar{Syntax: "lark", Definition: "start: WORD"}, Strict: codes.StrictAuto, Deferred: true,
		OutputSchema: json.RawMessage(`{"type": "string"}`), Examples: []json.RawMessage{json.RawMessage(`{"q": 1}`)},
		Annotations: dragoman.Annotations{Title: "Find", ReadOnly: ptr(true), Destructive: ptr(false), Idempotent: ptr(true), OpenWorld: ptr(false)},
		Cache:       cache, Extra: extra, NamespaceExtra: extra,
	}
	tool.Source = &dragoman.ToolSource{Format: toolformat.AnthropicTool, JSON: json.RawMessage(`{"name":"find",  "input_schema":{}}`), Mirror: tool.Fingerprint()}
	choice := dragoman.ToolChoice{
		Mode: dragoman.ChoiceTool, Native: native, Extra: extra,
		Tools: []dragoman.ToolRef{{Namespace: "crm", Name: "find", Kind: codes.ToolFreeform, Native: native, Extra: extra}},
	}
	sampling := dragoman.Sampling{
		Temperature: ptr(dragoman.Number("1.0")), TopP: ptr(dragoman.Number("0.90")), TopK: ptr(int64(0)),
		FrequencyPenalty: ptr(dragoman.Number("-0")), PresencePenalty: ptr(dragoman.Number("1e-2")),
		Seed: ptr(int64(9007199254740993)), Stop: []string{"\n\n", "</s>"}, Candidates: ptr(int64(2)),
	}
	output := dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "answer", Description: "d", Schema: json.RawMessage(`{ }`), Strict: codes.StrictOn, Dialect: dialectname.OpenAIChat, Extra: extra}
	thinking := dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, Effort: "high", BudgetTokens: ptr(int64(1024)), Summary: "auto", Encrypted: ptr(false), Extra: extra}
	request := dragoman.Request{
		Model: "claude-opus-5-5", Instructions: []dragoman.Part{&dragoman.Text{Text: "Be brief."}},
		Messages: []dragoman.Message{dragoman.UserText("hi"), message}, Tools: []dragoman.ToolSpec{tool}, ToolChoice: &choice,
		ParallelToolCalls: ptr(false), Output: &output, Reasoning: &thinking, Sampling: sampling, MaxOutputTokens: ptr(int64(64)),
		Cache: cache, CacheKey: "k", Metadata: []dragoman.KeyValue{{Key: "z", Value: "1"}, {Key: "a", Value: ""}}, User: "u",
		ServiceTier: "flex", Verbosity: "low", Store: ptr(false), PreviousResponseID: "resp_0", Stream: true, StreamUsage: true, Extra: extra,
	}
	request.Native = &dragoman.Sidecar{Dialect: dialectname.Anthropic, Raw: json.RawMessage("{ }"), Mirror: request.Fingerprint()}
	stop := dragoman.Stop{Reason: dragoman.StopSequence, Native: "stop_sequence", Sequence: "</s>", Details: native}
	usage := dragoman.Usage{
		Input: dragoman.Counted(100), CacheRead: dragoman.Counted(7), CacheWrite: dragoman.Counted(3), Output: dragoman.Counted(50),
		Reasoning: dragoman.Counted(1), Extra: extra,
	}
	apiError := dragoman.APIError{
		Class: dragoman.ErrorOverloaded, Status: 529, Message: "busy", Type: "overloaded_error", Code: "c", Param: "p", RequestID: "req_1",
		RetryAfter: 1500 * time.Millisecond, Native: native, Err: fmt.Errorf("reading: %w", dragoman.ErrIncompleteStream),
	}
	candidate := dragoman.Candidate{Index: 1, Output: []dragoman.Message{dragoman.AssistantText("or")}, Stop: stop, Extra: extra}
	response := dragoman.Response{
		ID: "msg_1", Model: "claude-opus-5-5", Created: time.Unix(1735689600, 5).UTC(), Output: []dragoman.Message{message}, Stop: stop, Usage: usage,
		Alternatives: []dragoman.Candidate{candidate}, ServiceTier: "standard", Error: &apiError, Origin: origin, Extra: extra,
	}
	response.Native = &dragoman.Sidecar{Dialect: dialectname.Anthropic, Raw: json.RawMessage("{\"id\":\"msg_1\" }"), Mirror: response.Fingerprint()}
	header := message
	header.Parts = nil
	return everything{
		Message: message, Request: request, Response: response, Tool: tool,
		Hosted: dragoman.ToolSpec{Kind: codes.ToolHosted, Name: "web_search", Source: &dragoman.ToolSource{Format: "anthropic.messages.hosted", JSON: json.RawMessage(`{"type":"web_search_20250305"}`)}},
		Choice: choice, Parts: parts,
		Events: eventList{
			&dragoman.ResponseStart{Response: dragoman.Response{ID: "msg_1", Usage: dragoman.Usage{Input: dragoman.Counted(0)}}, Extra: unknown},
			&dragoman.Chunk{Dialect: dialectname.Anthropic, Raw: []byte("event: ping\r\ndata: {\"type\": \"ping\"}\r\n\r\n"), Opaque: true, Loss: &dragoman.Loss{Kind: dragoman.Dropped, Severity: dragoman.Warn, Path: "/a", Detail: "an event"}},
			&dragoman.PartStart{Choice: 1, Index: 2, Message: 3, Part: &dragoman.ToolCall{ID: "toolu_1", Name: "find"}, Header: &header, Extra: unknown},
			&dragoman.PartDelta{Choice: 1, Index: 2, Kind: codes.KindToolCall, Text: "{\"q\"", Summary: 1, Extra: unknown},
			&dragoman.PartEnd{Choice: 1, Index: 2, Part: call, Header: &header, Extra: unknown},
			&dragoman.ResponseEnd{Stop: stop, Stops: []dragoman.Stop{stop, {}}, Usage: usage, Response: dragoman.Response{ServiceTier: "standard"}, Extra: unknown},
			&dragoman.StreamError{Err: &apiError, Usage: dragoman.Usage{Input: dragoman.Counted(3), Output: dragoman.Counted(4)}},
		},
		Usage: dragoman.Usage{Input: dragoman.Counted(0), Output: dragoman.Counted(5)}, Counts: []dragoman.Count{{}, dragoman.Counted(0), dragoman.Counted(9007199254740993)},
		Stop: stop, Report: dragoman.Report{Losses: []dragoman.Loss{
			{Kind: dragoman.Renamed, Severity: dragoman.Info, Path: "/tools/0", Detail: "tool \"a.b\" written as \"a_b\"", From: "a.b", To: "a_b"},
			{Kind: dragoman.Lowered, Severity: dragoman.Warn, Path: "/tools/0", Detail: "no grammar"},
			{Kind: dragoman.Dropped, Severity: dragoman.Info, Path: "", Detail: ""},
		}},
		Origin: *origin, Sidecar: *message.Native, Bytes: dragoman.Sidecar{Dialect: "x", Raw: json.RawMessage("{\"a\":\"\xff\xfe\"}")},
		Extra: *extra, Problem: dragoman.CallProblem{Code: codes.ProblemStopped, Message: "stopped", Offset: -1}, APIError: apiError,
		Print: message.Fingerprint(), NoTools: dragoman.ToolChoice{Mode: dragoman.ChoiceAuto, Tools: []dragoman.ToolRef{}},
		Sampling: sampling, Output: output, Source: *tool.Source, Field: extra.Fields[0], Native: *native, Cache: *cache, Notes: tool.Annotations,
		Grammar: *tool.Grammar, Ref: choice.Tools[0], KeyValue: request.Metadata[0], Thinking: thinking, Other: candidate,
	}
}

func TestStoredVersion1MatchesItsGoldenFile(t *testing.T) {
	golden := filepath.Join("testdata", "stored", "v1.json")
	want := richValue()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", "  ")
	if err := enc.Encode(want); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, buf.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := gen.Diff(string(file), buf.String()); d != "" {
		t.Errorf("encoding no longer gives the golden bytes (-golden +now):\n%s", d)
	}
	var got everything
	if err := json.Unmarshal(file, &got); err != nil {
		t.Fatalf("the golden file no longer decodes: %v", err)
	}
	if d := gen.Diff(want, got); d != "" {
		t.Errorf("the golden file no longer means the same (-want +got):\n%s", d)
	}
	if !errors.Is(&got.APIError, dragoman.ErrIncompleteStream) || got.APIError.Retryable() != want.APIError.Retryable() {
		t.Error("a stored error forgot that its stream was incomplete")
	}
	if !got.Message.Native.Current(dialectname.Anthropic, got.Message.Fingerprint) ||
		!got.Request.Native.Current(dialectname.Anthropic, got.Request.Fingerprint) ||
		!got.Response.Native.Current(dialectname.Anthropic, got.Response.Fingerprint) {
		t.Error("a stored sidecar is not current after loading")
	}
}

// TestStoredGoldenSetsEveryField fails if a field is added to the model but not to the golden
// value, and so possibly not to the stored form.
func TestStoredGoldenSetsEveryField(t *testing.T) {
	exempt := map[string]string{
		"Request.Contributions": "is code, never stored",
		"Response.Losses":       "tells how the response came about, never stored",
		"Response.Failover":     "describes how the response came about, never stored",
	}
	set, all := map[string]bool{}, map[string]bool{}
	var visit func(v reflect.Value)
	visit = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() && v.Type() != reflect.TypeFor[error]() {
				visit(v.Elem())
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				visit(v.Index(i))
			}
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() {
				return
			}
			for i := range v.NumField() {
				name := v.Type().Name() + "." + v.Type().Field(i).Name
				all[name] = v.Type() != reflect.TypeFor[everything]()
				if !v.Field(i).IsZero() {
					set[name] = true
				}
				visit(v.Field(i))
			}
		}
	}
	visit(reflect.ValueOf(richValue()))
	for name, ours := range all {
		if reason, ok := exempt[name]; ours && ok == set[name] {
			t.Errorf("%s: set=%v, exempt=%v (%s)", name, set[name], ok, reason)
		}
	}
	// Fields are only found if every type of part and event is present.
	kinds := []string{}
	for _, p := range richValue().Parts {
		kinds = append(kinds, p.Kind())
	}
	for _, e := range richValue().Events {
		kinds = append(kinds, e.Type())
	}
	slices.Sort(kinds)
	want := []string{"chunk", "data", "media", "opaque", "part_delta", "part_end", "part_start", "reasoning", "refusal", "response_end", "response_start", "stream_error", "text", "tool_call", "tool_result"}
	if d := gen.Diff(want, kinds); d != "" {
		t.Errorf("parts and events in the golden value (-want +got):\n%s", d)
	}
}
