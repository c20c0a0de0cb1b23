package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestConvertRefusesReferencesItCannotResolve(t *testing.T) {
	for body, id := range map[string]string{
		`{"model":"m","input":[{"role":"user","content":"q"},{"type":"item_reference","id":"fc_1"},{"type":"function_call_output","call_id":"c","output":"x"}]}`: "fc_1",
		`{"model":"m","input":"q","previous_response_id":"resp_1"}`: "resp_1",
		`{"model":"m","input":"q","conversation":"conv_1"}`:         "conv_1",
	} {
		for _, to := range []string{"chat", "anthropic", "gemini", "ollama", "bedrock"} {
			var out, stderr bytes.Buffer
			code := run([]string{"convert", "--from", "responses", "--to", to}, strings.NewReader(body), &out, &stderr)
			if code == exitOK || out.Len() > 0 || !strings.Contains(stderr.String(), id) {
				t.Errorf("to %s: exit code %d, output %q, %s", to, code, out.String(), stderr.String())
			}
		}
	}
}
