package recorded_test

import (
	"maps"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// anthropicStops maps every stop reason in the recordings.
var anthropicStops = map[string]dragoman.StopReason{
	"":              dragoman.StopNone,
	"end_turn":      dragoman.StopEnd,
	"tool_use":      dragoman.StopToolCalls,
	"max_tokens":    dragoman.StopLength,
	"stop_sequence": dragoman.StopSequence,
	"pause_turn":    dragoman.StopPause,
	"refusal":       dragoman.StopRefusal,
	"compaction":    dragoman.StopCompaction,
}

func readAnthropicWhole(body map[string]any) reading {
	out := reading{ID: traffic.Text(body["id"]), Model: traffic.Text(body["model"]), Usage: map[string]int64{}, Failed: body["type"] == "error"}
	var c choiceReading
	for _, v := range traffic.List(body["content"]) {
		c.anthropicBlock(traffic.Object(v))
	}
	out.anthropicUsage(traffic.Object(body["usage"]))
	out.anthropicTotal()
	c.WireStop = traffic.Text(body["stop_reason"])
	c.settle(wireStopIn(anthropicStops, c.WireStop), true)
	out.Choices = []choiceReading{c}
	return out
}

func (c *choiceReading) anthropicBlock(b map[string]any) {
	switch typ := traffic.Text(b["type"]); typ {
	case "text":
		c.Text += traffic.Text(b["text"])
	case "thinking":
		c.Reasoning += traffic.Text(b["thinking"])
		if s := traffic.Text(b["signature"]); s != "" {
			c.Opaque = append(c.Opaque, s)
		}
	case "redacted_thinking":
		c.Opaque = append(c.Opaque, traffic.Text(b["data"]))
	case "tool_use":
		k := callReading{ID: traffic.Text(b["id"]), Name: traffic.Text(b["name"])}
		if text, ok := b["partial_json"].(string); ok && text != "" {
			k.Args = text
		} else {
			k.Args, k.Object = traffic.JSONText(b["input"]), true
		}
		c.Calls = append(c.Calls, k)
	default:
		c.Others = append(c.Others, typ)
	}
}

// anthropicUsage reads counters. Each is the total so far; null means unknown.
func (r *reading) anthropicUsage(u map[string]any) {
	put := func(name string, v any) {
		if n, ok := num(v); ok {
			r.Usage[name] = n
		}
	}
	put("input", u["input_tokens"])
	put("cache_write", u["cache_creation_input_tokens"])
	put("cache_read", u["cache_read_input_tokens"])
	put("output", u["output_tokens"])
	put("reasoning", traffic.Object(u["output_tokens_details"])["thinking_tokens"])
}

// anthropicTotal makes input the total, because the wire count excludes cached tokens.
func (r *reading) anthropicTotal() {
	if n, ok := r.Usage["input"]; ok {
		r.Usage["input"] = n + r.Usage["cache_write"] + r.Usage["cache_read"]
	}
}

func readAnthropicStream(events []map[string]any, _ bool) reading {
	out := reading{Usage: map[string]int64{}}
	var c choiceReading
	blocks := map[int64]map[string]any{}
	stopped := false
	for _, ev := range events {
		if stopped {
			break // the rest is another response
		}
		i, _ := num(ev["index"])
		b := blocks[i]
		switch traffic.Text(ev["type"]) {
		case "message_start":
			m := traffic.Object(ev["message"])
			out.ID, out.Model = traffic.Text(m["id"]), traffic.Text(m["model"])
			for j, v := range traffic.List(m["content"]) {
				blocks[int64(j)] = traffic.Object(v)
			}
			out.anthropicUsage(traffic.Object(m["usage"]))
			c.WireStop = traffic.Text(m["stop_reason"])
		case "content_block_start":
			blocks[i] = maps.Clone(traffic.Object(ev["content_block"]))
		case "content_block_delta":
			delta := traffic.Object(ev["delta"])
			grow := func(key string) { b[key] = traffic.Text(b[key]) + traffic.Text(delta[key]) }
			switch traffic.Text(delta["type"]) {
			case "text_delta":
				grow("text")
			case "thinking_delta":
				grow("thinking")
			case "signature_delta":
				b["signature"] = delta["signature"]
			case "input_json_delta":
				grow("partial_json")
			}
		case "message_delta":
			if w := traffic.Text(traffic.Object(ev["delta"])["stop_reason"]); w != "" {
				c.WireStop = w
			}
			out.anthropicUsage(traffic.Object(ev["usage"]))
		case "message_stop":
			stopped = true
		case "error":
			out.Failed = true
		}
	}
	for _, i := range slices.Sorted(maps.Keys(blocks)) {
		c.anthropicBlock(blocks[i])
	}
	out.Broken = !stopped && !out.Failed
	out.anthropicTotal()
	c.settle(wireStopIn(anthropicStops, c.WireStop), stopped)
	out.Choices = []choiceReading{c}
	return out
}
