package recorded_test

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// reading is the content of a response in neutral terms. Both the independent
// reader of the raw JSON and the canonical response fill one, and the two must
// be equal.
type reading struct {
	ID, Model string
	// FirstID is the id in the first event of a stream, if known: some proxies
	// rotate ids.
	FirstID string
	Choices []choiceReading
	// Usage holds the known counters; an unknown one is absent, not zero.
	Usage map[string]int64
	// Failed means that the response reports an error, Broken that a stream
	// has no terminal marker.
	Failed, Broken bool
}

type choiceReading struct {
	Text, Refusal string
	// Reasoning is the visible reasoning, Summaries its visible summaries.
	Reasoning string
	Summaries []string
	// Opaque holds signatures and encrypted reasoning, in order.
	Opaque []string
	Calls  []callReading
	Stop   dragoman.StopReason
	// Word is the provider's own stop reason.
	WireStop string
	// Others holds the types of items and blocks that we do not model.
	Others []string
}

type callReading struct {
	ID        string // empty if the wire has none
	Name      string
	Namespace string
	Args      string
	Freeform  bool
	// Object means that the wire carries the arguments as JSON, not as a
	// string; they are compared as JSON.
	Object bool
	// Runs means that a client may run the call.
	Runs bool
}

// settle derives the stop reason of a choice, and which of its calls may run,
// from the meaning of the provider's word.
func (c *choiceReading) settle(word dragoman.StopReason, terminal bool) {
	benign := word == dragoman.StopNone || word == dragoman.StopEnd || word == dragoman.StopToolCalls
	c.Stop = word
	switch {
	case !terminal && (benign || word == dragoman.StopPause):
		c.Stop = dragoman.StopError
	case benign && len(c.Calls) > 0:
		c.Stop = dragoman.StopToolCalls
	case benign:
		c.Stop = dragoman.StopEnd
	}
	for i := range c.Calls {
		k := &c.Calls[i]
		sound := k.Freeform || blank(k.Args) || validObject(k.Args)
		k.Runs = terminal && (benign || word == dragoman.StopPause) && sound && k.Name != ""
	}
}

func orEmptyObject(args string) string {
	if blank(args) {
		return "{}"
	}
	return args
}

func blank(args string) bool {
	s := strings.TrimSpace(args)
	return s == "" || s == "null" || s == `""`
}

// validObject reports whether text is one JSON object without duplicate keys at
// any depth.
func validObject(text string) bool {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	t, err := d.Token()
	if err != nil || t != json.Delim('{') {
		return false
	}
	if !uniqueKeys(d, '{') {
		return false
	}
	_, err = d.Token()
	return err == io.EOF
}

// uniqueKeys reads the rest of an object or array and reports whether its keys are unique.
func uniqueKeys(d *json.Decoder, open json.Delim) bool {
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return false
		}
		if open == '{' {
			key, _ := t.(string)
			if seen[key] {
				return false
			}
			seen[key] = true
			if t, err = d.Token(); err != nil {
				return false
			}
		}
		if next, ok := t.(json.Delim); ok && !uniqueKeys(d, next) {
			return false
		}
	}
	_, err := d.Token()
	return err == nil
}

// canonicalReading reads a canonical response.
func canonicalReading(r *dragoman.Response) reading {
	out := reading{ID: r.ID, Model: r.Model, Usage: map[string]int64{}, Failed: r.Error != nil}
	out.Choices = append(out.Choices, canonicalChoice(r.Output, r.Stop))
	for _, a := range r.Alternatives {
		out.Choices = append(out.Choices, canonicalChoice(a.Output, a.Stop))
	}
	for name, c := range map[string]dragoman.Count{
		"input": r.Usage.Input, "cache_read": r.Usage.CacheRead, "cache_write": r.Usage.CacheWrite,
		"output": r.Usage.Output, "reasoning": r.Usage.Reasoning,
	} {
		if c.Known {
			out.Usage[name] = c.N
		}
	}
	return out
}

