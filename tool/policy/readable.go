package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// readable formats the arguments of a call for a human: one field per line, in their order,
// with nested fields and elements indented. A text of several lines follows its field, each
// line after "> ". Unusual names are quoted and other values are JSON, so that no argument can
// look like another one.
func readable(arguments json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.UseNumber()
	var b strings.Builder
	if err := writeReadable(&b, dec, ""); err != nil {
		return string(arguments)
	}
	return strings.TrimLeft(b.String(), "\n ")
}

// plainName matches field names that are shown without quotes.
var plainName = regexp.MustCompile(`^[\p{L}\p{N}_.$-]+$`)

// writeReadable writes the next value of dec after the name of its field. A value of several
// lines begins with a line break.
func writeReadable(b *strings.Builder, dec *json.Decoder, indent string) error {
	if len(indent) >= maxIndent {
		return writeJSON(b, dec)
	}
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		if !dec.More() {
			b.WriteString(map[json.Delim]string{'{': " {}", '[': " []"}[v])
			_, err := dec.Token()
			return err
		}
		for dec.More() {
			name := "-"
			if v == '{' {
				key, err := dec.Token()
				if err != nil {
					return err
				}
				if name = fmt.Sprint(key); !plainName.MatchString(name) {
					name = strconv.Quote(name)
				}
				name += ":"
			}
			b.WriteString("\n" + indent + name)
			if err := writeReadable(b, dec, indent+"  "); err != nil {
				return err
			}
		}
		_, err := dec.Token()
		return err
	case string:
		writeText(b, v, indent)
	case nil:
		b.WriteString(" null")
	default:
		fmt.Fprintf(b, " %v", v)
	}
	return nil
}

// maxIndent is the indentation from which values are written as JSON on one line. Otherwise a
// short but deeply nested value could fill many screens.
const maxIndent = 32

// writeJSON writes the next value of dec as JSON.
func writeJSON(b *strings.Builder, dec *json.Decoder) error {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return err
	}
	b.WriteString(" " + line.String())
	return nil
}

func writeText(b *strings.Builder, text, indent string) {
	body, ended := strings.CutSuffix(text, "\n")
	if body == "" || !strings.Contains(text, "\n") {
		b.WriteString(" " + strconv.Quote(text))
		return
	}
	fmt.Fprintf(b, " (%d lines", strings.Count(body, "\n")+1)
	if !ended {
		b.WriteString(", no newline at the end")
	}
	mark := "\n" + indent + "> "
	b.WriteString(")" + mark + strings.ReplaceAll(body, "\n", mark))
}
