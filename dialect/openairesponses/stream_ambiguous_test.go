package openairesponses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"pgregory.net/rapid"
)

// client reads a stream like a simple client program. It uses the last of two duplicate fields,
// ignores the case of field names, identifies items by index or by id, and runs its calls when
// the response is completed.
type client struct {
	byID  bool // uses item_id
	whole bool // uses the output of the terminal event
	// tolerant is set if the client continues after an event that it cannot parse.
	tolerant bool
	runs     []string
}

type clientItem struct {
	Type      string
	ID        string
	CallID    string `json:"call_id"`
	Name      string
	Arguments string
	Input     string
}

func (c *client) read(t *testing.T, body []byte) []string {
	t.Helper()
	items, order := map[string]*clientItem{}, []string{}
	c.runs = []string{}
	var p sse.Parser
	take := func(ev sse.Event) error {
		if !hasEventData(ev) {
			return nil
		}
		var e struct {
			Type        string
			OutputIndex int    `json:"output_index"`
			ItemID      string `json:"item_id"`
			Delta       string
			Arguments   string
			Item        clientItem
			Response    struct{ Output []clientItem }
		}
		if err := json.Unmarshal(ev.Data, &e); err != nil && !c.tolerant {
			return err
		}
		key := strconv.Itoa(e.OutputIndex)
		if c.byID {
			key = e.Item.ID + e.ItemID
		}
		put := func(it clientItem) {
			if items[key] == nil {
				order = append(order, key)
			}
			items[key] = &it
		}
		switch e.Type {
		case "response.output_item.added", "response.output_item.done":
			put(e.Item)
		case "response.function_call_arguments.delta":
			if items[key] != nil {
				items[key].Arguments += e.Delta
			}
		case "response.function_call_arguments.done":
			if items[key] != nil {
				items[key].Arguments = e.Arguments
			}
		case "response.completed":
			if c.whole {
				for _, it := range e.Response.Output {
					c.run(it)
				}
				return nil
			}
			for _, key := range order {
				c.run(*items[key])
			}
		}
		return nil
	}
	if err := p.Feed(body, take); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return c.runs
}

func (c *client) run(it clientItem) {
	if it.Arguments == "" {
		it.Arguments = "{}"
	}
	// A blocked call has arguments that no tool accepts.
	if it.Type == "function_call" && json.Valid([]byte(it.Arguments)) && !strings.HasPrefix(it.Arguments, `{"_raw":`) {
		c.runs = append(c.runs, fmt.Sprintf("%s %s(%s)", it.CallID, it.Name, it.Arguments))
	}
}

func approved(r *dragoman.Response) []string {
	out := []string{}
	for _, c := range r.ToolCalls() {
		if c.Problem == nil {
			obj, _ := c.Object()
			out = append(out, fmt.Sprintf("%s %s(%s)", c.ID, c.Name, obj))
		}
	}
	return out
}

