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

// came decodes messages that a client of this dialect sent.
func came(t testing.TB, messages ...string) []dragoman.Message {
	t.Helper()
	return decode(t, `{"model":"m","max_tokens":5,"messages":[`+strings.Join(messages, ",")+`]}`).Messages
}

// Decision 6: what was sent once is sent again, with more behind it.
func TestAMessageInTheFormItCameInOnlyGainsBlocks(t *testing.T) {
	calls := `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{ }},{"type":"tool_use","id":"c2","name":"f","input":{ }}]}`
	for _, tc := range []struct {
		name string
		came []string
		more []dragoman.Message
		want string // of the last element
	}{
		{
			"its members stay as they are, and where they are",
			[]string{"{ \"x\":{\"content\":[1]}, \"content\" : [ {\"text\":\"\\u0068i\",\"type\":\"text\"} ], \"role\":\"user\",\"name\":{}\n}"},
			[]dragoman.Message{dragoman.UserText("more")},
			"{ \"x\":{\"content\":[1]}, \"content\" : [{\"text\":\"\\u0068i\",\"type\":\"text\"},{\"type\":\"text\",\"text\":\"more\"}], \"role\":\"user\",\"name\":{}\n}",
		},
		{
			"of two that came, both keep their blocks, and of a member that both have the first counts",
			[]string{`{"content":[{"text":"a","type":"text"}],"role":"user","x":1,"y":{}}`, `{"z":[2],"x":3,"role":"user","content":[{"text":"b" , "type":"text"}]}`},
			nil,
			`{"content":[{"text":"a","type":"text"},{"text":"b" , "type":"text"}],"role":"user","x":1,"y":{},"z":[2]}`,
		},
		{
			"a turn that was paused and went on is sent as it came",
			[]string{
				`{"role":"user","content":"q"}`,
				`{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q" :"x"}}]}`,
				`{"role":"assistant","content":[{"text":"found\n","type":"text","citations":null}]}`,
			},
			nil,
			`{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q" :"x"}},{"text":"found\n","type":"text","citations":null}]}`,
		},
		{
			"blank text and the citations of a user are the client's own affair",
			[]string{`{"role":"user","content":[{"text":" ","type":"text"},{"text":"a","type":"text","citations":[]}]}`},
			[]dragoman.Message{dragoman.UserText("more")},
			`{"role":"user","content":[{"text":" ","type":"text"},{"text":"a","type":"text","citations":[]},{"type":"text","text":"more"}]}`,
		},
		{
			"of two contents the one that counts grows",
			[]string{`{"content":[{"text":"a","type":"text"}],"role":"user","content":[{"text":"b","type":"text"}]}`},
			[]dragoman.Message{dragoman.UserText("more")},
			`{"role":"user","content":[{"text":"b","type":"text"},{"type":"text","text":"more"}]}`,
		},
		{
			"a string is a block from the start",
			[]string{`{"x":1,"content":"a","role":"user"}`},
			[]dragoman.Message{dragoman.UserText("more")},
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"more"}],"x":1}`,
		},
		{
			"results behind other blocks stay there once no call is open",
			[]string{calls, `{"role":"user","content":[{"text":"a","type":"text"},{"tool_use_id":"c2","type":"tool_result"},{"tool_use_id":"c1","type":"tool_result"}]}`},
			[]dragoman.Message{dragoman.UserText("more")},
			`{"role":"user","content":[{"text":"a","type":"text"},{"tool_use_id":"c2","type":"tool_result"},{"tool_use_id":"c1","type":"tool_result"},{"type":"text","text":"more"}]}`,
		},
		{
			"two results for one call stay both when they came together",
			[]string{calls, `{"role":"user","content":[{"tool_use_id":"c1","type":"tool_result"},{"tool_use_id":"c2","type":"tool_result"},{"tool_use_id":"c1","type":"tool_result"}]}`},
			[]dragoman.Message{dragoman.UserText("more")},
			`{"role":"user","content":[{"tool_use_id":"c1","type":"tool_result"},{"tool_use_id":"c2","type":"tool_result"},{"tool_use_id":"c1","type":"tool_result"},{"type":"text","text":"more"}]}`,
		},
		{
			"quirks D2, D4: results come first while a call is open",
			[]string{calls, `{"x":1,"role":"user","content":[{"text":"a","type":"text"},{"tool_use_id":"c2","type":"tool_result"}]}`},
			[]dragoman.Message{said(dragoman.RoleTool, result("c1", "r"))},
			`{"x":1,"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"r"}]},{"tool_use_id":"c2","type":"tool_result"},{"text":"a","type":"text"}]}`,
		},
		{
			"quirk D6: a late result takes the place of the one that came",
			[]string{calls, `{"role":"user","content":[{"tool_use_id":"c1","type":"tool_result","content":"old"},{"tool_use_id":"c2","type":"tool_result"},{"text":"a","type":"text"}]}`},
			[]dragoman.Message{said(dragoman.RoleTool, result("c1", "new"))},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"new"}]},{"tool_use_id":"c2","type":"tool_result"},{"text":"a","type":"text"}]}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req := ask(slices.Concat(came(t, tc.came...), tc.more)...)
			_, enc := encode(t, req, dialect.EncodeOptions{})
			ms := messagesOf(t, enc.Body)
			if got := ms[len(ms)-1]; got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if tc.more == nil && len(enc.Report.Losses) != 0 {
				t.Errorf("nothing was lost, yet\n%s", enc.Report)
			}
		})
	}
}

