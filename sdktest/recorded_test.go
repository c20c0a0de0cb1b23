package sdktest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/recordings"
)

// TestWeDecodeEveryAnswerTheOfficialSDKDecodes compares us with the vendor's
// SDK on every recorded 2xx answer. What the SDK takes, we take, and read the
// same; what it refuses and we take is counted with its reason.
func TestWeDecodeEveryAnswerTheOfficialSDKDecodes(t *testing.T) {
	for _, v := range vendors() {
		t.Run(v.file, func(t *testing.T) {
			counts := map[string]int{}
			refused := map[string][]string{} // by reason
			known := disagreements[v.file]
			used := map[string]bool{}
			for _, x := range recordings.Load(t, v.file) {
				if x.Resp == nil || *x.Resp == "" || x.Status < 200 || x.Status >= 300 {
					continue
				}
				id := x.ID()
				body := []byte(*x.Resp)
				sdk, us, kind := v.stream, v.ourStream, "streams"
				if strings.HasPrefix(strings.TrimSpace(*x.Resp), "{") {
					sdk, us, kind = v.whole, v.ourWhole, "responses"
				}
				counts[kind]++
				theirs, theirErr := sdk(body)
				ours, ourErr := us(body)
				switch {
				case theirErr == nil && ourErr != nil:
					if _, ok := known[id]; ok {
						used[id] = true
						counts[kind+" only the SDK takes, explained"]++
						continue
					}
					t.Errorf("%s: the SDK takes it, we do not: %v", id, ourErr)
				case theirErr == nil:
					counts[kind+" both take"]++
					if d := theirs.agrees(ours); d != "" {
						if _, ok := known[id]; !ok {
							t.Errorf("%s: the SDK and we read differently: %s", id, d)
						}
						used[id] = true
						counts[kind+" read differently, explained"]++
					}
				case ourErr == nil:
					counts[kind+" only we take"]++
					reason := kindOf(theirErr)
					refused[reason] = append(refused[reason], id)
				default:
					counts[kind+" nobody takes"]++
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
				t.Logf("the SDK refuses %d that we take: %s:\n\t%s", len(refused[reason]), reason, strings.Join(refused[reason], "\n\t"))
			}
		})
	}
}

// kindOf is the gist of an SDK's error.
func kindOf(err error) string {
	s := err.Error()
	if len(s) > 100 {
		s = s[:100]
	}
	return s
}

// disagreements are answers that the SDK reads otherwise, by exchange, and why
// we are right.
var disagreements = map[string]map[string]string{
	"openai_chat": {
		"simonw/llm:tests/cassettes/test_tools_streaming/test_tools_streaming_variant_a.yaml#0": "the server repeats the name in every delta and the SDK joins the repetitions (quirk C5)",
		"vercel/ai:packages/mistral/src/__fixtures__/mistral-reasoning.chunks.txt#0":            "Mistral writes content as a list of parts, which the SDK takes for text (quirk G6)",
		"vercel/ai:packages/mistral/src/__fixtures__/mistral-reasoning.json#0":                  "Mistral writes content as a list of parts, which the SDK takes for text (quirk G6)",
	},
	"anthropic_messages": {
		"vercel/ai:packages/anthropic/src/__fixtures__/spliced-message-start.chunks.txt#0": "two answers spliced together on purpose; the SDK merges them into one that no model gave (quirk C37)",
	},
}
