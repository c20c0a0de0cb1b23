package bedrock_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codectest"
	"github.com/dragoman-go/dragoman/internal/eventstream"
	"github.com/dragoman-go/dragoman/internal/recordings"
	"github.com/google/go-cmp/cmp"
)

func recorded(t *testing.T) []recordings.Exchange { return recordings.Load(t, "bedrock_converse") }

// notConverse names what is in the file and is no answer of this API.
func notConverse(x *recordings.Exchange) string {
	if strings.Contains(x.Path, "reranking") {
		return "a reranking answer"
	}
	return ""
}

// streamOf gives the bytes of a recorded stream: binary, or its events as data
// lines, which are framed here.
func streamOf(t *testing.T, x *recordings.Exchange) (body []byte, ok bool) {
	t.Helper()
	body, err := x.Response()
	if err != nil {
		t.Fatalf("%s: %v", x.ID(), err)
	}
	switch {
	case bytes.HasPrefix(body, []byte{0}):
		return body, true
	case !bytes.HasPrefix(body, []byte("data: ")):
		return nil, false
	}
	var events strings.Builder
	for line := range strings.Lines(string(body)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			events.WriteString(data)
		}
	}
	return binary(events.String()), true
}

// merged joins messages of one role that follow each other, as a rebuilt
// request has them.
func merged(v any, why map[string]int) any {
	req := v.(map[string]any)
	var out []any
	for _, m := range req["messages"].([]any) {
		m := m.(map[string]any)
		for _, b := range m["content"].([]any) {
			if d, ok := b.(map[string]any)["document"].(map[string]any); ok && strings.Contains(d["name"].(string), "_") {
				d["name"] = strings.ReplaceAll(d["name"].(string), "_", "-")
				why["a document's name, which the recorder redacted to an illegal one"]++
			}
		}
		if n := len(out); n > 0 {
			if last := out[n-1].(map[string]any); last["role"] == m["role"] {
				last["content"] = append(last["content"].([]any), m["content"].([]any)...)
				why["messages of one role merged"]++
				continue
			}
		}
		out = append(out, m)
	}
	req["messages"] = out
	return req
}

func TestRecordedRequestsRebuildEqual(t *testing.T) {
	why := map[string]int{}
	n := 0
	for _, x := range recorded(t) {
		if x.Req == nil {
			continue
		}
		n++
		body := []byte(*x.Req)
		req, rep, err := codec.DecodeRequest(body, dialect.DecodeOptions{})
		if err != nil || len(rep.Losses) > 0 {
			t.Errorf("%s: %v %s", x.ID(), err, rep)
			continue
		}
		same, err := codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil || !bytes.Equal(same.Body, body) {
			t.Errorf("%s: not byte-identical: %v", x.ID(), err)
		}
		req.Stream = true
		if req.Model == "" {
			req.Model = "another"
		}
		if same, err = codec.EncodeRequest(req, dialect.EncodeOptions{}); err != nil || !bytes.Equal(same.Body, body) {
			t.Errorf("%s: what the URL says changed the body: %v", x.ID(), err)
		}
		again, err := codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Errorf("%s: %v", x.ID(), err)
			continue
		}
		if diff := cmp.Diff(merged(codectest.JSON[any](t, body), why), codectest.JSON[any](t, again.Body)); diff != "" {
			t.Errorf("%s: rebuilt differs (-recorded +rebuilt):\n%s", x.ID(), diff)
		}
	}
	if n < 35 {
		t.Errorf("only %d requests", n)
	}
	t.Logf("%d requests; explained differences: %v", n, why)
}

// reading is what a response says, read from its JSON without our decoder.
type reading struct {
	text, reasoning, signatures string
	calls                       []string
	stop                        string
	in, out                     int64
}

func (r *reading) block(b map[string]any) {
	if s, ok := b["text"].(string); ok {
		r.text += s
	}
	if u, ok := b["toolUse"].(map[string]any); ok {
		args, _ := json.Marshal(u["input"])
		r.calls = append(r.calls, fmt.Sprint(u["toolUseId"], u["name"], string(args)))
	}
	if c, ok := b["reasoningContent"].(map[string]any); ok {
		if t, ok := c["reasoningText"].(map[string]any); ok {
			c = t
		}
		if s, ok := c["text"].(string); ok {
			r.reasoning += s
		}
		if s, ok := c["signature"].(string); ok {
			r.signatures += s
		}
	}
}

func (r *reading) usage(u map[string]any) {
	for _, k := range []string{"inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"} {
		if n, ok := u[k].(float64); ok {
			r.in += int64(n)
		}
	}
	if n, ok := u["outputTokens"].(float64); ok {
		r.out = int64(n)
	}
}

func readWhole(t *testing.T, body string) reading {
	t.Helper()
	var v struct {
		Output struct {
			Message struct{ Content []map[string]any }
		}
		StopReason string
		Usage      map[string]any
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatal(err)
	}
	r := reading{stop: v.StopReason}
	for _, b := range v.Output.Message.Content {
		r.block(b)
	}
	r.usage(v.Usage)
	return r
}

