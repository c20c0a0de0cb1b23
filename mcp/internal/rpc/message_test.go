package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-go/dragoman/internal/oracle/mcpcheck"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

func decodeOne(t *testing.T, text string) rpc.Message {
	t.Helper()
	all, err := rpc.Decode([]byte(text))
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: %v, %v", text, all, err)
	}
	return all[0]
}

func TestMessagesStayRaw(t *testing.T) {
	m := decodeOne(t, ` {"jsonrpc":"2.0","id":"a\u0062","method":"elicitation/create","params":{"b": 9007199254740993, "a":null,"new":[1.0]},"extra":1} `)
	if !m.IsRequest() || m.ID != `"a\u0062"` || m.Method != "elicitation/create" || string(m.Params) != `{"b": 9007199254740993, "a":null,"new":[1.0]}` {
		t.Errorf("request: %+v", m)
	}
	m = decodeOne(t, `{"result":{"structuredContent":null,"n":1e400},"jsonrpc":"2.0","id":7}`)
	if !m.IsResponse() || m.ID != "7" || string(m.Result) != `{"structuredContent":null,"n":1e400}` {
		t.Errorf("response: %+v", m)
	}
	m = decodeOne(t, `{"jsonrpc":"2.0","id":7,"error":{"code":-32022,"message":"no","data":{"supported":["x"]}}}`)
	if m.Error == nil || m.Error.Code != -32022 || string(m.Error.Data) != `{"supported":["x"]}` {
		t.Errorf("error: %+v", m)
	}
	m = decodeOne(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if m.IsRequest() || m.IsResponse() || m.Params != nil {
		t.Errorf("notification: %+v", m)
	}
}

func TestIDsKeepTheirType(t *testing.T) {
	for raw, want := range map[string]rpc.ID{
		`1`: "1", `"1"`: `"1"`, `-5`: "-5", `1.0`: "1", `1e2`: "100", `-0`: "0",
		`123456789012345678901234567890`: "123456789012345678901234567890",
	} {
		if id, err := rpc.ParseID([]byte(raw)); id != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", raw, id, err, want)
		}
	}
	for _, raw := range []string{``, `null`, `1.5`, `{}`, `true`, `1e300`, `"` + strings.Repeat("a", 2000) + `"`} {
		if id, err := rpc.ParseID([]byte(raw)); err == nil {
			t.Errorf("%.40s is accepted as %q", raw, id)
		}
	}
}

func TestBatchesAreRead(t *testing.T) {
	all, err := rpc.Decode([]byte(`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"x"}]`))
	if err != nil || len(all) != 2 || all[0].ID != "1" || all[1].Method != "x" {
		t.Errorf("%+v, %v", all, err)
	}
	for _, text := range []string{`[]`, `[1]`, `[[{"jsonrpc":"2.0","method":"x"}]]`, `[` + strings.Repeat(`{"jsonrpc":"2.0","method":"x"},`, 1000) + `{"jsonrpc":"2.0","method":"x"}]`} {
		if _, err := rpc.Decode([]byte(text)); err == nil {
			t.Errorf("%.60s is accepted", text)
		}
	}
}

func TestPitfallK38_RepeatedKeysAreRefused(t *testing.T) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"result":{}}`,
		`{"jsonrpc":"2.0","method":"a","params":{"x":1},"params":{"x":2}}`,
		`{"jsonrpc":"2.0","method":"a","params":{"x":1,"x":2}}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"deep":[{"x":1,"x":2}]}}`,
	} {
		if m, err := rpc.Decode([]byte(text)); err == nil {
			t.Errorf("%s is accepted: %+v", text, m)
		}
	}
	// A response whose id is known fails its call.
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"isError":true},"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"isError":true,"isError":false}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"code":2,"message":""}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0,"o":0,"p":0,"q":0,"r":0,"b":1}}`,
	} {
		if m := decodeOne(t, text); m.Invalid == nil || m.ID != "1" || m.Result != nil {
			t.Errorf("%s: %+v", text, m)
		}
	}
	// Keys count with their case, so these are unknown keys.
	if m := decodeOne(t, `{"jsonrpc":"2.0","id":1,"Method":"a","result":{},"RESULT":1}`); m.Method != "" || string(m.Result) != "{}" {
		t.Errorf("case is ignored: %+v", m)
	}
}

