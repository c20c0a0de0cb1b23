package emitcheck_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// fuzz feeds arbitrary bytes to the checkers of a dialect. They must not panic, and the result
// for a stream must not depend on how it is split.
func fuzz(f *testing.F, d dragoman.Dialect, seeds ...string) {
	for i, s := range seeds {
		f.Add([]byte(s), uint16(i+1))
	}
	f.Fuzz(func(t *testing.T, body []byte, cut uint16) {
		_ = emitcheck.Whole(d, 200, nil, body)
		_ = emitcheck.Error(d, 400, nil, body)
		err := emitcheck.Stream(d, nil, body)
		if err == nil {
			if err := emitcheck.Order(d, body); err != nil {
				t.Fatalf("a valid stream fails Order: %v", err)
			}
		}
		c := emitcheck.NewStream(d, nil)
		var cutErr error
		for _, p := range codectest.Pieces(body, int(cut)%97+1) {
			if _, cutErr = c.Write(p); cutErr != nil {
				break
			}
		}
		if cutErr == nil {
			cutErr = c.Close()
		}
		if (err == nil) != (cutErr == nil) {
			t.Fatalf("in one piece: %v; split: %v", err, cutErr)
		}
	})
}

func FuzzChat(f *testing.F) {
	fuzz(f, dialectname.OpenAIChat, chatRole+chatText+chatStop+chatUses+chatDone, chatRole+chatCall+chatArgs+chatTool+chatDone, chatErr, `{"choices":[{"message":{"tool_calls":[null,5]}}]}`)
}

func FuzzResponses(f *testing.F) {
	fuzz(f, dialectname.OpenAIResponses, framed(begun(), rsEvents, at(1, msgEvents), at(2, fcEvents), one(completed(rsItem, msgItem, fcItem)))+doneMarker, response("completed", ctcItem, "5"), framed(begun(errorEvent, failed))+doneMarker)
}

func FuzzAnthropic(f *testing.F) {
	fuzz(f, dialectname.Anthropic, msgStart+ping+thinks+thought+signature+stop0+useStart+useDelta+stop1+swap(msgDelta, "end_turn", "tool_use")+msgStop, msgStart+textStart+textDelta+stop0+msgError, `{"content":[null]}`)
}

func FuzzGemini(f *testing.F) {
	fuzz(f, dialectname.Gemini, sent(gemText, gemCall, gemEnd), "["+gemText+",\n"+gemEnd+"]", gemEnd, "["+gemErr+"]", gemErr)
}

func FuzzOllama(f *testing.F) {
	fuzz(f, dialectname.Ollama, olText+olCall+olEnd, olEnd, `{"error":"x"}`+"\n")
}

func FuzzBedrock(f *testing.F) {
	fuzz(f, dialectname.Bedrock, string(bedrockFrames(bedStart, bedText, bedStop0, bedStop, bedMeta)), bedWhole, `{"message":"x"}`)
}

func TestCheckersAreLinear(t *testing.T) {
	many := func(s string, n int) string { return strings.Repeat(s, n) }
	deltas := func(n int) []string {
		evs := append(begun(), msgEvents[:2]...)
		for range n {
			evs = append(evs, msgEvents[2])
		}
		return evs
	}
	for name, c := range map[string]struct {
		dialect dragoman.Dialect
		body    func(n int) string
	}{
		"chat":      {dialectname.OpenAIChat, func(n int) string { return chatRole + many(chatText, n) + chatStop + chatDone }},
		"arguments": {dialectname.OpenAIChat, func(n int) string { return chatRole + chatCall + many(swap(chatArgs, "{}", "x"), n) }},
		"responses": {dialectname.OpenAIResponses, func(n int) string { return framed(deltas(n)) }},
		"anthropic": {dialectname.Anthropic, func(n int) string { return msgStart + textStart + many(textDelta, n) }},
		"gemini":    {dialectname.Gemini, func(n int) string { return many(sent(gemText), n) }},
		"array":     {dialectname.Gemini, func(n int) string { return "[" + many(gemText+",", n) + gemEnd + "]" }},
		"ollama":    {dialectname.Ollama, func(n int) string { return many(olText, n) }},
		"a line":    {dialectname.Ollama, func(n int) string { return `{"error":"` + many("x", 20*n) }},
	} {
		bodies := map[int]string{}
		codectest.Linear(t, name, 20_000, func(n int) error {
			if bodies[n] == "" {
				bodies[n] = c.body(n)
			}
			s := emitcheck.NewStream(c.dialect, nil)
			for _, p := range codectest.Pieces([]byte(bodies[n]), 500) {
				if _, err := s.Write(p); err != nil {
					return err
				}
			}
			_ = s.Close()
			return nil
		})
	}
}
