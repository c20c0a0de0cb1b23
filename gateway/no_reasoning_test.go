package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// An answer without reasoning loses none, even if another answer to the same prompt had
// some.
func TestAnswerWithoutReasoningReportsNoLoss(t *testing.T) {
	upstream := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		content, words := "", "Plain words."
		if strings.Contains(string(body), `"budget_tokens"`) {
			content, words = `{"type":"thinking","thinking":"Hm.","signature":"c2lnbmF0dXJl"},`, "Thought words."
		}
		writeResponse(w, r, false, fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[%s{"type":"text","text":%q}],`+
			`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":3}}`, content, words))
	}
	w := newServerWorld(t, "", upstream)
	post := func(more, input string) (losses, body string) {
		t.Helper()
		status, losses, body := postJSON(t, w.url+"/v1/responses", `{"model":"anthropic/claude-sonnet-4-5","store":false`+more+`,"input":[`+input+`]}`)
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		return losses, body
	}
	const (
		effort   = `,"reasoning":{"effort":"low"}`
		question = `{"role":"user","content":"hi"}`
		more     = `,{"role":"user","content":"more"}`
	)
	text := func(words string) string {
		return `,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + words + `"}]}`
	}
	post(effort, question)
	if _, body := post("", question); !strings.Contains(body, "Plain words.") {
		t.Fatal(body)
	}
	if losses, _ := post("", question+text("Plain words.")+more); strings.Contains(losses, "/messages/1") {
		t.Errorf("the plain answer reports %q", losses)
	}
	if losses, _ := post(effort, question+text("Thought words.")+more); strings.Contains(losses, "/messages/1") {
		t.Errorf("the answer with reasoning reports %q", losses)
	}
	if losses, _ := post("", question+text("Words of the client.")+more); !strings.Contains(losses, "dropped /messages/1") {
		t.Errorf("another answer reports %q", losses)
	}
}
