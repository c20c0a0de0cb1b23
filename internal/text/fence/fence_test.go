package fence_test

import (
	"testing"

	"github.com/dragoman-go/dragoman/internal/text/fence"
)

const boundary = "0123456789abcdef01234567"

func TestT9_UnwrapReturnsWhatWasWrapped(t *testing.T) {
	for _, text := range []string{"", "one line", "two\nlines\n", "\n<<< not a fence\n>>> x", fence.Wrap("inner", "other", "ffffffffffffffffffffffff")} {
		if got := fence.Unwrap(fence.Wrap(text, "look", boundary)); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
		if got := fence.Unwrap("ERROR: " + fence.Wrap(text, "look", boundary)); got != text {
			t.Errorf("behind a mark: got %q, want %q", got, text)
		}
	}
}

func TestT9_TextWithoutAFenceIsUnchanged(t *testing.T) {
	whole := fence.Wrap("text", "look", boundary)
	for _, text := range []string{
		"", "text", "Output of the tool x", whole + " ", "x\n" + whole, whole[:len(whole)-1],
		"Output of the tool x\n<<< abc\ntext\n>>> abc", // the header names no boundary
		fence.Wrap("has "+boundary+" in it", "look", boundary),
	} {
		if got := fence.Unwrap(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
