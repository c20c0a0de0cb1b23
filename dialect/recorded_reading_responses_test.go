package dialect_test

import (
	"cmp"
	"maps"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
)

// responsesWords is every status, and every reason of an incomplete response,
// in the recordings.
var responsesWords = map[string]dragoman.StopReason{
	"":                  dragoman.StopNone,
	"completed":         dragoman.StopEnd,
	"max_output_tokens": dragoman.StopLength,
	"content_filter":    dragoman.StopContentFilter,
	"failed":            dragoman.StopError,
}

func readResponsesWhole(body map[string]any) reading {
	out := reading{}
	var c choiceReading
	for _, v := range list(body["output"]) {
		c.responsesItem(obj(v))
	}
	out.responsesObject(body, &c)
	out.Choices = []choiceReading{c}
	return out
}

// responsesObject reads what a response object says of the whole.
func (r *reading) responsesObject(body map[string]any, c *choiceReading) {
	r.ID, r.Model = str(body["id"]), str(body["model"])
	r.Failed = r.Failed || body["error"] != nil
	r.Usage = map[string]int64{}
	put := func(name string, v any) {
		if n, ok := num(v); ok {
			r.Usage[name] = n
		}
	}
	u := obj(body["usage"])
	put("input", u["input_tokens"])
	put("output", u["output_tokens"])
	put("cache_read", obj(u["input_tokens_details"])["cached_tokens"])
	put("cache_write", obj(u["input_tokens_details"])["cache_write_tokens"])
	put("reasoning", obj(u["output_tokens_details"])["reasoning_tokens"])
	c.Word = str(body["status"])
	if c.Word == "incomplete" {
		c.Word = cmp.Or(str(obj(body["incomplete_details"])["reason"]), c.Word)
	}
	incomplete := map[string]bool{}
	for _, k := range c.Calls {
		incomplete[k.ID] = !k.Runs
	}
	word := wordIn(responsesWords, c.Word)
	if body["object"] == "response.compaction" {
		word = dragoman.StopCompaction
	}
	c.settle(word, true)
	for i := range c.Calls {
		c.Calls[i].Runs = c.Calls[i].Runs && !incomplete[c.Calls[i].ID]
	}
}

func (c *choiceReading) responsesItem(item map[string]any) {
	switch typ := str(item["type"]); typ {
	case "message":
		for _, v := range list(item["content"]) {
			switch p := obj(v); str(p["type"]) {
			case "output_text":
				c.Text += str(p["text"])
			case "refusal":
				c.Refusal += str(p["refusal"])
			default:
				c.Others = append(c.Others, str(p["type"]))
			}
		}
	case "reasoning":
		for _, v := range list(item["summary"]) {
			c.Summaries = append(c.Summaries, str(obj(v)["text"]))
		}
		for _, v := range list(item["content"]) {
			c.Reasoning += str(obj(v)["text"])
		}
		if s := str(item["encrypted_content"]); s != "" {
			c.Opaque = append(c.Opaque, s)
		}
	case "function_call", "custom_tool_call":
		k := callReading{ID: str(item["call_id"]), Name: str(item["name"]), Namespace: str(item["namespace"]), Args: str(item["arguments"])}
		if typ == "custom_tool_call" {
			k.Args, k.Freeform = str(item["input"]), true
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
			break // what follows is another answer
		}
		i, _ := num(ev["output_index"])
		switch str(ev["type"]) {
		case "response.output_item.added":
			if items[i] == nil {
				items[i] = obj(ev["item"])
			}
		case "response.output_item.done":
			items[i] = obj(ev["item"])
		case "response.created", "response.in_progress", "response.queued":
			first = obj(ev["response"])
			if out.FirstID == "" {
				out.FirstID = str(first["id"])
			}
		case "response.completed", "response.incomplete", "response.failed":
			last = obj(ev["response"])
			out.Failed = out.Failed || ev["type"] == "response.failed"
		case "error":
			out.Failed = true
		}
	}
	if last != nil && len(items) == 0 {
		for i, v := range list(last["output"]) {
			items[int64(i)] = obj(v)
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