func canonicalChoice(ms []dragoman.Message, stop dragoman.Stop) choiceReading {
	c := choiceReading{Stop: stop.Reason, WireStop: stop.Native}
	for _, m := range ms {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				c.Text += p.Text
				c.signed(p.Signature)
			case *dragoman.Refusal:
				c.Refusal += p.Text
			case *dragoman.Reasoning:
				c.Reasoning += p.Text
				c.Summaries = append(c.Summaries, p.Summary...)
				for _, s := range []string{p.Signature, p.Encrypted} {
					if s != "" {
						c.Opaque = append(c.Opaque, s)
					}
				}
				for _, d := range p.Details {
					if o, err := decodeObject(string(d)); err == nil {
						c.Opaque = append(c.Opaque, detailSecrets(o)...)
					}
				}
			case *dragoman.ToolCall:
				c.signed(p.Signature)
				k := callReading{
					ID: p.ID, Name: p.Name, Namespace: p.Namespace, Args: p.Arguments,
					Freeform: p.Payload == codes.PayloadText, Runs: p.Problem == nil,
				}
				if p.Synthetic {
					k.ID = ""
				}
				c.Calls = append(c.Calls, k)
			case *dragoman.Opaque:
				c.Others = append(c.Others, p.Type)
			default:
				c.Others = append(c.Others, p.Kind())
			}
		}
	}
	return c
}

// signed adds the signature of a part that is not reasoning.
func (c *choiceReading) signed(signature string) {
	if signature != "" {
		c.Opaque = append(c.Opaque, signature)
	}
}

// detailSecrets returns the opaque strings of one reasoning record.
func detailSecrets(o map[string]any) []string {
	var out []string
	for _, key := range []string{"signature", "data"} {
		if s := traffic.Text(o[key]); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// differences lists how two readings differ, one line each.
func (want reading) differences(got reading) []string {
	var out []string
	report := func(place string, want, got any) {
		out = append(out, fmt.Sprintf("%s: want %.300q, got %.300q", place, fmt.Sprint(want), fmt.Sprint(got)))
	}
	equal := func(place string, want, got string) {
		if want != got {
			report(place, want, got)
		}
	}
	equal("id", want.ID, got.ID)
	equal("model", want.Model, got.Model)
	equal("usage", fmt.Sprint(want.Usage), fmt.Sprint(got.Usage))
	equal("failed", fmt.Sprint(want.Failed), fmt.Sprint(got.Failed))
	equal("broken", fmt.Sprint(want.Broken), fmt.Sprint(got.Broken))
	if len(want.Choices) != len(got.Choices) {
		report("choices", len(want.Choices), len(got.Choices))
		return out
	}
	for i, w := range want.Choices {
		g := got.Choices[i]
		equal("text", w.Text, g.Text)
		equal("refusal", w.Refusal, g.Refusal)
		equal("reasoning", w.Reasoning, g.Reasoning)
		if !want.Failed && !want.Broken { // otherwise there is no stop reason
			equal("stop", string(w.Stop), string(g.Stop))
			equal("stop word", w.WireStop, g.WireStop)
		}
		if !slices.Equal(w.Summaries, g.Summaries) {
			report("summaries", w.Summaries, g.Summaries)
		}
		// Fragments of one opaque string are joined.
		equal("opaque reasoning", strings.Join(w.Opaque, ""), strings.Join(g.Opaque, ""))
		if !slices.Equal(w.Others, g.Others) {
			report("other items", w.Others, g.Others)
		}
		if len(w.Calls) != len(g.Calls) {
			report("calls", w.Calls, g.Calls)
			continue
		}
		for j, wc := range w.Calls {
			gc := g.Calls[j]
			equal("call id", wc.ID, gc.ID)
			equal("call name", wc.Namespace+"."+wc.Name, gc.Namespace+"."+gc.Name)
			if wc.Object {
				wc.Args, gc.Args = sortedJSON(wc.Args), sortedJSON(orEmptyObject(gc.Args))
			}
			equal("call arguments", wc.Args, gc.Args)
			equal("call kind", fmt.Sprint(wc.Freeform), fmt.Sprint(gc.Freeform))
			equal("call runs", fmt.Sprint(wc.Runs), fmt.Sprint(gc.Runs))
		}
	}
	return out
}

func num(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	if i, err := n.Int64(); err == nil {
		return i, true
	}
	f, err := n.Float64()
	return int64(f), err == nil
}

// sortedJSON returns text as compact JSON with sorted keys, or text unchanged if
// it is not JSON.
func sortedJSON(text string) string {
	v, err := decodeJSON([]byte(text))
	if err != nil {
		return text
	}
	return traffic.JSONText(v)
}
