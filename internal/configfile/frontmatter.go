package configfile

import (
	"bytes"
	"strings"
)

// FrontMatter returns the front matter and the text after it.
func FrontMatter(data []byte) (front, body []byte, ok bool) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	line, rest, more := bytes.Cut(data, []byte("\n"))
	if !more || strings.TrimRight(string(line), " \t\r") != "---" {
		return nil, nil, false
	}
	for at := 0; at < len(rest); {
		line, next := rest[at:], len(rest)
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line, next = line[:end], at+end+1
		}
		if strings.TrimRight(string(line), " \t\r") == "---" {
			return rest[:at], rest[next:], true
		}
		at = next
	}
	return nil, nil, false
}
