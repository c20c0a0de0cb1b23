package recorded_test

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// chatStops maps every finish reason in the recordings to its meaning. An
// unlisted one fails the test, so that a person looks at it.
var chatStops = map[string]dragoman.StopReason{
	"":               dragoman.StopNone,
	"stop":           dragoman.StopEnd,
	"tool_calls":     dragoman.StopToolCalls,
	"function_call":  dragoman.StopToolCalls,
	"eos":            dragoman.StopEnd,
	"length":         dragoman.StopLength,
	"content_filter": dragoman.StopContentFilter,
	"error":          dragoman.StopError,
}

func wireStopIn(table map[string]dragoman.StopReason, word string) dragoman.StopReason {
	if r, ok := table[word]; ok {
		return r
	}
	return "not in the table of the test: " + dragoman.StopReason(word)
}

func readChatWhole(body map[string]any) reading {
	out := reading{ID: traffic.Text(body["id"]), Model: traffic.Text(body["model"]), Usage: chatUsage(traffic.Object(body["usage"]))}
	out.Failed = body["error"] != nil
	for _, v := range traffic.List(body["choices"]) {
		choice := traffic.Object(v)
		var c choiceReading
		m := traffic.Object(choice["message"])
		c.chatMessage(m)
		for _, v := range traffic.List(m["tool_calls"]) {
			c.Calls = append(c.Calls, chatCall(traffic.Object(v)))
		}
		if f := traffic.Object(m["function_call"]); f != nil {
			c.Calls = append(c.Calls, callReading{Name: traffic.Text(f["name"]), Args: traffic.Text(f["arguments"])})
		}
		c.WireStop = traffic.Text(choice["finish_reason"])
		c.settle(wireStopIn(chatStops, c.WireStop), true)
		out.Choices = append(out.Choices, c)
	}
	if out.Choices == nil {
		c := choiceReading{}
		if out.Failed {
			c.Stop = dragoman.StopError
		}
		out.Choices = []choiceReading{c}
	}
	return out
}

// chatMessage reads a message or a delta except its calls.
func (c *choiceReading) chatMessage(m map[string]any) {
	thought := ""
	for _, key := range []string{"reasoning_content", "reasoning", "reasoning_text"} {
		if thought == "" {
			thought = traffic.Text(m[key])
		}
	}
	details := ""
	for _, v := range traffic.List(m["reasoning_details"]) {
		d := traffic.Object(v)
		details += traffic.Text(d["text"]) + traffic.Text(d["summary"])
		c.Opaque = append(c.Opaque, detailSecrets(d)...)
	}
	if thought == "" {
		thought = details
	}
	c.Reasoning += thought
	switch content := m["content"].(type) {
	case string:
		c.Text += content
	case []any:
		for _, v := range content {
			p := traffic.Object(v)
			switch traffic.Text(p["type"]) {
			case "text":
				c.Text += traffic.Text(p["text"])
			case "thinking":
				for _, t := range traffic.List(p["thinking"]) {
					c.Reasoning += traffic.Text(traffic.Object(t)["text"])
				}
			default:
				c.Others = append(c.Others, traffic.Text(p["type"]))
			}
		}
	}
	c.Refusal += traffic.Text(m["refusal"])
}

func chatCall(call map[string]any) callReading {
	k := callReading{ID: traffic.Text(call["id"])}
	f, args := traffic.Object(call["function"]), "arguments"
	if custom := traffic.Object(call["custom"]); custom != nil {
		f, args, k.Freeform = custom, "input", true
	}
	k.Name = traffic.Text(f["name"])
	switch a := f[args].(type) {
	case string:
		k.Args = a
	case nil:
	default:
		k.Args = traffic.JSONText(a)
	}
	return k
}

