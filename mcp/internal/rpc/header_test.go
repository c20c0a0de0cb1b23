package rpc_test

import (
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

func TestHeaderValuesSurvive(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "",
		"read_file":        "read_file",
		"a b":              "a b",
		" a":               "=?base64?IGE=?=",
		"a ":               "=?base64?YSA=?=",
		"größe":            "=?base64?Z3LDtsOfZQ==?=",
		"a\r\nX-Evil: 1":   "=?base64?YQ0KWC1FdmlsOiAx?=",
		"tab\tin":          "=?base64?dGFiCWlu?=",
		"=?base64?YQ==?=":  "=?base64?PT9iYXNlNjQ/WVE9PT89?=",
		"=?base64?half":    "=?base64?half",
		"42":               "42",
		"file:///a%20b?c=": "file:///a%20b?c=",
	} {
		got := rpc.EncodeHeader(text)
		if got != want {
			t.Errorf("%q is encoded as %q, want %q", text, got, want)
		}
		if back, err := rpc.DecodeHeader(got); back != text || err != nil {
			t.Errorf("%q is decoded as %q, %v", got, back, err)
		}
	}
	for _, value := range []string{"=?base64?!?=", "=?base64?YQ=?=", "=?base64?/w==?=", "ä", "a\nb", "\x7f"} {
		if text, err := rpc.DecodeHeader(value); err == nil {
			t.Errorf("%q is decoded as %q", value, text)
		}
	}
}

func FuzzHeader(f *testing.F) {
	for _, s := range []string{"a", "=?base64?YQ==?=", "ä", " ", "=?base64?=", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		value := rpc.EncodeHeader(s)
		for i := range len(value) {
			if value[i] < ' ' || value[i] > '~' {
				t.Fatalf("%q is encoded as %q", s, value)
			}
		}
		if back, err := rpc.DecodeHeader(value); err != nil || back != strings.ToValidUTF8(s, "\ufffd") {
			t.Fatalf("%q is encoded as %q and decoded as %q, %v", s, value, back, err)
		}
		_, _ = rpc.DecodeHeader(s)
	})
}
