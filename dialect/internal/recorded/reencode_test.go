package recorded_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// knownPaths match the places of a stream that the canonical form carries, and
// bookkeeping of the wire: chunk ids, padding, event numbers. A path has no list
// positions. The cost of a Responses stream follows its end.
var knownPaths = map[string]*regexp.Regexp{
	"openai_chat":            regexp.MustCompile(`^/(id|created|model|object|obfuscation|service_tier)$|^/choices/(index|finish_reason|message/|delta/(role|content|refusal|reasoning|reasoning_content|reasoning_details/|tool_calls/|function_call/))|^/(usage|x_groq/usage)/`),
	"openai_responses":       regexp.MustCompile(`^/(type|sequence_number|obfuscation|item_id|output_index|content_index|summary_index|delta|text|arguments|input|refusal|cost)$|^/(item|part|response|error)/`),
	"anthropic_messages":     regexp.MustCompile(`^/(type|index)$|^/delta/(type|text|thinking|signature|partial_json|stop_reason|stop_sequence|content|citation/)|^/(message|content_block|usage)/`),
	"gemini_generateContent": regexp.MustCompile(`^/(createTime|responseId|modelVersion)$|^/usageMetadata/|^/candidates/(index|finishReason|content/(role|parts/))`),
	"ollama_chat":            regexp.MustCompile(`^/(model|created_at|done|done_reason)$|^/message/(role|content|thinking|tool_calls/)`),
	"bedrock_converse":       regexp.MustCompile(`/p$|^/(messageStart/role|messageStop/stopReason|metadata/usage/|contentBlock(Start|Delta|Stop)/(contentBlockIndex|start/|delta/(text|toolUse/|reasoningContent/)))`),
}

// lostValues returns the values at unknown places of events that a re-encoded
// stream lacks.
func lostValues(a api, t *testing.T, events []map[string]any, out string) (lost []string) {
	t.Helper()
	again, _, err := a.objects(out)
	if err != nil {
		return []string{err.Error()}
	}
	have := map[string]bool{}
	for _, ev := range again {
		wireLeaves(ev, "", func(path, value string) { have[path+" "+value] = true })
	}
	for _, ev := range events {
		wireLeaves(ev, "", func(path, value string) {
			if !knownPaths[a.File].MatchString(path) && !have[path+" "+value] {
				lost = append(lost, path+" "+value)
			}
		})
	}
	return lost
}

// wireLeaves calls found with every value of a document that is not an object or a list.
func wireLeaves(v any, path string, found func(path, value string)) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			wireLeaves(e, path+"/"+k, found)
		}
	case []any:
		for _, e := range v {
			wireLeaves(e, path, found)
		}
	case nil:
	default:
		b, _ := json.Marshal(v)
		found(path, string(b))
	}
}

// unknownPlaces lists the objects of a stream that may have unknown fields.
var unknownPlaces = map[string][]string{
	"openai_chat":            {"", "/choices", "/choices/delta", "/choices/delta/tool_calls", "/choices/delta/tool_calls/function"},
	"openai_responses":       {""},
	"anthropic_messages":     {"", "/delta", "/content_block", "/message"},
	"gemini_generateContent": {"", "/candidates", "/candidates/content"},
	"ollama_chat":            {"", "/message"},
	"bedrock_converse":       {"/messageStart", "/contentBlockStart", "/contentBlockDelta", "/contentBlockDelta/delta/toolUse", "/contentBlockStop", "/messageStop", "/metadata"},
}

// objectsAt calls found with the objects at path, including those in lists.
func objectsAt(v any, path string, found func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			objectsAt(e, path, found)
		}
	case map[string]any:
		if path == "" {
			found(v)
			return
		}
		name, rest, more := strings.Cut(path[1:], "/")
		if more {
			rest = "/" + rest
		}
		objectsAt(v[name], rest, found)
	}
}

