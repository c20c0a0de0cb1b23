package textkit_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/textkit"
)

const boundary = "0123456789abcdef01234567"

func TestT9_UnwrapReturnsWhatWasWrapped(t *testing.T) {
	for _, text := range []string{"", "one line", "two\nlines\n", "\n<<< not a fence\n>>> x", textkit.Fence("inner", "other", "ffffffffffffffffffffffff")} {
		if got := textkit.Unfence(textkit.Fence(text, "look", boundary)); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
		if got := textkit.Unfence("ERROR: " + textkit.Fence(text, "look", boundary)); got != text {
			t.Errorf("behind a mark: got %q, want %q", got, text)
		}
	}
}

func TestT9_TextWithoutAFenceIsUnchanged(t *testing.T) {
	whole := textkit.Fence("text", "look", boundary)
	for _, text := range []string{
		"", "text", "Output of the tool x", whole + " ", "x\n" + whole, whole[:len(whole)-1],
		"Output of the tool x\n<<< abc\ntext\n>>> abc", // the header names no boundary
		textkit.Fence("has "+boundary+" in it", "look", boundary),
	} {
		if got := textkit.Unfence(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
