package framing_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dragoman-go/dragoman/internal/framing"
)

func TestReadAllIgnoresWrongLength(t *testing.T) {
	body := strings.Repeat("dragoman ", 20_000)
	for _, says := range []int64{-1, 0, 1, int64(len(body)), int64(len(body)) + 1, 1 << 60} {
		for name, r := range map[string]io.Reader{
			"at once": strings.NewReader(body), "byte by byte": iotest.OneByteReader(strings.NewReader(body)), "with its end": iotest.DataErrReader(strings.NewReader(body)),
		} {
			if got, err := framing.ReadAll(r, says); err != nil || string(got) != body {
				t.Errorf("says %d, %s: %d bytes, %v", says, name, len(got), err)
			}
		}
	}
}

func TestReadAllEmptyBody(t *testing.T) {
	if got, err := framing.ReadAll(bytes.NewReader(nil), 10); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
}

func TestReadAllReturnsDataWithError(t *testing.T) {
	broken := errors.New("broken")
	got, err := framing.ReadAll(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), 8)
	if string(got) != "half" || !errors.Is(err, broken) {
		t.Errorf("%q %v", got, err)
	}
}

func TestClaimedLengthTakesNoMemory(t *testing.T) {
	if n := testing.AllocsPerRun(1, func() { _, _ = framing.ReadAll(strings.NewReader("x"), 1<<40) }); n > 3 {
		t.Errorf("%v allocations", n)
	}
}
