package recorded_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// bedrockStops maps every stop reason in the recordings.
var bedrockStops = map[string]dragoman.StopReason{
	"":                     dragoman.StopNone,
	"end_turn":             dragoman.StopEnd,
	"tool_use":             dragoman.StopToolCalls,
	"max_tokens":           dragoman.StopLength,
	"stop_sequence":        dragoman.StopSequence,
	"guardrail_intervened": dragoman.StopContentFilter,
}

func readBedrockWhole(body map[string]any) reading {
	out := reading{Usage: map[string]int64{}}
	var c choiceReading
	for _, v := range traffic.List(traffic.Object(traffic.Object(body["output"])["message"])["content"]) {
		c.bedrockBlock(traffic.Object(v))
	}
	out.bedrockUsage(traffic.Object(body["usage"]))
	c.WireStop = traffic.Text(body["stopReason"])
	c.settle(wireStopIn(bedrockStops, c.WireStop), true)
	out.Choices = []choiceReading{c}
	return out
}

func (c *choiceReading) bedrockBlock(b map[string]any) {
	if text, ok := b["text"].(string); ok {
		c.Text += text
		return
	}
	if u := traffic.Object(b["toolUse"]); u != nil {
		k := callReading{ID: traffic.Text(u["toolUseId"]), Name: traffic.Text(u["name"])}
		if text, ok := u["input"].(string); ok {
			k.Args = text
		} else {
			k.Args, k.Object = traffic.JSONText(u["input"]), true
		}
		c.Calls = append(c.Calls, k)
		return
	}
	if r := traffic.Object(b["reasoningContent"]); r != nil {
		if t := traffic.Object(r["reasoningText"]); t != nil {
			r = t
		}
		c.Reasoning += traffic.Text(r["text"])
		for _, s := range []string{traffic.Text(r["signature"]), traffic.Text(r["redactedContent"])} {
			if s != "" {
				c.Opaque = append(c.Opaque, s)
			}
		}
		return
	}
	c.Others = append(c.Others, slices.Sorted(maps.Keys(b))...)
}

// bedrockUsage makes input the total, because the wire count excludes cached tokens.
func (r *reading) bedrockUsage(u map[string]any) {
	for name, member := range map[string]string{
		"input": "inputTokens", "output": "outputTokens", "cache_read": "cacheReadInputTokens", "cache_write": "cacheWriteInputTokens",
	} {
		if n, ok := num(u[member]); ok {
			r.Usage[name] = n
		}
	}
	if n, ok := r.Usage["input"]; ok {
		r.Usage["input"] = n + r.Usage["cache_read"] + r.Usage["cache_write"]
	}
}

func readBedrockStream(events []map[string]any, _ bool) reading {
	out := reading{Usage: map[string]int64{}}
	var c choiceReading
	blocks := map[int64]map[string]any{}
	stopped := false
	for _, ev := range events {
		for typ, v := range ev {
			payload := traffic.Object(v)
			i, _ := num(payload["contentBlockIndex"])
			switch typ {
			case "contentBlockStart":
				blocks[i] = maps.Clone(traffic.Object(payload["start"]))
				if u := traffic.Object(blocks[i]["toolUse"]); u != nil {
					call := maps.Clone(u)
					call["input"] = ""
					blocks[i]["toolUse"] = call
				}
			case "contentBlockDelta":
				if blocks[i] == nil {
					blocks[i] = map[string]any{}
				}
				grow(blocks[i], traffic.Object(payload["delta"]))
			case "messageStop":
				stopped, c.WireStop = true, traffic.Text(payload["stopReason"])
			case "metadata":
				out.bedrockUsage(traffic.Object(payload["usage"]))
			case "messageStart", "contentBlockStop":
			default:
				out.Failed = true
			}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(blocks)) {
		if len(blocks[i]) > 0 {
			c.bedrockBlock(blocks[i])
		}
	}
	out.Broken = !stopped && !out.Failed
	c.settle(wireStopIn(bedrockStops, c.WireStop), stopped)
	out.Choices = []choiceReading{c}
	return out
}

// grow adds a delta to a block: it joins texts and merges objects.
func grow(block, delta map[string]any) {
	for name, v := range delta {
		switch v := v.(type) {
		case string:
			block[name] = traffic.Text(block[name]) + v
		case map[string]any:
			if block[name] == nil {
				block[name] = map[string]any{}
			}
			grow(traffic.Object(block[name]), v)
		}
	}
}

// frameObjects reads binary frames strictly by their specification. It returns
// each event as an object with the event type as its only field.
func frameObjects(body string) (out []map[string]any, done bool, err error) {
	rest := []byte(body)
	for len(rest) > 0 {
		if len(rest) < 16 || int(binary.BigEndian.Uint32(rest)) > len(rest) {
			return out, false, errors.New("truncated frame")
		}
		total, size := binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:])
		headers := rest[12 : 12+size]
		payload := rest[12+size : total-4]
		rest = rest[total:]
		typ := ""
		for len(headers) > 0 {
			n := int(headers[0])
			name := string(headers[1 : 1+n])
			if headers[1+n] != 7 {
				return out, false, fmt.Errorf("header %s is not a string", name)
			}
			length := int(binary.BigEndian.Uint16(headers[2+n:]))
			value := string(headers[4+n : 4+n+length])
			headers = headers[4+n+length:]
			if name == ":event-type" || name == ":exception-type" {
				typ = value
			}
		}
		m, err := decodeObject(string(payload))
		if err != nil {
			return out, false, err
		}
		out = append(out, map[string]any{typ: m})
	}
	return out, false, nil
}

// framed writes events, recorded one per line by their type, as the binary
// frames that the server sends.
func framed(t *testing.T, lines []string) string {
	t.Helper()
	var out []byte
	for _, line := range lines {
		line = strings.TrimSpace(strings.TrimPrefix(line, "data:"))
		if line == "" {
			continue
		}
		event, err := decodeObject(line)
		if err != nil || len(event) != 1 {
			t.Fatalf("%d events in one line (%v): %s", len(event), err, line)
		}
		for typ, payload := range event {
			out = append(out, crosstest.EventStreamFrame(t, typ, payload)...)
		}
	}
	return string(out)
}
