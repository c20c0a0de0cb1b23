package openairesponses

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codectest"
	"github.com/dragoman-go/dragoman/internal/sse"
)

// decodeStream feeds a stream in pieces of n bytes, closes it and returns its
// events and the error of Feed. A stream that breaks is no error here: its
// events say so.
func decodeStream(body []byte, n int, o dialect.DecodeOptions) ([]dragoman.Event, dragoman.Report, error) {
	evs, rep, err := codectest.DecodeStream(Codec{}, o, codectest.Pieces(body, n)...)
	if errors.Is(err, dragoman.ErrIncompleteStream) {
		err = nil
	}
	return evs, rep, err
}

func collect(evs []dragoman.Event) (*dragoman.Response, error) { return codectest.Collect(evs) }

// dump writes a value in a form to compare: everything a wire could show, but
// no sidecars and origins.
func dump(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

type partView struct {
	Kind dragoman.PartKind
	Part any
}

type messageView struct {
	Role   dragoman.Role
	Phase  string
	Status dragoman.Status
	Parts  []partView
	Extra  *dragoman.Extra `json:",omitempty"`
}

func viewMessages(ms []dragoman.Message, strict bool) []messageView {
	var out []messageView
	for _, m := range ms {
		v := messageView{Role: m.Role, Phase: m.Phase, Status: m.Status}
		if strict {
			v.Extra = m.Extra
		}
		for _, p := range m.Parts {
			v.Parts = append(v.Parts, partView{p.Kind(), viewPart(p, strict)})
		}
		out = append(out, v)
	}
	return out
}

func viewPart(p dragoman.Part, strict bool) any {
	if strict {
		switch p := p.(type) {
		case *dragoman.Reasoning:
			q := *p
			q.Encrypted = "" // encrypted anew in every event
			q.Origin = nil
			return q
		case *dragoman.Opaque:
			return p.Type
		}
		return p
	}
	switch p := p.(type) {
	case *dragoman.Text:
		return p.Text
	case *dragoman.Refusal:
		return p.Text
	case *dragoman.Reasoning:
		return []any{p.Text, p.Summary, p.ID, p.Encrypted}
	case *dragoman.ToolCall:
		args := p.Arguments
		if p.Payload == dragoman.PayloadObject && strings.TrimSpace(args) == "" {
			args = "{}"
		}
		return []any{p.ID, p.Name, p.Namespace, p.Payload, args, p.Problem, p.Async}
	case *dragoman.Opaque:
		return []any{p.Type, string(p.JSON)}
	default:
		return p
	}
}

// meaning is what a response says.
func meaning(r *dragoman.Response) string {
	return dump(map[string]any{
		"id": r.ID, "model": r.Model, "out": viewMessages(r.Output, false), "stop": []any{r.Stop.Reason, r.Stop.Native},
		"usage": []any{r.Usage.Input, r.Usage.Output, r.Usage.CacheRead.N, r.Usage.Reasoning.N}, "tier": r.ServiceTier,
	})
}

// streamMeaning is all that a collected stream and its whole response must
// have in common.
func streamMeaning(r *dragoman.Response) string {
	return dump(map[string]any{
		"id": r.ID, "model": r.Model, "created": r.Created, "out": viewMessages(r.Output, true), "stop": r.Stop,
		"usage": r.Usage, "tier": r.ServiceTier, "extra": r.Extra,
	})
}

// checkOrder is an independent reading of the order that clients demand of
// events: it knows nothing of the encoder, only of the rules. minted says that all
// ids were made by the encoder.
func checkOrder(stream []byte, minted bool) error {
	type content struct {
		typ      string
		text     string
		textDone bool
		done     bool
	}
	type item struct {
		id, typ  string
		parts    map[int]*content
		sums     map[int]*content
		payload  string
		argsDone *string
		done     bool
		json     any
	}
	items := map[int]*item{}
	seq := 0
	state := "start"
	doneMarker := false
	failed := false
	var parser sse.Parser
	check := func(ev sse.Event) error {
		if !ev.HasData {
			return nil
		}
		if doneMarker {
			return errors.New("an event after [DONE]")
		}
		if string(ev.Data) == "[DONE]" {
			doneMarker = true
			if state != "ended" {
				return errors.New("[DONE] before a terminal event")
			}
			return nil
		}
		var e map[string]any
		if err := json.Unmarshal(ev.Data, &e); err != nil {
			return err
		}
		typ, _ := e["type"].(string)
		if typ == "" || typ != string(ev.Name) {
			return fmt.Errorf("type %q under event name %q", typ, ev.Name)
		}
		if n, ok := e["sequence_number"].(float64); !ok || int(n) != seq {
			return fmt.Errorf("%s: sequence number %v, want %d", typ, e["sequence_number"], seq)
		}
		seq++
		if _, has := e["error"]; has {
			return fmt.Errorf("%s: a top-level error member", typ)
		}
		if state == "ended" {
			return fmt.Errorf("%s after the terminal event", typ)
		}
		oi := func() (*item, error) {
			n, ok := e["output_index"].(float64)
			if !ok {
				return nil, fmt.Errorf("%s: no output_index", typ)
			}
			it := items[int(n)]
			if it == nil {
				return nil, fmt.Errorf("%s: item %d was never added", typ, int(n))
			}
			if it.done {
				return nil, fmt.Errorf("%s: item %d is done", typ, int(n))
			}
			if id, has := e["item_id"]; has && id != it.id {
				return nil, fmt.Errorf("%s: item id %v, want %s", typ, id, it.id)
			}
			return it, nil
		}
		sub := func(it *item, key string, m map[int]*content) (*content, error) {
			n, ok := e[key].(float64)
			if !ok {
				return nil, fmt.Errorf("%s: no %s", typ, key)
			}
			c := m[int(n)]
			if c == nil || c.done {
				return nil, fmt.Errorf("%s: part %d is not open", typ, int(n))
			}
			return c, nil
		}
		response := func() (map[string]any, error) {
			r, ok := e["response"].(map[string]any)
			if !ok {
				return nil, fmt.Errorf("%s: no response", typ)
			}
			for _, k := range []string{
				"id", "object", "created_at", "error", "incomplete_details", "instructions", "metadata", "model", "output",
				"parallel_tool_calls", "temperature", "tool_choice", "tools", "top_p", "status", "usage",
			} {
				if _, has := r[k]; !has {
					return nil, fmt.Errorf("%s: response without %s", typ, k)
				}
			}
			return r, nil
		}
		switch typ {
		case "response.created":
			if state != "start" {
				return errors.New("created twice")
			}
			state = "created"
			_, err := response()
			return err
		case "response.in_progress":
			if state != "created" {
				return errors.New("in_progress out of place")
			}
			state = "open"
			_, err := response()
			return err
		case "error":
			failed = true
			if _, ok := e["message"].(string); !ok {
				return errors.New("error without message")
			}
			return nil
		case "response.completed", "response.incomplete", "response.failed":
			if state != "open" && !failed {
				return errors.New(typ + " before the response began")
			}
			if failed && typ != "response.failed" {
				return errors.New(typ + " after an error")
			}
			state = "ended"
			r, err := response()
			if err != nil {
				return err
			}
			out, _ := r["output"].([]any)
			if len(out) != len(items) {
				return fmt.Errorf("%s: %d items in the output, %d were streamed", typ, len(out), len(items))
			}
			for i, o := range out {
				it := items[i]
				if it == nil || !it.done {
					return fmt.Errorf("%s: item %d was not done", typ, i)
				}
				if dump(o) != dump(it.json) {
					return fmt.Errorf("%s: item %d differs from its done event", typ, i)
				}
			}
			want := strings.TrimPrefix(typ, "response.")
			if other := r["status"] != "completed" && r["status"] != "failed"; r["status"] != want && !(want == "incomplete" && other) {
				return fmt.Errorf("%s: status %v", typ, r["status"])
			}
			return nil
		}
		if state != "open" || failed {
			return fmt.Errorf("%s before the response began or after an error", typ)
		}
		switch typ {
		case "response.output_item.added":
			n, ok := e["output_index"].(float64)
			if !ok || int(n) != len(items) {
				return fmt.Errorf("added item %v, want %d", e["output_index"], len(items))
			}
			j, _ := e["item"].(map[string]any)
			id, _ := j["id"].(string)
			kind, _ := j["type"].(string)
			for _, other := range items {
				if minted && id != "" && other.id == id {
					return fmt.Errorf("item id %s twice", id)
				}
			}
			prefix := map[string]string{"message": "msg_", "reasoning": "rs_", "function_call": "fc_", "custom_tool_call": "ctc_"}[kind]
			if minted && prefix != "" && (!strings.HasPrefix(id, prefix) || len(id) > 64) {
				return fmt.Errorf("%s with id %q", kind, id)
			}
			if prefix != "" && kind != "reasoning" && j["status"] != "in_progress" {
				return fmt.Errorf("%s added as %v", kind, j["status"])
			}
			if kind == "function_call" && j["arguments"] != "" || kind == "custom_tool_call" && j["input"] != "" {
				return errors.New("added with a payload")
			}
			items[len(items)] = &item{id: id, typ: kind, parts: map[int]*content{}, sums: map[int]*content{}}
			return nil
		case "response.output_item.done":
			it, err := oi()
			if err != nil {
				return err
			}
			j, _ := e["item"].(map[string]any)
			kind, _ := j["type"].(string)
			modelled := kind == "message" || kind == "reasoning" || kind == "function_call" || kind == "custom_tool_call"
			if id, _ := j["id"].(string); (minted || modelled) && (id != it.id || kind != it.typ) {
				return fmt.Errorf("done item %v %v, added as %s %s", j["type"], j["id"], it.typ, it.id)
			}
			for n, c := range it.parts {
				if !c.done {
					return fmt.Errorf("item done with part %d open", n)
				}
			}
			for n, c := range it.sums {
				if !c.done {
					return fmt.Errorf("item done with summary %d open", n)
				}
			}
			if it.typ == "function_call" && it.argsDone != nil && *it.argsDone == "" && j["status"] == "completed" && j["name"] != "" {
				return errors.New("arguments done empty") // only of a call that was cut off, or names no tool
			}
			switch it.typ {
			case "function_call", "custom_tool_call":
				key := map[string]string{"function_call": "arguments", "custom_tool_call": "input"}[it.typ]
				if it.argsDone == nil || j[key] != *it.argsDone {
					return fmt.Errorf("call done with %v, its payload was %v", j[key], it.argsDone)
				}
			case "message":
				cs, _ := j["content"].([]any)
				if len(cs) != len(it.parts) {
					return fmt.Errorf("message done with %d parts, %d were streamed", len(cs), len(it.parts))
				}
			}
			it.done, it.json = true, e["item"]
			return nil
		}
		it, err := oi()
		if err != nil {
			return err
		}
		switch typ {
		case "response.content_part.added":
			n, _ := e["content_index"].(float64)
			if int(n) != len(it.parts) {
				return fmt.Errorf("part %d added, want %d", int(n), len(it.parts))
			}
			p, _ := e["part"].(map[string]any)
			it.parts[int(n)] = &content{typ: p["type"].(string)}
		case "response.content_part.done":
			c, err := sub(it, "content_index", it.parts)
			if err != nil {
				return err
			}
			if !c.textDone {
				return errors.New("content part done before its text")
			}
			c.done = true
		case "response.output_text.delta", "response.refusal.delta", "response.reasoning_text.delta":
			c, err := sub(it, "content_index", it.parts)
			if err != nil {
				return err
			}
			want := map[string]string{"output_text": "response.output_text.delta", "refusal": "response.refusal.delta", "reasoning_text": "response.reasoning_text.delta"}[c.typ]
			if want != typ || c.textDone || e["delta"] == "" {
				return fmt.Errorf("%s in a %s part", typ, c.typ)
			}
			c.text += e["delta"].(string)
		case "response.output_text.done", "response.refusal.done", "response.reasoning_text.done":
			c, err := sub(it, "content_index", it.parts)
			if err != nil {
				return err
			}
			c.textDone = true
		case "response.reasoning_summary_part.added":
			n, _ := e["summary_index"].(float64)
			if it.typ != "reasoning" || int(n) != len(it.sums) {
				return fmt.Errorf("summary %d added, want %d", int(n), len(it.sums))
			}
			it.sums[int(n)] = &content{}
		case "response.reasoning_summary_text.delta":
			c, err := sub(it, "summary_index", it.sums)
			if err != nil {
				return err
			}
			if c.textDone {
				return errors.New("summary delta after done")
			}
		case "response.reasoning_summary_text.done":
			c, err := sub(it, "summary_index", it.sums)
			if err != nil {
				return err
			}
			c.textDone = true
		case "response.reasoning_summary_part.done":
			c, err := sub(it, "summary_index", it.sums)
			if err != nil {
				return err
			}
			if !c.textDone {
				return errors.New("summary part done before its text")
			}
			c.done = true
		case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
			if it.argsDone != nil || e["delta"] == "" || (typ == "response.custom_tool_call_input.delta") != (it.typ == "custom_tool_call") {
				return fmt.Errorf("%s in a %s", typ, it.typ)
			}
			it.payload += e["delta"].(string)
		case "response.function_call_arguments.done":
			s := e["arguments"].(string)
			it.argsDone = &s
		case "response.custom_tool_call_input.done":
			s := e["input"].(string)
			it.argsDone = &s
		default:
			return fmt.Errorf("unexpected %s", typ)
		}
		return nil
	}
	if err := parser.Feed(stream, check); err != nil {
		return err
	}
	if err := parser.Close(check); err != nil {
		return err
	}
	if state != "ended" || !doneMarker {
		return fmt.Errorf("the stream ended as %q, [DONE] %v", state, doneMarker)
	}
	return nil
}
