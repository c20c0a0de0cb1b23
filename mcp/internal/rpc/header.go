package rpc

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The markers of an encoded header value.
const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// EncodeHeader returns a text as the value of a header such as Mcp-Name. Printable ASCII without
// spaces at its ends stays; anything else, and a text that looks encoded, is encoded.
func EncodeHeader(text string) string {
	if text == "" || plainHeader(text) {
		return text
	}
	text = strings.ToValidUTF8(text, "\ufffd")
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(text)) + encodedSuffix
}

// DecodeHeader returns the text of a header value.
func DecodeHeader(value string) (string, error) {
	encoded, begins := strings.CutPrefix(value, encodedPrefix)
	encoded, ends := strings.CutSuffix(encoded, encodedSuffix)
	if !begins || !ends {
		for i := range len(value) {
			if c := value[i]; (c < ' ' && c != '\t') || c > '~' {
				return "", fmt.Errorf("a header value with the byte %#02x: encode it as %s…%s", c, encodedPrefix, encodedSuffix)
			}
		}
		return value, nil
	}
	text, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return "", fmt.Errorf("an encoded header value: %w", err)
	}
	if !utf8.Valid(text) {
		return "", fmt.Errorf("an encoded header value is not UTF-8")
	}
	return string(text), nil
}

func plainHeader(text string) bool {
	if text[0] == ' ' || text[len(text)-1] == ' ' || strings.HasPrefix(text, encodedPrefix) && strings.HasSuffix(text, encodedSuffix) {
		return false
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
