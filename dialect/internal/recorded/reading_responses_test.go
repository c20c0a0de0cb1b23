package recorded_test

import (
	"cmp"
	"maps"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// responsesStops maps every status in the recordings, and every reason of an
// incomplete response.
var responsesStops = map[string]dragoman.StopReason{
	"":                  dragoman.StopNone,
	"completed":         dragoman.StopEnd,
	"max_output_tokens": dragoman.StopLength,
	"content_filter":    dragoman.StopContentFilter,
	"failed":            dragoman.StopError,
}

func readResponsesWhole(body map[string]any) reading {
	out := reading{}
	var c choiceReading
	for _, v := range traffic.List(body["output"]) {
		c.responsesItem(traffic.Object(v))
	}
	out.responsesObject(body, &c)
	out.Choices = []choiceReading{c}
	return out
}

// responsesObject reads the fields that describe the whole response.
func (r *reading) responsesObject(body map[string]any, c *choiceReading) {
	r.ID, r.Model = traffic.Text(body["id"]), traffic.Text(body["model"])
	r.Failed = r.Failed || body["error"] != nil
	r.Usage = map[string]int64{}
	put := func(name string, v any) {
		if n, ok := num(v); ok {
			r.Usage[name] = n
		}
	}
	u := traffic.Object(body["usage"])
	put("input", u["input_tokens"])
	put("output", u["output_tokens"])
	put("cache_read", traffic.Object(u["input_tokens_details"])["cached_tokens"])
	put("cache_write", traffic.Object(u["input_tokens_details"])["cache_write_tokens"])
	put("reasoning", traffic.Object(u["output_tokens_details"])["reasoning_tokens"])
	c.WireStop = traffic.Text(body["status"])
	if c.WireStop == "incomplete" {
		c.WireStop = cmp.Or(traffic.Text(traffic.Object(body["incomplete_details"])["reason"]), c.WireStop)
	}
	incomplete := map[string]bool{}
	for _, k := range c.Calls {
		incomplete[k.ID] = !k.Runs
	}
	word := wireStopIn(responsesStops, c.WireStop)
	if body["object"] == "response.compaction" {
		word = dragoman.StopCompaction
	}
	c.settle(word, true)
	for i := range c.Calls {
		c.Calls[i].Runs = c.Calls[i].Runs && !incomplete[c.Calls[i].ID]
	}
}

func (c *choiceReading) responsesItem(item map[string]any) {
	switch typ := traffic.Text(item["type"]); typ {
	case "message":
		for _, v := range traffic.List(item["content"]) {
			switch p := traffic.Object(v); traffic.Text(p["type"]) {
			case "output_text":
				c.Text += traffic.Text(p["text"])
			case "refusal":
				c.Refusal += traffic.Text(p["refusal"])
			default:
				c.Others = append(c.Others, traffic.Text(p["type"]))
			}
		}
	case "reasoning":
		for _, v := range traffic.List(item["summary"]) {
			c.Summaries = append(c.Summaries, traffic.Text(traffic.Object(v)["text"]))
		}
		for _, v := range traffic.List(item["content"]) {
			c.Reasoning += traffic.Text(traffic.Object(v)["text"])
		}
		if s := traffic.Text(item["encrypted_content"]); s != "" {
			c.Opaque = append(c.Opaque, s)
		}
	case "function_call", "custom_tool_call":
		k := callReading{ID: traffic.Text(item["call_id"]), Name: traffic.Text(item["name"]), Namespace: traffic.Text(item["namespace"]), Args: traffic.Text(item["arguments"])}
		if typ == "custom_tool_call" {
			k.Args, k.Freeform = traffic.Text(item["input"]), true
		}
		k.Runs = item["status"] != "incomplete"
		c.Calls = append(c.Calls, k)
	default:
		c.Others = append(c.Others, typ)
	}
}

func readResponsesStream(events []map[string]any, _ bool) reading {
	var out reading
	var c choiceReading
	items := map[int64]map[string]any{}
	var first, last map[string]any
	for _, ev := range events {
		if last != nil {
			break // the rest is another response
		}
		i, _ := num(ev["output_index"])
		switch traffic.Text(ev["type"]) {
		case "response.output_item.added":
			if items[i] == nil {
				items[i] = traffic.Object(ev["item"])
			}
		case "response.output_item.done":
			items[i] = traffic.Object(ev["item"])
		case "response.created", "response.in_progress", "response.queued":
			first = traffic.Object(ev["response"])
			if out.FirstID == "" {
				out.FirstID = traffic.Text(first["id"])
			}
		case "response.completed", "response.incomplete", "response.failed":
			last = traffic.Object(ev["response"])
			out.Failed = out.Failed || ev["type"] == "response.failed"
		case "error":
			out.Failed = true
		}
	}
	if last != nil && len(items) == 0 {
		for i, v := range traffic.List(last["output"]) {
			items[int64(i)] = traffic.Object(v)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(items)) {
		c.responsesItem(items[i])
	}
	out.Broken = last == nil && !out.Failed
	if last == nil {
		last = first
	}
	out.responsesObject(last, &c)
	out.Choices = []choiceReading{c}
	return out
}
