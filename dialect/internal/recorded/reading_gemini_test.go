package recorded_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// geminiStops maps every finish reason in the recordings; older recorders wrote
// the number of the enum.
var geminiStops = map[string]dragoman.StopReason{
	"":                     dragoman.StopNone,
	"STOP":                 dragoman.StopEnd,
	"1":                    dragoman.StopEnd,
	"MAX_TOKENS":           dragoman.StopLength,
	"UNEXPECTED_TOOL_CALL": dragoman.StopMalformedCall,
}

func readGeminiWhole(body map[string]any) reading {
	return readGeminiStream([]map[string]any{body}, true)
}

// geminiCandidate is a candidate with the call whose partial arguments are incomplete.
type geminiCandidate struct {
	choiceReading
	pieces any // the arguments so far; nil if no call is open
}

// readGeminiStream reads chunks. Each is a response with the next parts of its
// candidates.
func readGeminiStream(events []map[string]any, _ bool) reading {
	out := reading{Usage: map[string]int64{}}
	var candidates []*geminiCandidate
	counters := map[string]int64{}
	for _, ev := range events {
		if ev["error"] != nil {
			out.Failed = true
			break
		}
		if out.ID == "" {
			out.ID = traffic.Text(ev["responseId"])
		}
		if s := traffic.Text(ev["modelVersion"]); s != "" {
			out.Model = s
		}
		for name, v := range traffic.Object(ev["usageMetadata"]) {
			// The last value that is not zero counts, because chunks omit some.
			if n, ok := num(v); ok && (n != 0 || counters[name] == 0) {
				counters[name] = n
			}
		}
		for _, v := range traffic.List(ev["candidates"]) {
			candidate := traffic.Object(v)
			i, _ := num(candidate["index"])
			for int64(len(candidates)) <= i {
				candidates = append(candidates, &geminiCandidate{})
			}
			c := candidates[i]
			for _, p := range traffic.List(traffic.Object(candidate["content"])["parts"]) {
				c.part(traffic.Object(p))
			}
			if w := candidate["finishReason"]; w != nil {
				c.WireStop = fmt.Sprint(w)
			}
		}
	}
	out.geminiUsage(counters)
	terminal := len(candidates) > 0
	for _, c := range candidates {
		terminal = terminal && c.WireStop != ""
	}
	out.Broken = !terminal && !out.Failed
	for _, c := range candidates {
		c.settle(wireStopIn(geminiStops, c.WireStop), terminal && !out.Failed)
		out.Choices = append(out.Choices, c.choiceReading)
	}
	if out.Choices == nil {
		out.Choices = []choiceReading{{}}
	}
	return out
}

// geminiUsage makes totals: tokens that the provider's tools read are input,
// thoughts are output.
func (r *reading) geminiUsage(n map[string]int64) {
	sum := func(name string, must string, of ...string) {
		total, known := int64(0), false
		for _, k := range of {
			v, ok := n[k]
			total, known = total+v, known || ok && (must == "" || must == k)
		}
		if known {
			r.Usage[name] = total
		}
	}
	sum("input", "promptTokenCount", "promptTokenCount", "toolUsePromptTokenCount")
	sum("output", "", "candidatesTokenCount", "thoughtsTokenCount")
	sum("cache_read", "", "cachedContentTokenCount")
	sum("reasoning", "", "thoughtsTokenCount")
}

func (c *geminiCandidate) part(p map[string]any) {
	signature := traffic.Text(p["thoughtSignature"])
	f, isCall := p["functionCall"].(map[string]any)
	text, isText := p["text"].(string)
	switch {
	case isCall:
		c.functionCall(f)
	case p["thought"] == true:
		c.Reasoning += text
	case isText, signature != "" && len(p) == 1:
		c.Text += text
	default:
		for name := range p {
			if name != "thoughtSignature" {
				c.Others = append(c.Others, name)
			}
		}
		return
	}
	if signature != "" {
		c.Opaque = append(c.Opaque, signature)
	}
}

// functionCall reads a complete call, or the next partial arguments of one.
func (c *geminiCandidate) functionCall(f map[string]any) {
	if c.pieces == nil {
		c.Calls = append(c.Calls, callReading{ID: traffic.Text(f["id"]), Name: traffic.Text(f["name"]), Args: "{}", Object: true})
	}
	k := &c.Calls[len(c.Calls)-1]
	if args, ok := f["args"]; ok {
		k.Args = traffic.JSONText(args)
	}
	if c.pieces == nil && f["willContinue"] == true {
		c.pieces = map[string]any{}
	}
	for _, v := range traffic.List(f["partialArgs"]) {
		piece := traffic.Object(v)
		c.pieces = withPiece(c.pieces, pathSteps(traffic.Text(piece["jsonPath"])), piece)
	}
	if m, ok := c.pieces.(map[string]any); ok && len(m) > 0 {
		k.Args = traffic.JSONText(c.pieces)
	}
	if f["willContinue"] != true {
		c.pieces = nil
	}
}

// pathSteps splits a path such as $.a.b[0].
func pathSteps(path string) []string {
	path = strings.ReplaceAll(strings.TrimPrefix(path, "$."), "[", ".[")
	return strings.Split(path, ".")
}

// withPiece adds a partial value at its path; it joins texts.
func withPiece(v any, path []string, piece map[string]any) any {
	if len(path) == 0 {
		if text, ok := piece["stringValue"].(string); ok {
			return traffic.Text(v) + text
		}
		for _, member := range []string{"numberValue", "boolValue"} {
			if x, ok := piece[member]; ok {
				return x
			}
		}
		return nil
	}
	if index, ok := strings.CutPrefix(path[0], "["); ok {
		i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
		if err != nil {
			return err
		}
		l := traffic.List(v)
		for len(l) <= i {
			l = append(l, nil)
		}
		l[i] = withPiece(l[i], path[1:], piece)
		return l
	}
	m := traffic.Object(v)
	if m == nil {
		m = map[string]any{}
	}
	m[path[0]] = withPiece(m[path[0]], path[1:], piece)
	return m
}

// geminiObjects reads a stream of server-sent events, or a JSON array.
func geminiObjects(body string) ([]map[string]any, bool, error) {
	if !strings.HasPrefix(strings.TrimSpace(body), "[") {
		return sseObjects(body)
	}
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	var out []map[string]any
	err := d.Decode(&out)
	return out, false, err
}
