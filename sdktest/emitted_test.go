package sdktest

import (
	"fmt"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
)

// TestOfficialSDKsDecodeOurOutput encodes simple responses in each dialect, streamed and not, and
// decodes them with the vendor's SDK and its accumulator.
func TestOfficialSDKsDecodeOurOutput(t *testing.T) {
	for _, v := range vendors() {
		for _, a := range testResponses() {
			want := v.contentOf(a.response)
			t.Run(v.file+"/"+a.name+"/whole", func(t *testing.T) {
				enc, err := v.codec.EncodeResponse(a.response, dialect.EncodeOptions{Seed: "s", Model: "m"})
				if err != nil {
					t.Fatal(err)
				}
				if err := emitcheck.Whole(v.codec.Dialect(), 200, nil, enc.Body); err != nil {
					t.Errorf("%v\n%s", err, enc.Body)
				}
				got, err := v.whole(enc.Body)
				if err != nil {
					t.Fatalf("the SDK rejects it: %v\n%s", err, enc.Body)
				}
				if d := want.isReadAs(got); d != "" {
					t.Errorf("%s\n%s", d, enc.Body)
				}
			})
			for _, size := range []int{1, 7, 1 << 20} {
				t.Run(fmt.Sprintf("%s/%s/stream of %d bytes a delta", v.file, a.name, size), func(t *testing.T) {
					enc := v.codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "s", Model: "m", StreamUsage: true})
					var body []byte
					var err error
					for _, ev := range events(a.response, size) {
						if body, err = enc.Encode(body, ev); err != nil {
							t.Fatal(err)
						}
					}
					if body, err = enc.Close(body); err != nil {
						t.Fatal(err)
					}
					if err := emitcheck.Stream(v.codec.Dialect(), nil, body); err != nil {
						t.Errorf("%v\n%s", err, body)
					}
					got, err := v.stream(body)
					if err != nil {
						t.Fatalf("the SDK rejects it: %v\n%s", err, body)
					}
					if d := want.isReadAs(got); d != "" {
						t.Errorf("%s\n%s", d, body)
					}
					if v.file == "openai_responses" {
						if _, d, _ := responsesFold(body); d != "" {
							t.Errorf("%s\n%s", d, body)
						}
					}
				})
			}
		}
	}
}

// isReadAs is agrees for our own output, which must have usage.
func (s content) isReadAs(got content) string {
	if s.usage != nil && got.usage == nil {
		return "the usage is missing"
	}
	return s.agrees(got)
}

// namedResponse is a response with a name, independent of a dialect.
type namedResponse struct {
	name     string
	response *dragoman.Response
}

func testResponses() []namedResponse {
	text := func(s string) dragoman.Part { return &dragoman.Text{Text: s} }
	call := func(id, name, args string) dragoman.Part {
		return &dragoman.ToolCall{ID: id, Name: name, Arguments: args}
	}
	newResponse := func(name string, stop dragoman.StopReason, parts ...dragoman.Part) namedResponse {
		return namedResponse{name, &dragoman.Response{
			ID: "r_1", Model: "m", Stop: dragoman.Stop{Reason: stop},
			Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: parts}},
			Usage:  dragoman.Usage{Input: dragoman.Counted(9), Output: dragoman.Counted(4)},
		}}
	}
	return []namedResponse{
		newResponse("text", dragoman.StopEnd, text("Grüße, 世界! \"quoted\"\n")),
		newResponse("no text", dragoman.StopEnd),
		newResponse("one call", dragoman.StopToolCalls, call("call_1", "get_weather", `{"city":"Oslo","n":1.0}`)),
		newResponse("text and parallel calls", dragoman.StopToolCalls, text("Both."), call("call_1", "get_weather", `{"city":"Oslo"}`), call("call_2", "get_time", `{"tz": "Europe/Oslo"}`)),
		newResponse("a call without arguments", dragoman.StopToolCalls, call("call_1", "now", "")),
		newResponse("a refusal", dragoman.StopRefusal, &dragoman.Refusal{Text: "I cannot help with that."}),
		newResponse("reasoning, text and a call", dragoman.StopToolCalls, &dragoman.Reasoning{Text: "Need the weather."}, text("Checking."), call("call_1", "get_weather", `{"city":"Oslo"}`)),
		newResponse("a summary of reasoning", dragoman.StopEnd, &dragoman.Reasoning{Summary: []string{"First.", "Second."}}, text("Done.")),
		newResponse("a truncated response", dragoman.StopLength, text("It goes on and")),
	}
}

// events streams a response with deltas of at most size bytes.
func events(r *dragoman.Response, size int) []dragoman.Event {
	head := *r
	head.Output = nil
	evs := []dragoman.Event{&dragoman.ResponseStart{Response: head}}
	index := 0
	for n, m := range r.Output {
		header := m
		header.Parts = nil
		for i, p := range m.Parts {
			start := &dragoman.PartStart{Index: index, Message: n}
			if i == 0 {
				start.Header = &header
			}
			evs = append(evs, start)
			deltas := func(text string, summary int) {
				for len(text) > 0 {
					k := min(size, len(text))
					for k < len(text) && text[k]&0xC0 == 0x80 { // do not split characters
						k++
					}
					evs = append(evs, &dragoman.PartDelta{Index: index, Text: text[:k], Summary: summary})
					text = text[k:]
				}
			}
			switch p := p.(type) {
			case *dragoman.Text:
				start.Part = &dragoman.Text{}
				deltas(p.Text, 0)
			case *dragoman.Refusal:
				start.Part = &dragoman.Refusal{}
				deltas(p.Text, 0)
			case *dragoman.Reasoning:
				start.Part = &dragoman.Reasoning{}
				deltas(p.Text, 0)
				for j, s := range p.Summary {
					deltas(s, j+1)
				}
			case *dragoman.ToolCall:
				start.Part = &dragoman.ToolCall{ID: p.ID, Name: p.Name}
				deltas(p.Arguments, 0)
			}
			evs = append(evs, &dragoman.PartEnd{Index: index, Part: p})
			index++
		}
	}
	return append(evs, &dragoman.ResponseEnd{Stop: r.Stop, Usage: r.Usage, Response: head})
}