func chatUsage(u map[string]any) map[string]int64 {
	out := map[string]int64{}
	put := func(name string, v any) {
		if n, ok := num(v); ok {
			out[name] = n
		}
	}
	put("input", u["prompt_tokens"])
	put("output", u["completion_tokens"])
	for _, key := range []string{"num_cached_tokens", "cached_tokens", "prompt_cache_hit_tokens"} {
		put("cache_read", u[key])
	}
	in := traffic.Object(u["prompt_tokens_details"])
	put("cache_read", in["cached_tokens"])
	put("cache_write", in["cache_write_tokens"])
	put("reasoning", traffic.Object(u["completion_tokens_details"])["reasoning_tokens"])
	// xAI does not count reasoning as completion tokens; the total shows it.
	if total, ok := num(u["total_tokens"]); ok && out["reasoning"] > 0 && total == out["input"]+out["output"]+out["reasoning"] {
		out["output"] += out["reasoning"]
	}
	return out
}

func readChatStream(events []map[string]any, done bool) reading {
	out := reading{Usage: map[string]int64{}}
	type open struct {
		choiceReading
		index map[int64]int // tool call index on the wire to position
	}
	choices := []*open{}
	counted := false
	use := func(v any) {
		u := traffic.Object(v)
		if u == nil {
			return
		}
		n := chatUsage(u)
		any := n["input"] > 0 || n["output"] > 0
		if any || !counted {
			out.Usage = n
			counted = counted || any
		}
	}
	for _, ev := range events {
		if ev["error"] != nil {
			out.Failed = true
			break
		}
		if out.ID == "" { // some proxies change it in every chunk
			out.ID = traffic.Text(ev["id"])
		}
		if s := traffic.Text(ev["model"]); s != "" {
			out.Model = s
		}
		use(ev["usage"])
		use(traffic.Object(ev["x_groq"])["usage"])
		for _, v := range traffic.List(ev["choices"]) {
			choice := traffic.Object(v)
			use(choice["usage"])
			i, _ := num(choice["index"])
			for int64(len(choices)) <= i {
				choices = append(choices, &open{index: map[int64]int{}})
			}
			c := choices[i]
			delta := traffic.Object(choice["delta"])
			c.chatMessage(delta)
			for _, v := range traffic.List(delta["tool_calls"]) {
				call := traffic.Object(v)
				frag := chatCall(call)
				at, known := 0, false
				if n, ok := num(call["index"]); ok && n >= 0 {
					at, known = c.index[n], true
					if _, seen := c.index[n]; !seen {
						known = false
					}
					if known && frag.ID != "" && frag.Name != "" && frag.ID != c.Calls[at].ID {
						known = false // another call on an index in use
					}
					if !known {
						c.index[n] = len(c.Calls)
					}
				} else if len(c.Calls) > 0 && (frag.ID == "" || frag.ID == c.Calls[len(c.Calls)-1].ID) {
					at, known = len(c.Calls)-1, true
				}
				if !known {
					c.Calls = append(c.Calls, frag)
					continue
				}
				k := &c.Calls[at]
				if k.ID == "" {
					k.ID = frag.ID
				}
				if k.Name == "" {
					k.Name = frag.Name
				}
				k.Args += frag.Args
				k.Freeform = k.Freeform || frag.Freeform
			}
			if f := traffic.Object(delta["function_call"]); f != nil {
				if len(c.Calls) == 0 {
					c.Calls = []callReading{{}}
				}
				c.Calls[0].Name += traffic.Text(f["name"])
				c.Calls[0].Args += traffic.Text(f["arguments"])
			}
			if w := traffic.Text(choice["finish_reason"]); w != "" {
				c.WireStop = w
			}
		}
	}
	terminal := done
	if !done {
		terminal = len(choices) > 0
		for _, c := range choices {
			terminal = terminal && c.WireStop != ""
		}
	}
	out.Broken = !terminal && !out.Failed
	for _, c := range choices {
		c.settle(wireStopIn(chatStops, c.WireStop), terminal && !out.Failed)
		out.Choices = append(out.Choices, c.choiceReading)
	}
	if out.Choices == nil {
		out.Choices = []choiceReading{{Stop: dragoman.StopEnd}}
	}
	return out
}
