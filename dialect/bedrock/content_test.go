package bedrock

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
)

func TestDocumentName(t *testing.T) {
	for name, want := range map[string]string{
		"report.pdf": "report-pdf", "a  b\tc": "a b c", "": "document", "   ": "document", "日本": "--", "ok [1] (x)-y": "ok [1] (x)-y", strings.Repeat("x", 300): strings.Repeat("x", 200),
	} {
		if got := documentName(&dragoman.Media{Name: name}); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

func TestCachePointBeyondHintIsIgnored(t *testing.T) {
	for block, want := range map[string]bool{
		`{"cachePoint":{"type":"default"}}`: true, `{"cachePoint":{"type":"default","ttl":"5m"}}`: true,
		`{"cachePoint":{"type":"eternal"}}`: false, `{"cachePoint":{"type":"default","ttl":"9h"}}`: false, `{"cachePoint":{"type":"default","x":1}}`: false,
		`{"cachePoint":{"type":"default"},"text":"a"}`: false, `{"text":"a"}`: false, `[]`: false, `{"cachePoint":7}`: false,
	} {
		if got := readCachePoint([]byte(block)) != nil; got != want {
			t.Errorf("%s: %v", block, got)
		}
	}
}
