package sdktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/framing/eventstream"
	"github.com/dragoman-go/dragoman/internal/testkit"
)

// TestDecodersAgreeWithSDKs compares us with the vendor's SDK on every recorded 2xx response. We must
// accept what the SDK accepts, with the same content. Responses that only we accept are counted, with
// the reason of the SDK.
func TestDecodersAgreeWithSDKs(t *testing.T) {
	for _, v := range vendors() {
		t.Run(v.file, func(t *testing.T) {
			counts := map[string]int{}
			refused := map[string][]string{} // by reason
			known := disagreements[v.file]
			used := map[string]bool{}
			for _, x := range testkit.Recordings(t, v.file) {
				if x.Resp == nil || *x.Resp == "" || x.Status < 200 || x.Status >= 300 {
					continue
				}
				id := x.ID()
				body, err := asSent(v.file, &x)
				if err != nil {
					t.Fatal(err)
				}
				sdk, us, kind := v.stream, v.ourStream, "streams"
				if isWhole(body) {
					sdk, us, kind = v.whole, v.ourWhole, "responses"
				}
				counts[kind]++
				theirs, theirErr := sdk(body)
				ours, ourErr := us(body)
				if v.file == "openai_chat" {
					// The SDK adds up counters that some servers repeat, and treats those of xAI, which do
					// not include reasoning, as the total.
					theirs.usage = nil
				}
				switch {
				case theirErr == nil && ourErr != nil:
					if _, ok := known[id]; ok {
						used[id] = true
						counts[kind+" accepted only by the SDK, explained"]++
						continue
					}
					t.Errorf("%s: the SDK accepts it, we do not: %v", id, ourErr)
				case theirErr == nil:
					counts[kind+" accepted by both"]++
					if d := theirs.agrees(ours); d != "" {
						if _, ok := known[id]; !ok {
							t.Errorf("%s: the SDK and we decode differently: %s", id, d)
						}
						used[id] = true
						counts[kind+" decoded differently, explained"]++
					}
				case ourErr == nil:
					counts[kind+" accepted only by us"]++
					reason := kindOf(theirErr)
					refused[reason] = append(refused[reason], id)
				default:
					counts[kind+" rejected by both"]++
				}
			}
			for id, why := range known {
				if !used[id] {
					t.Errorf("%s is listed (%s) but no longer differs; remove it", id, why)
				}
			}
			for _, k := range slices.Sorted(maps.Keys(counts)) {
				t.Logf("%5d %s", counts[k], k)
			}
			for _, reason := range slices.Sorted(maps.Keys(refused)) {
				t.Logf("the SDK rejects %d that we accept: %s:\n\t%s", len(refused[reason]), reason, strings.Join(refused[reason], "\n\t"))
			}
		})
	}
}

// asSent returns a response as the server sent it, if the recorder changed it.
func asSent(file string, x *testkit.Exchange) ([]byte, error) {
	body, err := x.Response()
	switch {
	case err != nil:
		return nil, err
	case file == "gemini_generateContent":
		// Signatures are base64; the marks of the recorder are not.
		return redacted.ReplaceAll(body, []byte(`${1}c2ln"`)), nil
	case file == "bedrock_converse":
		return asFrames(body)
	}
	return body, nil
}

var redacted = regexp.MustCompile(`("thoughtSignature":\s*")[^"]*REDACTED[^"]*"`)

// asFrames frames events that were recorded as lines of data. Servers send binary frames.
func asFrames(body []byte) ([]byte, error) {
	if !bytes.HasPrefix(body, []byte("data:")) {
		return body, nil
	}
	var out []byte
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "data:"))
		if line == "" {
			continue
		}
		var event map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			return nil, err
		}
		if len(event) != 1 {
			return nil, fmt.Errorf("%d events in a line", len(event))
		}
		for name, payload := range event {
			var err error
			out, err = eventstream.Append(out, []eventstream.Header{
				{Name: ":event-type", Value: eventstream.Text(name)},
				{Name: ":content-type", Value: eventstream.Text("application/json")},
				{Name: ":message-type", Value: eventstream.Text("event")},
			}, payload)
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// isWhole reports whether a body is one object, and not one line per chunk.
func isWhole(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) && json.Valid(body)
}

// kindOf returns a short form of an SDK error.
func kindOf(err error) string {
	s := err.Error()
	if i := strings.LastIndex(s, ": json:"); i > 0 {
		s = s[i+2:] // the whole response is before it
	}
	if len(s) > 100 {
		s = s[:100]
	}
	return s
}

const inPieces = "arguments are streamed (partialArgs); the SDK returns each fragment as a separate call"

// disagreements lists responses that the SDK decodes differently, by exchange, with the reason why we
// are right.
var disagreements = map[string]map[string]string{
	"openai_chat": {
		"simonw/llm:tests/cassettes/test_tools_streaming/test_tools_streaming_variant_a.yaml#0": "the server repeats the name in every delta and the SDK concatenates them (quirk C5)",
		"vercel/ai:packages/mistral/src/__fixtures__/mistral-reasoning.chunks.txt#0":            "Mistral writes content as a list of parts, which the SDK treats as text (quirk G6)",
		"vercel/ai:packages/mistral/src/__fixtures__/mistral-reasoning.json#0":                  "Mistral writes content as a list of parts, which the SDK treats as text (quirk G6)",
	},
	"gemini_generateContent": {
		"vercel/ai:packages/google/src/__fixtures__/google-stream-no-args-tool-call.chunks.txt#0":                                        inPieces,
		"vercel/ai:packages/google/src/__fixtures__/google-stream-tool-call-arguments.chunks.txt#0":                                      inPieces,
		"vercel/ai:packages/google/src/__fixtures__/google-stream-tool-call-array-arguments-missing-terminal-function-call.chunks.txt#0": inPieces,
		"vercel/ai:packages/google/src/__fixtures__/google-vertex-stream-tool-call-arguments-nested.1.chunks.txt#0":                      inPieces,
	},
	"bedrock_converse": {
		"vercel/ai:packages/amazon-bedrock/src/reranking/__fixtures__/amazon-bedrock-reranking.1.json#0": "a response of another API; the SDK skips all of it and returns an empty response",
	},
	"anthropic_messages": {
		"vercel/ai:packages/anthropic/src/__fixtures__/spliced-message-start.chunks.txt#0": "two responses spliced together on purpose; the SDK merges them into one that no model sent (quirk C37)",
	},
}