func TestOtherTextIsNoMessage(t *testing.T) {
	for _, text := range []string{
		``, `null`, `1`, `"x"`, `{`, `{}`, `{"jsonrpc":"2.0"}`, `{"id":1,"result":{}}`, `{"jsonrpc":"1.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":null,"result":{}}`, `{"jsonrpc":"2.0","id":{},"result":{}}`, `{"jsonrpc":"2.0","method":1}`,
		`{"jsonrpc":"2.0","method":"a","params":[1]}`, `{"jsonrpc":"2.0","method":"a"} x`, `{"level":"info","msg":"started","method":"GET"}`,
	} {
		if m, err := rpc.Decode([]byte(text)); err == nil {
			t.Errorf("%s is accepted: %+v", text, m)
		}
	}
	for _, text := range []string{`{"jsonrpc":"2.0","id":3}`, `{"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":""}}`, `{"jsonrpc":"2.0","id":3,"error":"no"}`, `{"jsonrpc":"2.0","id":3,"error":{"code":"x"}}`} {
		if m := decodeOne(t, text); m.Invalid == nil || m.ID != "3" {
			t.Errorf("%s: %+v", text, m)
		}
	}
	if m := decodeOne(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"},"result":null}`); m.Error == nil || m.ID != "" {
		t.Errorf("an error without an id: %+v", m)
	}
}

