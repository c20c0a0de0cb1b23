package sdktest

import (
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"pgregory.net/rapid"
)

// TestOfficialSDKsDecodeRandomResponses does the same for random responses: hostile text, odd numbers
// in arguments, parts in any order.
func TestOfficialSDKsDecodeRandomResponses(t *testing.T) {
	for _, v := range vendors() {
		t.Run(v.file, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				o := gen.Options{Tidy: true, Plain: true}
				resp := o.Response().Draw(t, "response")
				simplify(resp)
				if v.floats {
					withoutHugeNumbers(resp)
				}
				if v.file == "ollama_chat" && !resp.Stop.Reason.Runs() {
					// The dialect cannot mark a call as not to be run, so no call is written into a
					// truncated response.
					resp.Stop = dragoman.Stop{Reason: dragoman.StopEnd}
				}
				want := v.contentOf(resp)
				enc, err := v.codec.EncodeResponse(resp, dialect.EncodeOptions{Seed: "s", Model: "m"})
				if err != nil {
					t.Fatal(err)
				}
				got, err := v.whole(enc.Body)
				if err != nil {
					t.Fatalf("the SDK rejects it: %v\n%s", err, enc.Body)
				}
				if d := want.joined().isReadAs(got.joined()); d != "" {
					t.Fatalf("%s\n%s", d, enc.Body)
				}
				stream := v.codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "s", Model: "m", StreamUsage: true})
				var body []byte
				for _, ev := range o.Stream(t, resp) {
					if body, err = stream.Encode(body, ev); err != nil {
						t.Fatal(err)
					}
				}
				if body, err = stream.Close(body); err != nil {
					t.Fatal(err)
				}
				if got, err = v.stream(body); err != nil {
					t.Fatalf("the SDK rejects it: %v\n%s", err, body)
				}
				if d := want.joined().isReadAs(got.joined()); d != "" {
					t.Fatalf("streamed: %s\n%s", d, body)
				}
			})
		})
	}
}

// simplify removes what the SDKs cannot represent:
//
//   - namespaces;
//   - freeform calls in a Chat stream;
//   - further candidates;
//   - refusals together with other messages;
//   - responses that failed or were aborted, which are errors in the SDKs;
//   - counters beyond 32 bits, and counters without the total that they are part of.
func simplify(r *dragoman.Response) {
	r.Alternatives = nil
	switch r.Stop.Reason {
	case dragoman.StopNone, dragoman.StopEnd, dragoman.StopToolCalls, dragoman.StopLength, dragoman.StopSequence, dragoman.StopRefusal:
	default:
		r.Stop = dragoman.Stop{Reason: dragoman.StopLength}
	}
	u := &r.Usage
	for _, n := range []*dragoman.Count{&u.Input, &u.CacheRead, &u.CacheWrite, &u.Output, &u.Reasoning} {
		n.N %= 1 << 20
	}
	u.Input = dragoman.Counted(max(u.Input.N, u.CacheRead.N+u.CacheWrite.N))
	u.Output = dragoman.Counted(max(u.Output.N, u.Reasoning.N))
	for i := range r.Output {
		for _, p := range r.Output[i].Parts {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				p.Namespace, p.Synthetic = "", false
				if p.Payload == codes.PayloadText {
					p.Payload, p.Arguments = codes.PayloadObject, "{}"
				}
			case *dragoman.Refusal:
				r.Output = r.Output[i : i+1]
				return
			}
		}
	}
}

// withoutHugeNumbers empties arguments with a number that no float64 can represent, for SDKs that
// reject the whole response because of one.
func withoutHugeNumbers(r *dragoman.Response) {
	for _, c := range r.ToolCalls() {
		var v any
		if json.Unmarshal([]byte(c.Arguments), &v) != nil {
			c.Arguments = "{}"
		}
	}
}

// joined removes the white space that separates messages in some dialects.
func (s content) joined() content {
	s.text = strings.Join(strings.Fields(s.text), "")
	return s
}
