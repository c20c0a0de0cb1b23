package anthropic_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/targets"
)

// nativeMessages decodes messages of an Anthropic client.
func nativeMessages(t testing.TB, messages ...string) []dragoman.Message {
	t.Helper()
	return decode(t, `{"model":"m","max_tokens":5,"messages":[`+strings.Join(messages, ",")+`]}`).Messages
}

// Decision 126: a message that was sent once is sent again unchanged, followed by
// new blocks.
func TestNativeMessageOnlyGainsBlocks(t *testing.T) {
	calls := `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{ }},{"type":"tool_use","id":"c2","name":"f","input":{ }}]}`
	for _, tc := range []struct {
		name   string
		native []string
		more   []dragoman.Message
		want   string // expected last message
	}{
		{
			"fields keep their values and positions",
			[]string{"{ \"x\":{\"content\":[1]}, \"content\" : [ {\"text\":\"\\u0068i\",\"type\":\"text\"} ], \"role\":\"user\",\"name\":{}\n}"},
			[]dragoman.Message{dragoman.UserText("more")},
			"{ \"x\":{\"content\":[1]}, \"content\" : [{\"text\":\"\\u0068i\",\"type\":\"text\"},{\"type\":\"text\",\"text\":\"more\"}], \"role\":\"user\",\"name\":{}\n}",
		},
		{
			"two native messages keep their blocks; the first wins a shared field",
			[]string{`{"content":[{"text":"a","type":"text"}],"role":"user","x":1,"y":{}}`, `{"z":[2],"x":3,"role":"user","content":[{"text":"b" , "type":"text"}]}`},
			nil,
			`{"content":[{"text":"a","type":"text"},{"text":"b" , "type":"text"}],"role":"user","x":1,"y":{},"z":[2]}`,
		},
		{
			"a paused and continued turn is unchanged",
			[]string{
				`{"role":"user","content":"q"}`,
				`{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q" :"x"}}]}`,
				`{"role":"assistant","content":[{"text":"found\n","type":"text","citations":null}]}`,
			},
			nil,
			`{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q" :"x"}},{"text":"found\n","type":"text","citations":null}]}`,
		},
		{
			"blank text and user citations of the client are kept",
			[]string{`{"role":"user","content":[{"text":" ","type":"text"},{"text":"a","type":"text","citations":[]}]}`},
			[]dragoman.Message{dragoman.UserText("more")},
			`{"role":"user","content":[{"text":" ","type":"text"},{"text":"a","type":"text","citations":[]},{"type":"text","text":"more"}]}`,
		},
		{
			"with duplicate content, the last one grows",
			[]string{`{"content":[{"text":"a","type":"text"}],"role":"user","content":[{"text":"b","type":"text"}]}`},
			[]dragoman.Message{dragoman.UserText("more")},
			`{"role":"user","content":[{"text":"b","type":"text"},{"type":"text","text":"more"}]}`,
		},
		{
			"string content becomes a block",
			[]string{`{"x":1,"content":"a","role":"user"}`},
			[]dragoman.Message{dragoman.UserText("more")},
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"more"}],"x":1}`,
		},
		{
			"results after other blocks stay if no call is open",
			[]string{calls, `{"role":"user","content":[{"text":"a","type":"text"},{"tool_use_id":"c2","type":"tool_result"},{"tool_use_id":"c1","type":"tool_result"}]}`},
			[]dragoman.Message{dragoman.UserText("more")},
			`{"role":"user","content":[{"text":"a","type":"text"},{"tool_use_id":"c2","type":"tool_result"},{"tool_use_id":"c1","type":"tool_result"},{"type":"text","text":"more"}]}`,
		},
		{
			"two results for one call in one message are kept",
			[]string{calls, `{"role":"user","content":[{"tool_use_id":"c1","type":"tool_result"},{"tool_use_id":"c2","type":"tool_result"},{"tool_use_id":"c1","type":"tool_result"}]}`},
			[]dragoman.Message{dragoman.UserText("more")},
			`{"role":"user","content":[{"tool_use_id":"c1","type":"tool_result"},{"tool_use_id":"c2","type":"tool_result"},{"tool_use_id":"c1","type":"tool_result"},{"type":"text","text":"more"}]}`,
		},
		{
			"quirks D2, D4: results come first while a call is open",
			[]string{calls, `{"x":1,"role":"user","content":[{"text":"a","type":"text"},{"tool_use_id":"c2","type":"tool_result"}]}`},
			[]dragoman.Message{newMessage(dragoman.RoleTool, result("c1", "r"))},
			`{"x":1,"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"r"}]},{"tool_use_id":"c2","type":"tool_result"},{"text":"a","type":"text"}]}`,
		},
		{
			"quirk D6: a late result replaces the earlier one",
			[]string{calls, `{"role":"user","content":[{"tool_use_id":"c1","type":"tool_result","content":"old"},{"tool_use_id":"c2","type":"tool_result"},{"text":"a","type":"text"}]}`},
			[]dragoman.Message{newMessage(dragoman.RoleTool, result("c1", "new"))},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"new"}]},{"tool_use_id":"c2","type":"tool_result"},{"text":"a","type":"text"}]}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req := requestOf(slices.Concat(nativeMessages(t, tc.native...), tc.more)...)
			_, enc := encode(t, req, dialect.EncodeOptions{})
			ms := messagesOf(t, enc.Body)
			if got := ms[len(ms)-1]; got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if tc.more == nil && len(enc.Report.Losses) != 0 {
				t.Errorf("unexpected losses:\n%s", enc.Report)
			}
		})
	}
}