func TestWrittenMessagesMatchTheOfficialSchemas(t *testing.T) {
	meta := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"name":"a",` + "\r\n" + `"arguments":{"text":"line\nline"}}`
	for _, revision := range []string{rpc.Revision20251125, rpc.Revision20260728} {
		check := mcpcheck.New(t, revision)
		for name, write := range map[string]func() ([]byte, error){
			"request": func() ([]byte, error) { return rpc.AppendRequest(nil, "4", "tools/call", json.RawMessage(meta)) },
			"notification": func() ([]byte, error) {
				return rpc.AppendNotification(nil, "notifications/cancelled", json.RawMessage(`{"requestId":4}`))
			},
			"result": func() ([]byte, error) {
				return rpc.AppendResult(nil, `"s1"`, json.RawMessage(`{"resultType":"complete"}`))
			},
			"error": func() ([]byte, error) {
				return rpc.AppendError(nil, "4", &rpc.Error{Code: rpc.CodeMethodNotFound, Message: "no\n<"})
			},
		} {
			line, err := write()
			if err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(string(line), "\r\n") {
				t.Errorf("%s has a line end: %s", name, line)
			}
			if err := check.Message(line); err != nil {
				t.Errorf("%s of %s: %v\n%s", name, revision, err, line)
			}
		}
	}
	for _, params := range []string{`[]`, `{`, `{} {}`, `1`, ` `} {
		if line, err := rpc.AppendRequest(nil, "1", "m", json.RawMessage(params)); err == nil {
			t.Errorf("parameters %s are written: %s", params, line)
		}
	}
	if line, err := rpc.AppendResult(nil, "1", json.RawMessage(`{"a":`)); err == nil {
		t.Errorf("a broken result is written: %s", line)
	}
}

func TestMetaIsRead(t *testing.T) {
	params := json.RawMessage(`{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/subscriptionId":12},"requestId":"x"}`)
	if got := rpc.MetaString(params, rpc.MetaRevision); got != rpc.Revision20260728 {
		t.Errorf("revision %q", got)
	}
	if got := rpc.MetaID(params, rpc.MetaSubscriptionID); got != "12" {
		t.Errorf("subscription %q", got)
	}
	if got := rpc.FieldID(params, "requestId"); got != `"x"` {
		t.Errorf("request %q", got)
	}
	for _, other := range []string{``, `[]`, `{}`, `{"_meta":null}`, `{"_meta":[1]}`, `{"_meta":{`} {
		if got := rpc.MetaString(json.RawMessage(other), rpc.MetaRevision); got != "" {
			t.Errorf("%s has the revision %q", other, got)
		}
	}
}

func TestPitfallK39_LateResponsesReachNoOtherCall(t *testing.T) {
	var p rpc.Pending
	first, _ := p.Add(&rpc.Request{Method: "a"})
	if !p.Drop(first) || p.Drop(first) {
		t.Error("a call is dropped once")
	}
	second, _ := p.Add(&rpc.Request{Method: "b"})
	if first.ID == second.ID {
		t.Fatalf("the id %s is used twice", first.ID)
	}
	if got := p.Deliver(&rpc.Message{ID: first.ID, Result: json.RawMessage(`{"late":true}`)}); got != rpc.Late {
		t.Errorf("the late response is %v", got)
	}
	for _, id := range []rpc.ID{"99", "0", "-1", `"2"`, ""} {
		if got := p.Deliver(&rpc.Message{ID: id, Result: json.RawMessage(`{}`)}); got != rpc.Unknown {
			t.Errorf("a response to %q is %v", id, got)
		}
	}
	if got := p.Deliver(&rpc.Message{ID: second.ID, Result: json.RawMessage(`{"ok":true}`)}); got != rpc.Delivered {
		t.Errorf("the response is %v", got)
	}
	if got := p.Deliver(&rpc.Message{ID: second.ID, Result: json.RawMessage(`{"again":true}`)}); got != rpc.Late {
		t.Errorf("the second response is %v", got)
	}
	if result, ok, err := second.Wait(t.Context()); string(result) != `{"ok":true}` || err != nil || !ok {
		t.Errorf("%s, %v, %v", result, err, ok)
	}
}

func TestPendingFails(t *testing.T) {
	var p rpc.Pending
	call, _ := p.Add(&rpc.Request{})
	if id, ok := p.Only(); id != call.ID || !ok || p.Find(id) != call.Request {
		t.Errorf("the only call is %q, %v", id, ok)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("cause")
	cancel(cause)
	if _, ok, err := call.Wait(ctx); !errors.Is(err, cause) || ok {
		t.Errorf("after the context: %v, %v", err, ok)
	}
	p.Fail(rpc.ErrLost)
	if _, ok, err := call.Wait(ctx); !errors.Is(err, rpc.ErrLost) || !ok {
		t.Errorf("after the end: %v, %v", err, ok)
	}
	if _, err := p.Add(&rpc.Request{}); !errors.Is(err, rpc.ErrLost) {
		t.Errorf("a call after the end: %v", err)
	}
	if p.Deliver(&rpc.Message{ID: call.ID}) != rpc.Late || p.Find(call.ID) != nil {
		t.Error("the failed call still waits")
	}
}

func TestAnErrorWithoutIDAnswersTheFirstRequest(t *testing.T) {
	var p rpc.Pending
	call, _ := p.Add(&rpc.Request{})
	refusal := &rpc.Message{Error: &rpc.Error{Code: rpc.CodeParse, Message: "what?"}}
	if p.Deliver(refusal) != rpc.Delivered {
		t.Fatal("the error is lost")
	}
	var e *rpc.Error
	if _, _, err := call.Wait(t.Context()); !errors.As(err, &e) || e.Code != rpc.CodeParse {
		t.Error(err)
	}
	_, _ = p.Add(&rpc.Request{})
	if p.Deliver(refusal) != rpc.Unknown {
		t.Error("a later call gets an error that may belong to the first")
	}
}

func TestHTTPErrorsHaveTheirRPCError(t *testing.T) {
	var e *rpc.Error
	if errors.As(&rpc.HTTPError{Status: 500}, &e) {
		t.Errorf("found %v", e)
	}
	if !errors.As(&rpc.HTTPError{Status: 401, RPC: &rpc.Error{Code: 5}}, &e) || e.Code != 5 {
		t.Errorf("found %v", e)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"result":{"a":[1,"x"]}}`, `[{"jsonrpc":"2.0","method":"x","params":{}}]`, `{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"m","data":null}}`, `{"jsonrpc":"2.0","id":null,"method":"a\u0000"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := rpc.Decode(data)
		if err != nil {
			return
		}
		for _, m := range all {
			again, err := encode(m)
			if err != nil {
				t.Fatalf("%+v is not writable: %v", m, err)
			}
			if m.Invalid != nil || again == nil {
				continue
			}
			back, err := rpc.Decode(again)
			if err != nil || len(back) != 1 {
				t.Fatalf("%s: %v", again, err)
			}
			// Line ends between tokens became spaces.
			for _, raw := range []*json.RawMessage{&m.Params, &m.Result} {
				*raw = oneLine(*raw)
			}
			if m.Error != nil {
				m.Error.Data = oneLine(m.Error.Data)
			}
			if diff := cmp.Diff(m, back[0]); diff != "" {
				t.Fatalf("%s: %s", data, diff)
			}
		}
	})
}

func oneLine(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	return json.RawMessage(strings.NewReplacer("\r", " ", "\n", " ").Replace(string(raw)))
}

func encode(m rpc.Message) ([]byte, error) {
	switch {
	case m.IsRequest():
		return rpc.AppendRequest(nil, m.ID, m.Method, m.Params)
	case m.Method != "":
		return rpc.AppendNotification(nil, m.Method, m.Params)
	case m.Error != nil:
		return rpc.AppendError(nil, m.ID, m.Error)
	case m.Result != nil:
		return rpc.AppendResult(nil, m.ID, m.Result)
	}
	return nil, nil
}