// readStream reads the frames with the standard library's JSON, block by block.
func readStream(t *testing.T, body []byte) reading {
	t.Helper()
	r := reading{}
	inputs := map[float64]map[string]any{}
	raws := map[float64]string{}
	var order []float64
	var p eventstream.Parser
	err := p.Feed(body, func(f eventstream.Frame) error {
		var v map[string]any
		if err := json.Unmarshal(f.Payload, &v); err != nil {
			return err
		}
		index, _ := v["contentBlockIndex"].(float64)
		switch string(f.Text(":event-type")) {
		case "contentBlockStart":
			if u, ok := v["start"].(map[string]any)["toolUse"].(map[string]any); ok {
				inputs[index] = u
				order = append(order, index)
			}
		case "contentBlockDelta":
			d := v["delta"].(map[string]any)
			if u, ok := d["toolUse"].(map[string]any); ok {
				raws[index] += u["input"].(string)
			} else {
				r.block(d)
			}
		case "messageStop":
			r.stop = v["stopReason"].(string)
		case "metadata":
			r.usage(v["usage"].(map[string]any))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range order {
		input := map[string]any{}
		if raws[i] != "" {
			if err := json.Unmarshal([]byte(raws[i]), &input); err != nil {
				t.Fatal(err)
			}
		}
		inputs[i]["input"] = input
		r.block(map[string]any{"toolUse": inputs[i]})
	}
	return r
}

// readingOf is what we read of a response.
func readingOf(t *testing.T, resp *dragoman.Response) reading {
	t.Helper()
	r := reading{stop: resp.Stop.Native, in: resp.Usage.Input.N, out: resp.Usage.Output.N}
	for _, m := range resp.Output {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				r.text += p.Text
			case *dragoman.Reasoning:
				r.reasoning += p.Text
				r.signatures += p.Signature
			case *dragoman.ToolCall:
				if p.Problem != nil {
					t.Errorf("a recorded call has a problem: %v", p.Problem)
				}
				obj, _ := p.Object()
				var v any
				if err := json.Unmarshal(obj, &v); err != nil {
					t.Fatal(err)
				}
				args, _ := json.Marshal(v)
				r.calls = append(r.calls, fmt.Sprint(p.ID, p.Name, string(args)))
			default:
				t.Errorf("a %s in recorded traffic", p.Kind())
			}
		}
	}
	return r
}

var sameReading = cmp.AllowUnexported(reading{})

func TestRecordedAnswersSayWhatAnIndependentReadingSays(t *testing.T) {
	whole, streams, failures := 0, 0, 0
	for _, x := range recorded(t) {
		if x.Resp == nil || notConverse(&x) != "" {
			continue
		}
		if x.Status != 200 {
			failures++
			e := codec.DecodeError(x.Status, nil, []byte(*x.Resp))
			if e.Native == nil || e.Message == "" || strings.HasPrefix(e.Message, "{") || e.Class == dragoman.ErrorUnknown {
				t.Errorf("%s: %+v", x.ID(), e)
			}
			continue
		}
		if body, ok := streamOf(t, &x); ok {
			streams++
			checkRecordedStream(t, &x, body)
			continue
		}
		whole++
		body := []byte(*x.Resp)
		resp, rep, err := codec.DecodeResponse(body, dialect.DecodeOptions{})
		if err != nil || len(rep.Losses) > 0 {
			t.Errorf("%s: %v %s", x.ID(), err, rep)
			continue
		}
		if diff := cmp.Diff(readWhole(t, *x.Resp), readingOf(t, resp), sameReading); diff != "" {
			t.Errorf("%s: (-raw +ours)\n%s", x.ID(), diff)
		}
		same, err := codec.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil || !bytes.Equal(same.Body, body) {
			t.Errorf("%s: not byte-identical: %v", x.ID(), err)
		}
		again, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Errorf("%s: %v", x.ID(), err)
			continue
		}
		want := codectest.JSON[map[string]any](t, body)
		if want["metrics"] == nil { // hand-made fixtures lack what the API always has
			want["metrics"] = map[string]any{"latencyMs": json.Number("0")}
		}
		if diff := cmp.Diff(any(want), codectest.JSON[any](t, again.Body)); diff != "" {
			t.Errorf("%s: rebuilt differs (-recorded +rebuilt):\n%s", x.ID(), diff)
		}
	}
	if whole < 28 || streams < 29 || failures != 2 {
		t.Errorf("only %d whole, %d streams, %d failures", whole, streams, failures)
	}
	t.Logf("%d whole responses, %d streams, %d errors", whole, streams, failures)
}

func checkRecordedStream(t *testing.T, x *recordings.Exchange, body []byte) {
	t.Helper()
	evs, rep, err := codectest.DecodeStream(codec, dialect.DecodeOptions{}, codectest.Pieces(body, 100)...)
	if err != nil || len(rep.Losses) > 0 {
		t.Errorf("%s: %v %s", x.ID(), err, rep)
		return
	}
	resp, err := codectest.Collect(evs)
	if err != nil {
		t.Errorf("%s: %v", x.ID(), err)
		return
	}
	want := readStream(t, body)
	if diff := cmp.Diff(want, readingOf(t, resp), sameReading); diff != "" {
		t.Errorf("%s: (-raw +ours)\n%s", x.ID(), diff)
	}
	same, _ := play(t, dialect.EncodeOptions{}, evs...)
	if !bytes.Equal(same, body) {
		t.Errorf("%s: the stream is not byte-identical", x.ID())
	}
	again, _ := play(t, dialect.EncodeOptions{Rebuild: true}, evs...)
	if diff := cmp.Diff(want, readStream(t, again), sameReading); diff != "" {
		t.Errorf("%s: rebuilt (-recorded +rebuilt)\n%s", x.ID(), diff)
	}
	if err := checkWire(again); err != nil {
		t.Errorf("%s: %v", x.ID(), err)
	}
}