// A message that is written anew keeps the blocks that came behind it.
func TestBlocksThatCameStayAsTheyAreBehindOthers(t *testing.T) {
	req := ask(dragoman.UserText("a"), came(t, `{"content":[{"text":"b" ,"type":"text"}],"x":1,"role":"user"}`)[0])
	_, enc := encode(t, req, dialect.EncodeOptions{})
	want := `{"role":"user","content":[{"type":"text","text":"a"},{"text":"b" ,"type":"text"}],"x":1}`
	if got := messagesOf(t, enc.Body); got[0] != want || len(enc.Report.Losses) != 0 {
		t.Errorf("%q\n%s", got, enc.Report)
	}
}

// Whoever stores conversations may bring a sidecar that is not the message's.
func TestASidecarWithoutTheBlocksOfItsMessageIsNotSent(t *testing.T) {
	for _, raw := range []string{
		`{}`, `[]`, `null`, `{"role":"user"}`, `{"role":"user","content":[]}`, `{"role":"user","content":7}`,
		`{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}`, `{"content":[{"type":"text","text":"x"}],"role":"user","content":"x"}`,
		`{"role":"user","content":[{"type":"text","text":"x"}]`, `{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"system"}`,
	} {
		m := dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: "a"}}, Origin: own}
		m.Native = &dragoman.Sidecar{Dialect: dialectname.Anthropic, Raw: json.RawMessage(raw), Mirror: m.Fingerprint()}
		_, enc := encode(t, ask(m), dialect.EncodeOptions{})
		if got := messagesOf(t, enc.Body); len(got) != 1 || got[0] != `{"role":"user","content":[{"type":"text","text":"a"}]}` {
			t.Errorf("%s: %q", raw, got)
		}
	}
}

func TestQuirkD31_OfAMessageThatCameOnlyTheBlockThatLosesItsMarkerIsWrittenAnew(t *testing.T) {
	text := func(i int) string {
		return fmt.Sprintf(`{"text":"%d" , "type":"text","cache_control":{"type":"ephemeral"}}`, i)
	}
	first := `{"content":[{"text":"0" , "type":"text"}, ` + text(1) + `], "role":"user"}`
	rest := `{"role":"assistant","content":[` + text(2) + `,` + text(3) + `,` + text(4) + `,` + text(5) + `] }`
	_, enc := encode(t, ask(came(t, first, rest)...), dialect.EncodeOptions{})
	got := messagesOf(t, enc.Body)
	if want := `{"content":[{"text":"0" , "type":"text"},{"type":"text","text":"1"}], "role":"user"}`; got[0] != want || got[1] != rest {
		t.Errorf("%q", got)
	}
	has(t, enc.Report, dragoman.Dropped, "/messages/0/parts/1")
}

// The API takes a result that answers no call nowhere; it must not change what
// was sent before it.
func TestAResultThatAnswersNoCallStaysWhereItIs(t *testing.T) {
	req := ask(dragoman.UserText("a"), said(dragoman.RoleAssistant, call("c1", "f", "{}")), said(dragoman.RoleTool, result("c1", "r")),
		dragoman.UserText("b"), said(dragoman.RoleTool, result("c0", "of no call")), dragoman.UserText("c"))
	_, enc := encode(t, req, dialect.EncodeOptions{})
	want := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"r"}]},{"type":"text","text":"b"},` +
		`{"type":"tool_result","tool_use_id":"c0","content":[{"type":"text","text":"of no call"}]},{"type":"text","text":"c"}]}`
	if got := messagesOf(t, enc.Body); got[2] != want {
		t.Errorf("%s", got[2])
	}
}

// The server holds the calls that the first results of a thread answer.
func TestQuirkD2_TheResultsThatContinueAThreadComeFirst(t *testing.T) {
	req := decode(t, `{"model":"m","max_tokens":5,"thread":{"type":"continue","previous_message_id":"msg_1"},"messages":[{"role":"user","content":[{"text":"a","type":"text"}]}]}`)
	req.Messages = append(req.Messages, said(dragoman.RoleTool, result("c2", "r"), result("c1", "s")))
	_, enc := encode(t, req, dialect.EncodeOptions{})
	want := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"r"}]},` +
		`{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"s"}]},{"text":"a","type":"text"}]}`
	if got := messagesOf(t, enc.Body); got[0] != want {
		t.Errorf("%s", got[0])
	}
}

// What is not written does not stand behind a system message.
func TestASystemMessageLooksAtWhatIsWrittenBehindIt(t *testing.T) {
	mid := dialect.EncodeOptions{Target: targets.Target{Caps: targets.Capabilities{MidSystem: true}}}
	silent := dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Reasoning{Text: "hm"}}, Origin: foreign}
	_, enc := encode(t, ask(dragoman.UserText("a"), dragoman.SystemText("rule"), silent, dragoman.UserText("b")), mid)
	if got := messagesOf(t, enc.Body); len(got) != 1 || strings.Contains(got[0], `"system"`) {
		t.Errorf("before a user message: %q", got)
	}
	_, enc = encode(t, ask(dragoman.UserText("a"), dragoman.SystemText("rule"), silent, dragoman.SystemText("another"), dragoman.AssistantText("b")), mid)
	if got := messagesOf(t, enc.Body); len(got) != 3 || got[1] != `{"role":"system","content":[{"type":"text","text":"rule"},{"type":"text","text":"another"}]}` {
		t.Errorf("before an assistant message: %q", got)
	}
}
