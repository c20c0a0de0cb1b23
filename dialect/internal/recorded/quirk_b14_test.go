package recorded_test

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/targets"
)

// kimiTurns returns a conversation with one call in each turn. Each turn gives
// the call's id and the origin that minted it.
func kimiTurns(turns ...func() (id string, origin *dragoman.Origin)) *dragoman.Request {
	req := &dragoman.Request{Model: "kimi-k2", Messages: []dragoman.Message{dragoman.UserText("q")}}
	for _, turn := range turns {
		id, origin := turn()
		m := crosstest.Message(dragoman.RoleAssistant, &dragoman.ToolCall{ID: id, Name: "Read", Arguments: "{}"})
		m.Origin = origin
		req.Messages = append(req.Messages, m, dragoman.ToolResults(&dragoman.ToolResult{CallID: id, Content: []dragoman.Part{&dragoman.Text{Text: "r"}}}))
	}
	return req
}

func generatedBy(id string, origin dragoman.Origin) func() (string, *dragoman.Origin) {
	return func() (string, *dragoman.Origin) { return id, &origin }
}

// Kimi stops answering, or writes its markers as text, when it sees call ids other than its own.
func TestQuirkB14_KimiGetsItsOwnIDsOrNumbers(t *testing.T) {
	kimi := targets.Target{Provider: "moonshot", Model: "kimi-k2", Caps: targets.Capabilities{ID: &targets.IDRule{Numbered: true}}}
	own := dragoman.Origin{Dialect: dialectname.OpenAIChat, Provider: "moonshot"}
	openai := dragoman.Origin{Dialect: dialectname.OpenAIChat, Provider: "openai"}
	claude := dragoman.Origin{Dialect: dialectname.Anthropic, Provider: "anthropic"}
	for name, tc := range map[string]struct {
		req  *dragoman.Request
		want []string
	}{
		"its own ids, in any form": {
			kimiTurns(generatedBy("functions.Read:0", own), generatedBy("functions_Read_1", own), generatedBy("functions.Read:7", own)),
			[]string{"functions.Read:0", "functions_Read_1", "functions.Read:7"},
		},
		"ids of other providers": {
			kimiTurns(generatedBy("call_1", openai), generatedBy("toolu_2", claude), generatedBy("functions.Read:9", claude)),
			[]string{"functions.Read:0", "functions.Read:1", "functions.Read:2"},
		},
		"both": {
			kimiTurns(generatedBy("call_1", openai), generatedBy("functions.Read:1", own), generatedBy("toolu_2", claude)),
			[]string{"functions.Read:0", "functions.Read:1", "functions.Read:2"},
		},
		"a number used by its own ids is skipped": {
			kimiTurns(generatedBy("call_1", openai), generatedBy("functions.Read:0", own), generatedBy("toolu_2", claude)),
			[]string{"functions.Read:1", "functions.Read:0", "functions.Read:3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			enc, err := openaichat.Codec{}.EncodeRequest(tc.req, dialect.EncodeOptions{Target: kimi})
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range tc.want {
				for _, member := range []string{fmt.Sprintf(`"id":%q`, want), fmt.Sprintf(`"tool_call_id":%q`, want)} {
					if strings.Count(string(enc.Body), member) != 1 {
						t.Errorf("turn %d: want %s once in\n%s", i, member, enc.Body)
					}
				}
			}
			// The model continues with the next number. An id that we wrote comes
			// back as the original one.
			response := `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"` + tc.want[0] + `","type":"function","function":{"name":"Read","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
			resp, _, err := openaichat.Codec{}.DecodeResponse([]byte(response), dialect.DecodeOptions{Registry: enc.Registry})
			if first := tc.req.Messages[1].ToolCalls()[0].ID; err != nil || resp.ToolCalls()[0].ID != first {
				t.Errorf("%q came back as %q, want %q (%v)", tc.want[0], resp.ToolCalls()[0].ID, first, err)
			}
		})
	}
}

func TestQuirkB14_OtherTargetsGetKimiIDsInTheirForm(t *testing.T) {
	own := dragoman.Origin{Dialect: dialectname.OpenAIChat, Provider: "moonshot"}
	req := kimiTurns(generatedBy("functions.Read:0", own))
	for _, l := range apis() {
		enc, err := l.Codec.EncodeRequest(req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		legal := l.Codec.Limits().ID.Chars == ""
		if kept := strings.Count(string(enc.Body), `"functions.Read:0"`) == 2; kept != legal {
			t.Errorf("%s: %s", l.File, enc.Body)
		}
	}
}
