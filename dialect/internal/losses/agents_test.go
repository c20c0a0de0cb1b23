package losses_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/targets"
)

// Agent programs send values that other providers refuse; .ci/agents/run found these cases.

func TestLongUserIDIsHashedForOpenAI(t *testing.T) {
	const short = "user-1"
	long := strings.Repeat("ü", 65) // Claude Code sends a JSON object with three ids
	for _, to := range []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}} {
		write := func(user string) string {
			out, _ := crosstest.ConvertRequest(t, anthropic.Codec{}, to, `{"model":"m","max_tokens":9,"metadata":{"user_id":"`+user+`"},"messages":[{"role":"user","content":"hi"}]}`)
			return strings.Trim(string(out["safety_identifier"]), `"`)
		}
		if got := write(short); got != short {
			t.Errorf("%s: %q", to.Dialect(), got)
		}
		if got := write(long[2:]); got != long[2:] {
			t.Errorf("%s, 64 characters: %q", to.Dialect(), got)
		}
		if got := write(long); len(got) != 64 || got != write(long) || got == write(long+"x") {
			t.Errorf("%s: %q", to.Dialect(), got)
		}
	}
}

func TestClaudeThinkingDropsRefusedSampling(t *testing.T) {
	body := func(config string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":20000,` + config + `}}`
	}
	const thinking = `"thinkingConfig":{"includeThoughts":true,"thinkingBudget":8192}`
	for _, tc := range []struct{ config, temperature, topP, topK, lost string }{
		{`"temperature":1,"topP":0.95,"topK":64`, "1", "0.95", "64", ""},
		{`"temperature":1,"topP":0.95,"topK":64,` + thinking, "1", "0.95", "", "/sampling/top_k"},
		{`"temperature":1.5,"topP":1,` + thinking, "1", "1", "", "/sampling/temperature"},
		{`"temperature":0,"topP":0.9,` + thinking, "", "", "", "/sampling/temperature /sampling/top_p"},
	} {
		out, rep := crosstest.ConvertRequest(t, gemini.Codec{}, anthropic.Codec{}, body(tc.config))
		var lost []string
		for _, l := range rep.Losses {
			if strings.HasPrefix(l.Path, "/sampling/") {
				lost = append(lost, l.Path)
			}
		}
		if string(out["temperature"]) != tc.temperature || string(out["top_p"]) != tc.topP || string(out["top_k"]) != tc.topK || strings.Join(lost, " ") != tc.lost {
			t.Errorf("%s: %s %s %s, lost %v", tc.config, out["temperature"], out["top_p"], out["top_k"], lost)
		}
	}
}

// If a model takes temperature or top_p but not both, the more specific one is sent.
func TestOneSamplerKeepsTheMoreSpecificValue(t *testing.T) {
	one := targets.Target{Caps: targets.Capabilities{OneSampler: true}}
	for _, tc := range []struct{ temperature, topP, written, lost string }{
		{"0.2", "", "0.2 -", ""},
		{"", "0.9", "- 0.9", ""},
		{"0.2", "0.9", "0.2 -", "dropped (warn) /sampling/top_p"},
		{"0.2", "1.0", "0.2 -", "lowered (info) /sampling/top_p"},
		{"1", "1", "1 -", "lowered (info) /sampling/top_p"},
		{"1", "0.95", "- 0.95", "lowered (info) /sampling/temperature"},
		{"1.5", "0.95", "- 0.95", "lowered (warn) /sampling/temperature, lowered (info) /sampling/temperature"},
	} {
		req := &dragoman.Request{Model: "m", Messages: []dragoman.Message{dragoman.UserText("hi")}, MaxOutputTokens: new(int64(100))}
		if tc.temperature != "" {
			req.Sampling.Temperature = new(dragoman.Number(tc.temperature))
		}
		if tc.topP != "" {
			req.Sampling.TopP = new(dragoman.Number(tc.topP))
		}
		for _, to := range []dialect.Codec{anthropic.Codec{}, bedrock.Codec{}} {
			enc, err := to.EncodeRequest(req, dialect.EncodeOptions{Target: one})
			if err != nil {
				t.Fatal(err)
			}
			var body struct {
				Temperature     json.Number
				TopP            json.Number `json:"top_p"`
				InferenceConfig struct{ Temperature, TopP json.Number }
			}
			if err := json.Unmarshal(enc.Body, &body); err != nil {
				t.Fatal(err)
			}
			written := fmt.Sprint(cmp.Or(body.Temperature, body.InferenceConfig.Temperature, "-"), " ", cmp.Or(body.TopP, body.InferenceConfig.TopP, "-"))
			var lost []string
			for _, l := range enc.Report.Losses {
				if strings.HasPrefix(l.Path, "/sampling/") {
					lost = append(lost, fmt.Sprintf("%s (%s) %s", l.Kind, l.Severity, l.Path))
				}
			}
			if written != tc.written || strings.Join(lost, ", ") != tc.lost {
				t.Errorf("%s: %s and %s: written %s, lost %v", to.Dialect(), tc.temperature, tc.topP, written, lost)
			}
		}
	}
}

func TestBedrockRequestAsksForTheStopSequence(t *testing.T) {
	for stop, want := range map[string]string{`["END"]`: `["/stop_sequence"]`, `[""]`: "", `[]`: ""} {
		out, _ := crosstest.ConvertRequest(t, openaichat.Codec{}, bedrock.Codec{}, `{"messages":[{"role":"user","content":"hi"}],"stop":`+stop+`}`)
		if got := string(out["additionalModelResponseFieldPaths"]); got != want {
			t.Errorf("%s: %s", stop, got)
		}
	}
}

func TestRoleOfSystemInstructionIsNotALoss(t *testing.T) {
	const body = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"systemInstruction":{"role":"user","parts":[{"text":"Be kind."}]}}`
	for _, to := range crosstest.Codecs {
		_, rep := crosstest.ConvertRequest(t, gemini.Codec{}, to, body)
		for _, l := range rep.Losses {
			if strings.HasPrefix(l.Path, "/systemInstruction") && l.Severity != dragoman.Info {
				t.Errorf("%s: %v", to.Dialect(), l)
			}
		}
	}
}