// TestProperty_UnknownFieldsOfAStreamAreReencoded adds unknown fields to recorded
// streams. Re-encoded in their dialect, the streams keep their meaning and the fields.
func TestProperty_UnknownFieldsOfAStreamAreReencoded(t *testing.T) {
	for _, a := range apis() {
		t.Run(a.File, func(t *testing.T) {
			var bodies []string
			for _, x := range traffic.Recorded(t, a.File) {
				if body, kind := a.response(t, &x); kind == streamResponse && len(body) < 20_000 && len(bodies) < 200 {
					if _, _, err := reencodeInChunks(a, body, nil); err == nil {
						bodies = append(bodies, body)
					}
				}
			}
			rapid.Check(t, func(rt *rapid.T) {
				body := rapid.SampledFrom(bodies).Draw(rt, "stream")
				events, done, err := a.objects(body)
				if err != nil {
					rt.Skip(err)
				}
				n := 0
				var added []string
				for range rapid.IntRange(1, 4).Draw(rt, "fields") {
					ev := rapid.SampledFrom(events).Draw(rt, "event")
					objectsAt(ev, rapid.SampledFrom(unknownPlaces[a.File]).Draw(rt, "place"), func(o map[string]any) {
						n++
						value := fmt.Sprintf("value-%d", n)
						o[rapid.SampledFrom([]string{"zz_a", "zz_b"}).Draw(rt, "name")] = value
						added = append(added, value)
					})
				}
				stream := onTheWire(a, t, events, done)
				resp, out, err := reencodeInChunks(a, stream, nil)
				if err != nil {
					if _, _, before := reencodeInChunks(a, body, nil); before == nil {
						rt.Fatalf("unknown fields make the stream unreadable: %v", err)
					}
					rt.Skip(err) // a recording of a broken stream
				}
				left := crosstest.JSON(events) // a field may have replaced another
				for _, value := range added {
					if strings.Contains(left, `"`+value+`"`) && !strings.Contains(out, `"`+value+`"`) {
						rt.Errorf("%s is lost\n%s\n%s", value, stream, out)
					}
				}
				again, err := decodedEvents(a, out, dialect.DecodeOptions{}, nil)
				if err != nil {
					rt.Fatalf("%v\n%s", err, out)
				}
				if was, is := codectest.Approved(resp), codectest.Approved(collectEvents(again)); resp.Text() != collectEvents(again).Text() || !slices.Equal(was, is) {
					rt.Errorf("%q %q became %q %q", resp.Text(), was, collectEvents(again).Text(), is)
				}
			})
		})
	}
}

// A call without arguments starts only when the stream ends, so the fields of two
// chunks wait for its events.
func TestUnknownFieldsWaitForACallWithoutArguments(t *testing.T) {
	chat := apis()[slices.IndexFunc(apis(), func(a api) bool { return a.File == "openai_chat" })]
	chunk := func(delta, finish, value string) string {
		return `{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}],"zz":"` + value + `"}`
	}
	_, out, err := reencodeInChunks(chat, frame([]string{
		chunk(`{"role":"assistant","content":""}`, "null", "value-1"),
		chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}`, "null", "value-2"),
		chunk(`{"content":""}`, `"length"`, "value-3"),
	})+"data: [DONE]\n\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"value-1", "value-2", "value-3"} {
		if !strings.Contains(out, value) {
			t.Errorf("%s is lost:\n%s", value, out)
		}
	}
}

// onTheWire writes events in the framing of the API's servers.
func onTheWire(a api, t *testing.T, events []map[string]any, done bool) string {
	t.Helper()
	var lines []string
	for _, ev := range events {
		lines = append(lines, crosstest.JSON(ev))
	}
	switch a.File {
	case "ollama_chat":
		return strings.Join(lines, "\n") + "\n"
	case "bedrock_converse":
		return framed(t, lines)
	}
	out := frame(lines)
	if done {
		out += "data: [DONE]\n\n"
	}
	return out
}
