package emitcheck_test

import (
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/framing/eventstream"
)

// Bedrock events: the type, a space, the payload.
const (
	bedStart = `messageStart {"role":"assistant"}`
	bedText  = `contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"Hi"}}`
	bedStop0 = `contentBlockStop {"contentBlockIndex":0}`
	bedUse   = `contentBlockStart {"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"tooluse_1","name":"f"}}}`
	bedInput = `contentBlockDelta {"contentBlockIndex":1,"delta":{"toolUse":{"input":"{}"}}}`
	bedStop1 = `contentBlockStop {"contentBlockIndex":1}`
	bedStop  = `messageStop {"stopReason":"end_turn"}`
	bedMeta  = `metadata {"usage":{"inputTokens":9,"outputTokens":4,"totalTokens":13},"metrics":{"latencyMs":1}}`
	bedError = `!throttlingException {"message":"Slow down."}`
	bedWhole = `{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"f","input":{}}}]}},"stopReason":"tool_use","usage":{"inputTokens":9,"outputTokens":4,"totalTokens":13},"metrics":{"latencyMs":1}}`
)

// bedrockFrames frames events; one whose type begins with ! is an exception.
func bedrockFrames(events ...string) (out []byte) {
	for _, ev := range events {
		typ, payload, _ := strings.Cut(ev, " ")
		kind, name := "event", ":event-type"
		if exception, ok := strings.CutPrefix(typ, "!"); ok {
			kind, name, typ = "exception", ":exception-type", exception
		}
		out, _ = eventstream.Append(out, []eventstream.Header{
			{Name: name, Value: eventstream.Text(typ)}, {Name: ":content-type", Value: eventstream.Text("application/json")}, {Name: ":message-type", Value: eventstream.Text(kind)},
		}, []byte(payload))
	}
	return out
}

func TestBedrockStreams(t *testing.T) {
	of := func(events ...string) string { return string(bedrockFrames(events...)) }
	sound := of(bedStart, bedText, bedStop0, bedUse, bedInput, bedStop1, bedStop, bedMeta)
	streams{dialectname.Bedrock, []string{sound, of(bedStart, bedText, bedError), of(bedError)}, []broken{
		{"no end", of(bedStart, bedText, bedStop0, bedStop), "the stream has no end"},
		{"no start", of(bedText), "frame 0 (contentBlockDelta) /contentBlockIndex: block 0 starts out of order"},
		{"two starts", of(bedStart, bedStart), "frame 1 (messageStart): out of order"},
		{"a block open at the end", of(bedStart, bedText, bedStop), "frame 2 (messageStop): while a block is open"},
		{"a block inside another", of(bedStart, bedText, bedUse), "frame 2 (contentBlockStart) /contentBlockIndex: block 1 starts out of order"},
		{"another kind", of(bedStart, bedText, bedStop0, bedUse, swap(bedInput, `{"toolUse":{"input":"{}"}}`, `{"text":"x"}`)), "frame 4 (contentBlockDelta) /delta/text: for block 1"},
		{"an empty delta", of(bedStart, swap(bedText, "Hi", "")), "frame 1 (contentBlockDelta) /delta/text: empty"},
		{"a call without id", of(bedStart, bedText, bedStop0, swap(bedUse, `"toolUseId":"tooluse_1",`, "")), "frame 3 (contentBlockStart) /start/toolUse/toolUseId: missing"},
		{"no usage", of(bedStart, bedText, bedStop0, bedStop, `metadata {"metrics":{"latencyMs":1}}`), "frame 4 (metadata) /usage: missing"},
		{"unknown exception", of(`!slowDown {"message":"x"}`), "frame 0 (!slowDown): unknown exception"},
		{"after exception", of(bedError, bedStart), "frame 1 (messageStart): after the end, which was an exception"},
		{"damaged", sound[:len(sound)-1] + "x", "checksum"},
	}}.run(t)
	wholes{dialectname.Bedrock, []string{bedWhole}, []broken{
		{"no role", swap(bedWhole, `"role":"assistant",`, ""), "/output/message/role: missing"},
		{"input is a string", swap(bedWhole, `"input":{}`, `"input":"{}"`), "/toolUse/input: not an object"},
		{"no stop", swap(bedWhole, `"stopReason":"tool_use",`, ""), "/stopReason: missing"},
	}}.run(t)
	failures{dialectname.Bedrock, 429, []string{`{"message":"Slow down."}`}, []broken{{"no message", `{}`, "/message: missing"}}}.run(t)
}
