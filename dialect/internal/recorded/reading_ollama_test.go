package recorded_test

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// ollamaStops maps every done_reason in the recordings.
var ollamaStops = map[string]dragoman.StopReason{
	"":       dragoman.StopNone,
	"stop":   dragoman.StopEnd,
	"length": dragoman.StopLength,
}

func readOllamaWhole(body map[string]any) reading {
	return readOllamaStream([]map[string]any{body}, true)
}

func readOllamaStream(lines []map[string]any, _ bool) reading {
	out := reading{Usage: map[string]int64{}}
	var c choiceReading
	done := false
	for _, line := range lines {
		if line["error"] != nil {
			out.Failed = true
			break
		}
		out.Model = traffic.Text(line["model"])
		m := traffic.Object(line["message"])
		c.Text += traffic.Text(m["content"])
		c.Reasoning += traffic.Text(m["thinking"])
		for _, v := range traffic.List(m["tool_calls"]) {
			f := traffic.Object(traffic.Object(v)["function"])
			c.Calls = append(c.Calls, callReading{ID: traffic.Text(traffic.Object(v)["id"]), Name: traffic.Text(f["name"]), Args: traffic.JSONText(f["arguments"]), Object: true})
		}
		for name, member := range map[string]string{"input": "prompt_eval_count", "output": "eval_count", "cache_read": "prompt_eval_cached_count"} {
			if n, ok := num(line[member]); ok {
				out.Usage[name] = n
			}
		}
		if line["done"] == true {
			done, c.WireStop = true, traffic.Text(line["done_reason"])
			break
		}
	}
	out.Broken = !done && !out.Failed
	c.settle(wireStopIn(ollamaStops, c.WireStop), done)
	out.Choices = []choiceReading{c}
	return out
}

// lineObjects reads one object per line.
func lineObjects(body string) (out []map[string]any, done bool, err error) {
	for line := range strings.Lines(body) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		m, err := decodeObject(line)
		if err != nil {
			return out, false, err
		}
		out = append(out, m)
	}
	return out, false, nil
}
