package cohere_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// version2 returns the recorded exchanges of version 2 of the API. The others
// are of version 1, which is not supported, or of another API.
func version2(t *testing.T) (out []testkit.Exchange) {
	for _, x := range testkit.Recordings(t, "cohere_chat") {
		if x.Req != nil && strings.Contains(*x.Req, `"messages"`) {
			out = append(out, x)
		}
	}
	if len(out) < 50 {
		t.Errorf("only %d exchanges", len(out))
	}
	return out
}

func TestRecordedRequestsAreRebuilt(t *testing.T) {
	for _, x := range version2(t) {
		if x.Req == nil {
			continue
		}
		req, rep, err := codec.DecodeRequest([]byte(*x.Req), dialect.DecodeOptions{})
		if err != nil || len(rep.Losses) > 0 {
			t.Errorf("%s: %v\n%s", x.ID(), err, rep)
			continue
		}
		same, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil || string(same.Body) != *x.Req {
			t.Errorf("%s: an unchanged request has other bytes: %v", x.ID(), err)
		}
		built, err := codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil || len(built.Report.Losses) > 0 {
			t.Errorf("%s: %v\n%s", x.ID(), err, built.Report)
			continue
		}
		var want, got any
		if json.Unmarshal([]byte(*x.Req), &want) != nil || json.Unmarshal(built.Body, &got) != nil {
			t.Fatal(x.ID())
		}
		if diff := cmp.Diff(plainContent(want), plainContent(got)); diff != "" {
			t.Errorf("%s: %s", x.ID(), diff)
		}
	}
}

// plainContent converts content with a single text to a string, which means the
// same, and removes a tool choice without tools.
func plainContent(v any) any {
	if v := v.(map[string]any); v["tools"] == nil {
		delete(v, "tool_choice")
	}
	for _, m := range v.(map[string]any)["messages"].([]any) {
		m := m.(map[string]any)
		blocks, ok := m["content"].([]any)
		if !ok || len(blocks) != 1 {
			continue
		}
		if b := blocks[0].(map[string]any); b["type"] == "text" && len(b) == 2 {
			m["content"] = b["text"]
		}
	}
	return v
}

var sidecars = cmp.Options{
	cmpopts.IgnoreFields(dragoman.Response{}, "Native"),
	cmpopts.IgnoreFields(dragoman.Message{}, "Native"),
	cmp.Transformer("text", func(r json.RawMessage) string { return string(r) }),
}

func TestRecordedResponsesAreRebuilt(t *testing.T) {
	whole, streams := 0, 0
	for _, x := range version2(t) {
		body, err := x.Response()
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case x.Status >= 400:
			if e := codec.DecodeError(x.Status, nil, body); e.Class != dragoman.ErrorNotFound || !strings.Contains(e.Message, "not found") {
				t.Errorf("%s: %+v", x.ID(), e)
			}
		case json.Valid(body):
			whole++
			recordedResponse(t, x.ID(), body)
		case bytes.Contains(body, []byte("message-start")):
			streams++
			recordedStream(t, x.ID(), string(body))
		}
	}
	t.Logf("%d responses, %d streams", whole, streams)
	if whole < 30 || streams < 20 {
		t.Errorf("only %d responses, %d streams", whole, streams)
	}
}

func recordedResponse(t *testing.T, id string, body []byte) {
	resp, rep, err := codec.DecodeResponse(body, dialect.DecodeOptions{})
	if err != nil || len(rep.Losses) > 0 {
		t.Errorf("%s: %v\n%s\n%s", id, err, rep, body)
		return
	}
	same, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || string(same.Body) != string(body) {
		t.Errorf("%s: an unchanged response has other bytes: %v", id, err)
	}
	built, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	if err != nil || len(built.Report.Losses) > 0 {
		t.Errorf("%s: %v\n%s", id, err, built.Report)
	}
	sameJSON(t, string(built.Body), string(body))
}

func recordedStream(t *testing.T, id, body string) {
	resp := collect(t, dialect.DecodeOptions{}, body)
	if resp.ID == "" || !resp.Usage.Input.Known || resp.Stop.Native == "" {
		t.Errorf("%s: %+v", id, resp)
	}
	evs, _, _ := decodeStream(dialect.DecodeOptions{}, body)
	for _, o := range []dialect.EncodeOptions{{}, {Rebuild: true}} {
		e := codec.NewStreamEncoder(o)
		var out []byte
		for _, ev := range evs {
			var err error
			if out, err = e.Encode(out, ev); err != nil {
				t.Fatal(err)
			}
		}
		out, _ = e.Close(out)
		if err := checkStream(out); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if diff := cmp.Diff(resp, collect(t, dialect.DecodeOptions{}, string(out)), sidecars); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
		if rep := e.Report(); len(rep.Losses) > 0 {
			t.Errorf("%s: %s", id, rep)
		}
	}
}
