package wirekit_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

func TestDoubledDoesNotAllocate(t *testing.T) {
	known := []string{"type", "text"}
	var r jsonwire.Reader
	for doc, want := range map[string]bool{
		``: false, `[]`: false, `"type"`: false, `{`: false, `{}`: false,
		`{"type":"a","text":{"type":1,"Type":2},"x":1,"x":2,"X":3}`: false,
		`{"type":"a","type":"a"}`:                                   true,
		`{"type":"a","x":[{}],"Text":1}`:                            true,
		`{"TYPE":"a"}`:                                              true,
	} {
		if got := wirekit.HasDuplicates(&r, []byte(doc), known); got != want {
			t.Errorf("%s: %v", doc, got)
		}
	}
	doc := []byte(`{"type":"a","text":"b","output":[{"a":{"b":[1,2]}}],"other":null}`)
	if n := testing.AllocsPerRun(100, func() { wirekit.HasDuplicates(&r, doc, known) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
