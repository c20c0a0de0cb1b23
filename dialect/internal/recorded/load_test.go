package recorded_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

type responseKind int

const (
	noResponse responseKind = iota
	wholeResponse
	streamResponse
	errorResponse
)

// response returns the recorded response body and its kind.
func (a api) response(t *testing.T, x *traffic.Exchange) (string, responseKind) {
	t.Helper()
	body, err := x.Response()
	if err != nil {
		t.Fatalf("%s: %v", x.ID(), err)
	}
	text := string(body)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	switch {
	case text == "":
		return "", noResponse
	case x.Status >= 400:
		return text, errorResponse
	case !strings.HasPrefix(lines[0], "{"):
		if a.File == "bedrock_converse" && strings.HasPrefix(text, "data:") {
			text = framed(t, lines)
		}
		return text, streamResponse
	case len(lines) == 1 || !json.Valid([]byte(lines[0])):
		return text, wholeResponse
	case a.File == "ollama_chat":
		return text, streamResponse
	default:
		return frame(lines), streamResponse
	}
}

// frame writes chunks, recorded one per line, as server-sent events.
func frame(chunks []string) string {
	var b strings.Builder
	for _, c := range chunks {
		if strings.TrimSpace(c) == "" {
			continue
		}
		var typed struct{ Type string }
		if json.Unmarshal([]byte(c), &typed) == nil && typed.Type != "" {
			b.WriteString("event: " + typed.Type + "\n")
		}
		b.WriteString("data: " + c + "\n\n")
	}
	return b.String()
}

// withEventNames adds to every event the name of its type.
func withEventNames(body string) string {
	var chunks []string
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			chunks = append(chunks, strings.TrimSpace(data))
		}
	}
	return frame(chunks)
}

// decodeJSON reads a document and keeps the text of its numbers.
func decodeJSON(body []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

func decodeObject(body string) (map[string]any, error) {
	v, err := decodeJSON([]byte(body))
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a %T, not an object", v)
	}
	return m, nil
}

// sseObjects reads the data of server-sent events strictly by the
// specification, without our code. done reports the terminal [DONE].
func sseObjects(body string) (out []map[string]any, done bool, err error) {
	body = strings.TrimPrefix(body, "\ufeff")
	body = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(body)
	var data []string
	dispatch := func() error {
		if data == nil {
			return nil
		}
		text := strings.TrimSpace(strings.Join(data, "\n"))
		data = nil
		if text == "[DONE]" {
			done = true
			return nil
		}
		if text == "" {
			return nil
		}
		m, err := decodeObject(text)
		if err != nil {
			return fmt.Errorf("event %d: %w", len(out), err)
		}
		out = append(out, m)
		return nil
	}
	for line := range strings.SplitSeq(body, "\n") {
		if line == "" {
			if err := dispatch(); err != nil {
				return out, done, err
			}
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		if field == "data" {
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
	// By the specification, an event that does not end with a blank line is
	// dropped. Recorders cut the last blank line, so it counts here.
	err = dispatch()
	return out, done, err
}
