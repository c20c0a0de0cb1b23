package wirekit_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/targets"
)

// Replaying an unchanged request must not send private state to another provider: state
// that another origin minted is left out, and the rest is re-encoded.
func TestReplayOmitsReasoningOfAnotherOrigin(t *testing.T) {
	bodies := map[dialect.Codec]string{
		anthropic.Codec{}: `{"model":"claude-a","max_tokens":100,"messages":[{"role":"user","content":"hi"},` +
			`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"SECRETSTATE"},{"type":"text","text":"x"}]},{"role":"user","content":"go on"}]}`,
		openairesponses.Codec{}: `{"model":"gpt-a","store":false,"input":[{"role":"user","content":"hi"},` +
			`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"SECRETSTATE"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]},{"role":"user","content":"go on"}]}`,
		openaichat.Codec{}: `{"model":"m-a","messages":[{"role":"user","content":"hi"},` +
			`{"role":"assistant","content":"x","reasoning_details":[{"type":"reasoning.encrypted","data":"SECRETSTATE"}]},{"role":"user","content":"go on"}]}`,
	}
	for c, body := range bodies {
		t.Run(string(c.Dialect()), func(t *testing.T) {
			home := dragoman.Origin{Provider: "home", Scope: "account-1", Model: "claude-a"}
			req, _, err := c.DecodeRequest([]byte(body), dialect.DecodeOptions{Origin: home})
			if err != nil {
				t.Fatal(err)
			}
			same, err := c.EncodeRequest(req, dialect.EncodeOptions{Target: targets.Target{Provider: "home", Scope: "account-1", Model: "claude-a"}})
			if err != nil || string(same.Body) != body {
				t.Errorf("the same origin gets different bytes: %v\n%s", err, same.Body)
			}
			other, err := c.EncodeRequest(req, dialect.EncodeOptions{Target: targets.Target{Provider: "elsewhere", Scope: "account-2", Model: "m"}})
			if err != nil || strings.Contains(string(other.Body), "SECRETSTATE") {
				t.Errorf("another origin gets %s, %v", other.Body, err)
			}
			if len(other.Report.Losses) == 0 {
				t.Error("the loss is not reported")
			}
			client, _, err := c.DecodeRequest([]byte(body), dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			client.Model = "another-model"
			out, err := c.EncodeRequest(client, dialect.EncodeOptions{})
			want := strings.NewReplacer(`"claude-a"`, `"another-model"`, `"gpt-a"`, `"another-model"`, `"m-a"`, `"another-model"`).Replace(body)
			if err != nil || string(out.Body) != want {
				t.Errorf("a request of unknown origin with another model: %v\n%s\nwant\n%s", err, out.Body, want)
			}
		})
	}
}
