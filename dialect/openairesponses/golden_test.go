package openairesponses

import (
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
)

// TestGoldenWireFiles runs testdata/*.txtar; see [codectest.Wire] for the format.
func TestGoldenWireFiles(t *testing.T) {
	codectest.Golden(t, codectest.Wire(Codec{}, func(stream []byte) error { return checkOrder(stream, true) }))
}

func encodeStream(t testing.TB, evs []dragoman.Event, o dialect.EncodeOptions) ([]byte, dragoman.Report) {
	t.Helper()
	return codectest.EncodeStream(t, Codec{}, o, evs)
}