func TestAmbiguousStreamsRunOnlyApprovedCalls(t *testing.T) {
	start := added(0, namedCall("ls", ""))
	delta := argDelta(0, `{"p":1}`)
	argsDone := func(extra string) string {
		return `{"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc_1","arguments":"{\"p\":1}"` + extra + `}`
	}
	end := done(0, namedCall("ls", `{"p":1}`))
	evil := done(0, namedCall("rm", `{"p":"/"}`))
	output := func(response string) string { return `{"type":"response.completed","response":{` + response + `}}` }
	all := `"id":"resp_1","status":"completed","output":[` + namedCall("ls", `{"p":1}`) + `]`
	item := strings.TrimSuffix(strings.TrimPrefix(end, `{"type":"response.output_item.done","output_index":0,"item":`), "}")
	with := func(field string) string { return strings.TrimSuffix(item, "}") + "," + field + "}" }
	misplaced := func(args string) string {
		return strings.Replace(namedCall("ls", args), `"arguments":`, `"input":`, 1)
	}
	for _, tc := range []struct {
		name string
		list []string
		runs bool // the call may run
	}{
		{"valid", []string{start, delta, argsDone(""), end, output(all)}, true},
		{"duplicate delta", []string{start, strings.TrimSuffix(delta, "}") + `,"delta":"{\"p\":\"/\"}"}`, end, completed}, false},
		{"delta in two cases", []string{start, strings.TrimSuffix(delta, "}") + `,"Delta":"{\"p\":\"/\"}"}`, end, completed}, false},
		{"duplicate index", []string{start, strings.TrimSuffix(delta, "}") + `,"output_index":0}`, end, completed}, false},
		{"duplicate type", []string{start, delta, `{"type":"keepalive",` + end[1:], completed}, false},
		{"type in two cases", []string{start, delta, end, `{"type":"keepalive","Type":"response.output_item.done",` + evil[len(`{"type":"response.output_item.done",`):], completed}, true},
		{"duplicate arguments", []string{start, delta, argsDone(`,"arguments":"{\"p\":1}"`), end, completed}, false},
		{"arguments and input", []string{start, delta, argsDone(`,"input":"{\"p\":1}"`), end, completed}, false},
		{"duplicate item", []string{start, delta, strings.TrimSuffix(end, "}") + `,"item":` + namedCall("rm", `{}`) + `}`, completed}, false},
		{"item in two cases", []string{start, delta, strings.TrimSuffix(end, "}") + `,"Item":` + namedCall("rm", `{}`) + `}`, completed}, false},
		{"duplicate name", []string{start, delta, done(0, with(`"name":"ls"`)), completed}, false},
		{"name in two cases", []string{start, delta, done(0, with(`"Name":"rm"`)), completed}, false},
		{"arguments of an item in two cases", []string{start, delta, done(0, with(`"ARGUMENTS":"{}"`)), completed}, false},
		{"duplicate name in the added item", []string{added(0, `{"name":"rm",`+item[1:]), end, completed}, false},
		{"message that some readers see as a call", []string{
			start, delta, end,
			done(1, `{"type":"message","id":"msg_1","role":"assistant","content":[],"Type":"function_call","call_id":"c2","name":"rm","arguments":"{}"}`), completed,
		}, true},
		{"other item that some readers see as a call", []string{
			start, delta, end,
			done(1, `{"type":"web_search_call","id":"ws_1","status":"completed","Type":"function_call","call_id":"c2","name":"rm","arguments":"{}"}`), completed,
		}, true},
		{"duplicate type, call and message", []string{
			start, delta, end,
			done(1, `{"type":"function_call","type":"message","id":"msg_1","role":"assistant","content":[],"call_id":"c2","name":"rm","arguments":"{}"}`), completed,
		}, true},
		{"duplicate key in arguments", []string{start, argDelta(0, `{"p":1,"p":2}`), done(0, namedCall("ls", `{"p":1,"p":2}`)), completed}, false},
		{"different final call", []string{start, delta, evil, completed}, false},
		{"different final arguments", []string{start, argDelta(0, `{"p":2}`), argsDone(""), done(0, namedCall("ls", `{"p":2}`)), completed}, false},
		{"late index that differs", []string{
			strings.Replace(start, `"output_index":0,`, "", 1),
			`{"type":"response.function_call_arguments.delta","output_index":5,"item_id":"fc_1","delta":"{\"p\":1}"}`, completed,
		}, false},
		{"second final call", []string{start, delta, end, evil, completed}, false},
		{"added again with another name", []string{start, added(0, namedCall("rm", "")), delta, end, completed}, false},
		{"delta after the end of the call", []string{start, end, argDelta(0, `{"p":"/"}`), completed}, false},
		{"other arguments after the end of the call", []string{start, done(0, namedCall("ls", `{"p":2}`)), argsDone(""), completed}, false},
		{"different call in the output", []string{start, delta, end, output(`"status":"completed","output":[` + namedCall("rm", `{"p":"/"}`) + `]`)}, false},
		{"duplicate status", []string{start, delta, end, output(all + `,"status":"completed"`)}, false},
		{"status in two cases", []string{start, delta, end, output(`"status":"incomplete","Status":"completed","output":[]`)}, false},
		{"output in two cases", []string{start, delta, end, output(all + `,"Output":[` + namedCall("rm", `{}`) + `]`)}, false},
		{"duplicate output", []string{start, delta, end, output(all + `,"output":[]`)}, false},
		{"duplicate response", []string{start, delta, end, strings.TrimSuffix(output(all), "}") + `,"response":{` + all + `}}`}, false},
		{"error and output", []string{start, delta, end, output(all + `,"error":{"code":"x","message":"m"}`)}, false},
		{"completed and incomplete", []string{start, delta, end, output(`"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[` + item + `]`)}, false},
		{"arguments as input, the same", []string{start, delta, done(0, misplaced(`{"p":1}`)), completed}, true},
		{"arguments as input, others", []string{start, delta, done(0, misplaced(`{"p":"/"}`)), completed}, false},
		{"arguments as input, longer", []string{start, argDelta(0, `{"p"`), done(0, misplaced(`{"p":1}`)), completed}, false},
		{"arguments as input, not streamed", []string{start, done(0, misplaced(`{"p":1}`)), completed}, false},
		{"final arguments as input, the same", []string{start, delta, strings.Replace(argsDone(""), `"arguments":`, `"input":`, 1), end, completed}, true},
		{"final arguments as input, not streamed", []string{start, strings.Replace(argsDone(""), `"arguments":`, `"input":`, 1), end, completed}, false},
		{"arguments as input in the output, the same", []string{start, delta, end, output(`"status":"completed","output":[` + misplaced(`{"p":1}`) + `]`)}, true},
		{"arguments as input in the output, others", []string{start, delta, end, output(`"status":"completed","output":[` + misplaced(`{"p":"/"}`) + `]`)}, false},
		{"completed and unknown status", []string{start, delta, end, output(`"status":"sideways","output":[` + item + `]`)}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list := append([]string{created}, tc.list...)
			body := events(list...)
			evs, _, err := decodeStream(body, len(body), dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			resp, err := collect(evs)
			if err != nil {
				t.Fatal(err)
			}
			out, _ := encodeStream(t, evs, dialect.EncodeOptions{})
			want := approved(resp)
			if (len(want) > 0) != tc.runs {
				t.Errorf("approved calls: %q", want)
			}
			for _, c := range []client{{}, {byID: true}, {whole: true}} {
				if got := c.read(t, out); !slices.Equal(got, want) {
					t.Errorf("the client %+v runs %q, approved are %q\n%s", c, got, want, out)
				}
			}
			// The same is true for callers that get the events without chunks.
			bare, _, _ := decodeStream(body, 13, dialect.DecodeOptions{NoNative: true})
			again, _ := collect(bare)
			if got := approved(again); !slices.Equal(got, want) {
				t.Errorf("approved without chunks: %q, with chunks: %q", got, want)
			}
			// And for clients that get the whole response.
			enc, err := Codec{}.EncodeResponse(resp, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var whole struct {
				Status string
				Output []clientItem
			}
			if err := json.Unmarshal(enc.Body, &whole); err != nil {
				t.Fatal(err)
			}
			c := client{runs: []string{}}
			for _, it := range whole.Output {
				c.run(it)
			}
			if whole.Status == "completed" && !slices.Equal(c.runs, want) {
				t.Errorf("a client of the whole response runs %q, approved are %q\n%s", c.runs, want, enc.Body)
			}
		})
	}
}

// The same for a freeform call, whose payload is its input.
func TestFreeformCallWithArgumentsField(t *testing.T) {
	item := func(field, text string) string {
		return fmt.Sprintf(`{"type":"custom_tool_call","id":"ct_1","call_id":"c1","name":"patch",%q:%q,"status":"completed"}`, field, text)
	}
	delta := `{"type":"response.custom_tool_call_input.delta","output_index":0,"item_id":"ct_1","delta":"a"}`
	for _, tc := range []struct {
		name string
		list []string
		runs bool
	}{
		{"input", []string{delta, done(0, item("input", "a"))}, true},
		{"the same", []string{delta, done(0, item("arguments", "a"))}, true},
		{"another", []string{delta, done(0, item("arguments", "b"))}, false},
		{"more", []string{delta, done(0, item("arguments", "ab"))}, false},
		{"not streamed", []string{done(0, item("arguments", "a"))}, false},
		{"at the end of the input", []string{`{"type":"response.custom_tool_call_input.done","output_index":0,"item_id":"ct_1","arguments":"a"}`, done(0, item("input", "a"))}, false},
	} {
		body := events(append(append([]string{created, added(0, item("input", ""))}, tc.list...), completed)...)
		evs, _, err := decodeStream(body, len(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		resp, _ := collect(evs)
		c := resp.ToolCalls()[0]
		if (c.Problem == nil) != tc.runs || tc.runs && c.Arguments != "a" {
			t.Errorf("%s: %q, problem %+v", tc.name, c.Arguments, c.Problem)
		}
		codectest.Reencoded(t, Codec{}, evs)
	}
}

func TestEventNameThatContradictsItsTypeIsDropped(t *testing.T) {
	hidden := "event: response.output_item.done\ndata: {\"type\":\"keepalive\"," + done(0, namedCall("rm", "{}"))[len(`{"type":"response.output_item.done",`):] + "\n\n"
	body := string(events(created)) + hidden + string(events(completed))
	evs, _, err := decodeStream([]byte(body), len(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := encodeStream(t, evs, dialect.EncodeOptions{}); bytes.Contains(out, []byte(`"rm"`)) {
		t.Errorf("%s", out)
	}
}

func TestEventWithIndexAndIDOfDifferentCallsBlocksBoth(t *testing.T) {
	call := func(n int, name, args string) string {
		return fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":"c%d","name":%q,"arguments":%q,"status":"completed"}`, n, n, name, args)
	}
	for _, more := range []int{0, 2 * fewItems} {
		for _, id := range []string{"fc_1", `fc\u005f1`} {
			list := []string{created, added(0, call(0, "ls", "")), added(1, call(1, "rm", ""))}
			for i := range more {
				list = append(list, done(2+i, fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[]}`, i)))
			}
			cross := `{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"` + id + `","delta":"{}"}`
			runsNeither(t, append(list, cross, done(0, call(0, "ls", "{}")), done(1, call(1, "rm", "")), completed), cross)
		}
	}
}

// runsNeither checks that no client runs a call of a stream, and that the event cross is not
// forwarded.
func runsNeither(t *testing.T, list []string, cross string) {
	t.Helper()
	body := events(list...)
	evs, _, err := decodeStream(body, len(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	resp, _ := collect(evs)
	out, _ := encodeStream(t, evs, dialect.EncodeOptions{})
	if got := approved(resp); len(got) > 0 || bytes.Contains(out, []byte(cross)) {
		t.Errorf("%q may run\n%s", got, out)
	}
	for _, c := range []client{{}, {byID: true}} {
		if got := c.read(t, out); len(got) > 0 {
			t.Errorf("the client runs %q", got)
		}
	}
}

func TestStreamIsNotCompletedAfterAnError(t *testing.T) {
	body := events(created, added(0, namedCall("rm", "")), done(0, namedCall("rm", "{}")), `{"type":"error","code":"server_error","message":"m"}`, completed)
	evs, _, err := decodeStream(body, len(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, _ := encodeStream(t, evs, dialect.EncodeOptions{})
	if bytes.Contains(out, []byte(`"response.completed"`)) || !bytes.Contains(out, []byte(`"response.failed"`)) {
		t.Errorf("%s", out)
	}
}

func TestSharedOutputIndexIsRenumbered(t *testing.T) {
	call := func(n int, args string) string {
		return fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":"c%d","name":"rm","arguments":%q,"status":"completed"}`, n, n, args)
	}
	// The second call has the index of the first.
	body := events(created, added(0, call(1, "")), done(0, call(1, `{"p":1}`)), added(0, call(2, "")), argDelta(0, `{"p":2}`), done(0, call(2, `{"p":2}`)), completed)
	evs, _, err := decodeStream(body, len(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, _ := encodeStream(t, evs, dialect.EncodeOptions{})
	for _, c := range []client{{}, {byID: true}, {whole: true}} {
		got := c.read(t, out)
		slices.Sort(got)
		if want := []string{`c1 rm({"p":1})`, `c2 rm({"p":2})`}; !slices.Equal(got, want) {
			t.Errorf("the client %+v runs %q, want %q\n%s", c, got, want, out)
		}
	}
}

func TestMalformedEventIsNotForwarded(t *testing.T) {
	bad := "data: " + completed + " x\n\n"
	body := append(events(created, added(0, namedCall("rm", "")), done(0, namedCall("rm", "{}"))), bad...)
	evs, _, err := decodeStream(body, len(body), dialect.DecodeOptions{})
	if err == nil {
		t.Fatal("the malformed event was accepted")
	}
	if out, _ := encodeStream(t, evs, dialect.EncodeOptions{}); bytes.Contains(out, []byte("response.completed")) || !bytes.Contains(out, []byte("response.failed")) {
		t.Errorf("%s", out)
	}
}

// A duplicate field, in any case and with any value, never makes a client run a call that was not
// approved.
func TestDuplicateFieldsDoNotChangeApprovedCalls(t *testing.T) {
	call := func(n int, name, args string) string {
		return fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":"c%d","name":%q,"arguments":%q,"status":"completed"}`, n, n, name, args)
	}
	delta := func(n int, text string) string {
		return fmt.Sprintf(`{"type":"response.function_call_arguments.delta","output_index":%d,"item_id":"fc_%d","delta":%q}`, n, n, text)
	}
	list := []string{
		created, added(0, call(0, "ls", "")), delta(0, `{"p"`), added(1, call(1, "rm", "")), delta(1, `{}`), delta(0, `:1}`),
		`{"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc_0","arguments":"{\"p\":1}"}`,
		done(0, call(0, "ls", `{"p":1}`)), done(1, call(1, "rm", "{}")),
		`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[` + call(0, "ls", `{"p":1}`) + "," + call(1, "rm", "{}") + `]}}`,
	}
	evil := map[string]string{
		"item":     call(0, "rm", `{"p":"/"}`),
		"output":   "[" + call(0, "rm", `{"p":"/"}`) + "]",
		"response": `{"status":"completed","output":[` + call(2, "rm", "{}") + "]}",
	}
	rapid.Check(t, func(rt *rapid.T) {
		changed := slices.Clone(list)
		for range rapid.IntRange(1, 2).Draw(rt, "changes") {
			i := rapid.IntRange(0, len(changed)-1).Draw(rt, "event")
			changed[i] = duplicateField(rt, changed[i], evil)
		}
		body := events(changed...)
		evs, _, _ := decodeStream(body, len(body), dialect.DecodeOptions{})
		resp, _ := collect(evs)
		want := approved(resp)
		out, _ := encodeStream(t, evs, dialect.EncodeOptions{})
		for _, c := range []client{{tolerant: true}, {tolerant: true, byID: true}, {tolerant: true, whole: true}} {
			for _, got := range c.read(t, out) {
				if !slices.Contains(want, got) {
					rt.Fatalf("the client %+v runs %q, approved are %q\n%s\n%s", c, got, want, strings.Join(changed, "\n"), out)
				}
			}
		}
	})
}

// duplicateField adds a field to an object of a document that already has it.
func duplicateField(rt *rapid.T, doc string, evil map[string]string) string {
	keys := regexp.MustCompile(`[{,]"([a-z_]+)":`).FindAllStringSubmatchIndex(doc, -1)
	key := keys[rapid.IntRange(0, len(keys)-1).Draw(rt, "member")]
	name := doc[key[2]:key[3]]
	var old json.RawMessage
	dec := json.NewDecoder(strings.NewReader(doc[key[1]:]))
	if err := dec.Decode(&old); err != nil {
		rt.Fatal(err)
	}
	value := evil[name]
	if value == "" {
		value = rapid.SampledFrom([]string{
			`"rm"`, `"{\"p\":\"/\"}"`, `" "`, `"incomplete"`, `"message"`, `"function_call"`, `"fc_1"`, `"c1"`, `0`, `1`, `null`, string(old),
			`"response.completed"`, `"response.output_item.done"`,
		}).Draw(rt, "value")
	}
	switch rapid.IntRange(0, 2).Draw(rt, "letters") {
	case 1:
		name = strings.ToUpper(name[:1]) + name[1:]
	case 2:
		name = name[:1] + fmt.Sprintf(`\u%04x`, name[1]) + name[2:]
	}
	member := `"` + name + `":` + value
	if rapid.Bool().Draw(rt, "before") {
		return doc[:key[0]+1] + member + "," + doc[key[0]+1:]
	}
	end := key[1] + int(dec.InputOffset())
	return doc[:end] + "," + member + doc[end:]
}

// If the terminal event omits the arguments of a call that has ended, or gives it another id,
// clients that use the terminal event would run another call than clients that followed the
// stream. The streamed call counts.
func TestContradictingTerminalEventIsReencoded(t *testing.T) {
	const (
		call = `{"type":"function_call","id":"fc","call_id":"c1","name":"f","arguments":"{\"a\":1}","status":"completed"}`
		head = `data: {"type":"response.created","response":{"id":"r","model":"m","status":"in_progress","output":[]}}` + "\n\n" +
			`data: {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c1","name":"f","arguments":"","status":"in_progress"}}` + "\n\n" +
			`data: {"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc","delta":"{\"a\":1}"}` + "\n\n" +
			`data: {"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc","arguments":"{\"a\":1}"}` + "\n\n"
	)
	for name, c := range map[string]struct {
		done, final string
		disputed    bool
	}{
		"another call id":        {call, strings.Replace(call, `"c1"`, `"OTHER"`, 1), false},
		"no call id":             {call, strings.Replace(call, `"call_id":"c1",`, ``, 1), false},
		"another item id":        {call, strings.Replace(call, `"fc"`, `"fc2"`, 1), false},
		"null arguments":         {call, strings.Replace(call, `"{\"a\":1}"`, `null`, 1), false},
		"blank arguments":        {call, strings.Replace(call, `"{\"a\":1}"`, `""`, 1), false},
		"empty arguments":        {call, strings.Replace(call, `"{\"a\":1}"`, `"{}"`, 1), true},
		"done without arguments": {strings.Replace(call, `"{\"a\":1}"`, `""`, 1), call, false},
		"other than streamed":    {strings.Replace(call, `"{\"a\":1}"`, `""`, 1), strings.Replace(call, `{\"a\":1}`, `{\"b\":2}`, 1), true},
		"other arguments":        {call, strings.Replace(call, `{\"a\":1}`, `{\"b\":2}`, 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			final := `{"type":"response.completed","response":{"id":"r","model":"m","status":"completed","output":[` + c.final + `]}}`
			wire := head + `data: {"type":"response.output_item.done","output_index":0,"item":` + c.done + "}\n\ndata: " + final + "\n\n"
			var out bytes.Buffer
			from, to := Codec{}.NewStreamDecoder(dialect.DecodeOptions{}), Codec{}.NewStreamEncoder(dialect.EncodeOptions{})
			if err := dialect.Translate(&out, to, from, strings.NewReader(wire)); err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(out.Bytes(), []byte(final)) {
				t.Error("the event is passed through unchanged")
			}
			resp, _, _ := run(t, []byte(wire))
			calls := resp.ToolCalls()
			if len(calls) != 1 || calls[0].ID != "c1" || calls[0].Arguments != `{"a":1}` || (calls[0].Problem != nil) != c.disputed {
				t.Errorf("the call is %+v", calls)
			}
			terminal := out.Bytes()[bytes.LastIndex(out.Bytes(), []byte(`"response":`)):]
			if !c.disputed && (!bytes.Contains(terminal, []byte(`"call_id":"c1"`)) || !bytes.Contains(terminal, []byte(`"arguments":"{\"a\":1}"`))) {
				t.Errorf("the terminal event has another call: %s", terminal)
			}
		})
	}
}