// A re-encoded message keeps the native blocks that follow it.
func TestNativeBlocksAfterOthersAreKept(t *testing.T) {
	req := requestOf(dragoman.UserText("a"), nativeMessages(t, `{"content":[{"text":"b" ,"type":"text"}],"x":1,"role":"user"}`)[0])
	_, enc := encode(t, req, dialect.EncodeOptions{})
	want := `{"role":"user","content":[{"type":"text","text":"a"},{"text":"b" ,"type":"text"}],"x":1}`
	if got := messagesOf(t, enc.Body); got[0] != want || len(enc.Report.Losses) != 0 {
		t.Errorf("%q\n%s", got, enc.Report)
	}
}

// A store may return a sidecar that does not match its message.
func TestMismatchedSidecarIsNotSent(t *testing.T) {
	for _, raw := range []string{
		`{}`, `[]`, `null`, `{"role":"user"}`, `{"role":"user","content":[]}`, `{"role":"user","content":7}`,
		`{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}`, `{"content":[{"type":"text","text":"x"}],"role":"user","content":"x"}`,
		`{"role":"user","content":[{"type":"text","text":"x"}]`, `{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"system"}`,
	} {
		m := dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "a"}}, Origin: ownOrigin}
		m.Native = &dragoman.Sidecar{Dialect: dialectname.Anthropic, Raw: json.RawMessage(raw), Mirror: m.Fingerprint()}
		_, enc := encode(t, requestOf(m), dialect.EncodeOptions{})
		if got := messagesOf(t, enc.Body); len(got) != 1 || got[0] != `{"role":"user","content":[{"type":"text","text":"a"}]}` {
			t.Errorf("%s: %q", raw, got)
		}
	}
}

func TestQuirkD31_OnlyUnmarkedBlockIsReencoded(t *testing.T) {
	text := func(i int) string {
		return fmt.Sprintf(`{"text":"%d" , "type":"text","cache_control":{"type":"ephemeral"}}`, i)
	}
	first := `{"content":[{"text":"0" , "type":"text"}, ` + text(1) + `], "role":"user"}`
	rest := `{"role":"assistant","content":[` + text(2) + `,` + text(3) + `,` + text(4) + `,` + text(5) + `] }`
	_, enc := encode(t, requestOf(nativeMessages(t, first, rest)...), dialect.EncodeOptions{})
	got := messagesOf(t, enc.Body)
	if want := `{"content":[{"text":"0" , "type":"text"},{"type":"text","text":"1"}], "role":"user"}`; got[0] != want || got[1] != rest {
		t.Errorf("%q", got)
	}
	has(t, enc.Report, dragoman.Dropped, "/messages/0/parts/1")
}

// The API rejects a result without a call at any position. Such a result must
// not change the messages before it.
func TestResultWithoutCallKeepsItsPosition(t *testing.T) {
	req := requestOf(dragoman.UserText("a"), newMessage(dragoman.RoleAssistant, call("c1", "f", "{}")), newMessage(dragoman.RoleTool, result("c1", "r")),
		dragoman.UserText("b"), newMessage(dragoman.RoleTool, result("c0", "of no call")), dragoman.UserText("c"))
	_, enc := encode(t, req, dialect.EncodeOptions{})
	want := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"r"}]},{"type":"text","text":"b"},` +
		`{"type":"tool_result","tool_use_id":"c0","content":[{"type":"text","text":"of no call"}]},{"type":"text","text":"c"}]}`
	if got := messagesOf(t, enc.Body); got[2] != want {
		t.Errorf("%s", got[2])
	}
}

// The server has the calls for the first results of a thread.
func TestQuirkD2_ResultsOfThreadComeFirst(t *testing.T) {
	req := decode(t, `{"model":"m","max_tokens":5,"thread":{"type":"continue","previous_message_id":"msg_1"},"messages":[{"role":"user","content":[{"text":"a","type":"text"}]}]}`)
	req.Messages = append(req.Messages, newMessage(dragoman.RoleTool, result("c2", "r"), result("c1", "s")))
	_, enc := encode(t, req, dialect.EncodeOptions{})
	want := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"r"}]},` +
		`{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"s"}]},{"text":"a","type":"text"}]}`
	if got := messagesOf(t, enc.Body); got[0] != want {
		t.Errorf("%s", got[0])
	}
}

// A message that is not written does not count as following a system message.
func TestSystemMessagePlacement(t *testing.T) {
	mid := dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{MidSystem: true}}}
	silent := dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Reasoning{Text: "hm"}}, Origin: foreignOrigin}
	_, enc := encode(t, requestOf(dragoman.UserText("a"), dragoman.SystemText("rule"), silent, dragoman.UserText("b")), mid)
	if got := messagesOf(t, enc.Body); len(got) != 1 || strings.Contains(got[0], `"system"`) {
		t.Errorf("before a user message: %q", got)
	}
	_, enc = encode(t, requestOf(dragoman.UserText("a"), dragoman.SystemText("rule"), silent, dragoman.SystemText("another"), dragoman.AssistantText("b")), mid)
	if got := messagesOf(t, enc.Body); len(got) != 3 || got[1] != `{"role":"system","content":[{"type":"text","text":"rule"},{"type":"text","text":"another"}]}` {
		t.Errorf("before an assistant message: %q", got)
	}
}
